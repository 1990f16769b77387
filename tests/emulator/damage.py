"""How is one line of a kernel's generated source damaged, and the kernel run as it then is?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

import tilelang
from tests.emulator.running import TARGET
from tilelang.codegen.device_source import DeviceSource
from tilelang.codegen.source_map import SourceMap
from tilelang.emulator.kernel import EmulatedKernel
from tilelang.emulator.settings import Emulator

# What is taken away or weakened: a pattern, and what stands in its place.
CHANGES: Final[tuple[tuple[str, str, str], ...]] = (
    ("no barrier", r"tl::sync_threads\(\);", ""),
    ("no commit", r"tl::cp_async_commit\(\);", ""),
    ("no wait", r"tl::cp_async_wait<\d+>\(\);", ""),
    ("one group fewer", r"tl::cp_async_wait<0>", "tl::cp_async_wait<1>"),
    ("one group fewer", r"tl::cp_async_wait<1>", "tl::cp_async_wait<2>"),
    ("one group fewer", r"tl::cp_async_wait<2>", "tl::cp_async_wait<3>"),
)


@dataclass(frozen=True)
class Mutant:
    """`device` with line `number` changed."""

    change: str
    number: int
    before: str
    device: DeviceSource

    def __str__(self) -> str:
        return f"{self.change} (line {self.number}: {self.before.strip()})"


def device_of(prim_func: Any) -> DeviceSource:
    """The source of a kernel."""
    kernel = tilelang.compile(prim_func, target=TARGET, execution_backend="emulator")
    device: DeviceSource = kernel._built.runner.device
    return device


def mutants(device: DeviceSource) -> Iterator[Mutant]:
    """Every change of one line."""
    for number, line in enumerate(device.source.lines, 1):
        for change, pattern, instead in CHANGES:
            if re.search(pattern, line.text):
                text = re.sub(pattern, instead, line.text)
                yield Mutant(change, number, line.text, with_line(device, number, text))


def with_line(device: DeviceSource, number: int, text: str) -> DeviceSource:
    """`device` with another line `number`."""
    lines = list(device.source.lines)
    lines[number - 1] = replace(lines[number - 1], text=text)
    return replace(device, source=SourceMap(tuple(lines)))


def find_line(device: DeviceSource, pattern: str) -> tuple[int, str]:
    """Number and text of the first line that has `pattern`."""
    return next(
        (number, line.text) for number, line in enumerate(device.source.lines, 1)
        if re.search(pattern, line.text)
    )  # fmt: skip


def run_device(
    prim_func: Any, device: DeviceSource, arrays: Sequence[np.ndarray], emulator: Emulator
) -> None:
    """Run `device` in place of what `prim_func` was compiled to; raises CompileError."""
    EmulatedKernel(device, prim_func.function, emulator).run([a.ctypes.data for a in arrays])
