"""What an iteration multiplies first is loaded while the one before it still multiplies.

Before: for k in T.serial(n):
            T.cp_async_wait(1)
            (copies for iteration k + 2) T.cp_async_commit()
            for s in T.unroll(4):
                A_r = step s of version k % 3 of A_s                        (ldmatrix)
                C_r += A_r @ …
After:  T.cp_async_wait(1)
        A_r[0] = step 0 of version 0 of A_s
        for k in T.serial(n):
            A_r[1] = step 1 of version k % 3 of A_s
            (copies for iteration k + 2) T.cp_async_commit()
            C_r += A_r[0] @ …
            for s in T.unroll(1 .. 3):
                A_r[(s + 1) % 2] = step s + 1 of version k % 3 of A_s
                C_r += A_r[s % 2] @ …
            T.cp_async_wait(1)
            A_r[0] = step 0 of version (k + 1) % 3 of A_s
            C_r += A_r[1] @ …

Matrix instructions then have something to do while threads wait for each other and for shared
memory. The last iteration loads what nobody uses: an old version, which is there all the same, or
its own where the loop may be too short for that. It costs a second set of operand registers, and is
not done where fewer blocks would fit on a multiprocessor for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tilelang.analysis.schedule import SHARED, needed_binds
from tilelang.dtypes import dtype as find_dtype
from tilelang.ir import attrs, build, tirx
from tilelang.ir.device_ops import op_of_call
from tilelang.ir.visit import (
    Rewriter,
    collect,
    contains,
    renewed,
    substitute,
    uses,
    with_body,
)
from tilelang.passes.context import PassContext

# 32-bit registers of a multiprocessor, the same for each architecture with cp.async.
_REGISTER_FILE: Final = 65536
_RESIDENT_THREADS: Final = 2048
# Shared memory that the system takes of each block.
_RESERVED: Final = 1024
# What a thread needs besides its arrays, seen in GEMMs: addresses, indices, counters.
_WORKING: Final = 40


def prefetch_operands(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Rotate each marked loop that can afford it."""
    return with_body(func, _Prefetch(ctx).any(func.body))


class _Prefetch(Rewriter):
    def __init__(self, ctx: PassContext) -> None:
        self._ctx = ctx
        self._launch: _Launch | None = None

    def attr(self, s: Any) -> Any:
        if str(s.attr_key) != attrs.THREAD_EXTENT or self._launch is not None:
            return super().attr(s)
        self._launch = _Launch.of(s, self._ctx)
        new = super().attr(s)
        self._launch = None
        return new

    def for_(self, s: Any) -> Any:
        if attrs.PREFETCH not in s.annotations:
            return super().for_(s)
        product = _Product.of(s)
        if product is None or self._launch is None or not self._launch.affords(product.words):
            return s
        self._ctx.count("prefetched loops")
        return product.rotated()


@dataclass(frozen=True, slots=True)
class _Launch:
    """What a launch takes of a multiprocessor: threads, words of registers, bytes."""

    threads: int
    words: int
    shared: int
    shared_limit: int
    register_limit: int

    @staticmethod
    def of(s: Any, ctx: PassContext) -> _Launch:
        threads = 1
        for axis in collect(s, tirx.AttrStmt):
            if str(axis.attr_key) == attrs.THREAD_EXTENT:
                if str(axis.node.thread_tag) in attrs.THREAD_TAGS:
                    threads *= build.int_value(axis.value) or 1
        words = shared = 0
        for alloc in collect(s, tirx.AllocBuffer):
            scope = str(alloc.buffer.scope())
            if scope == "local":
                words += _words(alloc.buffer)
            elif scope in SHARED:
                shared += _words(alloc.buffer) * 4
        limits = ctx.capabilities
        return _Launch(threads, words, shared, limits.shared_bytes or 0, limits.registers or 0)

    def affords(self, more: int) -> bool:
        """Whether `more` words of registers cost no resident block."""
        wanted = self.words + more + _WORKING
        return wanted <= self.register_limit and self._resident(more) >= self._resident(0)

    def _resident(self, more: int) -> int:
        registers = min(self.register_limit, self.words + more + _WORKING)
        by_registers = _REGISTER_FILE // (-(-registers // 8) * 8 * self.threads)
        by_shared = (self.shared_limit + _RESERVED) // (self.shared + _RESERVED)
        return min(by_registers, by_shared, _RESIDENT_THREADS // self.threads)


@dataclass(frozen=True, slots=True, eq=False)
class _Product:
    """A loop that waits, copies, and multiplies in unrolled steps.

    Each step runs `fills`, which load its operands into `registers`, and then `uses`. `binds` are
    the names that fills use, `others` everything else in front.
    """

    loop: Any
    wait: Any
    binds: tuple[Any, ...]
    others: tuple[Any, ...]
    steps: Any
    fills: Any
    uses: Any
    registers: tuple[Any, ...]

    @staticmethod
    def of(loop: Any) -> _Product | None:
        """The parts of a loop; None where it is not of this form, or fills need more than it."""
        wait, *middle, steps = _flat(loop.body)
        count = _unrolled(steps)
        if _device_op(wait) != "cp_async_wait" or count is None or count % 2:
            return None
        if not _operations(middle) <= {"cp_async", "cp_async_commit"} or _stores_shared(middle):
            return None
        allocations = [s for s in middle if isinstance(s, tirx.AllocBuffer)]
        own = {s.buffer for s in allocations}
        inner = _flat(steps.body)
        first = next((n for n, s in enumerate(inner) if not _fills(s, own)), len(inner))
        fills, used = inner[:first], inner[first:]
        filled = {b for s in fills for b in _written(s)}
        moved = [s for s in allocations if s.buffer in filled]
        copies = [s for s in middle if s not in moved]
        if not filled or not used or any(_touched(s) & filled for s in copies):
            return None
        if any(set(_written(s)) & filled for s in used):
            return None
        sources = {b for s in fills for b in _touched(s)} - filled
        if any(str(b.scope()) not in SHARED for b in sources):
            return None
        whole = build.seq(fills, steps.span)
        binds = needed_binds(whole, [s for s in copies if isinstance(s, tirx.Bind)])
        if not all(_is_periodic(s, loop.loop_var) for s in [*fills, *binds]):
            return None
        others = [s for s in copies if not any(s.same_as(b) for b in binds)]
        return _Product(
            loop, wait, tuple(binds), tuple(others), steps, whole, build.seq(used, steps.span),
            tuple(s.buffer for s in moved),
        )  # fmt: skip

    @property
    def words(self) -> int:
        """The registers that one more set of operands takes."""
        return sum(_words(b) for b in self.registers)

    def rotated(self) -> Any:
        """The loop with each first step in front of it, or at the end of the one before."""
        loop, span = self.loop, self.loop.span
        var, step = loop.loop_var, self.steps.loop_var
        last = (build.int_value(self.steps.extent) or 0) - 1
        wide = {b: _twice(b) for b in self.registers}
        before = [build.allocate(b, None, b.span) for b in wide.values()]
        before += [self.wait, self._entry(self._first(wide, {var: loop.min}))]
        body = [
            *self.binds,
            self._at(self.fills, wide, self._number(1)), *self.others,
            self._at(self.uses, wide, self._number(0)),
        ]  # fmt: skip
        if last > 1:
            number = tirx.Var(str(step.name), build.dtype_of(step), step.span)
            following = build.add(number, self._number(1), span)
            inner = [self._at(self.fills, wide, following), self._at(self.uses, wide, number)]
            body.append(
                build.loop(
                    number, self._number(last - 1), build.seq(inner, span), kind="UNROLLED",
                    low=self._number(1), span=self.steps.span,
                )
            )  # fmt: skip
        body += [self.wait, self._first(wide, {var: self._following()})]
        body.append(self._at(self.uses, wide, self._number(last)))
        return build.seq([*before, build.replace_body(loop, build.seq(body, span))], span)

    def _entry(self, fills: Any) -> Any:
        """`fills`, which is in front of the loop, where the loop has an iteration at all."""
        loop, extent = self.loop, build.int_value(self.loop.extent)
        if extent is not None and extent > 0:
            return fills
        zero = build.const(0, build.dtype_of(loop.extent), loop.span)
        return tirx.IfThenElse(tirx.LT(zero, loop.extent, loop.span), fills, None, loop.span)

    def _following(self) -> Any:
        """The next iteration, or the last one again where the next version may be unwritten."""
        loop, span = self.loop, self.loop.span
        var, dtype = loop.loop_var, build.dtype_of(loop.loop_var)
        one = build.const(1, dtype, span)
        extent = build.int_value(loop.extent)
        if extent is not None and extent >= self._versions():
            return build.add(var, one, span)
        left = tirx.Sub(build.add(loop.min, build.cast(loop.extent, dtype, span), span), one, span)
        is_another = tirx.LT(var, _FOLD.any(left), span)
        return build.add(var, build.cast(is_another, dtype, span), span)

    def _versions(self) -> int:
        """The most versions that a tile has."""
        remainders = [
            e for s in (self.fills, *self.binds) for e in collect(s, tirx.FloorMod)
            if uses(e.a, [self.loop.loop_var])
        ]  # fmt: skip
        return max((build.int_value(e.b) or 0 for e in remainders), default=1)

    def _number(self, n: int) -> Any:
        return build.const(n, build.dtype_of(self.steps.loop_var), self.steps.span)

    def _first(self, wide: Mapping[Any, Any], values: Mapping[Any, Any]) -> Any:
        """The operands of the first step of another iteration."""
        known = dict(values)
        binds = []
        for bind in self.binds:
            value = _FOLD.any(substitute(bind.value, known))
            if build.int_value(value) is None:
                binds.append(tirx.Bind(bind.var, value, bind.span))
            else:
                known[bind.var] = value
        fills = self._at(substitute(self.fills, known), wide, self._number(0))
        return renewed(build.seq([*binds, fills], self.steps.span))

    def _at(self, stmt: Any, wide: Mapping[Any, Any], number: Any) -> Any:
        """`stmt` for one step, with the half of the registers that is its."""
        moved = _Halves(wide, number).any(substitute(stmt, {self.steps.loop_var: number}))
        return renewed(_FOLD.any(moved))


class _Halves(Rewriter):
    """Accesses of registers in the half that belongs to step `number`."""

    def __init__(self, wide: Mapping[Any, Any], number: Any) -> None:
        self._wide = wide
        self._number = number

    def load(self, e: Any) -> Any:
        new = super().load(e)
        if new.source not in self._wide:
            return new
        return tirx.BufferLoad(*self._moved(new.source, new.indices[0]), e.span)

    def store(self, s: Any) -> Any:
        new = super().store(s)
        if new.buffer not in self._wide:
            return new
        buffer, indices = self._moved(new.buffer, new.indices[0])
        return tirx.BufferStore(buffer, new.value, indices, s.span)

    def region(self, e: Any) -> Any:
        new = super().region(e)
        if new.source not in self._wide:
            return new
        (extent,) = new.region
        buffer, (start,) = self._moved(new.source, extent.min)
        return build.region(buffer, [(start, extent.extent)], e.span)

    def _moved(self, buffer: Any, index: Any) -> tuple[Any, list[Any]]:
        span, dtype = index.span, build.dtype_of(index)
        size = build.int_value(buffer.shape[0]) or 0
        known = build.int_value(self._number)
        if known is not None:
            start: Any = build.const(known % 2 * size, dtype, span)
        else:
            two = build.const(2, build.dtype_of(self._number), span)
            half = build.cast(tirx.FloorMod(self._number, two, span), dtype, span)
            start = tirx.Mul(half, build.const(size, dtype, span), span)
        return self._wide[buffer], [build.add(start, index, span)]


class _Fold(Rewriter):
    """Arithmetic on the literals that took the place of variables."""

    def binary(self, e: Any) -> Any:
        new = super().binary(e)
        return build.folded(new) if build.dtype_of(new).startswith("int") else new


_FOLD: Final = _Fold()


def _flat(s: Any) -> list[Any]:
    return [x for part in s.seq for x in _flat(part)] if isinstance(s, tirx.SeqStmt) else [s]


def _unrolled(s: Any) -> int | None:
    """The number of iterations of an unrolled loop that begins at 0."""
    if not isinstance(s, tirx.For) or int(s.kind) != int(tirx.ForKind.UNROLLED):
        return None
    return build.int_value(s.extent) if build.is_int(s.min, 0) else None


def _device_op(s: Any) -> str | None:
    op = op_of_call(s.value) if isinstance(s, tirx.Evaluate) else None
    return None if op is None else op.name


def _operations(stmts: Sequence[Any]) -> set[str]:
    """The device operations in `stmts`; "" stands for any other call for its effect."""
    found = set()
    for s in stmts:
        for call in collect(s, tirx.Evaluate):
            found.add(_device_op(call) or "")
    return found


def _stores_shared(stmts: Sequence[Any]) -> bool:
    """Whether a copy passes through registers, which it then needs for itself."""
    stores = (x for s in stmts for x in collect(s, tirx.BufferStore))
    return any(str(x.buffer.scope()) in SHARED for x in stores)


def _fills(s: Any, own: set[Any]) -> bool:
    written = set(_written(s))
    return bool(written) and written <= own


def _written(s: Any) -> list[Any]:
    found = [x.buffer for x in collect(s, tirx.BufferStore)]
    for call in collect(s, tirx.Call):
        op = op_of_call(call)
        if op is not None:
            for row, arg in zip(op.operands, call.args, strict=False):
                if row.by_reference and row.access != "read":
                    found.append(getattr(arg, "source", arg))
    return found


def _touched(s: Any) -> set[Any]:
    found = set(_written(s))
    found |= {x.source for x in collect(s, tirx.TensorLoad)}
    return found | {x.source for x in collect(s, tirx.TensorRegion)}


def _is_periodic(s: Any, var: Any) -> bool:
    """Whether `s` depends on a loop variable only through which version is in force."""
    if isinstance(s, tirx.Bind) and contains(s.value, _is_more_than_arithmetic):
        return False
    return not uses(_WithoutRemainders().any(s), [var])


def _is_more_than_arithmetic(node: Any) -> bool:
    return isinstance(node, (tirx.TensorLoad, tirx.Call))


class _WithoutRemainders(Rewriter):
    def binary(self, e: Any) -> Any:
        if isinstance(e, tirx.FloorMod) and build.int_value(e.b) is not None:
            return build.const(0, build.dtype_of(e), e.span)
        return super().binary(e)


def _twice(buffer: Any) -> Any:
    size = build.int_value(buffer.shape[0]) or 0
    return tirx.decl_buffer(
        [build.const(2 * size, "int32", buffer.span)], str(buffer.dtype), name=str(buffer.name),
        scope="local", data_alignment=64, span=buffer.span, layout=None,
    )  # fmt: skip


def _words(buffer: Any) -> int:
    """How many 32-bit words a buffer takes."""
    bits = find_dtype(str(buffer.dtype)).bits
    for extent in buffer.shape:
        bits *= build.int_value(extent) or 1
    return -(-bits // 32)
