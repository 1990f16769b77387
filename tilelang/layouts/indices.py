"""Which element does an iteration touch, as numbers: index expressions over a loop nest.

    for i, j in T.Parallel(64, 64):
        for k in range(4):
            x[i, k * 16 + j // 4]         # a function of (i, j, k)

What depends on memory, on the block, or on sizes known only when the kernel runs has no numbers:
`index_map` is None for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from tilelang.layout.arrays import DIVISIONS, OPERATIONS
from tilelang.layout.constraints import identity
from tilelang.layout.layout import Layout
from tilelang.layout.lazy import np
from tilelang.program import arith
from tilelang.program import expr as ex
from tilelang.program import stmt as st
from tilelang.program.buffer import Region

if TYPE_CHECKING:
    from numpy.typing import NDArray

# One index map may take this many entries: what is larger is no tile of registers.
MAX_POINTS = 1 << 21


class Opaque(Exception):
    """The value of an expression is not known before the kernel runs."""


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """One index of an access: `base`, plus the loop's own dimension `dim` (copies count so)."""

    base: ex.Expr
    dim: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Counter:
    """A sequential loop of constant range: its variable takes `values`."""

    var: ex.Var
    values: range


Values: TypeAlias = Mapping[ex.Var, Any]


def indices_of(exprs: Sequence[ex.Expr]) -> tuple[Index, ...]:
    """Indices as a user writes them, whose dependence on the loop is in the expressions."""
    return tuple(Index(e) for e in exprs)


def region_indices(region: Region, dims: Mapping[int, int]) -> tuple[Index, ...]:
    """The elements of a region: dimension `d` runs along dimension `dims[d]` of the loop."""
    return tuple(Index(r.min, dims.get(d)) for d, r in enumerate(region.ranges))


def counter_of(loop: st.For) -> Counter | None:
    """The range of a sequential loop, when it is constant and there is one variable."""
    if len(loop.loop_vars) != 1 or loop.kind == "parallel":
        return None
    v = loop.loop_vars[0]
    start, extent = arith.constant_value(v.start), arith.constant_value(v.extent)
    step = 1 if v.step is None else arith.constant_value(v.step)
    if start is None or extent is None or not step or extent < 1:
        return None
    return Counter(v.var, range(start, start + extent * step, step))


def index_map(
    indices: Sequence[Index],
    loop: Mapping[ex.Var, int],
    extents: tuple[int, ...],
    counters: Sequence[Counter],
    buffer: tuple[int, ...],
) -> Layout | None:
    """The element of `buffer` that each iteration touches, over `extents` and the counters it
    depends on; None when that is not known. `loop` numbers the variables of the nest."""
    simple = _identity_of(indices, loop, extents)
    if simple is not None:
        return simple
    used = [c for c in counters if any(_mentions(i.base, c.var) for i in indices)]
    domain = (*extents, *(len(c.values) for c in used))
    if math.prod(domain) > MAX_POINTS:
        return None
    values: dict[ex.Var, Any] = {
        var: _axis(np.arange(extents[dim]), dim, len(domain)) for var, dim in loop.items()
    }
    for k, counter in enumerate(used):
        numbers = np.array(counter.values, dtype=np.int64)
        values[counter.var] = _axis(numbers, len(extents) + k, len(domain))
    table = np.empty((len(indices), *domain), dtype=np.int64)
    try:
        for row, index, limit in zip(table, indices, buffer, strict=True):
            row[...] = evaluate(index.base, values)
            if index.dim is not None:
                row += _axis(np.arange(extents[index.dim]), index.dim, len(domain))
            # Outside is outside: elements before the first count as elements after the last.
            row[row < 0] = limit
    except Opaque:
        return None
    return Layout.from_table(table)


def elements(
    indices: Sequence[Index], loop: Mapping[ex.Var, int], extents: tuple[int, ...]
) -> NDArray[np.int64] | None:
    """The indices of every iteration, `[dimension, *extents]`, with everything else at its start:
    what the iterations touch relative to each other. None when memory decides."""
    rank = len(extents)
    values = {var: _axis(np.arange(extents[dim]), dim, rank) for var, dim in loop.items()}
    table = np.empty((len(indices), *extents), dtype=np.int64)
    try:
        for row, index in zip(table, indices, strict=True):
            row[...] = evaluate(index.base, values, others=0)
            if index.dim is not None:
                row += _axis(np.arange(extents[index.dim]), index.dim, rank)
    except Opaque:
        return None
    return table


def evaluate(expr: ex.Expr, values: Values, others: int | None = None) -> Any:
    """`expr` as an int or an array; variables without a value have the value `others`, if given.
    Raises Opaque for what depends on memory."""
    match expr:
        case ex.Const(value=number):
            return number
        case ex.Var(definition=definition):
            if expr in values:
                return values[expr]
            if definition is not None:
                return evaluate(definition, values, others)
            if others is None:
                raise Opaque
            return others
        case ex.Cast(operand=operand) if expr.dtype.is_integer:
            return evaluate(operand, values, others)
        case ex.Unary(op="-", operand=operand):
            return -evaluate(operand, values, others)
        case ex.Unary(op="not", operand=operand):
            return np.logical_not(evaluate(operand, values, others))
        case ex.Binary(op=op, left=left, right=right):
            function = OPERATIONS.get(op)
            if function is None:
                raise Opaque
            a, b = evaluate(left, values, others), evaluate(right, values, others)
            if op in DIVISIONS and not np.all(b):
                raise Opaque
            return function(a, b)
        case ex.Select(condition=condition, true=true, false=false):
            chosen = evaluate(condition, values, others)
            return np.where(chosen, evaluate(true, values, others), evaluate(false, values, others))
        case _:
            raise Opaque


def step_of(index: Index, dim: int, var: ex.Var | None) -> int | None:
    """By how much an index grows with dimension `dim` of the loop; None when that varies."""
    own = 1 if index.dim == dim else 0
    if var is None:
        return own
    step = 0
    for factors, coefficient in arith.normal_form(index.base).items():
        if factors == (arith.structure(var),):
            step = coefficient
        elif any(_holds(factor, id(var)) for factor in factors):
            return None
    return own + step


def variables_of(exprs: Sequence[ex.Expr]) -> Iterator[ex.Var]:
    """Every variable the expressions depend on, through named values too."""
    for expr in exprs:
        for node in ex.walk(expr):
            if isinstance(node, ex.Var):
                yield node
                if node.definition is not None:
                    yield from variables_of((node.definition,))


def _identity_of(
    indices: Sequence[Index],
    loop: Mapping[ex.Var, int],
    extents: tuple[int, ...],
) -> Layout | None:
    """The common cases by shape alone: `x[i, j]`, `x[i]`, whole tiles of a copy."""
    dims: list[int] = []
    for index in indices:
        if index.dim is None and index.base in loop:
            dims.append(loop[index.base])  # type: ignore[index]
        elif index.dim is not None and arith.constant_value(index.base) == 0:
            dims.append(index.dim)
        else:
            return None
    return _picked(extents, tuple(dims))


@lru_cache(maxsize=1024)
def _picked(extents: tuple[int, ...], dims: tuple[int, ...]) -> Layout:
    if dims == tuple(range(len(extents))):
        return identity(extents)
    return Layout(extents, lambda *x: tuple(x[d] for d in dims))


def _mentions(expr: ex.Expr, var: ex.Var) -> bool:
    return any(found is var for found in variables_of((expr,)))


def _holds(key: Any, number: int) -> bool:
    """Whether the structural key of a factor names the variable with this identity."""
    if isinstance(key, tuple):
        return key == ("var", number) or any(_holds(part, number) for part in key)
    return False


def _axis(numbers: NDArray[np.int64], dim: int, rank: int) -> NDArray[np.int64]:
    return numbers.reshape([-1 if d == dim else 1 for d in range(rank)])
