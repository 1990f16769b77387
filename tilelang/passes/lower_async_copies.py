"""Marked copies become instructions that do not wait, where each thread moves enough at a time.

Before: (may be asynchronous) for v in T.vectorized(8): S[tx * 8 + v] = A[by, tx * 8 + v]
After:  T.cp_async(S[tx * 8 : tx * 8 + 8], A[by, tx * 8 : tx * 8 + 8])

An element that does not exist is not read, and zero is written in its place. A copy that stays
synchronous is right all the same: TL508 says why it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tilelang.analysis.ranges import element_step
from tilelang.dtypes import dtype as find_dtype
from tilelang.ir import attrs, build, tirx
from tilelang.ir.device_ops import call
from tilelang.ir.flatten import strides_of
from tilelang.ir.spans import TirSpan, from_tir
from tilelang.ir.visit import Rewriter, collect, statements, substitute, uses, with_body
from tilelang.passes.context import PassContext, moved
from tilelang.passes.scoped import ScopedRewriter, is_lazy_select
from tilelang_diagnostics.model import Span

# PTX ISA, cp.async: bytes of one instruction.
WIDTHS: Final = (4, 8, 16)
_SHARED: Final = ("shared", "shared.dyn")
_NOTHING_BESIDE: Final = "in no T.Pipelined loop, so that nothing would run beside it"


def lower_async_copies(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Make copies asynchronous that are marked and can be."""
    return with_body(func, _Lower(func, ctx).any(func.body))


class _StaysSynchronous(Exception):
    """Why a copy cannot be asynchronous, and what the author can do about it."""

    def __init__(self, reason: str, help: str | None = None) -> None:
        super().__init__(reason)
        self.help = help


class _Lower(ScopedRewriter):
    def __init__(self, func: tirx.PrimFunc, ctx: PassContext) -> None:
        super().__init__(func)
        self._ctx = ctx
        self._marked = False
        self._reasons: dict[str, str | None] = {}
        self._promises: dict[tuple[Span | None, str], str] = {}
        made = collect(func.body, tirx.AllocBuffer)
        self._names = frozenset(str(s.buffer.name) for s in made)

    def attr(self, s: Any) -> Any:
        if str(s.attr_key) != attrs.ASYNC:
            return super().attr(s)
        self._marked, self._reasons = True, {}
        body = self.any(s.body)
        self._marked = False
        for reason, help in self._reasons.items():
            if (
                help is not None
                and self._promises.setdefault((from_tir(s.span), help), reason) != reason
            ):
                continue  # one promise settles both
            self._ctx.report(
                "TL508", f"a copy of this pipeline waits for its data: {reason}", s.span,
                label="not asynchronous", help=help,
            )  # fmt: skip
        return body

    def for_(self, s: Any) -> Any:
        if int(s.kind) != int(tirx.ForKind.VECTORIZED):
            return super().for_(s)
        if not self._marked:
            self._plain(s)
            return s
        return self._tried(s, lambda: self._vector(s))

    def store(self, s: Any) -> Any:
        if not self._marked or str(s.buffer.scope()) not in _SHARED:
            self._plain(s)
            return s
        return self._tried(s, lambda: self._copied(s, 1, s.span))

    def _tried(self, s: Any, make: Callable[[], Any]) -> Any:
        try:
            return make()
        except _StaysSynchronous as why:
            self._reasons[str(why)] = why.help
            self._plain(s, str(why))
            return s

    def _plain(self, s: Any, why: str | None = None) -> None:
        """Tell of a copy that waits, `why` if it was to be asynchronous."""
        count = build.int_value(s.extent) if isinstance(s, tirx.For) else 1
        for store in [s] if isinstance(s, tirx.BufferStore) else collect(s, tirx.BufferStore):
            source = _moved(store.value)
            if source is None or count is None:
                continue
            scopes = str(source.scope()), str(store.buffer.scope())
            if not any(scope in ("global", *_SHARED) for scope in scopes):
                continue
            into = scopes[0] == "global" and scopes[1] in _SHARED
            if into and self._ctx.capabilities.has_cp_async:
                self._ctx.passed_over("copy", "cp.async", why or _NOTHING_BESIDE, store.span)
            wide = store.buffer if scopes[1] in ("global", *_SHARED) else source
            bits = count * find_dtype(str(wide.dtype)).bits
            size = f"{bits // 8} byte{'s' * (bits != 8)}" if bits % 8 == 0 else f"{bits} bits"
            self._narrow(store, count, bits)
            converts = str(source.dtype) != str(store.buffer.dtype)
            self._ctx.note(
                "copy", f"{self._called(source)} → {self._called(store.buffer)}"
                f"{' through registers' * into}, {size} at a time", store.span,
                f"{source.dtype} becomes {store.buffer.dtype}" if converts else "",
                of=moved(store.buffer, bits), foreign=_foreign(*scopes),
            )  # fmt: skip

    def _called(self, buffer: Any) -> str:
        """A buffer by its name, or what it is where the compiler made it for a tile of registers
        on the way."""
        name = str(buffer.name)
        on_the_way = name.endswith("_r") and name[:-2] in self._names
        return "registers" if on_the_way and str(buffer.scope()) == "local" else f"`{name}`"

    def _narrow(self, store: Any, count: int, bits: int) -> None:
        """Tell why a copy moves less than 16 bytes at a time, where nobody has."""
        if bits < WIDTHS[-1] * 8:
            has = f"{count} elements" if count > 1 else "one element"
            self._ctx.narrow(store, f"a thread has {has} of a row", bits)

    def _vector(self, loop: Any) -> Any:
        count = build.int_value(loop.extent)
        body = statements(loop.body)
        conditions: list[Any] = []
        while len(body) == 1 and isinstance(body[0], tirx.IfThenElse) and body[0].else_case is None:
            if uses(body[0].condition, [loop.loop_var]):
                raise _StaysSynchronous("its elements have conditions of their own")
            conditions.append(body[0].condition)
            body = statements(body[0].then_case)
        if count is None or len(body) != 1 or not isinstance(body[0], tirx.BufferStore):
            raise _StaysSynchronous("the statement does more than move elements")
        if str(body[0].buffer.scope()) not in _SHARED:
            return loop  # into registers, on the way to places that lie apart
        value = body[0].value
        if is_lazy_select(value) or isinstance(value, tirx.Select):
            condition = value.args[0] if is_lazy_select(value) else value.condition
            if uses(condition, [loop.loop_var]):
                source = next((x.source for x in collect(value, tirx.TensorLoad)), None)
                raise _StaysSynchronous(
                    "the edge of the tensor may lie between elements that would move together",
                    None if source is None else _how_to_promise(source),
                )
        zero = build.const(0, build.dtype_of(loop.loop_var), loop.span)
        self.prover.bind_range(loop.loop_var, zero, loop.extent)
        for load in collect(value, tirx.TensorLoad):
            step = element_step(
                self.prover.analyzer, load.source, list(load.indices), loop.loop_var
            )
            if str(load.source.scope()) == "global" and step != 1:
                raise _StaysSynchronous("what lies together in the tile lies apart in memory")
        first = _WithoutZeros().any(substitute(body[0], {loop.loop_var: zero}))
        # The place of the copy itself: the loop around it may be another statement of the author's.
        made = self._copied(first, count, first.span)
        for condition in reversed(conditions):
            made = tirx.IfThenElse(condition, made, None, loop.span)
        return made

    def _copied(self, s: Any, count: int, span: TirSpan) -> Any:
        """One instruction for `count` elements from those of `s` on."""
        value, predicate = s.value, None
        if is_lazy_select(value) or isinstance(value, tirx.Select):
            lazy = is_lazy_select(value)
            parts = list(value.args) if lazy else [
                value.condition, value.true_value, value.false_value
            ]  # fmt: skip
            predicate, value, other = parts
            if not _is_zero(other):
                raise _StaysSynchronous(
                    "elements outside the tensor read as something else than zero"
                )
        if not isinstance(value, tirx.TensorLoad) or str(value.source.scope()) != "global":
            if isinstance(value, tirx.TensorLoad) and str(value.source.scope()) == "local":
                raise _StaysSynchronous("what lies together in memory lies apart in the tile")
            converts = isinstance(value, tirx.Cast)
            raise _StaysSynchronous(
                "it converts what it loads" if converts else "it computes with what it loads"
            )
        bits = find_dtype(str(s.buffer.dtype)).bits * build.lanes_of(build.dtype_of(value))
        size = bits * count // 8
        if size not in WIDTHS:
            known = self._ctx.why_no_words(span)
            raise _StaysSynchronous(
                f"a thread moves {size} byte{'s' * (size != 1)} at a time, not 4, 8 or 16: "
                f"{known or _unknown_rows(value.source, size)}",
                _how_to_promise(value.source),
            )  # fmt: skip
        if predicate is not None and collect(predicate, tirx.TensorLoad):
            raise _StaysSynchronous("whether an element exists depends on memory")
        operands = [
            _run(s.buffer, list(s.indices), count, span),
            _run(value.source, list(value.indices), count, value.span or span),
            *([] if predicate is None else [predicate]),
        ]
        self._narrow(s, count, size * 8)
        self._ctx.note(
            "copy", f"`{value.source.name}` → `{s.buffer.name}` by cp.async, {size} bytes at a "
            "time", span, "as wide as it gets" if size == WIDTHS[-1] else "",
            of=moved(s.buffer, size * 8),
        )  # fmt: skip
        return build.evaluate(call("cp_async", operands, span=span, bytes=size), span)


def _foreign(source: str, target: str) -> tuple[str, ...]:
    """Ways that are none between two kinds of memory: where a statement copies by way of others,
    it is told of each part what holds for that."""
    ways = {
        "cp.async": source == "global",
        "asynchronous": source == "global",
        "TMA": "global" in (source, target),
        "stmatrix": source not in ("global", *_SHARED) and target in _SHARED,
        "through shared memory": target == "global",
    }
    return tuple(way for way, is_one in ways.items() if not is_one)


def _moved(value: Any) -> Any | None:
    """The buffer that a value comes from unchanged but for its type."""
    while True:
        if isinstance(value, tirx.Cast):
            value = value.value
        elif is_lazy_select(value):
            value = value.args[1]
        elif isinstance(value, tirx.Select):
            value = value.true_value
        else:
            return value.source if isinstance(value, tirx.TensorLoad) else None


def _unknown_rows(source: Any, size: int) -> str:
    """Why fewer than 4 bytes move at a time, where layout inference does not know."""
    for var in _row_lengths(source):
        return f"nothing says that `{var.name}` is a multiple of {WIDTHS[0] // size}"
    return "no more lie together both in memory and in the tile, from a multiple of that size"


def _row_lengths(source: Any) -> list[Any]:
    """The variables that the distances between rows of a tensor depend on."""
    return [var for stride in strides_of(source)[:-1] for var in collect(stride, tirx.Var)]


def _how_to_promise(source: Any) -> str | None:
    """What to assume of a row length that is only known at run time."""
    elements = max(1, WIDTHS[-1] * 8 // find_dtype(str(source.dtype)).bits)
    for var in _row_lengths(source):
        return (
            f"if {var.name} is always a multiple of {elements}, promise it: "
            f"T.assume({var.name} % {elements} == 0)"
        )
    return None


class _WithoutZeros(Rewriter):
    def binary(self, e: Any) -> Any:
        new = super().binary(e)
        return build.add(new.a, new.b, new.span) if isinstance(new, tirx.Add) else new


def _run(buffer: Any, indices: Sequence[Any], count: int, span: TirSpan) -> Any:
    """`count` neighbouring elements."""
    sizes = [*[1] * (len(indices) - 1), count]
    pairs = [
        (i, build.const(n, build.dtype_of(i), span)) for i, n in zip(indices, sizes, strict=True)
    ]
    return build.region(buffer, pairs, span)


def _is_zero(e: Any) -> bool:
    return isinstance(e, (tirx.IntImm, tirx.FloatImm)) and float(e.value) == 0
