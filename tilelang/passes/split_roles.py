"""On Hopper a warp of its own loads the tiles of pipelines by TMA, where it pays.

Before: with T.Kernel(…, threads=256):               After: with T.Kernel(…, threads=288):
            for k in T.Pipelined(n, num_stages=3):              with T.ws(2): …      loads by TMA
                T.copy(A[…, k * 64], A_s)                       with T.ws(0, 1): …   computes
                T.gemm(A_s, …, C_l)

Which launches, and how, `roles` decided on the program; the passes below are given its layouts.
"""

from __future__ import annotations

from tilelang.ir import attrs, tirx
from tilelang.ir.emit import emit
from tilelang.passes.context import PassContext


def split_roles(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """The program that takes the place of the author's, where there is one."""
    if ctx.split is None or ctx.split.function is None:
        return func
    ctx.split.note(ctx.choices)
    return emit(ctx.split.function).with_attr(attrs.TARGET, ctx.target)
