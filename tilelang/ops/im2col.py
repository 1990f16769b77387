"""T.im2col: gather a tile of convolution windows from an NHWC image.

Before: T.im2col(img, col, by, k, kernel=3, stride=1, dilation=1, pad=1)
After:  for i, j in T.Parallel(block_M, block_K):
            col[i, j] = img[n, h, w, c] if that pixel exists else 0
with row `by * block_M + i` naming an output pixel and column `k * block_K + j` a window element.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from tilelang.ir import build, tirx
from tilelang.ir.tile_op import LowerContext, NestOp, TileRegion, loop_vars, parallel_nest

Math: TypeAlias = "Callable[[str, tirx.Expr, tirx.Expr], tirx.Expr]"
Number: TypeAlias = "Callable[[int], tirx.Expr]"


@dataclass(frozen=True, slots=True, eq=False)
class Im2col(NestOp):
    """`col[i, j] = img` at the pixel that window element j of output pixel i reads."""

    NAME: ClassVar[str] = "im2col"

    img: TileRegion
    col: TileRegion
    nhw_step: tirx.Expr
    c_step: tirx.Expr
    kernel: int
    stride: int
    dilation: int
    pad: int
    eviction_policy: str | None = None

    def __post_init__(self) -> None:
        if len(self.img.extents) != 4:
            raise ValueError(f"{self.img.buffer.name} is not an NHWC image")

    def reads(self) -> tuple[TileRegion, ...]:
        return (self.img,)

    def writes(self) -> tuple[TileRegion, ...]:
        return (self.col,)

    def lower_cpu(self, ctx: LowerContext) -> tirx.Stmt:
        span = ctx.span
        rank = len(self.col.extents)
        named = [("i", self.col.extents[-2]), ("j", self.col.extents[-1])]
        i, j = loop_vars(named, span)
        pixel = build.add(build.mul(self.nhw_step, self.col.extents[-2], span), i, span)
        element = build.add(build.mul(self.c_step, self.col.extents[-1], span), j, span)
        place, inside = self._source(ctx, pixel, element)
        value = build.select(
            inside,
            build.load(self.img.buffer, place, span),
            build.const(0, self.img.dtype, span),
            lazy=True,
            span=span,
        )
        body = self.col.store({rank - 2: i, rank - 1: j}, value, span)
        return parallel_nest(named, body, [i, j], span)

    def _source(
        self, ctx: LowerContext, pixel: tirx.Expr, element: tirx.Expr
    ) -> tuple[list[tirx.Expr], tirx.Expr]:
        """NHWC indices of a window element, and whether they name a pixel of the image."""
        span = ctx.span
        images, height, width, channels = self.img.extents
        dtype = build.dtype_of(pixel)

        def number(value: int) -> tirx.Expr:
            return build.const(value, dtype, span)

        def math(op: str, a: tirx.Expr, b: tirx.Expr) -> tirx.Expr:
            return ctx.simplify(build.binary(op, a, b, span))

        def windows(size: tirx.Expr) -> tirx.Expr:
            reach = self.dilation * (self.kernel - 1) + 1
            room = math("+", size, number(2 * self.pad - reach))
            return math("+", math("//", room, number(self.stride)), number(1))

        out_h, out_w = windows(height), windows(width)
        per_image = math("*", out_h, out_w)
        window_h = math("//", element, math("*", channels, number(self.kernel)))
        window_w = math("%", math("//", element, channels), number(self.kernel))
        row = math("//", math("%", pixel, per_image), out_w)
        column = math("%", pixel, out_w)
        n = math("//", pixel, per_image)
        h = self._shifted(math, number, row, window_h)
        w = self._shifted(math, number, column, window_w)
        zero = number(0)
        inside = build.all_of(
            [
                tirx.GE(h, zero, span), tirx.LT(h, height, span),
                tirx.GE(w, zero, span), tirx.LT(w, width, span),
                tirx.LT(n, images, span), tirx.LT(window_h, number(self.kernel), span),
            ],
            span,
        )  # fmt: skip
        assert inside is not None
        offsets = dict(enumerate([n, h, w, math("%", element, channels)]))
        return self.img.place(offsets), inside

    def _shifted(self, math: Math, number: Number, base: tirx.Expr, window: tirx.Expr) -> tirx.Expr:
        """`base * stride + window * dilation - pad`."""
        moved = math("*", base, number(self.stride))
        reached = math("*", window, number(self.dilation))
        return math("-", math("+", moved, reached), number(self.pad))
