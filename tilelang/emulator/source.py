"""How does the generated source of a kernel become C++ that the emulator loads?

Line by line the same, so that the source map holds: what CUDA says about shared memory is put in
other words, and an entry for each launch is added at the end. Operations the emulator does not know
are refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from tilelang.codegen.device_source import DeviceSource
from tilelang.codegen.source_map import Line
from tilelang.emulator.metal_source import metal_entries, metal_lines
from tilelang_diagnostics import diagnose
from tilelang_diagnostics.model import Diagnostic

# Blocks of a cluster run in processes of their own, and would have to see each other's memory.
REFUSED: Final = frozenset({
    "cluster_arrive", "cluster_wait", "cluster_sync", "block_rank_in_cluster", "get_cluster_id",
    "get_cluster_dims", "get_cluster_extent", "get_cluster_size", "tma_load_multicast",
})  # fmt: skip
_ARENA: Final = re.compile(
    r"(?:alignas\(\d+\) )?extern __shared__ (?:__align__\(\d+\) )?unsigned char (\w+)\[\];"
)  # fmt: skip
# Of a class, too, it needs no code to begin with, which would look around it for whether it ran.
_STATIC: Final = re.compile(r"^((?!.*\bextern\b).*\b__shared__ [^;=]*\]);")
# As the printer declares an array of a thread.
_LOCAL: Final = re.compile(
    r"^\s+(?:__align__|alignas)\(\d+\) (?!threadgroup)[\w:<>, ]+ (\w+)\[\d+\];$"
)
_PACKED: Final = re.compile(r"\btl::store_packed<[^>]*>\((\w+),")
_STORE: Final = re.compile(r"\btl::tma_(?:store|reduce_add)\b")
_CALL: Final = re.compile(r"\btl::(\w+)")


def host_source(source: DeviceSource, check: bool = False) -> str:
    """The C++ of a kernel; for checked mode arrays of a thread are declared to the runtime."""
    if source.dialect == "metal":
        lines, entries = metal_lines(source), metal_entries(source.launches)
    else:
        lines = [
            _STATIC.sub(
                r"\1 = {};",
                _ARENA.sub(r"unsigned char* const \1 = ::tl::emulator::current->arena;", line.text),
            )
            for line in source.source.lines
        ]
        entries = ["#include <emulator/entry.h>"]
        entries += [f"TL_ENTER({launch.symbol})" for launch in source.launches]
    if check:
        lines = _declared(lines)
    return "".join(f"{line}\n" for line in (*lines, *entries))


def _declared(lines: Sequence[str]) -> list[str]:
    """Each array is declared behind its definition. One with several elements in a byte is not:
    writing one of them reads the byte."""
    packed = {name for line in lines for name in _PACKED.findall(line)}

    def declaration(found: re.Match[str]) -> str:
        name = found[1]
        told = f'::tl::emulator::declare_local({name}, sizeof({name}), "{name}");'
        return found[0] if name in packed else f"{found[0]} {told}"

    return [_LOCAL.sub(declaration, line) for line in lines]


def refusals(source: DeviceSource) -> tuple[Diagnostic, ...]:
    """TL401 for each place that calls one of the device functions in `REFUSED`."""
    found: dict[tuple[object, ...], Diagnostic] = {}
    for name, line in _calls(source):
        if name in REFUSED:
            found.setdefault((name, line.span), _refusal(name, line))
    if not found and any(launch.cluster is not None for launch in source.launches):
        found[()] = _refusal("cluster_dims", Line(""))
    return tuple(found.values())


def written_tensors(source: DeviceSource) -> frozenset[str]:
    """Tensors and workspaces that a kernel writes, itself or through a tensor map."""
    found = {p.source for launch in source.launches for p in launch.params if p.written}
    stored = "\n".join(line.text for line in source.source.lines if _STORE.search(line.text))
    found |= {m.source for m in source.maps if re.search(rf"\b{re.escape(m.name)}\b", stored)}
    return frozenset(found)


def local_arrays(source: DeviceSource) -> tuple[str, ...]:
    """Names of the arrays that threads hold."""
    matches = (_LOCAL.match(line.text) for line in source.source.lines)
    return tuple(m[1] for m in matches if m is not None)


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
        help="run this kernel on a GPU, or without clusters",
    )
