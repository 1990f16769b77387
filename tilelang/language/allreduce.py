"""How do the threads along an axis of a block combine what each of them has?

`T.tvm_thread_allreduce` in the scope of a `T.comm_reducer`, as TVM writes it. It becomes what an
author could have written: shuffles where the threads are lanes of one warp, else a tree in shared
memory with barriers between its steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from tilelang.language.alloc import allocate_own
from tilelang.language.catalog import language_function
from tilelang.language.frames import REDUCE_SCOPE, CommReducer
from tilelang.language.integers import if_then_else
from tilelang.language.operands import effect, refuse_in_parallel, trace_of
from tilelang.language.warps import shfl_xor
from tilelang.program import operators
from tilelang.program.arith import constant_value
from tilelang.program.buffer import Buffer
from tilelang.program.context import Trace, argument_span, reject
from tilelang.program.expr import Expr, Load, Var
from tilelang.program.stmt import If, Store

WARP: Final = 32


@language_function("meta")
def comm_reducer(combine: Any, identity: Any) -> CommReducer:
    """A way to combine two values in any order, for `T.tvm_thread_allreduce`.

    Args:
        combine: function of two values; identity: a list of the value that changes nothing.

    >>> T.comm_reducer(lambda x, y: x + y, [T.Cast("float32", 0)])
    """
    values = identity if isinstance(identity, list | tuple) else [identity]
    if not callable(combine) or len(values) != 1:
        reject(
            "TL117",
            "`T.comm_reducer` takes a function of two values and a list of one identity",
            help="write `T.comm_reducer(lambda x, y: x + y, [T.Cast(dtype, 0)])`; for several "
            "values reduce them one after the other",
        )
    return CommReducer(combine, values[0])


@language_function("thread")
def tvm_thread_allreduce(
    size: Any, value: Any, predicate: Any, destination: Any, *axes: Any, dtype: Any = "handle"
) -> None:
    """Combines the values of the threads along axes of the block; all of them get the result.

    In `with T.attr(T.comm_reducer(…), "reduce_scope", …):`.

    Args:
        size: 1; value: number of this thread; predicate: whether it counts; destination: element
        that gets the result; axes: from `T.get_thread_binding`; dtype: not used.

    >>> T.tvm_thread_allreduce(T.uint32(1), part[0], True, total[0], tk, dtype="handle")
    """
    trace = trace_of("tvm_thread_allreduce")
    refuse_in_parallel("tvm_thread_allreduce")
    reducer = trace.facts.get(REDUCE_SCOPE)
    if reducer is None:
        reject(
            "TL117",
            "`T.tvm_thread_allreduce` does not know how to combine values here",
            help="put it into `with T.attr(T.comm_reducer(lambda x, y: x + y, [T.Cast(dtype, 0)]), "
            '"reduce_scope", T.reinterpret(T.uint64(0), dtype="handle")):`',
        )
    if constant_value(operators.as_expr(size)) not in (1, None):
        reject("TL117", "`T.tvm_thread_allreduce` combines one value at a time",
               span=argument_span("size"), help="call it once for each value")  # fmt: skip
    if not isinstance(destination, Load):
        reject(
            "TL116",
            "the destination of `T.tvm_thread_allreduce` is no element of a buffer",
            span=argument_span("destination"),
            help="allocate one, `total = T.alloc_local((1,), dtype)`, and name `total[0]`",
        )
    mine = operators.as_expr(value)
    if constant_value(operators.as_expr(predicate)) in (None, 0):
        nothing = operators.cast(reducer.identity, mine.dtype)
        mine = if_then_else(predicate, mine, nothing)
    threads = tuple(trace.launch.threads) if trace.launch is not None else ()
    block = _Block.of(threads, [_axis_number(n, axis, threads) for n, axis in enumerate(axes)])
    if block is None:
        trace.complete = False  # how many threads there are is not known
        _store(trace, destination, mine)
    elif block.in_one_warp(mine):
        _by_shuffles(trace, reducer, block, mine, destination)
    else:
        _in_shared_memory(trace, reducer, block, mine, destination)


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """The threads of a block, `(variable, extent, stride)` by axis, x first, and which axes are
    reduced."""

    axes: tuple[tuple[Var, int, int], ...]
    reduced: tuple[int, ...]

    @staticmethod
    def of(threads: Sequence[tuple[Var, Expr]], reduced: Sequence[int]) -> _Block | None:
        found: list[tuple[Var, int, int]] = []
        stride = 1
        for var, extent in threads:
            count = constant_value(extent)
            if count is None:
                return None
            found.append((var, int(count), stride))
            stride *= int(count)
        return _Block(tuple(found), tuple(dict.fromkeys(reduced)))

    @property
    def count(self) -> int:
        _, extent, stride = self.axes[-1]
        return extent * stride

    @property
    def number(self) -> Any:
        """The number of this thread."""
        return sum(var * stride for var, _, stride in self.axes)

    def in_one_warp(self, value: Expr) -> bool:
        """Whether those that meet are lanes of a warp, apart by powers of two."""
        if self.count % WARP or value.dtype.bits not in (32, 64):
            return False
        rows = [self.axes[n] for n in self.reduced]
        return all(
            extent & (extent - 1) == 0 and stride & (stride - 1) == 0 and extent * stride <= WARP
            for _, extent, stride in rows
        )


def _by_shuffles(
    trace: Trace, reducer: CommReducer, block: _Block, mine: Expr, destination: Load
) -> None:
    total = allocate_own(trace, "partial", (1,), mine.dtype, "local")
    here = total[0]
    _store(trace, here, mine)
    for _, extent, stride in (block.axes[n] for n in block.reduced):
        apart = extent // 2
        while apart:
            other = shfl_xor(here, apart * stride)
            _store(trace, here, reducer.combine(here, other))
            apart //= 2
    _store(trace, destination, here)


def _in_shared_memory(
    trace: Trace, reducer: CommReducer, block: _Block, mine: Expr, destination: Load
) -> None:
    """A tree for each axis in turn: the first thread of each group has the result."""
    parts = allocate_own(trace, "partials", (block.count,), mine.dtype, "shared.dyn")
    _store(trace, parts[block.number], mine)
    first = block.number
    for var, extent, stride in (block.axes[n] for n in block.reduced):
        apart = 1 << (extent - 1).bit_length() >> 1
        while apart:
            effect("sync_threads")
            with trace.block() as body:
                near, far = parts[block.number], parts[block.number + apart * stride]
                _store(trace, near, reducer.combine(near, far))
            limit: Any = min(apart, extent - apart)
            paired = operators.as_condition(operators.binary("<", var, limit))
            trace.emit(If(paired, tuple(body), **trace.position()))
            apart //= 2
        first = first - var * stride
    effect("sync_threads")
    _store(trace, destination, parts[first])


def _axis_number(position: int, axis: Any, threads: Sequence[tuple[Var, Expr]]) -> int:
    found = axis
    while isinstance(found, Var) and found.definition is not None:
        found = found.definition
    with suppress(StopIteration):
        return next(n for n, (var, _) in enumerate(threads) if var is found)
    reject(
        "TL117",
        f"`{axis}` is no axis of the threads of a block",
        span=argument_span("axes", 4 + position),
        help="pass what `T.get_thread_binding(0)` and its like return",
    )


def _store(trace: Trace, element: Any, value: Any) -> None:
    place = element
    assert isinstance(place, Load) and isinstance(place.buffer, Buffer)
    stored = operators.cast(value, place.dtype)
    trace.emit(Store(place.buffer, place.indices, stored, **trace.position()))


FUNCTIONS = (comm_reducer, tvm_thread_allreduce)
