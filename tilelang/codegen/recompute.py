"""What can be done for a kernel that spills registers?

Before: const int tx = int(threadIdx.x);
        for (int k = 0; k < 64; ++k) {
After:  int tx = int(threadIdx.x);
        for (int k = 0; k < 64; ++k) {
          tl::again(tx);

Compilers compute addresses that are the same in every round before the loop, and then have more of
them than registers: each is stored and loaded again, round by round. Behind `tl::again` the number
of the thread might be another, so that addresses are computed where they are used. That takes a few
instructions a round; loads from memory take more (NVRTC 13.0, attention backward on sm_90a: from
124 bytes spilled to none).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from tilelang.codegen.device_source import DeviceSource
from tilelang.codegen.source_map import Line, SourceMap

_KERNEL: Final = re.compile(r'extern "C" __global__ ')
_THREAD: Final = re.compile(r"(\s*)const (int (\w+) = int\(threadIdx\.[xyz]\);)")
_LOOP: Final = re.compile(r"(\s*)for \(.*\{$")
_UNROLL: Final = "#pragma unroll"


def recomputing(source: DeviceSource) -> DeviceSource | None:
    """`source` with addresses computed anew in each round of its loops; None without loops."""
    lines: list[Line] = []
    threads: list[str] = []
    changed = unrolled = False
    for line in source.source.lines:
        if _KERNEL.match(line.text):
            threads = []
        thread = _THREAD.fullmatch(line.text)
        loop = _LOOP.fullmatch(line.text)
        if thread is not None:
            threads.append(thread[3])
            lines.append(replace(line, text=thread[1] + thread[2]))
        else:
            lines.append(line)
        if loop is not None and threads and not unrolled:
            text = " ".join(f"tl::again({name});" for name in threads)
            lines.append(replace(line, text=f"{loop[1]}  {text}"))
            changed = True
        unrolled = line.text.strip() == _UNROLL
    return replace(source, source=SourceMap(tuple(lines))) if changed else None
