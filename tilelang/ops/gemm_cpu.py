"""How does one core multiply tiles?

C is covered by register tiles of a few rows and a few vectors of columns. A register tile is
loaded once, updated along the whole of K, and stored once:

    for each block of rows: for each panel of columns:
        acc = C[rows, columns]                                  (or 0 when C is cleared)
        for k: acc[r, :] += A[r, k] * B[k, columns]             (unrolled over rows and vectors)
        C[rows, columns] = acc

Operands that are not rows of the type the processor multiplies in (transposed B, half and 8-bit
floats, int8) are first packed into panels of that type. Sizes that do not divide leave a last
block of fewer rows and panels of fewer columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from tilelang.ir import build, tirx
from tilelang.ir.llvm import host_cpu
from tilelang.ir.tile_op import LowerContext, loop_vars, parallel_nest
from tilelang.ops.fill import fill_region
from tilelang.ops.gemm_blocking import Piece, RegisterTile, choose_tile, pieces

if TYPE_CHECKING:
    from tilelang.ops.gemm import Gemm

# What each accumulator dtype is computed in.
_COMPUTED = {
    "float32": "float32", "float16": "float32", "bfloat16": "float32", "float64": "float64",
    "int32": "int32", "int64": "int64", "uint32": "uint32",
}  # fmt: skip
# Half of the smallest first-level cache around: the other half is for A and C.
_B_IN_CACHE = 24 * 1024
_BITS = {"float32": 32, "int32": 32, "uint32": 32, "float64": 64, "int64": 64}

Element: TypeAlias = "Callable[[tirx.Expr, tirx.Expr], tirx.Expr]"


def cpu_gemm(op: Gemm, ctx: LowerContext) -> tirx.Stmt:
    """Register-blocked loops; plain ones for sizes only known at run time."""
    sizes = [build.int_value(e) for e in (op.m, op.n, op.k)]
    computed = _COMPUTED.get(op.C.dtype)
    if any(s is None or s == 0 for s in sizes) or computed is None:
        return build.seq([clear_accumulator(op, ctx), _plain(op, ctx)], ctx.span)
    m, n, k = (s for s in sizes if s is not None)
    return _Blocked(op, ctx, computed, m, n, k).lower()


def clear_accumulator(op: Gemm, ctx: LowerContext) -> tirx.Stmt:
    """Zero C when the operation says so, possibly only at run time."""
    if op.overwrites is False:
        return build.nothing(ctx.span)
    clear = fill_region(ctx, op.C, build.const(0, op.C.dtype, ctx.span))
    if op.overwrites:
        return clear
    condition = build.cast(op.clear_accum, "bool", ctx.span)
    return tirx.IfThenElse(condition, clear, None, ctx.span)


def _plain(op: Gemm, ctx: LowerContext) -> tirx.Stmt:
    """Loops over rows, the reduction, and columns innermost: rows of C and B are contiguous."""
    span, dtype = ctx.span, op.C.dtype
    m, k, n = loop_vars([("m", op.m), ("k", op.k), ("n", op.n)], span)
    rank = len(op.C.extents)
    place = {rank - 2: m, rank - 1: n}
    product = tirx.Mul(
        build.cast(op.load_a(m, k), dtype, span), build.cast(op.load_b(k, n), dtype, span), span
    )
    body = op.C.store(place, tirx.Add(op.C.load(place), product, span), span)
    body = parallel_nest([("n", op.n)], body, [n], span)
    body = build.loop(k, op.k, body, span=span)
    return build.loop(m, op.m, body, span=span)


@dataclass
class _Blocked:
    """One gemm of constant size being lowered."""

    op: Gemm
    ctx: LowerContext
    computed: str
    m: int
    n: int
    k: int

    def lower(self) -> tirx.Stmt:
        tirx.ensure_op("prefetch")
        tirx.ensure_op("prefetch_slot")
        lanes = max(2, host_cpu().vector_bits // _BITS[self.computed])
        self.tile = choose_tile(self.m, self.n, lanes, host_cpu().vector_registers)
        parts: list[tirx.Stmt] = []
        load_a, packed_a = self._operand_a(parts)
        load_b, packed_b = self._operand_b(parts)
        parts += self._blocks(lanes, load_a, load_b)
        return build.seq([*packed_a, *packed_b, *parts], self.ctx.span)

    # --- operands ---

    def _operand_a(self, parts: list[tirx.Stmt]) -> tuple[Element, list[tirx.Stmt]]:
        if self.op.A.dtype == self.computed:
            return self.op.load_a, []
        packed = self._scratch("a_packed", [self.m, self.k])
        r, c = self._var("r"), self._var("c")
        source = build.cast(self.op.load_a(r, c), self.computed, self._span)
        inner = (r, self.m) if self.op.transpose_A else (c, self.k)
        outer = (c, self.k) if self.op.transpose_A else (r, self.m)
        store = build.store(packed, [r, c], source, self._span)
        return (lambda i, j: build.load(packed, [i, j], self._span)), [
            tirx.AllocBuffer(packed, None, self._span),
            self._nest([outer, inner], store),
        ]

    def _operand_b(self, parts: list[tirx.Stmt]) -> tuple[Element, list[tirx.Stmt]]:
        if self.op.B.dtype == self.computed and not self.op.transpose_B:
            return self.op.load_b, []
        packed = self._scratch("b_packed", [self.k, self.n])
        r, c = self._var("r"), self._var("c")
        source = build.cast(self.op.load_b(r, c), self.computed, self._span)
        store = build.store(packed, [r, c], source, self._span)
        return (lambda i, j: build.load(packed, [i, j], self._span)), [
            tirx.AllocBuffer(packed, None, self._span),
            self._nest([(r, self.k), (c, self.n)], store),
        ]

    # --- blocks ---

    def _blocks(self, lanes: int, load_a: Element, load_b: Element) -> list[tirx.Stmt]:
        """Register tiles over all of C.

        Row by row when B stays in the first cache level meanwhile, so that C is walked in the
        order of memory; else panel by panel, so that each panel of B does.
        """
        rows = pieces(self.m, self.tile.rows, 1)
        columns = pieces(self.n, self.tile.columns, lanes)
        by_rows = self.k * self.n * _BITS[self.computed] // 8 <= _B_IN_CACHE
        out = []
        self.steps = sum(r.count for r in rows) * sum(c.count for c in columns)
        done = 0
        for outer in rows if by_rows else columns:
            first = self._var("m0" if by_rows else "n0")
            inside = []
            per_outer = sum(inner.count for inner in (columns if by_rows else rows))
            before = done
            for inner in columns if by_rows else rows:
                second = self._var("n0" if by_rows else "m0")
                row = (outer, first) if by_rows else (inner, second)
                column = (inner, second) if by_rows else (outer, first)
                turn = build.mul(first, self._int(per_outer), self._span)
                turn = build.add(build.add(turn, second, self._span), self._int(before))
                before += inner.count
                slot = build.call("prefetch_slot", [turn, self._int(self.steps)], span=self._span)
                body = self._block(*row, *column, load_a, load_b, build.evaluate(slot, self._span))
                inside.append(build.loop(second, self._int(inner.count), body, span=self._span))
            done += outer.count * per_outer
            body = build.seq(inside, self._span)
            out.append(build.loop(first, self._int(outer.count), body, span=self._span))
        return out

    def _block(
        self, rows: Piece, m0: tirx.Var, columns: Piece, n0: tirx.Var,
        load_a: Element, load_b: Element, slot: tirx.Stmt,
    ) -> tirx.Stmt:  # fmt: skip
        """One register tile: load, multiply, store."""
        row = self._offset(rows.start, m0, rows.size)
        column = self._offset(columns.start, n0, columns.size)
        tile = RegisterTile(rows.size, columns.vectors, columns.lanes)
        acc = self._scratch("acc", [tile.rows, tile.columns], "local")
        return build.seq(
            [
                tirx.AllocBuffer(acc, None, self._span),
                self._load_tile(acc, tile, row, column),
                slot,
                self._multiply(acc, tile, row, column, load_a, load_b),
                self._store_tile(acc, tile, row, column),
            ],
            self._span,
        )

    def _load_tile(
        self, acc: tirx.Buffer, tile: RegisterTile, row: tirx.Expr, column: tirx.Expr
    ) -> tirx.Stmt:
        span = self._span

        def zero(r: tirx.Expr, c: tirx.Expr) -> tirx.Stmt:
            value = build.const(0, self._vector(tile.lanes), span)
            return tirx.BufferStore(acc, value, [r, self._ramp(c, tile.lanes)], span)

        def load(r: tirx.Expr, c: tirx.Expr) -> tirx.Stmt:
            value = self._c_tile(row, column, r, c, tile.lanes)
            return tirx.BufferStore(acc, value, [r, self._ramp(c, tile.lanes)], span)

        if self.op.overwrites:
            return self._unrolled(tile, zero)
        if self.op.overwrites is False:
            return self._unrolled(tile, load)
        condition = build.cast(self.op.clear_accum, "bool", span)
        return tirx.IfThenElse(
            condition, self._unrolled(tile, zero), self._unrolled(tile, load), span
        )

    def _store_tile(
        self, acc: tirx.Buffer, tile: RegisterTile, row: tirx.Expr, column: tirx.Expr
    ) -> tirx.Stmt:
        span = self._span

        def store(r: tirx.Expr, c: tirx.Expr) -> tirx.Stmt:
            value = build.load(acc, [r, self._ramp(c, tile.lanes)], span)
            value = build.cast(value, self._vector(tile.lanes, self.op.C.dtype), span)
            place = self._c_place(row, column, r, c, tile.lanes)
            return tirx.BufferStore(self.op.C.buffer, value, place, span)

        return self._unrolled(tile, store)

    def _multiply(
        self, acc: tirx.Buffer, tile: RegisterTile, row: tirx.Expr, column: tirx.Expr,
        load_a: Element, load_b: Element,
    ) -> tirx.Stmt:  # fmt: skip
        span, step = self._span, self._var("k")

        def update(r: tirx.Expr, c: tirx.Expr) -> tirx.Stmt:
            place = [r, self._ramp(c, tile.lanes)]
            a = load_a(build.add(row, r, span), step)
            if tile.lanes > 1:
                a = tirx.Broadcast(a, tile.lanes, span)
            b = _at_lanes(load_b(step, build.add(column, c, span)), tile.lanes, span)
            total = tirx.Add(build.load(acc, place, span), tirx.Mul(a, b, span), span)
            return tirx.BufferStore(acc, total, place, span)

        return build.loop(step, self._int(self.k), self._unrolled(tile, update), span=span)

    # --- small pieces of IR ---

    @property
    def _span(self) -> Any:
        return self.ctx.span

    def _var(self, name: str) -> tirx.Var:
        return tirx.Var(name, "int32", self._span)

    def _int(self, value: int) -> tirx.Expr:
        return build.const(value, "int32", self._span)

    def _offset(self, start: int, block: tirx.Var, size: int) -> tirx.Expr:
        scaled = build.mul(block, self._int(size), self._span)
        return build.add(scaled, self._int(start), self._span)

    def _ramp(self, base: tirx.Expr, lanes: int) -> tirx.Expr:
        if lanes == 1:
            return base
        one = build.const(1, build.dtype_of(base), self._span)
        return tirx.Ramp(base, one, lanes, self._span)

    def _vector(self, lanes: int, dtype: str | None = None) -> str:
        dtype = dtype or self.computed
        return f"{dtype}x{lanes}" if lanes > 1 else dtype

    def _scratch(self, name: str, shape: Sequence[int], scope: str = "shared") -> tirx.Buffer:
        return tirx.decl_buffer(
            [self._int(s) for s in shape], self.computed, name=name, scope=scope,
            data_alignment=64, span=self._span, layout=None,
        )  # fmt: skip

    def _unrolled(
        self, tile: RegisterTile, make: Callable[[tirx.Expr, tirx.Expr], tirx.Stmt]
    ) -> tirx.Stmt:
        """`make(row, column)` for every row and vector of a register tile."""
        r, v = self._var("r"), self._var("v")
        body = make(r, build.mul(v, self._int(tile.lanes), self._span))
        for var, count in ((v, tile.vectors), (r, tile.rows)):
            body = build.loop(var, self._int(count), body, kind="UNROLLED", span=self._span)
        return body

    def _nest(self, loops: Sequence[tuple[tirx.Var, int]], body: tirx.Stmt) -> tirx.Stmt:
        named = [(var.name, self._int(size)) for var, size in loops]
        return parallel_nest(named, body, [var for var, _ in loops], self._span)

    def _c_place(
        self, row: tirx.Expr, column: tirx.Expr, r: tirx.Expr, c: tirx.Expr, lanes: int
    ) -> list[tirx.Expr]:
        rank = len(self.op.C.extents)
        span = self._span
        at = {rank - 2: build.add(row, r, span), rank - 1: build.add(column, c, span)}
        place = self.op.C.place(at)
        place[-1] = self._ramp(place[-1], lanes)
        return place

    def _c_tile(
        self, row: tirx.Expr, column: tirx.Expr, r: tirx.Expr, c: tirx.Expr, lanes: int
    ) -> tirx.Expr:
        place = self._c_place(row, column, r, c, lanes)
        value = build.load(self.op.C.buffer, place, self._span)
        return build.cast(value, self._vector(lanes), self._span)


def _at_lanes(load: tirx.Expr, lanes: int, span: Any) -> tirx.Expr:
    """The load of one element as that of `lanes` consecutive ones."""
    if lanes == 1:
        return load
    indices = list(load.indices)
    one = build.const(1, build.dtype_of(indices[-1]), span)
    indices[-1] = tirx.Ramp(indices[-1], one, lanes, span)
    return build.load(load.source, indices, span)
