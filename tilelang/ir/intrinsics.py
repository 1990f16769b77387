"""Which scalar intrinsics of the language are operators TVM has, and which are ours?

A name in `MATH` becomes TVM's operator; a name in `EXPANSIONS` is written out; every other
intrinsic becomes our `tl.<name>`, which the backend gives a meaning or refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from tilelang.ir import build, tirx
from tilelang.ir.spans import TirSpan

Args: TypeAlias = Sequence[Any]
Attrs: TypeAlias = Mapping[str, Any]
Expansion: TypeAlias = Callable[[Args, str, Attrs, TirSpan], Any]

_SAME_NAME = (
    "exp exp2 exp10 log log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh "
    "acosh atanh atan2 floor trunc nearbyint erf sigmoid fmod isnan copysign nextafter hypot ldexp "
    "popcount fma pow"
)
_FAST = "exp exp10 log log10 sin cos tan"

# Attribute of a call of TVM's operator that may be approximated.
FAST: Final = "fast"

# Language name -> TVM operator. Fast variants are a licence, not an obligation: what a target has
# no approximation for is computed precisely.
MATH: Final[dict[str, str]] = {
    **{name: f"tirx.{name}" for name in _SAME_NAME.split()},
    **{name: f"prim.{name}" for name in ("log2", "ceil", "likely", "clz")},
    **{f"__{name}": f"tirx.{name}" for name in _FAST.split()},
    "__log2": "prim.log2",
    "rint": "tirx.nearbyint",
    "ieee_fmaf": "tirx.fma",
    "ieee_fsqrt": "tirx.sqrt",
    "ieee_frsqrt": "tirx.rsqrt",
    "fma2": "tirx.fma",
}


def scalar_call(name: str, args: Args, dtype: str, attrs: Attrs, span: TirSpan = None) -> Any:
    """The intrinsic `name` applied to emitted operands."""
    if name in EXPANSIONS:
        return EXPANSIONS[name](args, dtype, attrs, span)
    if name in MATH:
        said = {FAST: True} if name.startswith("__") else None
        return tirx.Call(MATH[name], list(args), attrs=said, ret_ty=dtype, span=span)
    tirx.ensure_op(name)
    return build.call(name, args, dtype, attrs, span)


def _op(name: str, args: Args, dtype: str, span: TirSpan) -> Any:
    return tirx.Call(name, list(args), ret_ty=dtype, span=span)


def _abs(args: Args, dtype: str, attrs: Attrs, span: TirSpan) -> Any:
    if build.is_float(dtype):
        return _op("tirx.fabs", args[:1], dtype, span)
    if dtype.startswith("uint"):
        return args[0]
    return tirx.Max(args[0], tirx.Sub(build.const(0, dtype, span), args[0], span), span)


def _round(args: Args, dtype: str, attrs: Attrs, span: TirSpan) -> Any:
    away = "away" in str(attrs.get("rounding_mode", ""))
    return _op("tirx.round" if away else "tirx.nearbyint", args[:1], dtype, span)


def _magnitude_test(node: str) -> Expansion:
    """`|x| node infinity`."""

    def expand(args: Args, dtype: str, attrs: Attrs, span: TirSpan) -> Any:
        source = build.dtype_of(args[0])
        magnitude = _op("tirx.fabs", args[:1], source, span)
        return getattr(tirx, node)(magnitude, build.const(float("inf"), source, span), span)

    return expand


def _cbrt(args: Args, dtype: str, attrs: Attrs, span: TirSpan) -> Any:
    magnitude = _op("tirx.fabs", args[:1], dtype, span)
    root = _op("tirx.pow", [magnitude, build.const(1 / 3, dtype, span)], dtype, span)
    return _op("tirx.copysign", [root, args[0]], dtype, span)


def _reinterpret(args: Args, dtype: str, attrs: Attrs, span: TirSpan) -> Any:
    return _op("tirx.reinterpret", args[:1], dtype, span)


def _reciprocal(args: Args, dtype: str, attrs: Attrs, span: TirSpan) -> Any:
    return tirx.Div(build.const(1, dtype, span), args[0], span)


def _extract_lane(args: Args, dtype: str, attrs: Attrs, span: TirSpan) -> Any:
    lane = build.const(int(attrs["lane"]), "int32", span)
    return build.call("extract_lane", [args[0], lane], dtype, span=span)


def _binary(op: str) -> Expansion:
    return lambda args, dtype, attrs, span: build.binary(op, args[0], args[1], span)


EXPANSIONS: Final[dict[str, Expansion]] = {
    "abs": _abs,
    "abs2": _abs,
    "round": _round,
    "isinf": _magnitude_test("EQ"),
    "isfinite": _magnitude_test("LT"),
    "cbrt": _cbrt,
    "reinterpret": _reinterpret,
    "extract_lane": _extract_lane,
    "ieee_frcp": _reciprocal,
    "ieee_add": _binary("+"),
    "ieee_sub": _binary("-"),
    "ieee_mul": _binary("*"),
    "ieee_fdiv": _binary("/"),
    "add2": _binary("+"),
    "sub2": _binary("-"),
    "mul2": _binary("*"),
    "max2": _binary("max"),
    "min2": _binary("min"),
}
