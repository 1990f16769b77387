"""Index expressions as numbers: against Python's own arithmetic, one index at a time."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilelang.dtypes import SCALARS
from tilelang.layout.constraints import Origin
from tilelang.layouts.addresses import alignment, element_strides
from tilelang.layouts.builder import Builder
from tilelang.layouts.indices import Counter, Index, elements, index_map, indices_of, step_of
from tilelang.layouts.machine import machine_of
from tilelang.program import expr as ex
from tilelang.program import operators
from tilelang.program.buffer import Buffer

I, J, K, B = (ex.Var(name, ex.INT32, None, "loop") for name in "ijkb")
OPERATIONS = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "//": lambda a, b: a // b, "%": lambda a, b: a % b, "^": lambda a, b: a ^ b,
    "min": min, "max": max,
}  # fmt: skip


def binary(op: str, left: ex.Expr, right: ex.Expr) -> ex.Expr:
    return ex.Binary(op, left, right, ex.INT32)  # type: ignore[arg-type]


def constant(value: int) -> ex.Expr:
    return ex.Const(value, ex.INT32)


LEAVES = st.one_of(st.sampled_from([I, J, K]), st.integers(0, 9).map(constant))
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*", "^", "min", "max"]), inner, inner).map(
            lambda x: binary(*x)
        ),
        st.tuples(st.sampled_from(["//", "%"]), inner, st.integers(1, 7).map(constant)).map(
            lambda x: binary(*x)
        ),
    ),
    max_leaves=6,
)


def value(expr: ex.Expr, at: dict[ex.Var, int]) -> int:
    match expr:
        case ex.Const(value=number):
            return int(number)
        case ex.Var():
            return at[expr]
        case ex.Binary(op=op, left=left, right=right):
            return OPERATIONS[op](value(left, at), value(right, at))
    raise AssertionError(expr)


@settings(max_examples=200, deadline=None)
@given(first=EXPRESSIONS, second=EXPRESSIONS)
def test_an_index_map_is_the_expression(first: ex.Expr, second: ex.Expr) -> None:
    shape = (40, 40)
    counter = Counter(K, range(2, 8, 3))
    found = index_map(indices_of((first, second)), {I: 0, J: 1}, (3, 4), (counter,), shape)
    assert found is not None
    depends = len(found.shape) == 3
    for i, j in itertools.product(range(3), range(4)):
        for n, k in enumerate(counter.values):
            at = (i, j, n) if depends else (i, j)
            want = [value(e, {I: i, J: j, K: k}) for e in (first, second)]
            # Elements before the first are outside, like those after the last.
            want = [limit if x < 0 else x for x, limit in zip(want, shape, strict=True)]
            assert list(found.map_forward_index(at)) == want


@settings(max_examples=200, deadline=None)
@given(expr=EXPRESSIONS)
def test_a_step_is_the_difference(expr: ex.Expr) -> None:
    step = step_of(Index(expr), 0, I)
    if step is None:
        return
    for i, j, k in itertools.product(range(3), range(3), range(3)):
        here, there = (value(expr, {I: x, J: j, K: k}) for x in (i, i + 1))
        assert there - here == step


def test_data_and_unknown_sizes_have_no_numbers() -> None:
    table = Buffer("table", (8,), SCALARS["int32"], "global", None)
    load = ex.Load(table, (I,), ex.INT32)
    assert index_map(indices_of((load,)), {I: 0}, (8,), (), (8,)) is None
    assert elements(indices_of((load,)), {I: 0}, (8,)) is None
    outside = binary("+", I, B)
    assert index_map(indices_of((outside,)), {I: 0}, (8,), (), (8,)) is None
    # Relative to each other, iterations touch the same elements wherever the block stands.
    near = elements(indices_of((outside,)), {I: 0}, (8,))
    assert near is not None and near.tolist() == [list(range(8))]


@pytest.mark.parametrize(
    ("shape", "indices", "width"),
    [
        ((64, 64), (I, J), 64),
        ((64, 60), (I, J), 4),
        ((64, 63), (I, J), 1),
        ((64, 64), (I, operators.binary("+", J, constant(8))), 8),
        ((64, 64), (I, operators.binary("+", operators.binary("*", B, constant(16)), J)), 16),
        ((64, 64), (J, I), 64),
        ((1000,), (operators.binary("+", operators.binary("*", B, constant(64)), I),), 8),
    ],
)
def test_aligned_width(shape: tuple[int, ...], indices: tuple[ex.Expr, ...], width: int) -> None:
    buffer = Buffer("A", shape, SCALARS["float16"], "global", None, "param")
    builder = Builder(machine_of("cuda:sm_80"), 128)
    nest = builder.nest("i, j", (8, 8), Origin("loop"), "parallel", {I: 0, J: 1})
    found = alignment(buffer, indices_of(indices), element_strides(buffer), nest, ())
    assert found is not None and found[0] == width


def test_alignment_that_sizes_decide_is_not_known() -> None:
    n = ex.Var("n", ex.INT32, None, "dim")
    buffer = Buffer("A", (64, n), SCALARS["float16"], "global", None, "param")
    builder = Builder(machine_of("cuda:sm_80"), 128)
    nest = builder.nest("i, j", (8, 8), Origin("loop"), "parallel", {I: 0, J: 1})
    pitches = element_strides(buffer)
    assert pitches == (None, 1)
    assert alignment(buffer, indices_of((I, J)), pitches, nest, ()) is None
