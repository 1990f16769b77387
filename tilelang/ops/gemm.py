"""T.gemm: multiply tiles and accumulate.

Before: T.gemm(A_s, B_s, C_l, transpose_B=True)
After, on a CPU: loops over m, k, n with C_l[m, n] += A_s[m, k] * B_s[n, k]; how they are blocked
is `gemm_cpu`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from tilelang.ir import build, tirx
from tilelang.ir.gpu_context import GpuContext
from tilelang.ir.tile_op import LowerContext, Refused, TileOp, TileRegion
from tilelang.ops.gemm_cpu import cpu_gemm
from tilelang.ops.gemm_gpu import gpu_gemm
from tilelang.ops.wgmma import wgmma_gemm

BY_AUTHOR: Final = "wgmma"
BY_GROUPS: Final = "wgmma and wait"


@dataclass(frozen=True, slots=True, eq=False)
class Gemm(TileOp):
    """`C += op(A) @ op(B)`, or `C = op(A) @ op(B)` where `clear_accum` holds.

    `instruction` is given for warp groups: by the author, who waits, or by layout inference.

    The matrices are the last two dimensions of each region; leading extents are 1.
    """

    NAME: ClassVar[str] = "gemm"

    A: TileRegion
    B: TileRegion
    C: TileRegion
    clear_accum: tirx.Expr | None = None
    mbar: TileRegion | None = None
    transpose_A: bool = False
    transpose_B: bool = False
    policy: int | None = None
    k_pack: int | None = None
    instruction: str | None = None

    def __post_init__(self) -> None:
        for region in (self.A, self.B, self.C):
            if len(region.extents) < 2:
                raise ValueError(f"gemm operand {region.buffer.name} has one dimension")

    @property
    def m(self) -> tirx.Expr:
        return self.C.extents[-2]

    @property
    def n(self) -> tirx.Expr:
        return self.C.extents[-1]

    @property
    def k(self) -> tirx.Expr:
        return self.A.extents[-2 if self.transpose_A else -1]

    @property
    def overwrites(self) -> bool | None:
        """Whether C is cleared first; None when that is decided at run time."""
        if self.clear_accum is None:
            return False
        known = build.int_value(self.clear_accum)
        return None if known is None else bool(known)

    def reads(self) -> tuple[TileRegion, ...]:
        return (self.A, self.B) if self.overwrites else (self.A, self.B, self.C)

    def writes(self) -> tuple[TileRegion, ...]:
        return (self.C,)

    def load_a(self, m: tirx.Expr, k: tirx.Expr) -> tirx.Expr:
        """The element of op(A) at row `m`, column `k`."""
        return _element(self.A, (k, m) if self.transpose_A else (m, k))

    def load_b(self, k: tirx.Expr, n: tirx.Expr) -> tirx.Expr:
        """The element of op(B) at row `k`, column `n`."""
        return _element(self.B, (n, k) if self.transpose_B else (k, n))

    def lower_cpu(self, ctx: LowerContext) -> tirx.Stmt:
        return cpu_gemm(self, ctx)

    def lower_gpu(self, ctx: GpuContext) -> tirx.Stmt:
        if self.instruction == BY_AUTHOR:
            return wgmma_gemm(self, ctx)
        if self.instruction == BY_GROUPS:
            try:
                return wgmma_gemm(self, ctx, waits=True)
            except Refused as refused:  # lowering knows who comes here
                ctx.passed_over("gemm", "WGMMA", refused.message)
        if ctx.capabilities.mma == "tcgen05":
            ctx.passed_over("gemm", "tcgen05.mma", "this version generates none")
        return gpu_gemm(self, ctx)


def _element(region: TileRegion, place: tuple[tirx.Expr, tirx.Expr]) -> tirx.Expr:
    rank = len(region.extents)
    return region.load({rank - 2: place[0], rank - 1: place[1]})
