"""How does the generated source of a kernel become C++ that the emulator loads?

Line by line the same, so that the source map holds: what CUDA says about shared memory is put in
other words, and an entry for each launch is added at the end. Operations the emulator does not know
are refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tilelang.codegen.device_source import DeviceSource
from tilelang.codegen.source_map import Line
from tilelang_diagnostics import diagnose
from tilelang_diagnostics.model import Diagnostic

# `cp.async` that reports to an mbarrier, mbarriers themselves, TMA, warp-group matrix instructions,
# clusters: their headers are not there.
REFUSED_HEADERS: Final = frozenset({"mbarrier.h", "tma.h", "wgmma.h", "cluster.h"})
_INCLUDE: Final = re.compile(r"#include <tl/(\w+\.h)>")
_ARENA: Final = re.compile(
    r"extern __shared__ __align__\(\d+\) unsigned char (\w+)\[\];"
)  # fmt: skip
_CALL: Final = re.compile(r"\btl::(\w+)")


def host_source(source: DeviceSource) -> str:
    """The C++ of a kernel."""
    lines = [
        _ARENA.sub(r"unsigned char* const \1 = ::tl::emulator::current->arena;", line.text)
        for line in source.source.lines
    ]
    lines.append("#include <emulator/entry.h>")
    lines += [f"TL_ENTER({launch.symbol})" for launch in source.launches]
    return "".join(f"{line}\n" for line in lines)


def refusals(source: DeviceSource, refused: frozenset[str]) -> tuple[Diagnostic, ...]:
    """TL401 for each place that calls one of the device functions in `refused`."""
    found: dict[tuple[object, ...], Diagnostic] = {}
    for name, line in _calls(source):
        if name in refused:
            found.setdefault((name, line.span), _refusal(name, line))
    if not found and source.maps:
        found[()] = _refusal("tensor_map", Line(""))
    return tuple(found.values())


def _calls(source: DeviceSource) -> Iterator[tuple[str, Line]]:
    for line in source.source.lines:
        for name in _CALL.findall(line.text):
            yield name, line


def _refusal(name: str, line: Line) -> Diagnostic:
    return diagnose(
        "TL401",
        f"{name} is not emulated: the emulator does not know this operation",
        span=line.span,
        label="became an operation only a GPU runs",
        calls=line.calls,
        help="compile for cuda:sm_80, which does without it, or run this kernel on a GPU",
    )
