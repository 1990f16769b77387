"""What does `T.gemm` demand of the layouts of its operands?

The accumulator lies as the matrix instruction leaves it, repeated over the warps; an operand in
registers as the instruction takes it; an operand in shared memory best in a swizzled layout. The
instruction is the deepest the types, K and the compute capability allow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from tilelang.ir import build
from tilelang.ir.layout_context import LayoutContext, covers_whole
from tilelang.ir.tile_op import TileRegion
from tilelang.layout.atoms import Atom, find_atoms
from tilelang.layout.banks import worst
from tilelang.layout.constraints import Constraint, Fixed, Kind, OneOf, Option, Variable
from tilelang.layout.fragment import Fragment
from tilelang.layout.gemm import (
    GemmWarpPolicy,
    NoPartition,
    WarpGrid,
    accumulator,
    operand_a,
    operand_b,
    partition_warps,
)
from tilelang.layout.layout import Layout
from tilelang.layout.swizzle import Tile, make_swizzled_layout, operand_reads

if TYPE_CHECKING:
    from tilelang.ops.gemm import Gemm

FragmentOf: TypeAlias = Callable[[], Fragment]

# Types whose products the tensor cores form in another type.
_MULTIPLIED_AS = {"float32": "tfloat32"}


def gemm_constraints(op: Gemm, ctx: LayoutContext) -> Iterator[Constraint]:
    """The demands of one gemm; none when it does not run on matrix instructions."""
    sizes = [build.int_value(e) for e in (op.m, op.n, op.k)]
    if any(s is None for s in sizes):
        return
    m, n, k = (s for s in sizes if s is not None)
    atom = choose_atom(op, k, ctx.arch)
    if atom is None:
        return
    grid = _grid(op, ctx, atom, m, n)
    if grid is None:
        return
    yield from _fixed(ctx, op.C, (m, n), lambda: accumulator(m, n, grid, atom))
    a_shape = (k, m) if op.transpose_A else (m, k)
    b_shape = (n, k) if op.transpose_B else (k, n)
    yield from _fixed(ctx, op.A, a_shape, lambda: operand_a(m, k, grid, atom, op.transpose_A))
    yield from _fixed(ctx, op.B, b_shape, lambda: operand_b(k, n, grid, atom, op.transpose_B))
    yield from _shared(ctx, op.A, k_major=not op.transpose_A)
    yield from _shared(ctx, op.B, k_major=op.transpose_B)


def choose_atom(op: Gemm, k: int, arch: int) -> Atom | None:
    """The deepest instruction that divides K, or None."""
    dtype = _MULTIPLIED_AS.get(op.A.dtype, op.A.dtype)
    return next((a for a in find_atoms(dtype, op.C.dtype, arch) if k % a.k == 0), None)


def _grid(op: Gemm, ctx: LayoutContext, atom: Atom, m: int, n: int) -> WarpGrid | None:
    """How the warps share C, or None with the reason reported."""
    warps, rest = divmod(ctx.threads, atom.threads)
    if rest or not warps:
        ctx.complain(
            "TL408",
            f"a gemm needs whole warps of {atom.threads} threads, the block has {ctx.threads}",
            f"launch with a multiple of {atom.threads} threads",
        )
        return None
    policy = GemmWarpPolicy(op.policy or 0)
    grid = partition_warps(m, n, warps, policy, atom.m, atom.n)
    if isinstance(grid, NoPartition):
        ctx.complain("TL314", str(grid), grid.help)
        return None
    return grid


def _fixed(
    ctx: LayoutContext, region: TileRegion, shape: tuple[int, int], layout: FragmentOf
) -> Iterator[Constraint]:
    found = ctx.variable(region.buffer)
    if found is None or found.kind is not Kind.FRAGMENT or not covers_whole(region):
        return
    if found.shape == shape:
        yield Fixed(found, layout(), ctx.origin)


def _shared(ctx: LayoutContext, region: TileRegion, k_major: bool) -> Iterator[Constraint]:
    found = ctx.variable(region.buffer)
    if found is not None and found.kind is Kind.SHARED and len(found.shape) == 2:
        yield OneOf(found, operand_options(found, k_major), ctx.origin)


def operand_options(tile: Variable, k_major: bool) -> tuple[Option, ...]:
    """Layouts of an operand in shared memory, each with the bank conflicts of reading it."""
    patterns = operand_reads(tile.shape, k_major)
    swizzled = make_swizzled_layout(Tile(tile.shape, tile.bits), k_major)
    plain = Layout.row_major(tile.shape)
    options: list[Option] = []
    for layout, name in ((swizzled, "swizzled"), (plain, "row-major")):
        if any(layout == option.layout for option in options):
            continue
        degree = worst(layout, patterns, tile.bits)[0].degree
        why = "no bank conflicts" if degree == 1 else f"{degree}-way bank conflicts"
        options.append(Option(layout, float(degree - 1), f"{name}, {why}"))
    return tuple(options)
