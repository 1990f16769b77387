"""Expressions of index maps: simplification never changes a value, text is valid Python."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilelang.layout.expr import Var, as_expr, bounds, evaluate, text

EXTENTS = (8, 6)
NAMES = ("i", "j")
POINTS = list(itertools.product(*(range(n) for n in EXTENTS)))


def sources(depth: int) -> st.SearchStrategy[str]:
    """Python source of a random expression over i and j."""
    leaf = st.one_of(st.sampled_from(NAMES), st.integers(0, 20).map(str))
    if depth == 0:
        return leaf
    inner = sources(depth - 1)
    positive = st.integers(1, 16).map(str)
    return st.one_of(
        leaf,
        st.tuples(inner, st.sampled_from("+-*^|&"), inner).map("({0[0]} {0[1]} {0[2]})".format),
        st.tuples(inner, st.sampled_from(["//", "%"]), positive).map(
            "({0[0]} {0[1]} {0[2]})".format
        ),
        st.tuples(inner, st.sampled_from(["<<", ">>"]), st.integers(0, 3).map(str)).map(
            "({0[0]} {0[1]} {0[2]})".format
        ),
    )


def traced(source: str) -> Any:
    i, j = (Var(k, n) for k, n in enumerate(EXTENTS))
    return as_expr(eval(source, {"i": i, "j": j}))


@settings(deadline=None)
@given(sources(4))
def test_tracing_keeps_every_value(source: str) -> None:
    tree = traced(source)
    low, high = bounds(tree)
    for i, j in POINTS:
        expected = eval(source)
        assert evaluate(tree, (i, j)) == expected
        assert eval(text(tree, NAMES)) == expected
        assert low <= expected <= high


@settings(deadline=None)
@given(sources(3))
def test_arrays_give_what_ints_give(source: str) -> None:
    tree = traced(source)
    grids = np.meshgrid(*(np.arange(n) for n in EXTENTS), indexing="ij")
    whole = np.broadcast_to(evaluate(tree, grids), EXTENTS)
    assert whole.tolist() == [
        [evaluate(tree, (i, j)) for j in range(EXTENTS[1])] for i in range(EXTENTS[0])
    ]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("i * 8 + j", "i*8 + j"),
        ("(i * 8 + j) // 8", "i"),
        ("(i * 8 + j) % 8", "j"),
        ("(i * 8 + j) // 16", "i//2"),
        ("(i * 8 + j) // 2 // 2", "i*2 + j//4"),
        ("i * 64 + (j ^ i) * 8", "i*64 + (j ^ i)*8"),
        ("(i * 8 + j) ^ i", "(i*8 + j) ^ i"),
        ("i % 16", "i"),
        ("i // 8 + j", "j"),
        ("i & 7", "i"),
        ("i & 3", "i%4"),
        ("i << 2", "i*4"),
        ("i - (j - i)", "i - (j - i)"),
        ("(i + 3) - 3", "i"),
        ("i ^ i", "0"),
        ("i % 4 // 2", "i//2%2"),
    ],
)
def test_simplified_text(source: str, expected: str) -> None:
    assert text(traced(source), NAMES) == expected


@pytest.mark.parametrize("source", ["i == 0", "1 if i else 2", "i < 3", "min(i, j)", "i / 2"])
def test_what_has_no_tree_is_refused(source: str) -> None:
    with pytest.raises(TypeError):
        traced(source)
