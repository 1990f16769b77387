"""How is one line of a kernel's generated source damaged, and the kernel run as it then is?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

import tilelang
from tests.emulator.running import TARGET
from tilelang.codegen.device_source import DeviceSource
from tilelang.codegen.source_map import SourceMap
from tilelang.emulator.kernel import EmulatedKernel
from tilelang.emulator.settings import Emulator


@dataclass(frozen=True)
class Change:
    """Something taken away or weakened: what matches `pattern`, each time alone, becomes `instead`.

    Where `within` matches a line, only what lies in its group is looked at.
    """

    kind: str
    name: str
    pattern: str
    instead: str | Callable[[re.Match[str]], str] = ""
    within: tuple[str, ...] = (r"(.*)",)


@dataclass(frozen=True)
class Mutant:
    """`device` with line `number` changed; `nth` of those that are called the same."""

    change: Change
    number: int
    before: str
    after: str
    nth: int
    device: DeviceSource

    @property
    def key(self) -> tuple[str, str, int]:
        """What stays the same when other lines of the source do not."""
        return self.change.name, normalised(self.before), self.nth

    def __str__(self) -> str:
        return f"{self.change.name} (line {self.number}: {self.before.strip()})"


def _add(difference: int) -> Callable[[re.Match[str]], str]:
    """The number that the group of a match has, and another one instead."""

    def instead(match: re.Match[str]) -> str:
        start, end = (place - match.start() for place in match.span(1))
        return f"{match[0][:start]}{int(match[1]) + difference}{match[0][end:]}"

    return instead


def _plain_update(match: re.Match[str]) -> str:
    return (f"[&] {{ auto& place = {match[1]}; const auto before = place; place = before + "
            f"{match[2]}; return before; }}();")  # fmt: skip


# Where a line decides whether something happens: an `if`, a choice of what to load, the predicate
# of an asynchronous copy.
_GUARDS: Final = (r"^\s*(?:\} else )?if \((.*)\) \{$", r"^\s*tl::store\([^?]*\], (.*) \? tl::load",
                  r"^\s*tl::cp_async<\d+>\(.*\], (.*)\);$")  # fmt: skip
_PLACES: Final = r"\) (\^ (\((?:[^()]|\([^()]*\))*\)))"
_MULTIPLY: Final = r"tl::wgmma_ss_k16_f32_f16_f16<\d+, "

CHANGES: Final = (
    Change("barrier", "no barrier", r"tl::sync_threads\([^)]*\);"),
    Change("barrier", "no warp barrier", r"tl::sync_warp\(\);"),
    Change("barrier", "another barrier", r"tl::sync_threads\((\d+),", _add(1)),
    Change("barrier", "fewer threads at a barrier", r"tl::sync_threads\(\d+, (\d+)\)", _add(-32)),
    Change("wait", "no wait for copies", r"tl::cp_async_wait<\d+>\(\);"),
    Change("wait", "one group of copies fewer", r"tl::cp_async_wait<(\d+)>", _add(1)),
    Change("wait", "no wait at an mbarrier", r"tl::mbarrier_wait_parity\(.*\);"),
    Change("wait", "the other parity", r"(tl::mbarrier_wait_parity\(.*)\);", r"\1 ^ 1);"),
    Change("wait", "no wait for products", r"tl::wgmma_wait<\d+>\(\);"),
    Change("wait", "one group of products fewer", r"tl::wgmma_wait<(\d+)>", _add(1)),
    Change("wait", "no wait for stores", r"tl::bulk_wait(?:_read)?<\d+>\(\);"),
    Change("wait", "one group of stores fewer", r"tl::bulk_wait(?:_read)?<(\d+)>", _add(1)),
    Change("commit", "no commit of copies", r"tl::cp_async_commit\(\);"),
    Change("commit", "no commit of products", r"tl::wgmma_commit\(\);"),
    Change("commit", "no commit of stores", r"tl::bulk_commit\(\);"),
    # wgmma_fence_operand is left out: it is empty, and only there for a compiler.
    Change("fence", "no proxy fence", r"tl::fence_proxy_async\(\);"),
    Change("fence", "no fence after mbarrier_init", r"tl::fence_mbarrier_init\(\);"),
    Change("fence", "no fence before products", r"tl::wgmma_fence\(\);"),
    Change("fence", "no memory order", r"memory_order::\w+", "memory_order::relaxed"),
    Change("fence", "only acquire", r"memory_order::acq_rel", "memory_order::acquire"),
    Change("fence", "only release", r"memory_order::acq_rel", "memory_order::release"),
    Change("guard", "no guard", r"^.*\S.*$", "true", _GUARDS),
    Change("guard", "half a guard", r"^.*(?= && )", "true", _GUARDS),
    Change("guard", "the other half of a guard", r"(?<= && ).*$", "true", _GUARDS),
    Change("guard", "one more", r" < ", " <= ", _GUARDS),
    Change("guard", "one more (>)", r" > ", " >= ", _GUARDS),
    Change("swizzle", "no swizzle", _PLACES, ")"),
    Change("swizzle", "another swizzle", _PLACES, r") ^ (\2 ^ 1)"),
    Change("swizzle", "narrower swizzle of A", rf"({_MULTIPLY})128", r"\g<1>64"),
    Change("swizzle", "narrower swizzle of B", rf"({_MULTIPLY}(?:\d+, ){{4}})128", r"\g<1>64"),
    Change("arrivals", "one arrival more", r"tl::mbarrier_init\(.*, (\d+)\)", _add(1)),
    Change("arrivals", "one arrival fewer", r"tl::mbarrier_init\(.*, (\d+)\)", _add(-1)),
    Change("arrivals", "a warp of arrivals fewer", r"tl::mbarrier_init\(.*, (\d{3})\)", _add(-32)),
    Change("arrivals", "no arrival", r"tl::mbarrier_arrive\(.*\);"),
    Change("arrivals", "fewer bytes", r"mbarrier_(?:arrive_)?expect_tx\(.*, (\d+)\)", _add(-128)),
    Change("arrivals", "more bytes", r"mbarrier_(?:arrive_)?expect_tx\(.*, (\d+)\)", _add(16)),
    Change("arrivals", "no bytes", r"tl::mbarrier_expect_tx\(.*\);"),
    Change("atomic", "plain update", r"tl::atomic_add(?:<.*>)?\(&(.*\]), (.*)\);", _plain_update),
)  # fmt: skip


def device_of(prim_func: Any, target: str = TARGET) -> DeviceSource:
    """The source of a kernel."""
    kernel = tilelang.compile(prim_func, target=target, execution_backend="emulator")
    runner: Any = kernel._built.runner
    device: DeviceSource = runner.device
    return device


def mutants(device: DeviceSource) -> Iterator[Mutant]:
    """Every change of one line."""
    seen: Counter[tuple[str, str]] = Counter()
    for number, line in enumerate(device.source.lines, 1):
        for change in CHANGES:
            for text in _changed(line.text, change):
                if text == line.text:
                    continue
                name = (change.name, normalised(line.text))
                yield Mutant(
                    change, number, line.text, text, seen[name], with_line(device, number, text)
                )
                seen[name] += 1


def _changed(text: str, change: Change) -> Iterator[str]:
    for within in change.within:
        part = re.search(within, text)
        if part is None:
            continue
        start, end = part.span(1)
        for match in re.finditer(change.pattern, part[1]):
            instead = change.instead
            put = instead(match) if callable(instead) else match.expand(instead)
            yield text[: start + match.start()] + put + text[start + match.end() :]
        return


def normalised(line: str) -> str:
    return " ".join(line.split())


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
