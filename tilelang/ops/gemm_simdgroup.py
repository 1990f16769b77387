"""How do simdgroups multiply tiles, whose matrices nobody but the hardware can take apart?

Metal does not say which lane holds which element of a `simdgroup_matrix`. So sums stay matrices
from operation to operation where nothing else looks at them (`passes.hold_matrices`), and otherwise
come from and go to registers by way of shared memory:

    C_l_matrices -> for k in unrolled(K // 8):
        a[i] = simdgroup_load(A_s[…]); b[j] = simdgroup_load(B_s[…])
        for i, j in unrolled(blocks): simdgroup_multiply(C_l_matrices[i, j], a[i], b[j])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tilelang.dtypes import dtype as find_dtype
from tilelang.ir import build, tirx
from tilelang.ir.device_ops import call, region
from tilelang.ir.gpu_context import STAGE_SCOPE, GpuContext
from tilelang.ir.homes import MATRIX, SHARED, Home
from tilelang.ir.tile_op import TileRegion
from tilelang.layout.gemm import GemmWarpPolicy, WarpGrid, partition_warps
from tilelang.layout.layout import Layout
from tilelang.layout.lazy import np
from tilelang.target import Capabilities

if TYPE_CHECKING:
    from tilelang.ops.gemm import Gemm

SIDE: Final = 8
OF_MATRICES: Final = (
    "make M, N and K multiples of 8 that whole simdgroups of 32 threads share, of float16, "
    "bfloat16 or float32 with float32 sums"
)
# Types of the operands, and of the sums they may have.
_SUMS: Final = {
    "float16": ("float16", "float32"), "bfloat16": ("float32",), "float32": ("float32",),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class MatrixPlan:
    """The grid of simdgroups over the tile, and the constant sizes."""

    grid: WarpGrid
    m: int
    n: int
    k: int

    @property
    def m_blocks(self) -> int:
        """Matrices of a simdgroup along M."""
        return self.m // self.grid.m_warps // SIDE

    @property
    def n_blocks(self) -> int:
        """Matrices of a simdgroup along N."""
        return self.n // self.grid.n_warps // SIDE

    @property
    def count(self) -> int:
        """Matrices of sums of a simdgroup."""
        return self.m_blocks * self.n_blocks

    @property
    def said(self) -> str:
        """What is chosen, as it is told."""
        return (
            f"simdgroup_matrix {SIDE}x{SIDE}x{SIDE}, {self.count * self.k // SIDE} a simdgroup, "
            f"by {self.grid}"
        )


def matrix_plan(op: Gemm, threads: int, capabilities: Capabilities) -> MatrixPlan | None:
    """How matrices do it; None where there are none for the types and sizes."""
    sizes = [build.int_value(e) for e in (op.m, op.n, op.k)]
    known = [n for n in sizes if n and n % SIDE == 0]
    warps, rest = divmod(threads, capabilities.warp_size)
    if capabilities.mma != "simdgroup" or len(known) < len(sizes) or rest or not warps:
        return None
    if op.A.dtype != op.B.dtype or op.C.dtype not in _SUMS.get(op.A.dtype, ()):
        return None
    m, n, k = known
    grid = partition_warps(m, n, warps, GemmWarpPolicy(op.policy or 0), SIDE, SIDE)
    return MatrixPlan(grid, m, n, k) if isinstance(grid, WarpGrid) else None


def matrices(ctx: GpuContext, name: str, count: int, dtype: str) -> tirx.Buffer:
    """A buffer of `count` matrices."""
    return tirx.decl_buffer(
        [ctx.const(count)], dtype, name=name, scope=MATRIX, data_alignment=64, span=ctx.span,
        layout=None,
    )  # fmt: skip


def filled(ctx: GpuContext, held: tirx.Buffer, count: int, value: tirx.Expr) -> tirx.Stmt:
    """Set every element of all matrices."""
    which = ctx.var("i")
    wide = build.cast(value, str(held.dtype), ctx.span)
    fill = call("simdgroup_fill", [region(held, which, 1, ctx.span), wide], span=ctx.span)
    return ctx.unrolled(which, count, build.evaluate(fill, ctx.span))


def cleared(op: Gemm, ctx: GpuContext, held: tirx.Buffer, count: int) -> tirx.Stmt:
    """Zero the sums when the operation says so, possibly only at run time."""
    if op.overwrites is False:
        return build.nothing(ctx.span)
    clear = filled(ctx, held, count, build.const(0, str(held.dtype), ctx.span))
    if op.overwrites:
        return clear
    assert op.clear_accum is not None
    return tirx.IfThenElse(build.cast(op.clear_accum, "bool", ctx.span), clear, None, ctx.span)


def simdgroup_gemm(op: Gemm, ctx: GpuContext, plan: MatrixPlan) -> tirx.Stmt:
    """Multiply into sums that others look at, too: shared memory is where they meet."""
    span, name = ctx.span, op.C.buffer.name
    held = matrices(ctx, f"{name}_matrices", plan.count, op.C.dtype)
    allocate, stage = staged(ctx, f"{name}_shared", plan.m, plan.n, op.C.dtype)
    tile = TileRegion.of(stage.buffer)
    stmts = [build.allocate(held, None, span), allocate]
    if not op.overwrites:
        stmts += [_moved(ctx, op.C, tile), _each(ctx, plan, held, stage, load=True)]
    stmts += [
        cleared(op, ctx, held, plan.count),
        multiplied(op, ctx, plan, held),
        stored(ctx, plan, held, stage),
        _moved(ctx, tile, op.C),
    ]
    return build.seq(stmts, span)


def staged(
    ctx: GpuContext, name: str, rows: int, columns: int, dtype: str
) -> tuple[tirx.Stmt, Home]:
    """A tile in shared memory whose matrices lie one behind the other, without gaps."""
    layout = Layout(
        (rows, columns),
        lambda i, j: (
            (i // SIDE * (columns // SIDE) + j // SIDE) * SIDE * SIDE + i % SIDE * SIDE + j % SIDE
        ),
    )
    return ctx.tile(name, (rows, columns), dtype, STAGE_SCOPE, layout)


def fits(plan: MatrixPlan, dtype: str, capabilities: Capabilities) -> bool:
    """Whether the tile of sums fits into shared memory, beside as much again."""
    limit = capabilities.shared_bytes
    return limit is None or 2 * plan.m * plan.n * find_dtype(dtype).bytes <= limit


def stored(ctx: GpuContext, plan: MatrixPlan, held: tirx.Buffer, stage: Home) -> tirx.Stmt:
    """Write the sums to the tile that `staged` made."""
    return _each(ctx, plan, held, stage, load=False)


def stored_in_strips(
    ctx: GpuContext, plan: MatrixPlan, held: tirx.Buffer, dst: TileRegion, name: str
) -> tirx.Stmt:
    """Write the sums to a region by way of a tile that holds one row of each simdgroup's matrices
    at a time."""
    span, dtype = ctx.span, str(held.dtype)
    rows = plan.grid.m_warps * SIDE
    allocate, stage = staged(ctx, name, rows, plan.n, dtype)
    i, j, r, c = (ctx.var(letter) for letter in ("i", "j", "r", "c"))
    warp = ctx.thread_var // ctx.machine.warp
    first = ctx.number(
        warp % plan.grid.m_warps * (plan.n // SIDE) + warp // plan.grid.m_warps * plan.n_blocks
    )
    block = build.mul(build.add(first, j, span), ctx.const(SIDE * SIDE), span)
    store = call(
        "simdgroup_store",
        [
            region(stage.flat, block, SIDE * SIDE, span),
            region(held, _number(ctx, i, plan.n_blocks, j), 1, span),
        ],
        span=span,
        row=SIDE,
    )
    stores = ctx.unrolled(j, plan.n_blocks, build.evaluate(store, span))
    group, inside = (f(r, ctx.const(SIDE), span) for f in (tirx.FloorDiv, tirx.FloorMod))
    row = build.add(
        build.add(build.mul(group, ctx.const(plan.m_blocks * SIDE), span),
                  build.mul(i, ctx.const(SIDE), span), span),
        inside, span,
    )  # fmt: skip
    rank = len(dst.extents)
    value = build.cast(TileRegion.of(stage.buffer).load({0: r, 1: c}), dst.dtype, span)
    body = dst.store({rank - 2: row, rank - 1: c}, value, span)
    copy = ctx.nest([r, c], [rows, plan.n], body, None)
    strips = ctx.unrolled(i, plan.m_blocks, build.seq([stores, copy], span))
    return build.seq([allocate, strips], span)


def can_be_strips(plan: MatrixPlan, dst: TileRegion) -> bool:
    """Whether a region is as large as the tile of sums."""
    *outer, rows, columns = (0, 0, *dst.constant_extents)
    return (rows, columns) == (plan.m, plan.n) and all(n in (0, 1) for n in outer)


def _each(
    ctx: GpuContext, plan: MatrixPlan, held: tirx.Buffer, stage: Home, load: bool
) -> tirx.Stmt:
    """Move each matrix of sums between a simdgroup and the tile that `staged` made."""
    span = ctx.span
    i, j = ctx.var("i"), ctx.var("j")
    row, column = _origin(ctx, plan)
    row, column = (build.add(first, var, span) for first, var in ((row, i), (column, j)))
    block = build.add(build.mul(row, ctx.const(plan.n // SIDE), span), column, span)
    place = region(stage.flat, build.mul(block, ctx.const(SIDE * SIDE), span), SIDE * SIDE, span)
    matrix = region(held, _number(ctx, i, plan.n_blocks, j), 1, span)
    name = "simdgroup_load" if load else "simdgroup_store"
    operands = [matrix, place] if load else [place, matrix]
    move = build.evaluate(call(name, operands, span=span, row=SIDE), span)
    return ctx.unrolled(i, plan.m_blocks, ctx.unrolled(j, plan.n_blocks, move))


def multiplied(op: Gemm, ctx: GpuContext, plan: MatrixPlan, held: tirx.Buffer) -> tirx.Stmt:
    """Add the product of A and B to the sums."""
    span = ctx.span
    row, column = _origin(ctx, plan)
    a = _Operand.of(ctx, op.A, row, plan.m_blocks, op.transpose_A)
    b = _Operand.of(ctx, op.B, column, plan.n_blocks, not op.transpose_B)
    k, i, j = ctx.var("k"), ctx.var("i"), ctx.var("j")
    product = call(
        "simdgroup_multiply",
        [
            region(held, _number(ctx, i, plan.n_blocks, j), 1, span),
            region(a.held, i, 1, span),
            region(b.held, j, 1, span),
        ],
        span=span,
    )
    products = ctx.unrolled(
        i, plan.m_blocks, ctx.unrolled(j, plan.n_blocks, build.evaluate(product, span))
    )
    body = build.seq([a.loaded(k, turned=False), b.loaded(k, turned=True), products], span)
    return build.seq([*a.before, *b.before, ctx.unrolled(k, plan.k // SIDE, body)], span)


def _origin(ctx: GpuContext, plan: MatrixPlan) -> tuple[tirx.Expr, tirx.Expr]:
    """Row and column of a simdgroup's first matrix, counted in matrices."""
    warp = ctx.thread_var // ctx.machine.warp
    return (
        ctx.number(warp % plan.grid.m_warps * plan.m_blocks),
        ctx.number(warp // plan.grid.m_warps * plan.n_blocks),
    )


def _number(ctx: GpuContext, i: tirx.Expr, columns: int, j: tirx.Expr) -> tirx.Expr:
    return build.add(build.mul(i, ctx.const(columns), ctx.span), j, ctx.span)


@dataclass(frozen=True, slots=True, eq=False)
class _Operand:
    """A or B as matrices in memory.

    `along_k` and `outside` are how far apart neighbours in memory are along K and across it;
    `first` is where the simdgroup's part begins.
    """

    ctx: GpuContext
    flat: tirx.Buffer
    held: tirx.Buffer
    blocks: int
    first: tirx.Expr
    along_k: int
    outside: int
    before: tuple[tirx.Stmt, ...]

    @staticmethod
    def of(
        ctx: GpuContext, source: TileRegion, origin: tirx.Expr, blocks: int, k_first: bool
    ) -> _Operand:
        """Operand `source`, whose rows run along K if `k_first`; `origin` counts matrices."""
        before: list[tirx.Stmt] = []
        home = ctx.homes.find(source.buffer)
        strides = None
        if source.scope in SHARED and home is not None and source.buffer not in ctx.homes.views:
            strides = _strides(home)
        if strides is None:
            rows, columns = (build.int_value(e) or 0 for e in source.extents[-2:])
            layout = Layout.row_major((rows, columns))
            name = f"{source.buffer.name}_shared"
            allocate, home = ctx.tile(name, (rows, columns), source.dtype, STAGE_SCOPE, layout)
            tile = TileRegion.of(home.buffer)
            before += [allocate, _moved(ctx, source, tile)]
            source, strides = tile, (columns, 1)
        assert home is not None
        first: tirx.Expr = ctx.const(0)
        for low, stride in zip(source.mins, strides, strict=True):
            step = build.mul(build.cast(low, "int32", ctx.span), ctx.const(stride), ctx.span)
            first = build.add(first, step, ctx.span)
        along_k, outside = strides[-2:] if k_first else strides[-2:][::-1]
        part = build.mul(origin, ctx.const(SIDE * outside), ctx.span)
        held = matrices(ctx, f"{source.buffer.name}_r", blocks, source.dtype)
        before.append(build.allocate(held, None, ctx.span))
        return _Operand(
            ctx, home.flat, held, blocks, build.add(first, part, ctx.span), along_k, outside,
            tuple(before),
        )  # fmt: skip

    def loaded(self, k: tirx.Var, turned: bool) -> tirx.Stmt:
        """All matrices of step `k`. `turned`: K runs along the rows of a matrix of the operand."""
        ctx, span = self.ctx, self.ctx.span
        which = ctx.var("i")
        start = build.add(
            build.add(self.first, build.mul(which, ctx.const(SIDE * self.outside), span), span),
            build.mul(k, ctx.const(SIDE * self.along_k), span), span,
        )  # fmt: skip
        down, across = (self.along_k, self.outside) if turned else (self.outside, self.along_k)
        name = "simdgroup_load" if across == 1 else "simdgroup_load_transposed"
        row = down if across == 1 else across
        extent = (SIDE - 1) * row + SIDE
        operands = [region(self.held, which, 1, span), region(self.flat, start, extent, span)]
        load = build.evaluate(call(name, operands, span=span, row=row), span)
        return ctx.unrolled(which, self.blocks, load)


def _strides(home: Home) -> tuple[int, ...] | None:
    """How far apart neighbours of a tile lie along each dimension, if always the same, and if one
    of the last two has them side by side."""
    if not isinstance(home.layout, Layout) or len(home.shape) < 2:
        return None
    places = home.layout.offsets().reshape(home.shape)
    strides = tuple(
        int(np.take(places, 1, axis=d).flat[0]) if extent > 1 else 0
        for d, extent in enumerate(home.shape)
    )
    steps = sum(
        np.arange(extent).reshape([-1 if e == d else 1 for e in range(len(home.shape))]) * stride
        for d, (extent, stride) in enumerate(zip(home.shape, strides, strict=True))
    )
    if not np.array_equal(places, np.broadcast_to(steps, home.shape)) or 1 not in strides[-2:]:
        return None
    return strides


def _moved(ctx: GpuContext, src: TileRegion, dst: TileRegion) -> tirx.Stmt:
    """Copy the last two dimensions."""
    extents = [build.int_value(e) or 1 for e in dst.extents[-2:]]
    i, j = ctx.var("i"), ctx.var("j")
    ranks = len(src.extents), len(dst.extents)
    value = src.load({ranks[0] - 2: i, ranks[0] - 1: j})
    body = dst.store({ranks[1] - 2: i, ranks[1] - 1: j}, value, ctx.span)
    return ctx.nest([i, j], extents, body, None)
