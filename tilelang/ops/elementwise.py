"""Which elements of two regions belong together?

Extents of the two sides are matched first (`pair_extents`), then one loop runs over each matched
pair. A loop longer than its side's slice is guarded by that slice; bounds of the buffers
themselves are the business of `passes.guard_bounds`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilelang.ir import build, tirx
from tilelang.ir.tile_op import LowerContext, TileRegion, loop_vars


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """One loop over two regions: its extent and the dimension it moves along on each side."""

    extent: tirx.Expr
    src_dim: int | None
    dst_dim: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Pairing:
    """Loops over two regions, outermost first, and what each element needs to be inside both.

    `src_inside` / `dst_inside` are None where every iteration lies in that side's slice.
    """

    variables: tuple[tirx.Var, ...]
    extents: tuple[tirx.Expr, ...]
    src_offsets: dict[int, tirx.Expr]
    dst_offsets: dict[int, tirx.Expr]
    src_inside: tirx.Expr | None
    dst_inside: tirx.Expr | None


def pair_regions(ctx: LowerContext, src: TileRegion, dst: TileRegion) -> Pairing:
    """The loops that visit `src` and `dst` element by element."""
    axes = pair_extents(ctx, src, dst)
    named = [(f"i{n}", axis.extent) for n, axis in enumerate(axes)]
    variables = loop_vars(named, ctx.span)
    src_offsets: dict[int, tirx.Expr] = {}
    dst_offsets: dict[int, tirx.Expr] = {}
    src_inside, dst_inside = [], []
    for axis, var in zip(axes, variables, strict=True):
        if axis.src_dim is not None:
            src_offsets[axis.src_dim] = var
            src_inside += _inside(ctx, var, axis.extent, src.extents[axis.src_dim])
        if axis.dst_dim is not None:
            dst_offsets[axis.dst_dim] = var
            dst_inside += _inside(ctx, var, axis.extent, dst.extents[axis.dst_dim])
    return Pairing(
        tuple(variables),
        tuple(axis.extent for axis in axes),
        src_offsets,
        dst_offsets,
        build.all_of(src_inside, ctx.span),
        build.all_of(dst_inside, ctx.span),
    )


def pair_extents(ctx: LowerContext, src: TileRegion, dst: TileRegion) -> list[Axis]:
    """Match dimensions: non-unit ones in order when the counts agree, else right-aligned.

    Right-aligned, equal extents keep, an extent of 1 takes the other side's, and two that differ
    give the larger (each side is then guarded by its own slice).
    """
    src_dims = [d for d, e in enumerate(src.extents) if not build.is_int(e, 1)]
    dst_dims = [d for d, e in enumerate(dst.extents) if not build.is_int(e, 1)]
    if len(src_dims) == len(dst_dims):
        return [
            Axis(_larger(ctx, src.extents[s], dst.extents[d]), s, d)
            for s, d in zip(src_dims, dst_dims, strict=True)
        ]
    axes: list[Axis] = []
    for back in range(1, max(len(src.extents), len(dst.extents)) + 1):
        s = len(src.extents) - back
        d = len(dst.extents) - back
        src_extent = src.extents[s] if s >= 0 else None
        dst_extent = dst.extents[d] if d >= 0 else None
        src_moves = src_extent is not None and not build.is_int(src_extent, 1)
        dst_moves = dst_extent is not None and not build.is_int(dst_extent, 1)
        if src_moves and dst_moves:
            axes.append(Axis(_larger(ctx, src_extent, dst_extent), s, d))
        elif dst_moves:
            assert dst_extent is not None
            axes.append(Axis(dst_extent, None, d))
        elif src_moves:
            # A destination of extent 1 facing a longer source: only its one element exists.
            assert src_extent is not None
            axes.append(Axis(src_extent, s, d if d >= 0 else None))
    return axes[::-1]


def _larger(ctx: LowerContext, a: tirx.Expr, b: tirx.Expr) -> tirx.Expr:
    if build.dtype_of(a) != build.dtype_of(b):
        a, b = build.cast(a, "int64"), build.cast(b, "int64")
    return a if ctx.analyzer.can_prove_equal(a, b) else ctx.simplify(tirx.Max(a, b, ctx.span))


def _inside(
    ctx: LowerContext, var: tirx.Var, loop: tirx.Expr, extent: tirx.Expr
) -> list[tirx.Expr]:
    """The condition that keeps `var` inside a slice, when its loop is longer."""
    if build.dtype_of(loop) != build.dtype_of(extent):
        extent = build.cast(extent, build.dtype_of(loop))
    if ctx.analyzer.can_prove_equal(loop, extent):
        return []
    return [tirx.LT(var, extent, ctx.span)]
