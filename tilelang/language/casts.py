"""Conversions between dtypes, constants of a dtype, and vector values."""

from __future__ import annotations

from typing import Any

from tilelang.dtypes import LARGEST, WITH_INFINITY, DType, as_dtype
from tilelang.language.catalog import language_function
from tilelang.language.operands import (
    ScalarLike,
    dtype_of,
    intrinsic,
    known,
    static_bool,
    static_int,
    use_of,
)
from tilelang.program import operators
from tilelang.program.context import active_trace, current_span, reject
from tilelang.program.expr import Const, Expr, Vector
from tilelang_diagnostics import counted

ROUNDS = ("", "rn", "rz", "rp", "rm", "rs")
STOCHASTIC_TARGETS = (4, 6, 8)  # bits of the formats that stochastic rounding converts to


@language_function("scalar", outside=True)
def cast(
    value: ScalarLike,
    dtype: Any,
    round: str = "",
    sat: bool = True,
    rbits: ScalarLike | None = None,
    span: Any = None,
) -> Any:
    """Converts a value to another dtype, to nearest even, saturating for fp8, fp6 and fp4.

    Args:
        value: number or expression; dtype: target dtype; round: "" (nearest even) or "rs"
        (stochastic, PTX ISA, cvt.rs; fp8 and narrower on sm_100a); rbits: random bits for "rs";
        sat: saturate, always True.

    >>> p = T.cast(x, "float16")
    """
    target = dtype_of("cast", dtype)
    if round not in ROUNDS:
        reject("TL237", f"`{round}` is not a rounding of `T.cast`", help="one of '' and 'rs'")
    if static_bool("cast", "sat", sat) is False:
        reject("TL237", "`sat=False` is not supported by `T.cast`", help="leave out `sat`")
    if round == "rs":
        return _stochastic(operators.as_expr(value), target, rbits)
    if rbits is not None:
        reject("TL237", "`rbits` of `T.cast` is only for `round='rs'`", help="pass round='rs'")
    if round:
        reject(
            "TL237",
            f"rounding `{round}` of `T.cast` is not supported",
            help="leave it out (nearest even), or use 'rs' with `rbits`",
        )
    return operators.cast(value, target)


@language_function("scalar", outside=True)
def Cast(dtype: Any, value: ScalarLike, span: Any = None) -> Any:
    """Converts a value, dtype first; as `T.cast(value, dtype)`.

    Args:
        dtype: target dtype; value: number or expression.

    >>> p = T.Cast("float16", x)
    """
    return operators.cast(value, dtype_of("Cast", dtype))


@language_function("scalar", outside=True)
def reinterpret(value: ScalarLike, dtype: Any, span: Any = None) -> Any:
    """The same bits as another dtype of the same width.

    Args:
        value: expression; dtype: target of as many bits (`T.reinterpret(dtype, value)` works too).

    >>> bits = T.reinterpret(x, "uint32")
    """
    if not isinstance(value, Expr) and as_dtype(value) is not None:
        value, dtype = dtype, value
    target = dtype_of("reinterpret", dtype)
    source = operators.as_expr(value)
    if not (known(source.dtype) and known(target)):
        return intrinsic("reinterpret", (source,), target)
    have, want = (d.bits * d.lanes for d in (source.dtype, target))
    if have != want:
        reject(
            "TL238",
            f"`T.reinterpret` from {source.dtype} ({have} bits) to {target} ({want} bits)",
            span=use_of(source),
            help="the widths must be equal; to convert the value use `T.cast`",
        )
    return intrinsic("reinterpret", (source,), target)


@language_function("scalar", outside=True)
def infinity(dtype: Any, span: Any = None) -> Expr:
    """Positive infinity of a float dtype.

    Args:
        dtype: a float format that has infinities.

    >>> T.fill(scores_max, -T.infinity("float32"))
    """
    target = dtype_of("infinity", dtype)
    if known(target) and target.base not in WITH_INFINITY:
        reject(
            "TL236",
            f"{target} has no infinity",
            help=f"use its largest value: `T.max_value({target.name!r})`",
        )
    return Const(float("inf"), target, current_span())


@language_function("scalar", outside=True)
def max_value(dtype: Any, span: Any = None) -> Expr:
    """The largest finite value of a dtype.

    Args:
        dtype: any number format.

    >>> lowest = T.max_value("int32")
    """
    target = dtype_of("max_value", dtype)
    return Const(_limits(target)[1], target, current_span())


@language_function("scalar", outside=True)
def min_value(dtype: Any, span: Any = None) -> Expr:
    """The smallest (most negative) finite value of a dtype.

    Args:
        dtype: any number format.

    >>> T.fill(scores_max, T.min_value("float16"))
    """
    target = dtype_of("min_value", dtype)
    return Const(_limits(target)[0], target, current_span())


@language_function("scalar", outside=True)
def extract_lane(vector: Any, lane: int, span: Any = None) -> Expr:
    """One lane of a vector value.

    Args:
        vector: expression of n lanes; lane: constant, 0 to n - 1.

    >>> low = T.extract_lane(pair, 0)
    """
    value = operators.as_expr(vector)
    index = static_int("extract_lane", "lane", lane, 0, max(0, value.dtype.lanes - 1))
    if isinstance(value, Vector) and index is not None:
        return value.lanes[index]
    return intrinsic("extract_lane", (value,), value.dtype.scalar, lane=index)


def convert(dtype: DType, *values: Any) -> Any:
    """What calling a dtype gives: `T.float32(x)` converts, `T.float32x2(a, b)` builds a vector."""
    if not values:
        return dtype
    if len(values) == 1:
        return operators.cast(values[0], dtype)
    if len(values) != dtype.lanes:
        reject(
            "TL114",
            f"`T.{dtype.name}` has {counted(dtype.lanes, 'lane')}, {len(values)} values are given",
            help=f"`T.{dtype.scalar.name}x{len(values)}` has as many lanes",
        )
    lanes = tuple(operators.cast(v, dtype.scalar) for v in values)
    return Vector(lanes, dtype, current_span())


def _stochastic(value: Expr, target: DType, rbits: Any) -> Expr:
    """Rounding up with the probability of the dropped fraction, from the user's random bits."""
    if rbits is None:
        reject(
            "TL237",
            "`round='rs'` of `T.cast` needs `rbits`",
            help="pass 32 random bits: `rbits=T.rng_rand()`",
        )
    if known(target) and not (target.is_float and target.bits in STOCHASTIC_TARGETS):
        reject(
            "TL237",
            f"`T.cast` cannot round stochastically to {target}",
            help="'rs' converts to fp8, fp6 and fp4 formats",
        )
    trace = active_trace()
    if trace is not None and trace.target is not None and not trace.target.startswith("cuda"):
        reject(
            "TL401",
            f"stochastic rounding is not available on target `{trace.target}`",
            label="needs cuda:sm_100a",
            help="leave out `round`, which rounds to nearest even",
        )
    return intrinsic("cast_rs", (value, operators.cast(rbits, "uint32")), target)


def _limits(dtype: DType) -> tuple[float, float]:
    if dtype.kind in ("int", "uint", "bool"):
        return dtype.integer_range()
    largest = LARGEST.get(dtype.base)
    if largest is None:
        reject("TL236", f"{dtype} has no largest value", help="use a number format")
    return (2.0**-127 if dtype.base == "float8_e8m0fnu" else -largest), largest


FUNCTIONS = (cast, Cast, reinterpret, infinity, max_value, min_value, extract_lane)
