"""How does generated Metal become C++ that the emulator loads?

Line by line the same, as for CUDA (`source`). The arena becomes the runtime's, and each kernel gets
an entry that hands it its arguments and positions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from tilelang.codegen.device_source import DeviceSource, KernelLaunch

_ARENA: Final = re.compile(r"alignas\(\d+\) threadgroup uchar (\w+)\[\d+\];")
# Advice to an optimiser, which here only costs time.
_ADVICE: Final = "#pragma clang loop"


def metal_lines(source: DeviceSource) -> list[str]:
    """The lines of a kernel, as C++."""
    lines = (line.text for line in source.source.lines)
    return [
        ""
        if text.lstrip().startswith(_ADVICE)
        else _ARENA.sub(r"unsigned char* const \1 = ::tl::emulator::current->arena;", text)
        for text in lines
    ]


def metal_entries(launches: Sequence[KernelLaunch]) -> list[str]:
    """What the runtime calls, one function a kernel."""
    return ["#include <metal_entry.h>", *(_entry(launch) for launch in launches)]


def _entry(launch: KernelLaunch) -> str:
    given = [f"tl::emulator::Argument{{arguments[{n}]}}" for n, _ in enumerate(launch.params)]
    given += ["tl::emulator::threadgroup_position()", "tl::emulator::thread_position()"]
    return (
        'extern "C" __attribute__((disable_sanitizer_instrumentation)) '
        f"void tl_enter_{launch.symbol}(void* const* arguments) "
        f"{{ {launch.symbol}({', '.join(given)}); }}"
    )
