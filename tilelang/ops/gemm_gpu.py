"""How do the warps of a block multiply tiles?

With the matrix instruction of the types, each warp computing a contiguous block of C:

    for k in unrolled(K // 16):
        A_r = rows of A by ldmatrix; B_r = columns of B by ldmatrix
        for i, j in unrolled(blocks): C_l[...] += A_r[i] @ B_r[j]                 (mma.sync)

Operands come from shared memory, or from registers that lie as the instruction wants them. Others
go through shared memory. Types and sizes no instruction has are multiplied element by element.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_never

from tilelang.choices import Rejected
from tilelang.ir import build, tirx
from tilelang.ir.device_ops import call, region
from tilelang.ir.device_rows_mma import mma_name
from tilelang.ir.gpu_context import STAGE_SCOPE, GpuContext
from tilelang.ir.homes import FRAGMENT, SHARED
from tilelang.ir.tile_op import TileRegion
from tilelang.layout.atoms import Atom
from tilelang.layout.gemm import GemmWarpPolicy, NoPartition, WarpGrid, accumulator
from tilelang.layout.instructions import (
    Chosen,
    Family,
    Unsuitable,
    choose_instruction,
    instructions,
)
from tilelang.layout.layout import Layout
from tilelang.layout.swizzle import Tile, make_swizzled_layout
from tilelang.ops.fill import fill_region
from tilelang.ops.gemm_operands import Operand, Placed, RegisterTile, held_slots
from tilelang.ops.gemm_simdgroup import fits, matrix_plan, simdgroup_gemm

if TYPE_CHECKING:
    from tilelang.ops.gemm import Gemm


def gpu_gemm(op: Gemm, ctx: GpuContext) -> tirx.Stmt:
    """Matrix instructions where there are any for the types and sizes."""
    opaque = matrix_plan(op, ctx.threads, ctx.capabilities)
    if opaque is not None and fits(opaque, op.C.dtype, ctx.capabilities):
        ctx.chose("gemm", opaque.said)
        return simdgroup_gemm(op, ctx, opaque)
    plan = plan_gemm(op, ctx)
    if isinstance(plan, Rejected):
        ctx.chose("gemm", "multiplied element by element, on the ordinary units", rejected=[plan])
        return build.seq([_cleared(op, ctx, op.C), _element_by_element(op, ctx)], ctx.span)
    count = plan.m_blocks * plan.n_blocks * plan.k_blocks
    ctx.chose(
        "gemm", f"{plan.family.name} {plan.atom.shape}, {count} a warp, by {plan.grid}",
        rejected=[Rejected(atom.shape, why) for atom, why in plan.passed],
    )  # fmt: skip
    return _Multiply(op, ctx, plan).lower()


@dataclass(frozen=True, slots=True)
class GemmPlan:
    """The instruction, the grid of warps, and the constant sizes; `passed` as in `Chosen`."""

    family: Family
    atom: Atom
    grid: WarpGrid
    m: int
    n: int
    k: int
    passed: tuple[tuple[Atom, str], ...] = ()

    @property
    def m_blocks(self) -> int:
        """Instructions of a warp along M."""
        return self.m // self.grid.m_warps // self.atom.m

    @property
    def n_blocks(self) -> int:
        """Instructions of a warp along N."""
        return self.n // self.grid.n_warps // self.atom.n

    @property
    def k_blocks(self) -> int:
        """Instructions along K."""
        return self.k // self.atom.k


def plan_gemm(op: Gemm, ctx: GpuContext) -> GemmPlan | Rejected:
    """How matrix instructions do it, or why they cannot."""
    sizes = [build.int_value(e) for e in (op.m, op.n, op.k)]
    known = [n for n in sizes if n]
    warps, rest = divmod(ctx.threads, ctx.machine.warp)
    family, arch = ctx.machine.family, ctx.machine.arch
    if family is None or arch is None:
        return Rejected("matrix instructions", f"there is no table of those of {ctx.target}")
    if len(known) < len(sizes):
        return Rejected(family.name, "its sizes are no constants")
    if rest or not warps:
        return Rejected(
            family.name, f"{ctx.threads} threads are no whole warps of {ctx.machine.warp}"
        )
    m, n, k = known
    usable = instructions(op.A.dtype, op.B.dtype, op.C.dtype, arch, family)
    if not usable:
        types = op.A.dtype if op.A.dtype == op.B.dtype else f"{op.A.dtype} by {op.B.dtype}"
        return Rejected(family.name, f"{ctx.target} has none for {types} with {op.C.dtype} sums")
    found = choose_instruction(usable, m, n, k, warps, GemmWarpPolicy(op.policy or 0))
    match found:
        case Chosen():
            return GemmPlan(family, found.atom, found.grid, m, n, k, found.passed)
        case Unsuitable(what="k"):
            return Rejected(family.name, f"K = {k} is no multiple of {found.k}")
        case Unsuitable():
            return Rejected(
                family.name, f"{m} x {n} is no whole number of {found.m} x {found.n} blocks"
            )
        case NoPartition():
            return Rejected(family.name, f"{warps} warps cannot share {m} x {n} evenly")
        case _ as never:
            assert_never(never)


class _Multiply:
    """One gemm by matrix instructions."""

    def __init__(self, op: Gemm, ctx: GpuContext, plan: GemmPlan) -> None:
        self.op, self.ctx, self.plan, self.span = op, ctx, plan, ctx.span
        self.before: list[tirx.Stmt] = []
        self.after: list[tirx.Stmt] = []

    def lower(self) -> tirx.Stmt:
        op, plan, ctx = self.op, self.plan, self.ctx
        atom, grid = plan.atom, plan.grid
        acc = self._accumulators()
        a_source = self._in_reach(op.A, "a")
        b_source = self._in_reach(op.B, "b")
        a = Operand.of_a(ctx, a_source, atom, grid, plan.m, plan.k, op.transpose_A)
        b = Operand.of_b(ctx, b_source, atom, grid, plan.k, plan.n, op.transpose_B)
        k = ctx.var("k")
        a_tile = a.load(f"{op.A.buffer.name}_r", k)
        b_tile = b.load(f"{op.B.buffer.name}_r", k)
        loop = ctx.unrolled(
            k,
            plan.k_blocks,
            build.seq([*a_tile.fill, *b_tile.fill, self._products(acc, a_tile, b_tile, k)],
                      self.span),
        )  # fmt: skip
        body = [*a_tile.allocate, *b_tile.allocate, loop]
        return build.seq([*self.before, *body, *self.after], self.span)

    def _products(
        self, acc: RegisterTile, a: RegisterTile, b: RegisterTile, k: tirx.Var
    ) -> tirx.Stmt:
        """One instruction for each block of the warp."""
        ctx, plan, op = self.ctx, self.plan, self.op
        i, j = ctx.var("i"), ctx.var("j")
        name = mma_name(plan.family, plan.atom, acc.dtype, op.A.dtype, op.B.dtype)
        operands = [
            region(acc.buffer, acc.at(i, j), acc.count, self.span),
            region(a.buffer, a.at(i, k), a.count, self.span),
            region(b.buffer, b.at(j, k), b.count, self.span),
        ]
        product = build.evaluate(call(name, operands, span=self.span), self.span)
        return ctx.unrolled(i, plan.m_blocks, ctx.unrolled(j, plan.n_blocks, product))

    def _accumulators(self) -> RegisterTile:
        """C in the registers of the instruction: its own, or others around the product."""
        op, ctx, plan = self.op, self.ctx, self.plan
        wanted = accumulator(plan.m, plan.n, plan.grid, plan.atom)
        blocks = (plan.m_blocks, plan.n_blocks)
        found = held_slots(ctx, op.C, wanted, blocks)
        if found is not None:
            self.before.append(_cleared(op, ctx, op.C))
            return found
        allocate, home = ctx.tile(
            f"{op.C.buffer.name}_acc", (plan.m, plan.n), op.C.dtype, FRAGMENT, wanted
        )
        own = TileRegion.of(home.buffer)
        self.before += [allocate, self._moved(op.C, own, wanted)]
        self.before.append(_cleared(op, ctx, own))
        self.after.append(self._moved(own, op.C, wanted))
        found = held_slots(ctx, own, wanted, blocks, home)
        assert found is not None
        return found

    def _in_reach(self, operand: TileRegion, which: str) -> TileRegion | Placed:
        """An operand in shared memory, or in registers that lie right; a copy of any other."""
        ctx, plan, op = self.ctx, self.plan, self.op
        if str(operand.buffer.scope()) in SHARED and ctx.homes.find(operand.buffer) is not None:
            return operand
        transposed = op.transpose_A if which == "a" else op.transpose_B
        if Operand.lies_right(ctx, operand, plan.atom, plan.grid, which, transposed):
            return operand
        ctx.chose(
            "operand", f"`{operand.buffer.name}` goes through shared memory",
            f"its registers do not lie as {plan.family.name} takes operand {which.upper()}",
        )  # fmt: skip
        rows, columns = (build.int_value(e) for e in operand.extents[-2:])
        assert rows is not None and columns is not None
        bits = plan.atom.bits
        layout = make_swizzled_layout(Tile((rows, columns), bits), which == "a")
        if layout.map.forms is None:
            layout = Layout.row_major((rows, columns))
        allocate, home = ctx.tile(
            f"{operand.buffer.name}_shared", (rows, columns), operand.dtype, STAGE_SCOPE, layout
        )
        self.before += [allocate, self._moved(operand, TileRegion.of(home.buffer), None)]
        return Operand.placed(TileRegion.of(home.buffer), home)

    def _moved(self, src: TileRegion, dst: TileRegion, layout: Any) -> tirx.Stmt:
        """Copy the last two dimensions."""
        ctx = self.ctx
        extents = [build.int_value(e) or 1 for e in dst.extents[-2:]]
        i, j = ctx.var("i"), ctx.var("j")
        ranks = len(src.extents), len(dst.extents)
        value = src.load({ranks[0] - 2: i, ranks[0] - 1: j})
        body = dst.store({ranks[1] - 2: i, ranks[1] - 1: j}, value, self.span)
        return ctx.nest([i, j], extents, body, layout)


def _cleared(op: Gemm, ctx: GpuContext, target: TileRegion) -> tirx.Stmt:
    """Zero C when the operation says so, possibly only at run time."""
    if op.overwrites is False:
        return build.nothing(ctx.span)
    zero = build.const(0, target.dtype, ctx.span)
    clear = ctx.spread(fill_region(ctx, target, zero))
    if op.overwrites:
        return clear
    assert op.clear_accum is not None
    return tirx.IfThenElse(build.cast(op.clear_accum, "bool", ctx.span), clear, None, ctx.span)


def _element_by_element(op: Gemm, ctx: GpuContext) -> tirx.Stmt:
    """Each thread computes the elements of C that it holds."""
    span, dtype, rank = ctx.span, op.C.dtype, len(op.C.extents)
    m, n, k = (tirx.Var(name, build.dtype_of(extent), span)
               for name, extent in (("m", op.m), ("n", op.n), ("k", op.k)))  # fmt: skip
    place = {rank - 2: m, rank - 1: n}
    product = tirx.Mul(
        build.cast(op.load_a(m, k), dtype, span), build.cast(op.load_b(k, n), dtype, span), span
    )
    total = tirx.Add(op.C.load(place), product, span)
    body = build.loop(k, op.k, op.C.store(place, total, span), span=span)
    layout = ctx.fragment(op.C)
    return ctx.nest([m, n], [op.m, op.n], body, layout if rank == 2 else None)
