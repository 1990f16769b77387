"""The widest legal vector accesses of each vectorised loop.

Before: for v in T.vectorized(16): B[i * 16 + v] = A[i * 16 + v]             (float32)
After:  for v in T.unroll(1 .. 4): for w in T.vectorized(4): B[i * 16 + v * 4 + w] = A[…]

What follows holds for each loop that is still VECTORIZED afterwards: its extent is a power of two,
it begins at 0, its body is stores (perhaps under conditions that are the same for all iterations),
and each global or shared place that moves with it moves by one element, from an address that is a
multiple of the access. A loop that cannot be so is unrolled instead. Names of scalars in a loop
are replaced by their values.

What is one vector of global memory but is stored to places that lie apart is loaded as a vector
into registers, and stored from there element by element.

A condition such as `i * 4 + w < n` is the same for four neighbours when 4 divides `n`; it is then
asked of the first one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tilelang.analysis.ranges import conjuncts, element_step, linear_step
from tilelang.codegen.dialect import parse, per_byte
from tilelang.ir import attrs, build, tirx
from tilelang.ir.flatten import terms
from tilelang.ir.visit import (
    Rewriter,
    collect,
    contains,
    statements,
    substitute,
    uses,
    with_body,
)
from tilelang.passes.context import PassContext
from tilelang.passes.scoped import ScopedRewriter, is_lazy_select

MAX_BYTES: Final = 16
ASYNC_BITS: Final = 32  # the narrowest asynchronous copy (PTX ISA, cp.async)
_MEMORY: Final = ("global", "shared", "shared.dyn")


def vectorize_accesses(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Split or unroll each vectorised loop so that the rest are certainly legal."""
    return with_body(func, _Vectorize(func, ctx).any(func.body))


class _Vectorize(ScopedRewriter):
    def __init__(self, func: tirx.PrimFunc, ctx: PassContext) -> None:
        super().__init__(func)
        self._ctx = ctx
        self._asynchronous = False
        self._why = ""  # vectors are not wider

    def for_(self, s: Any) -> Any:
        if int(s.kind) != int(tirx.ForKind.VECTORIZED):
            return super().for_(s)
        extent = build.int_value(s.extent)
        body = _without_names(s.body)
        if extent is None or not build.is_int(s.min, 0) or not self._is_plain(body):
            return self._unrolled(s)
        if self._asynchronous and self._gathers_words(body, s.loop_var):
            return self._unrolled(s)  # each word by an instruction that does not wait
        width = extent & -extent  # the largest power of two that divides it
        self._why = "" if extent == width else f"{extent} elements are no multiple of {2 * width}"
        while width > 1:
            why = self._why
            found = self._at_width(s, body, extent, width)
            if found is not None:
                self._ctx.count(f"vector loops of {width}")
                self._narrow(body, width, why)
                return found
            width //= 2
        self._narrow(body, 1, self._why)
        return self._staged(s, body, extent) or self._unrolled(s)

    def _narrow(self, body: Any, width: int, why: str) -> None:
        """Say why accesses are not as wide as there are."""
        for store in collect(body, tirx.BufferStore):
            bits = parse(str(store.buffer.dtype)).bits
            if width * bits < MAX_BYTES * 8:
                why = why or f"a thread has {_elements(width)} of a row"
                self._ctx.narrow(store, why, width * bits)

    def _gathers_words(self, body: Any, var: Any) -> bool:
        """Whether elements wide enough for `cp.async` lie apart in a tensor."""
        return any(
            str(e.source.scope()) == "global"
            and parse(str(e.source.dtype)).bits >= ASYNC_BITS
            and element_step(self.prover.analyzer, e.source, list(e.indices), var) != 1
            for store in collect(body, tirx.BufferStore)
            for e in _loads(store.value)
        )

    def attr(self, s: Any) -> Any:
        outer = self._asynchronous
        self._asynchronous = outer or s.attr_key == attrs.ASYNC
        new = super().attr(s)
        self._asynchronous = outer
        return new

    def _staged(self, s: Any, body: Any, extent: int) -> Any | None:
        """Vectors of global memory through registers to places apart; None where that is no use."""
        stores = collect(body, tirx.BufferStore)
        if len(stores) != 1 or not _in_memory(stores[0].buffer):
            return None
        (store,) = stores
        bits = parse(str(store.buffer.dtype)).bits
        if bits < 8 or (self._asynchronous and bits >= ASYNC_BITS):
            return None  # copied one by one without waiting
        loads = [e for e in _loads(store.value) if _in_memory(e.source)]
        legal = _Legal(self.prover, s.loop_var, extent)
        if any(e.source.same_as(store.buffer) for e in loads) or not any(
            str(e.source.scope()) == "global" and legal.step(e.source, e.indices) == 1
            for e in loads
        ):
            return None
        held = tirx.decl_buffer(
            [build.const(extent, "int32", s.span)], str(store.buffer.dtype),
            name=f"{store.buffer.name}_r", scope="local", data_alignment=16, span=s.span,
            layout=None,
        )  # fmt: skip
        place = build.cast(s.loop_var, "int32", s.span)
        into = _Restored({store: build.store(held, [place], store.value, store.span)}).any(body)
        value = build.load(held, [place], store.span)
        out = build.store(store.buffer, list(store.indices), value, store.span)
        apart = build.replace_body(s, _Restored({store: out}).any(body))
        width = extent & -extent
        while width > 1:
            found = self._at_width(s, into, extent, width)
            if found is not None:
                parts = [build.allocate(held, None, s.span), found, self._unrolled(apart)]
                return build.seq(parts, s.span)
            width //= 2
        return None

    def _is_plain(self, body: Any) -> bool:
        """Whether the body is stores, perhaps under conditions."""
        for stmt in statements(body):
            if isinstance(stmt, tirx.IfThenElse):
                if stmt.else_case is not None or not self._is_plain(stmt.then_case):
                    return False
            elif not isinstance(stmt, tirx.BufferStore):
                return False
        return True

    def _unrolled(self, s: Any) -> Any:
        extent = build.int_value(s.extent)
        kind = tirx.ForKind.UNROLLED if extent is not None else tirx.ForKind.SERIAL
        plain = tirx.For(
            s.loop_var, s.min, s.extent, kind, s.body, s.thread_binding, s.annotations, s.step,
            s.span,
        )  # fmt: skip
        return super().for_(plain)

    def _at_width(self, s: Any, body: Any, extent: int, width: int) -> Any | None:
        """The loop around `body` with vectors of `width` elements, None if that is not legal."""
        var, span, dtype = s.loop_var, s.span, build.dtype_of(s.loop_var)
        outer = None
        if width < extent:
            outer = tirx.Var(f"{var.name}_outer", dtype, span)
            inner = tirx.Var(str(var.name), dtype, span)
            start = tirx.Mul(outer, build.const(width, dtype, span), span)
            body = substitute(body, {var: tirx.Add(start, inner, span)})
            count = build.const(extent // width, dtype, span)
            self.prover.bind_range(outer, build.const(0, dtype), count)
            var = inner
        self.prover.bind_range(var, build.const(0, dtype), build.const(width, dtype))
        same = _Uniform(self.prover, var, width)
        body = same.any(body)
        legal = _Legal(self.prover, var, width)
        if not legal.block(body):
            self._why = legal.why
            return None
        loop = build.loop(
            var, build.const(width, dtype, span), body, kind="VECTORIZED",
            annotations=s.annotations, span=span,
        )  # fmt: skip
        if outer is None:
            return loop
        return build.loop(outer, count, loop, kind="UNROLLED", span=span)


class _Legal:
    """Whether vectors of `width` iterations of `var` are legal; `why` says what speaks against."""

    def __init__(self, prover: Any, var: Any, width: int) -> None:
        self._prover, self._var, self._width = prover, var, width
        self.why = ""

    def _not(self, why: str) -> bool:
        self.why = self.why or why
        return False

    def block(self, body: Any) -> bool:
        stored = [s.buffer for s in collect(body, tirx.BufferStore)]
        return all(self._statement(s, stored) for s in statements(body))

    def _statement(self, s: Any, stored: Sequence[Any]) -> bool:
        if isinstance(s, tirx.IfThenElse):
            if uses(s.condition, [self._var]):
                return self._not("an edge may lie between elements that would move together")
            return all(self._statement(i, stored) for i in statements(s.then_case))
        in_memory = _in_memory(s.buffer)
        step = self.step(s.buffer, s.indices)
        if in_memory and step != 1:
            # All lanes would write one element, or scatter.
            return self._not(f"neighbours lie apart in `{s.buffer.name}`")
        if step == 1 and not self._aligned(s.buffer, s.indices, in_memory):
            return False
        return all(self._load(e, stored, s) for e in _loads(s.value))

    def _load(self, e: Any, stored: Sequence[Any], s: Any) -> bool:
        buffer = e.source
        if not _in_memory(buffer):
            return True  # registers are addressed one by one
        step = self.step(buffer, e.indices)
        if step is None or step not in (0, 1):
            return True  # gathered element by element
        if any(buffer.same_as(b) for b in stored) and not self._same_place(e, s):
            return self._not("a later element may read what an earlier one has written")
        return step == 0 or self._aligned(buffer, e.indices, True)

    def _same_place(self, e: Any, s: Any) -> bool:
        return bool(
            e.source.same_as(s.buffer)
            and tirx.structural_equal(list(e.indices), list(s.indices))
        )  # fmt: skip

    def step(self, buffer: Any, indices: Any) -> int | None:
        """By how many elements of a buffer an access moves with the variable."""
        if str(buffer.scope()) == "local.var":
            return 0
        return element_step(self._prover.analyzer, buffer, indices, self._var)

    def _aligned(self, buffer: Any, indices: Any, required: bool) -> bool:
        """Whether the first lane's address is a multiple of one access."""
        dtype = parse(str(buffer.dtype))
        shared = per_byte(dtype)
        if shared > 1 and self._width % shared:
            return self._not(f"{shared} elements of `{buffer.name}` share a byte")
        bits = dtype.bits * dtype.lanes
        lanes = min(self._width, max(1, MAX_BYTES * 8 // bits))
        if lanes * bits % 8 or (not required and shared == 1):
            return not required or self._not(f"elements of `{buffer.name}` are no whole bytes")
        analyzer = self._prover.analyzer
        coefficient, base = 0, 0
        start = {self._var: build.const(0, build.dtype_of(self._var))}
        for index, stride in terms(buffer, list(indices)):
            first = substitute(index, start)
            known = analyzer.modular_set(analyzer.simplify(tirx.Mul(*_matched(first, stride))))
            coefficient = _gcd(coefficient, int(known.coeff))
            base += int(known.base)
        if coefficient % lanes == 0 and base % lanes == 0:
            return True
        known = _elements(max(1, _gcd(_gcd(coefficient, base), lanes)))
        return self._not(f"places in `{buffer.name}` are only known to be multiples of {known}")


def _elements(count: int) -> str:
    return f"{count} element{'s' * (count != 1)}"


class _Restored(Rewriter):
    """Puts other stores in the place of some."""

    def __init__(self, stores: dict[Any, Any]) -> None:
        self._stores = stores

    def store(self, s: Any) -> Any:
        return self._stores.get(s, s)


class _Uniform(Rewriter):
    """Asks conditions of the first lane where all lanes answer alike."""

    def __init__(self, prover: Any, var: Any, width: int) -> None:
        self._prover, self._var, self._width = prover, var, width

    def if_(self, s: Any) -> Any:
        condition = self._first_lane(s.condition)
        then = self.any(s.then_case)
        orelse = None if s.else_case is None else self.any(s.else_case)
        return tirx.IfThenElse(condition, then, orelse, s.span)

    def call(self, e: Any) -> Any:
        e = super().call(e)
        if not is_lazy_select(e):
            return e
        args = [self._first_lane(e.args[0]), *list(e.args)[1:]]
        return tirx.Call(e.op, args, span=e.span, ret_ty=e.ty)

    def _first_lane(self, condition: Any) -> Any:
        if not uses(condition, [self._var]):
            return condition
        parts = [self._part(p) for p in conjuncts(condition)]
        return build.all_of(parts, condition.span)

    def _part(self, part: Any) -> Any:
        """`a < b`, where `a` moves by one a lane from a multiple of the width, and `b` does not
        move and is a multiple too."""
        if not uses(part, [self._var]) or not isinstance(part, (tirx.LT, tirx.GE)):
            return part
        moving, limit = part.a, part.b
        if uses(limit, [self._var]):
            return part
        analyzer = self._prover.analyzer
        first = substitute(moving, {self._var: build.const(0, build.dtype_of(self._var))})
        fits = (
            linear_step(analyzer, moving, self._var) == 1
            and _multiple(analyzer, first, self._width)
            and _multiple(analyzer, limit, self._width)
        )
        return type(part)(analyzer.simplify(first), limit, part.span) if fits else part


def _without_names(body: Any) -> Any:
    """`body` with names replaced by their values, where those are arithmetic on scalars."""
    values: dict[Any, Any] = {}
    out = []
    for s in statements(body):
        s = substitute(s, values)
        if isinstance(s, tirx.Bind) and not contains(s.value, _is_more_than_arithmetic):
            values[s.var] = s.value
        else:
            out.append(s)
    return build.seq(out, body.span) if values else body


def _is_more_than_arithmetic(node: Any) -> bool:
    return isinstance(node, (tirx.TensorLoad, tirx.Call))


def _loads(value: Any) -> list[Any]:
    return collect(value, tirx.TensorLoad)


def _in_memory(buffer: Any) -> bool:
    return str(buffer.scope()) in _MEMORY


def _multiple(analyzer: Any, e: Any, divisor: int) -> bool:
    known = analyzer.modular_set(analyzer.simplify(e))
    return int(known.coeff) % divisor == 0 and int(known.base) % divisor == 0


def _matched(a: Any, b: Any) -> tuple[Any, Any]:
    if build.dtype_of(a) != build.dtype_of(b):
        return build.cast(a, "int64"), build.cast(b, "int64")
    return a, b


def _gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a
