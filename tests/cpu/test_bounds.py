"""Is an interval never narrower than the values an expression takes?"""

from __future__ import annotations

import itertools

import pytest

from tilelang.codegen.cpu_bounds import INT32, Bounds, Interval
from tilelang.ir import build, tirx

OPERATIONS = ["+", "-", "*", "//", "%", "min", "max", "&", ">>", "<<"]
PYTHON = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "//": lambda a, b: a // b, "%": lambda a, b: a % b, "min": min, "max": max,
    "&": lambda a, b: a & b, ">>": lambda a, b: a >> b, "<<": lambda a, b: a << b,
}  # fmt: skip
RANGES = [(0, 7), (-5, 3), (-8, -2), (1, 4), (0, 0), (3, 3)]


@pytest.mark.parametrize("op", OPERATIONS)
def test_every_value_is_inside(op: str) -> None:
    for first, second in itertools.product(RANGES, RANGES):
        if op in (">>", "<<") and second[0] < 0:
            continue
        x, y = tirx.Var("x", "int32"), tirx.Var("y", "int32")
        bounds = Bounds()
        bounds.bind(x, Interval(*first))
        bounds.bind(y, Interval(*second))
        found = bounds.of(build.binary(op, x, y))
        for a in range(first[0], first[1] + 1):
            for b in range(second[0], second[1] + 1):
                if op in ("//", "%") and b == 0:
                    continue
                assert found.low <= PYTHON[op](a, b) <= found.high, (op, first, second)


def test_products_that_may_overflow_are_noticed() -> None:
    x = tirx.Var("x", "int32")
    bounds = Bounds()
    bounds.bind(x, Interval(0, 1000))
    small = build.binary("*", x, build.const(1000, "int32"))
    large = build.binary("*", x, build.const(10_000_000, "int32"))
    assert bounds.fits_int32(small)
    assert not bounds.fits_int32(large)
    # What overflows inside counts, even where the whole comes back into range.
    assert not bounds.fits_int32(build.binary("//", large, build.const(1 << 20, "int32")))


def test_unknown_variables_have_the_range_of_their_dtype() -> None:
    assert Bounds().of(tirx.Var("x", "int32")) == INT32
    assert Bounds().of(tirx.Var("x", "uint8")) == Interval(0, 255)


def test_an_empty_interval_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="empty interval"):
        Interval(2, 1)
