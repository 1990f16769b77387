"""Copies that run ahead of their readers: whole words for each thread, and why there are none.

An asynchronous copy moves 4 bytes at the least. Where there are fewer words than threads, the
first threads copy and the others have nothing to do:

    T.copy(A[k, 0:32], S)      # 32 halves on 128 threads: 2 each for the threads 0 to 15
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tilelang.layout.constraints import Fixed, Memory
from tilelang.layout.fragment import Fragment
from tilelang.layout.solution import Solution
from tilelang.layouts.builder import Builder
from tilelang.layouts.demands import GlobalUse, Nest
from tilelang.program import expr as ex
from tilelang.program import stmt as st
from tilelang.program.buffer import Buffer
from tilelang_diagnostics.model import Span

WORD_BITS = 32  # the narrowest asynchronous copy (PTX ISA, cp.async)


def runs_ahead(loop: st.For) -> bool:
    """Whether the copies of a loop are made iterations before they are needed."""
    stages = loop.attr("num_stages", 0)
    several = isinstance(stages, int) and stages > 1
    return loop.kind == "pipelined" and (stages == "auto" or several)


def prefer_words(b: Builder, nest: Nest, src: Buffer, dst: Buffer) -> None:
    """Let `nest`, which copies from `src` to `dst`, move whole words, if that needs no register."""
    same = src.dtype == dst.dtype and 0 < src.dtype.bits < WORD_BITS
    if not (b.machine.has_cp_async and same and src.is_global and dst.is_shared):
        return
    least = WORD_BITS // src.dtype.bits
    b.constraints = [
        replace(c, least=least) if isinstance(c, Memory) and c.loop == nest.variable else c
        for c in b.constraints
    ]


def copied_by(loop: st.For) -> tuple[Buffer, Buffer] | None:
    """Source and destination of a T.Parallel that does nothing but copy elements."""
    body = loop.body
    while len(body) == 1 and isinstance(body[0], st.If) and not body[0].orelse:
        body = body[0].then
    if len(body) != 1 or not isinstance(body[0], st.Store):
        return None
    value = body[0].value
    return (value.buffer, body[0].buffer) if isinstance(value, ex.Load) else None


def why_no_words(b: Builder, solution: Solution) -> Iterator[tuple[Span, str]]:
    """Copies that were to move whole words and do not, and what keeps them from it."""
    least = {c.loop: c.least for c in b.constraints if isinstance(c, Memory) and c.least > 1}
    for use in b.global_uses:
        words = least.get(use.nest.variable)
        layout = solution.layouts.get(use.nest.variable)
        if words is None or use.nest.span is None or not isinstance(layout, Fragment):
            continue
        units = [d for d, stride in enumerate(use.strides) if stride == 1]
        have = max((layout.vector_width(d, words) for d in units), default=1)
        why = _why(b, use, units, words) if have < words or _below(use, words) else None
        if why is not None:
            yield use.nest.span, why


def _below(use: GlobalUse, words: int) -> bool:
    return use.width is not None and use.width < words


def _why(b: Builder, use: GlobalUse, units: list[int], words: int) -> str | None:
    name = use.buffer.name
    if all(extent == 1 for extent in use.nest.extents):
        return "it moves one element"
    if not units:
        if any(stride is None for stride in use.strides):
            return None
        apart = min((s for s in use.strides if s), key=abs, default=0)
        how = f"lie {abs(apart)} elements apart" if abs(apart) > 1 else "run backwards"
        return f"neighbours in the tile {how} in `{name}`" if apart else None
    if _below(use, words):
        no = "" if use.because.endswith("no multiple") else ", no multiple"
        return f"`{name}`: {use.because}{no} of {words}"
    own = [c for c in b.constraints if isinstance(c, Memory) and c.loop == use.nest.variable]
    extents = [use.nest.extents[d] for d in units]
    if all(extent % words for extent in extents):
        (extent, *_) = extents
        return f"a row of {extent} element{'s' * (extent > 1)} is no multiple of {words}"
    if any(c.limit is not None and c.limit < words for c in own):
        return f"coalesced_width asks for fewer than {words} elements at a time"
    if any(isinstance(c, Fixed) and c.var == use.nest.variable for c in b.constraints):
        return f"its loop_layout gives no thread {words} neighbours of a row"
    return None
