"""What can be done for a kernel that spills registers?

Before: const int tx = int(threadIdx.x);
        for (int k = 0; k < 64; ++k) {
          #pragma unroll
          for (int k_1 = 0; k_1 < 8; ++k_1) {
            … tl::mma_m16n8k16_f32_f16_f16(…)
After:  int tx = int(threadIdx.x);
        for (int k = 0; k < 64; ++k) {
          tl::again(tx);
          #pragma unroll 6
          for (int k_1 = 0; k_1 < 8; ++k_1) {

Compilers compute addresses that are the same in every round before the loop, and then have more of
them than registers: each is stored and loaded again, round by round. Behind `tl::again` the number
of the thread might be another, so that addresses are computed where they are used. Fewer steps of a
product side by side leave fewer fragments waiting. Both take a few instructions a round; spilled
registers take loads from memory. H200, 29 November 2026, attention backward (causal): 1.481 ms with
240 bytes spilled, 1.414 ms with addresses computed anew and 8 bytes spilled, 1.418 ms and none with
six steps side by side, 1.494 ms with two.

Where a kernel has a register or two too few, fewer steps may be enough, and addresses computed anew
too much: split decoding on sm_100a spills 8 bytes as it is, 120 with them, and none with six steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from tilelang.codegen.device_source import DeviceSource
from tilelang.codegen.source_map import Line, SourceMap

_KERNEL: Final = re.compile(r'extern "C" __global__ ')
_THREAD: Final = re.compile(r"(\s*)const (int (\w+) = int\(threadIdx\.[xyz]\);)")
_LOOP: Final = re.compile(
    r"(?P<indent>\s*)for \(\w+ (?P<var>\w+) = (?:0; \w+ < (?P<extent>\d+);)?.*\{"
)
_REGISTERS: Final = re.compile(r"\s*__align__\(\d+\) \S+ (\w+)\[\d+\];")
_UNROLL: Final = "#pragma unroll"
_PRODUCT: Final = "tl::mma_"
# Steps of a product side by side: as many as can be are fastest.
_STEPS: Final = (6, 2)


def lighter_forms(source: DeviceSource) -> Iterator[DeviceSource]:
    """Forms of `source` that need fewer registers, the one that costs least first."""
    lines = _recomputing(source.source.lines)
    if lines is None:
        return
    yield replace(source, source=SourceMap(tuple(lines)))
    # Addresses that are computed anew take registers, too, while they are used.
    for start in (lines, source.source.lines):
        for steps in _STEPS:
            rolled = _rolled(start, steps)
            if rolled is not None:
                yield replace(source, source=SourceMap(tuple(rolled)))


def _recomputing(given: Sequence[Line]) -> list[Line] | None:
    """Addresses are computed anew in each round of a loop; None without loops."""
    lines: list[Line] = []
    threads: list[str] = []
    changed = unrolled = False
    for line in given:
        if _KERNEL.match(line.text):
            threads = []
        thread, loop = _THREAD.fullmatch(line.text), _LOOP.fullmatch(line.text)
        if thread is not None:
            threads.append(thread[3])
            lines.append(replace(line, text=thread[1] + thread[2]))
        else:
            lines.append(line)
        if loop is not None and threads and not unrolled:
            text = " ".join(f"tl::again({name});" for name in threads)
            lines.append(replace(line, text=f"{loop['indent']}  {text}"))
            changed = True
        unrolled = line.text.strip() == _UNROLL
    return lines if changed else None


def _rolled(lines: Sequence[Line], steps: int) -> list[Line] | None:
    """Products do so many steps side by side, where registers do not depend on the step."""
    found = list(lines)
    registers = {m[1] for line in lines if (m := _REGISTERS.fullmatch(line.text)) is not None}
    changed = False
    for n, line in enumerate(lines):
        loop = _LOOP.fullmatch(line.text)
        if loop is None or n == 0 or lines[n - 1].text.strip() != _UNROLL:
            continue
        if int(loop["extent"] or 0) <= steps:
            continue
        body = _body(lines, n, loop["indent"])
        inner = any(_LOOP.fullmatch(text) for text in body)
        if not inner or not any(_PRODUCT in text for text in body):
            continue
        if any(_indexes(text, registers, loop["var"]) for text in body):
            continue
        found[n - 1] = replace(lines[n - 1], text=f"{lines[n - 1].text} {steps}")
        changed = True
    return found if changed else None


def _body(lines: Sequence[Line], start: int, indent: str) -> list[str]:
    """The text inside of the loop that begins at line `start`."""
    end = next(n for n in range(start + 1, len(lines)) if lines[n].text == indent + "}")
    return [line.text for line in lines[start + 1 : end]]


def _indexes(text: str, registers: set[str], var: str) -> bool:
    """Whether which registers are meant depends on `var`: then a loop has to be unrolled."""
    for found in re.finditer(r"\b(\w+)\[", text):
        if found[1] not in registers:
            continue
        depth, end = 1, found.end()
        while depth and end < len(text):
            depth += {"[": 1, "]": -1}.get(text[end], 0)
            end += 1
        if re.search(rf"\b{var}\b", text[found.end() : end]):
            return True
    return False
