"""Expressions of layouts over TIRX values: the same numbers, and forms device compilers like."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tilelang.ir import tirx
from tilelang.ir.closed_form import lower
from tilelang.ir.index_values import evaluate as numbers
from tilelang.ir.visit import collect
from tilelang.layout.expr import Expr, Var, evaluate

T0, T1, T2 = Var(0, 128), Var(1, 8), Var(2, 4)
EXTENTS = (128, 8, 4)


def lowered(expr: Expr) -> tuple[Any, dict[Any, Any]]:
    """The TIRX expression, and every combination of values of its variables."""
    names = [tirx.Var(f"v{n}", "int32") for n in range(3)]
    grid = np.meshgrid(*(np.arange(n) for n in EXTENTS), indexing="ij")
    values = {var: axis.ravel() for var, axis in zip(names, grid, strict=True)}
    return lower(expr, names, None), values


def same_numbers(expr: Expr) -> Any:
    found, values = lowered(expr)
    count = int(np.prod(EXTENTS))
    got, want = numbers(found, values, {}), evaluate(expr, list(values.values()))
    assert np.array_equal(np.broadcast_to(got, count), np.broadcast_to(want, count))
    return found


def under_xor(found: Any) -> list[str]:
    return [str(x.a) for x in collect(found, tirx.BitwiseXor)]


def test_what_a_mask_does_not_reach_stays_outside() -> None:
    found = same_numbers((T1 * 1024 + T2 * 64 + T0 % 8) ^ (T0 // 16))
    (inner,) = under_xor(found)
    assert "v1" not in inner and "v2" not in inner and "v0" in inner


def test_what_may_carry_stays_inside() -> None:
    """`T0 % 16` reaches over the three bits of the mask."""
    found = same_numbers((T1 * 16 + T0 % 16) ^ (T0 // 16))
    (inner,) = under_xor(found)
    assert "v1" in inner


def test_terms_that_are_no_multiples_stay_inside() -> None:
    found = same_numbers((T1 * 6 + T0 % 4) ^ (T0 // 32))
    assert "v1" in under_xor(found)[0]


@pytest.mark.parametrize("seed", range(200))
def test_random_swizzles(seed: int) -> None:
    rng = random.Random(seed)
    parts = [T0 // 16 % 8, T0 % 8, T1, T2, T0 // 4 % 2, T0]
    terms = [rng.choice(parts) * rng.choice([1, 2, 3, 4, 8, 16, 64, 96, 128, 1024])
             for _ in range(rng.randint(1, 4))]  # fmt: skip
    total: Expr = terms[0]
    for term in terms[1:]:
        total = total + term
    mask = rng.choice(parts) % rng.choice([2, 4, 8]) * rng.choice([1, 2, 4, 8])
    same_numbers((total ^ mask) * rng.choice([1, 8]))
