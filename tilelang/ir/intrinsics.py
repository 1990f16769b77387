"""Which scalar intrinsics of the language are operators TVM has, and which are ours?

A name in `MATH` becomes TVM's operator; a name in `EXPANSIONS` is written out; every other
intrinsic becomes our `tl.<name>`, which the backend gives a meaning or refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from tilelang.ir import build, tirx
from tilelang.ir.spans import TirSpan

Expansion: TypeAlias = Callable[[Sequence[Any], str, TirSpan], Any]

# Language name -> TVM operator, where they differ only in the name.
MATH: Final[dict[str, str]] = {
    **{
        name: f"tirx.{name}"
        for name in (
            "exp exp2 exp10 log log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh "
            "tanh asinh acosh atanh atan2 floor trunc nearbyint erf "
            "isnan copysign nextafter hypot ldexp popcount fma pow"
        ).split()
    },
    **{name: f"prim.{name}" for name in ("log2", "ceil", "likely", "clz")},
    "rint": "tirx.nearbyint",
    # Fast variants are a licence, not an obligation.
    **{f"__{name}": f"tirx.{name}" for name in "exp exp10 log log10 sin cos tan".split()},
    "__log2": "prim.log2",
}


def _abs(args: Sequence[Any], dtype: str, span: TirSpan) -> Any:
    if build.is_float(dtype):
        return tirx.Call("tirx.fabs", [args[0]], ret_ty=dtype, span=span)
    if dtype.startswith("uint"):
        return args[0]
    negative = tirx.Sub(build.const(0, dtype, span), args[0], span)
    return tirx.Max(args[0], negative, span)


def _round(args: Sequence[Any], dtype: str, span: TirSpan) -> Any:
    """`round(x[, mode])`; to even unless the mode says away."""
    away = len(args) > 1 and isinstance(args[1], tirx.StringImm) and "away" in args[1].value
    name = "tirx.round" if away else "tirx.nearbyint"
    return tirx.Call(name, [args[0]], ret_ty=dtype, span=span)


def _infinity(args: Sequence[Any], dtype: str, span: TirSpan) -> Any:
    return build.const(float("inf"), dtype, span)


def _isinf(args: Sequence[Any], dtype: str, span: TirSpan) -> Any:
    source = build.dtype_of(args[0])
    magnitude = tirx.Call("tirx.fabs", [args[0]], ret_ty=source, span=span)
    return tirx.EQ(magnitude, build.const(float("inf"), source, span), span)


def _isfinite(args: Sequence[Any], dtype: str, span: TirSpan) -> Any:
    source = build.dtype_of(args[0])
    magnitude = tirx.Call("tirx.fabs", [args[0]], ret_ty=source, span=span)
    return tirx.LT(magnitude, build.const(float("inf"), source, span), span)


def _sigmoid(args: Sequence[Any], dtype: str, span: TirSpan) -> Any:
    one = build.const(1, dtype, span)
    negative = tirx.Sub(build.const(0, dtype, span), args[0], span)
    exponential = tirx.Call("tirx.exp", [negative], ret_ty=dtype, span=span)
    return tirx.Div(one, tirx.Add(one, exponential, span), span)


def _ceildiv(args: Sequence[Any], dtype: str, span: TirSpan) -> Any:
    one = build.const(1, dtype, span)
    top = tirx.Sub(tirx.Add(args[0], args[1], span), one, span)
    return tirx.FloorDiv(top, args[1], span)


def _clamp(args: Sequence[Any], dtype: str, span: TirSpan) -> Any:
    return tirx.Min(tirx.Max(args[0], args[1], span), args[2], span)


def _reinterpret(args: Sequence[Any], dtype: str, span: TirSpan) -> Any:
    return tirx.Call("tirx.reinterpret", [args[0]], ret_ty=dtype, span=span)


def _ieee(op: str) -> Expansion:
    """IEEE arithmetic with an explicit rounding mode; the nearest-even one is the plain one."""
    return lambda args, dtype, span: build.binary(op, args[0], args[1], span)


def _reciprocal(args: Sequence[Any], dtype: str, span: TirSpan) -> Any:
    return tirx.Div(build.const(1, dtype, span), args[0], span)


EXPANSIONS: Final[dict[str, Expansion]] = {
    "abs": _abs,
    "round": _round,
    "infinity": _infinity,
    "isinf": _isinf,
    "isfinite": _isfinite,
    "sigmoid": _sigmoid,
    "ceildiv": _ceildiv,
    "clamp": _clamp,
    "reinterpret": _reinterpret,
    "reciprocal": _reciprocal,
    "ieee_add": _ieee("+"),
    "ieee_sub": _ieee("-"),
    "ieee_mul": _ieee("*"),
    "ieee_fdiv": _ieee("/"),
}


def scalar_call(
    name: str,
    args: Sequence[Any],
    dtype: str,
    attrs: dict[str, Any],
    span: TirSpan = None,
) -> Any:
    """The intrinsic `name` applied to emitted operands."""
    if name in EXPANSIONS:
        return EXPANSIONS[name](args, dtype, span)
    if name in MATH:
        if build.dtype_of(args[0]) != dtype and build.is_float(dtype):
            args = [build.cast(a, dtype, span) for a in args]
        return tirx.Call(MATH[name], list(args), ret_ty=dtype, span=span)
    tirx.ensure_op(name)
    return build.call(name, args, dtype, attrs, span)
