"""Grid extents and sizes as plain data."""

import json

import pytest

from tilelang.codegen.host_expr import (
    NotOnHost,
    c_text,
    evaluate,
    from_json,
    host_expr,
    names_in,
    product,
)
from tilelang.ir import build, tirx

m, n = tirx.Var("m", "int32"), tirx.Var("n", "int32")
VALUES = {"m": 17, "n": -5}


def c(value):
    return build.const(value, "int32")


@pytest.mark.parametrize(
    ("expr", "value", "text"),
    [
        (build.binary("//", m + 63, c(64)), 1, "tl_floordiv((m + 63ll), 64ll)"),
        (build.binary("%", n, c(3)), 1, "tl_floormod(n, 3ll)"),
        (build.binary("truncdiv", n, c(3)), -1, "tl_truncdiv(n, 3ll)"),
        (build.binary("truncmod", n, c(3)), -2, "tl_truncmod(n, 3ll)"),
        (build.binary("min", m, n), -5, "tl_min(m, n)"),
        (tirx.Select(m > n, m, n), 17, "((m > n) ? m : n)"),
        (build.cast(m, "int64") * build.const(1 << 40, "int64"), 17 << 40,
         "(m * 1099511627776ll)"),
        (tirx.And(m > 0, tirx.Not(n > 0)), True, "((m > 0ll) && (!(n > 0ll)))"),
    ],
)  # fmt: skip
def test_expression(expr, value, text):
    found = host_expr(expr)
    assert evaluate(found, VALUES) == value
    assert from_json(json.loads(json.dumps(found))) == found
    assert evaluate(from_json(json.loads(json.dumps(found))), VALUES) == value
    assert c_text(found) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0ll"), (-7, "-7ll"), ((1 << 31) - 1, "2147483647ll"), (-(1 << 63), "INT64_MIN"),
        ((1 << 63) - 1, "9223372036854775807ll"), (True, "1"), (("*", 65536, 65536),
        "(65536ll * 65536ll)"),
    ],
)  # fmt: skip
def test_constants_are_64_bits_wide(value, text):
    """C computes with an int what is written as one: 65536 * 65536 would be 0."""
    assert c_text(value) == text


def test_bound_names_are_replaced():
    assert host_expr(n + 1, {n: ("*", "m", 2)}) == ("+", ("*", "m", 2), 1)
    assert names_in(("+", ("*", "m", 2), "k")) == {"m", "k"}


def test_loads_are_not_for_the_host():
    buffer = tirx.decl_buffer((4,), "int32", name="A", layout=None)
    with pytest.raises(NotOnHost):
        host_expr(build.load(buffer, [c(0)]))


def test_product_folds_constants():
    assert product([2, 3]) == 6
    assert product([1, "m"]) == "m"
    assert product(["m", 4]) == ("*", "m", 4)
