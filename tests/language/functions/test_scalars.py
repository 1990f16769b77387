"""Scalar functions: what they build, what they fold, what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang.language as T
from tests.support.tiles import check_tiles, diagnostics_in, statements
from tilelang.dtypes import SCALARS
from tilelang.program.context import Reject, Trace, tracing
from tilelang.program.expr import Const, Expr, Intrinsic, Select, Var, Vector
from tilelang.program.text import expr_text

HERE = None
VALUES: dict[str, Expr] = {
    name: Var(name, SCALARS[dtype], HERE, "param")
    for name, dtype in {
        "x": "float32", "z": "float32", "h": "float16", "d": "float64", "i": "int32", "j": "int32",
        "l": "int64", "b": "int8", "u": "uint32", "q": "bool", "e": "float8_e4m3fn",
    }.items()
}  # fmt: skip
VALUES["xx"] = Var("xx", SCALARS["float32"].with_lanes(2), HERE, "param")


def value_of(text: str) -> Any:
    """A language expression over `VALUES`, evaluated while a kernel is traced."""
    with tracing(Trace()):
        return eval(text, {"T": T, **VALUES})


# (expression, program text, dtype)
EXPRESSIONS = [
    ("T.exp2(x)", "T.exp2(x)", "float32"),
    ("T.exp(h)", "T.exp(h)", "float16"),
    ("T.sqrt(i)", "T.sqrt(T.cast(i, 'float32'))", "float32"),
    ("T.log2(2)", "T.log2(2.0)", "float32"),
    ("T.tanh(xx)", "T.tanh(xx)", "float32x2"),
    ("T.floor(i)", "i", "int32"),
    ("T.ceil(h)", "T.ceil(h)", "float16"),
    ("T.round(x)", "T.round(x)", "float32"),
    ("T.isnan(h)", "T.isnan(h)", "bool"),
    ("T.isinf(xx)", "T.isinf(xx)", "boolx2"),
    ("T.isnan(i)", "False", "bool"),
    ("T.abs(i)", "T.abs(i)", "int32"),
    ("T.pow(x, 1.5)", "T.pow(x, 1.5)", "float32"),
    ("T.pow(x, 2)", "x * x", "float32"),
    ("T.atan2(h, x)", "T.atan2(T.cast(h, 'float32'), x)", "float32"),
    ("T.fma(h, h, x)", "T.fma(T.cast(h, 'float32'), T.cast(h, 'float32'), x)", "float32"),
    ("T.clamp(x, -1, 1)", "T.min(T.max(x, -1.0), 1.0)", "float32"),
    ("T.max(h, 0)", "T.max(h, 0.0)", "float16"),
    ("T.min(i, l)", "T.min(T.cast(i, 'int64'), l)", "int64"),
    ("T.ceildiv(i, 32)", "(i + 32 - 1) // 32", "int32"),
    ("T.floormod(i, 4)", "i % 4", "int32"),
    ("T.truncdiv(i, j)", "T.truncdiv(i, j)", "int32"),
    ("T.shift_left(1, i)", "1 << i", "int32"),
    ("T.bitwise_xor(i, 3)", "i ^ 3", "int32"),
    ("T.bitwise_not(u)", "~u", "uint32"),
    ("T.popcount(u)", "T.popcount(u)", "uint32"),
    ("T.if_then_else(i > 0, 1, 0.5)", "T.if_then_else(i > 0, 1.0, 0.5)", "float32"),
    ("T.if_then_else(i > 0, h, x)", "T.if_then_else(i > 0, T.cast(h, 'float32'), x)", "float32"),
    ("T.Select(q, x, 0)", "T.Select(q, x, 0.0)", "float32"),
    ("T.if_then_else(True, x, h)", "x", "float32"),
    ("T.And(q, i > 0)", "q and i > 0", "bool"),
    ("T.all(q, i > 0, j > 0)", "q and i > 0 and j > 0", "bool"),
    ("T.Not(q)", "not q", "bool"),
    ("T.infinity('float16')", "inf", "float16"),
    ("-T.infinity(T.float32)", "-inf", "float32"),
    ("T.max_value('float8_e4m3fn')", "448.0", "float8_e4m3fn"),
    ("T.min_value('int8')", "-128", "int8"),
    ("T.max_value('uint64')", "18446744073709551615", "uint64"),
    ("T.cast(x, 'int8')", "T.cast(x, 'int8')", "int8"),
    ("T.Cast('float16', x)", "T.cast(x, 'float16')", "float16"),
    ("T.cast(3, T.float16)", "3.0", "float16"),
    ("T.reinterpret(x, 'uint32')", "T.reinterpret(x)", "uint32"),
    ("T.reinterpret('int32', x)", "T.reinterpret(x)", "int32"),
    ("T.reinterpret(xx, 'float64')", "T.reinterpret(xx)", "float64"),
    ("T.extract_lane(xx, 1)", "T.extract_lane(xx)", "float32"),
    ("T.extract_lane(T.float32x2(x, z), 1)", "z", "float32"),
    ("T.float16x2(x, 1)", "T.float16x2(T.cast(x, 'float16'), 1.0)", "float16x2"),
    ("T.__exp(h)", "T.__exp(h)", "float16"),
    ("T.ieee_add(x, 1)", "T.ieee_add(x, 1.0)", "float32"),
    ("T.ieee_mul(x, z, 'rz')", "T.ieee_mul_rz(x, z)", "float32"),
    ("T.ieee_fmaf(x, z, x, rounding_mode='ru')", "T.ieee_fmaf_ru(x, z, x)", "float32"),
    ("T.fma2(xx, xx, xx)", "T.fma2(xx, xx, xx)", "float32x2"),
    ("T.cast(x, 'float8_e4m3fn', round='rs', rbits=u)", "T.cast_rs(x, u)", "float8_e4m3fn"),
]


@pytest.mark.parametrize(("text", "expected", "dtype"), EXPRESSIONS)
def test_expression(text: str, expected: str, dtype: str) -> None:
    value = value_of(text)
    assert (expr_text(value), value.dtype.name) == (expected, dtype)


# (expression, value): plain Python in, plain Python out, inside and outside kernels
NUMBERS = [
    ("T.ceildiv(100, 32)", 4),
    ("T.ceildiv(-1, 32)", 0),
    ("T.floordiv(-7, 2)", -4),
    ("T.truncdiv(-7, 2)", -3),
    ("T.truncmod(-7, 2)", -1),
    ("T.floormod(-7, 2)", 1),
    ("T.max(3, 4)", 4),
    ("T.min(3, 4.5)", 3),
    ("T.shift_left(1, 5)", 32),
    ("T.bitwise_and(12, 10)", 8),
    ("T.bitwise_xor(12, 10)", 6),
    ("T.popcount(7)", 3),
    ("T.clamp(9, 0, 4)", 4),
    ("T.abs(-2)", 2),
    ("T.if_then_else(False, 1, 2)", 2),
]


@pytest.mark.parametrize(("text", "expected"), NUMBERS)
def test_numbers_stay_numbers(text: str, expected: float) -> None:
    for value in (value_of(text), eval(text, {"T": T})):
        assert type(value) is type(expected) and value == expected


def test_numpy_integers_count_as_numbers() -> None:
    import numpy as np

    assert type(T.ceildiv(np.int64(100), 32)) is int
    assert T.floordiv(np.int32(7), 2) == 3


def test_index_functions_work_on_the_indices_of_a_layout() -> None:
    layout = T.Layout((8, 8), lambda i, j: (i, T.bitwise_xor(j, T.floormod(i, 4))))
    assert layout(3, 5) == (3, 6)


def test_select_is_lazy_or_not() -> None:
    assert value_of("T.if_then_else(q, x, z)").lazy is True
    assert value_of("T.Select(q, x, z)").lazy is False
    assert isinstance(value_of("T.Select(q, x, z)"), Select)


def test_rounding_mode_is_kept() -> None:
    value = value_of("T.round(x, 'ties-away-from-zero')")
    assert isinstance(value, Intrinsic)
    assert value.attrs == (("rounding_mode", "ties-away-from-zero"),)


def test_vectors_have_as_many_lanes_as_values() -> None:
    value = value_of("T.int32x4(1, 2, 3, i)")
    assert isinstance(value, Vector) and len(value.lanes) == 4
    assert isinstance(value.lanes[0], Const)


# (expression, code, part of the message)
ERRORS = [
    ("T.exp(e)", "TL236", "`T.exp` is not defined for float8_e4m3fn"),
    ("T.__sin(i)", "TL236", "needs a floating-point `x`, got int32"),
    ("T.round(x, 'up')", "TL117", "`rounding_mode='up'`"),
    ("T.ieee_add(h, h, 'rz')", "TL117", "rounds float16 to nearest only"),
    ("T.ieee_add(x, x, 'rx')", "TL117", "`rounding_mode='rx'`"),
    ("T.add2(x, x)", "TL236", "works on pairs"),
    ("T.floordiv(i, 0)", "TL117", "divides by zero"),
    ("T.ceildiv(x, 2)", "TL236", "`lhs` of `T.ceildiv` is float32"),
    ("T.ceildiv(5, 0)", "TL117", "divides by zero"),
    ("T.shift_left(x, 2)", "TL236", "needs integers"),
    ("T.infinity('int32')", "TL236", "int32 has no infinity"),
    ("T.infinity('float8_e4m3fn')", "TL236", "no infinity"),
    ("T.infinity('flot32')", "TL230", "did you mean `float32`?"),
    ("T.cast(x, 'float99')", "TL230", "not a dtype"),
    ("T.cast(x, 'float8_e4m3fn', round='xx')", "TL237", "`xx` is not a rounding"),
    ("T.cast(x, 'float8_e4m3fn', round='rz')", "TL237", "not supported"),
    ("T.cast(x, 'float8_e4m3fn', round='rs')", "TL237", "needs `rbits`"),
    ("T.cast(x, 'float16', round='rs', rbits=u)", "TL237", "stochastically to float16"),
    ("T.cast(x, 'float16', sat=False)", "TL237", "`sat=False` is not supported"),
    ("T.reinterpret(x, 'int64')", "TL238", "float32 (32 bits) to int64 (64 bits)"),
    ("T.extract_lane(xx, 2)", "TL117", "outside 0 … 1"),
    ("T.max(x, 'a')", "TL116", "str"),
]


@pytest.mark.parametrize(("text", "code", "message"), ERRORS)
def test_refusal(text: str, code: str, message: str) -> None:
    with pytest.raises(Reject) as caught:
        value_of(text)
    diagnostic = caught.value.diagnostic
    assert (diagnostic.code, message in diagnostic.message) == (code, True), diagnostic.message


def test_whole_buffers_are_no_scalars() -> None:
    check_tiles("""
        y = T.max(f, 0)
        #   ^^^^^^^^^^^ error[TL151] buffer `f` is used as a scalar
     """, "`f[i, i]`")  # fmt: skip


def test_one_element_regions_are_scalars() -> None:
    assert statements("y = T.exp(V[0:1])") == "y = T.exp(V[0])"


@pytest.mark.parametrize(
    ("body", "target", "refused"),
    [
        ("y = T.ieee_add(x, x, 'rz')", "cpu", True),
        ("y = T.ieee_add(x, x, 'rz')", "cuda:sm_90", False),
        ("y = T.ieee_add(x, x)", "cpu", False),
        ("y = T.__exp(x)", "cpu", False),
        ("y = T.shfl_xor(x, 1)", "cpu", False),
        ("y = T.shfl_xor(x, 1)", "hip:gfx942", False),
    ],
)
def test_targets(body: str, target: str, refused: bool) -> None:
    found = [d for d in diagnostics_in(body, target) if d.startswith(("TL401", "TL413"))]
    assert bool(found) == refused, found
