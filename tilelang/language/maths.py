"""Scalar mathematics: one row per function, on the dtype of the operand, vectorisable.

Integers become float32 where a function yields fractions; the narrow formats (fp8, fp6, fp4) have
no arithmetic of their own and must be cast first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilelang.language import fast_maths, integers
from tilelang.language.catalog import CPU, NOT_METAL, LanguageFunction, language_function
from tilelang.language.operands import (
    ScalarLike,
    choice,
    intrinsic,
    known,
    use_of,
)
from tilelang.program import operators
from tilelang.program.context import reject
from tilelang.program.expr import BOOL, FLOAT32, Expr

ROUNDING = ("ties-to-even", "ties-away-from-zero")

# name: (what it computes, example)
UNARY: dict[str, tuple[str, str]] = {
    "exp": ("e to the power of x", "p = T.exp(score - peak)"),
    "exp2": ("2 to the power of x", "p = T.exp2(score * scale - peak * scale)"),
    "exp10": ("10 to the power of x", "y = T.exp10(x)"),
    "expm1": ("e to the power of x, minus 1, exact near 0", "y = T.expm1(x)"),
    "log": ("natural logarithm", "lse = T.log(total) + peak"),
    "log2": ("logarithm to base 2", "lse = T.log2(total) + peak"),
    "log10": ("logarithm to base 10", "y = T.log10(x)"),
    "log1p": ("natural logarithm of 1 + x, exact near 0", "y = T.log1p(x)"),
    "sqrt": ("square root", "norm = T.sqrt(total)"),
    "rsqrt": ("reciprocal square root", "scale = T.rsqrt(mean + eps)"),
    "cbrt": ("cube root", "y = T.cbrt(x)"),
    "sin": ("sine of x in radians", "y = T.sin(angle)"),
    "cos": ("cosine of x in radians", "y = T.cos(angle)"),
    "tan": ("tangent of x in radians", "y = T.tan(angle)"),
    "asin": ("arc sine in radians", "y = T.asin(x)"),
    "acos": ("arc cosine in radians", "y = T.acos(x)"),
    "atan": ("arc tangent in radians", "y = T.atan(x)"),
    "sinh": ("hyperbolic sine", "y = T.sinh(x)"),
    "cosh": ("hyperbolic cosine", "y = T.cosh(x)"),
    "tanh": ("hyperbolic tangent", "y = T.tanh(x)"),
    "asinh": ("inverse hyperbolic sine", "y = T.asinh(x)"),
    "acosh": ("inverse hyperbolic cosine", "y = T.acosh(x)"),
    "atanh": ("inverse hyperbolic tangent", "y = T.atanh(x)"),
    "erf": ("error function", "y = 0.5 * x * (1 + T.erf(x * 0.70710678))"),
    "sigmoid": ("1 / (1 + exp(-x))", "gate = T.sigmoid(x)"),
}
# Roundings to an integral value: they leave integers alone.
INTEGRAL: dict[str, tuple[str, str]] = {
    "floor": ("largest integral value not above x", "low = T.floor(x)"),
    "ceil": ("smallest integral value not below x", "high = T.ceil(x)"),
    "trunc": ("x without its fraction", "whole = T.trunc(x)"),
    "nearbyint": ("nearest integral value, ties to even", "n = T.nearbyint(x)"),
    "rint": ("nearest integral value, ties to even", "n = T.rint(x)"),
}
TESTS: dict[str, tuple[str, str]] = {
    "isnan": ("whether x is not a number", "bad = T.isnan(x)"),
    "isinf": ("whether x is infinite", "over = T.isinf(x)"),
    "isfinite": ("whether x is neither infinite nor NaN", "ok = T.isfinite(x)"),
}
BINARY: dict[str, tuple[str, str]] = {
    "atan2": ("angle of the point (y, x) in radians", "angle = T.atan2(y, x)"),
    "fmod": ("remainder with the sign of x", "r = T.fmod(x, y)"),
    "hypot": ("length of (x, y)", "length = T.hypot(x, y)"),
    "copysign": ("x with the sign of y", "z = T.copysign(x, y)"),
    "nextafter": ("the next value after x toward y", "z = T.nextafter(x, y)"),
}


@language_function("scalar", outside=True)
def abs_(x: ScalarLike) -> Any:
    """Absolute value of a float or integer.

    Args:
        x: any arithmetic dtype; gives the same dtype.

    >>> m = T.abs(x)
    """
    if isinstance(x, (int, float)):
        return abs(x)
    value = operators.as_expr(x)
    return intrinsic("abs", (value,), value.dtype)


@language_function("scalar", outside=True)
def fabs(x: ScalarLike) -> Any:
    """Absolute value, as `T.abs`.

    Args:
        x: any arithmetic dtype; gives the same dtype.

    >>> m = T.fabs(x)
    """
    value = operators.as_expr(x)
    return intrinsic("abs", (value,), value.dtype)


@language_function("scalar", outside=True)
def round_(x: ScalarLike, rounding_mode: str = "ties-to-even", span: Any = None) -> Any:
    """Nearest integral value, as a value of the same dtype.

    Args:
        x: a float (integers stay as they are); rounding_mode: ties-to-even or
        ties-away-from-zero.

    >>> q = T.round(x / scale)
    """
    mode = choice("round", "rounding_mode", rounding_mode, ROUNDING)
    value = operators.as_expr(x)
    if value.dtype.is_integer:
        return value
    value = _as_float("round", value)
    return intrinsic("round", (value,), value.dtype, rounding_mode=mode)


@language_function("scalar", outside=True)
def pow_(x: ScalarLike, y: ScalarLike, span: Any = None) -> Any:
    """x to the power of y.

    Args:
        x, y: floats of one dtype; integers become float32.

    >>> y = T.pow(x, 1.5)
    """
    return operators.power(operators.as_expr(x), y)


@language_function("scalar", outside=True)
def power(x: ScalarLike, y: ScalarLike, span: Any = None) -> Any:
    """x to the power of y, as `T.pow`.

    Args:
        x, y: floats of one dtype; integers become float32.

    >>> y = T.power(x, 1.5)
    """
    return operators.power(operators.as_expr(x), y)


@language_function("scalar", outside=True)
def fma(x: ScalarLike, y: ScalarLike, z: ScalarLike) -> Any:
    """x * y + z with one rounding.

    Args:
        x, y, z: floats; the widest of their dtypes is used.

    >>> acc = T.fma(a, b, acc)
    """
    first, second = operators.as_operands(x, y, "fma")
    first, third = operators.as_operands(_as_float("fma", first), z, "fma")
    second = operators.cast(second, first.dtype)
    return intrinsic("fma", (first, second, third), first.dtype)


@language_function("scalar", outside=True)
def ldexp(x: ScalarLike, exponent: ScalarLike) -> Any:
    """x * 2 ** exponent.

    Args:
        x: a float; exponent: an integer.

    >>> y = T.ldexp(x, 3)
    """
    value = _as_float("ldexp", operators.as_expr(x))
    return intrinsic("ldexp", (value, operators.as_expr(exponent)), value.dtype)


@language_function("scalar", outside=True)
def clamp(dst: ScalarLike, min_val: ScalarLike, max_val: ScalarLike) -> Any:
    """The nearest value between two bounds: `min(max(dst, min_val), max_val)`.

    Args:
        dst: any arithmetic dtype; min_val, max_val: bounds, converted to it.

    >>> q = T.clamp(x, -448.0, 448.0)
    """
    if all(isinstance(v, (int, float)) for v in (dst, min_val, max_val)):
        return min(max(dst, min_val), max_val)
    return operators.binary("min", operators.binary("max", dst, min_val), max_val)


@language_function("scalar", outside=True)
def reciprocal(x: ScalarLike) -> Any:
    """1 / x.

    Args:
        x: a float.

    >>> inverse = T.reciprocal(total)
    """
    return operators.binary("/", 1.0, _as_float("reciprocal", operators.as_expr(x)))


def _as_float(name: str, value: Expr) -> Expr:
    """The operand of a function that yields fractions."""
    dtype = value.dtype
    if not known(dtype) or (dtype.is_float and dtype.bits >= 16):
        return value
    if dtype.is_integer:
        converted: Expr = operators.cast(value, FLOAT32.with_lanes(dtype.lanes))
        return converted
    reject(
        "TL236",
        f"`T.{name}` is not defined for {dtype}",
        span=use_of(value),
        help="cast it first: `T.cast(…, 'float32')`",
    )


def _named(name: str, doc: str, function: Callable[..., Any]) -> LanguageFunction:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    targets = NOT_METAL if name == "expm1" else CPU
    return language_function("scalar", targets=targets, outside=True)(function)


def _unary(name: str, what: str, example: str) -> LanguageFunction:
    def function(x: ScalarLike) -> Any:
        value = _as_float(name, operators.as_expr(x))
        return intrinsic(name, (value,), value.dtype)

    args = "x: float16, bfloat16, float32 or float64; integers become float32; gives that dtype."
    return _named(name, _doc(what, args, example), function)


def _integral(name: str, what: str, example: str) -> LanguageFunction:
    def function(x: ScalarLike, span: Any = None) -> Any:
        value = operators.as_expr(x)
        if value.dtype.is_integer:
            return value
        value = _as_float(name, value)
        return intrinsic(name, (value,), value.dtype)

    args = "x: a float, gives that dtype; integers stay as they are."
    return _named(name, _doc(what, args, example), function)


def _test(name: str, what: str, example: str) -> LanguageFunction:
    def function(x: ScalarLike) -> Any:
        value = operators.as_expr(x)
        if value.dtype.is_integer:
            return operators.as_expr(name == "isfinite")
        value = _as_float(name, value)
        return intrinsic(name, (value,), BOOL.with_lanes(value.dtype.lanes))

    return _named(name, _doc(what, "x: a float; gives bool.", example), function)


def _binary(name: str, what: str, example: str) -> LanguageFunction:
    def function(x: ScalarLike, y: ScalarLike) -> Any:
        first, second = operators.as_operands(x, y, name)
        first, second = _as_float(name, first), _as_float(name, second)
        return intrinsic(name, (first, second), first.dtype)

    args = "x, y: floats of one dtype; integers become float32."
    return _named(name, _doc(what, args, example), function)


def _doc(what: str, args: str, example: str) -> str:
    return f"{what[0].upper()}{what[1:]}.\n\nArgs:\n    {args}\n\n>>> {example}"


FUNCTIONS = (
    abs_, fabs, round_, pow_, power, fma, ldexp, clamp, reciprocal,
    *(_unary(name, *row) for name, row in UNARY.items()),
    *(_integral(name, *row) for name, row in INTEGRAL.items()),
    *(_test(name, *row) for name, row in TESTS.items()),
    *(_binary(name, *row) for name, row in BINARY.items()),
    *fast_maths.FUNCTIONS,
    *integers.FUNCTIONS,
)  # fmt: skip
