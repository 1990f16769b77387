"""Do the iterations of a loop only combine values into the same elements, in any order?"""

from __future__ import annotations

from typing import Any

from tilelang.ir import tirx
from tilelang.ir.visit import collect, statements, uses

_ASSOCIATIVE = ("Add", "Mul", "Max", "Min", "BitwiseAnd", "BitwiseOr", "BitwiseXor")


def is_reduction(var: tirx.Var, body: tirx.Stmt) -> bool:
    """Whether each store of `body` is `x[i] = combine(x[i], value)` with `i` fixed for `var`."""
    stores = _stores(body)
    if not stores:
        return False
    accumulators = [s.buffer for s in stores]
    return all(_accumulates(store, var, accumulators) for store in stores)


def _stores(body: tirx.Stmt) -> list[Any] | None:
    """The stores of a body that is nothing but stores, some under conditions; else None."""
    found: list[Any] = []
    for stmt in statements(body):
        if isinstance(stmt, tirx.BufferStore):
            found.append(stmt)
        elif isinstance(stmt, tirx.IfThenElse) and stmt.else_case is None:
            inner = _stores(stmt.then_case)
            if inner is None:
                return None
            found += inner
        else:
            return None
    return found


def _accumulates(store: Any, var: tirx.Var, accumulators: list[Any]) -> bool:
    if any(uses(index, [var]) for index in store.indices):
        return False
    value = store.value
    if type(value).__name__ not in _ASSOCIATIVE:
        return False
    for old, contribution in ((value.a, value.b), (value.b, value.a)):
        if not isinstance(old, tirx.TensorLoad) or not old.source.same_as(store.buffer):
            continue
        same = all(
            tirx.structural_equal(x, y) for x, y in zip(old.indices, store.indices, strict=True)
        )
        reads = [load.source for load in collect(contribution, tirx.TensorLoad)]
        if same and not any(r.same_as(a) for r in reads for a in accumulators):
            return True
    return False
