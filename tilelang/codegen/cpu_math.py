"""Which instructions compute exp, log, tanh … on the CPU?

float32 (and through it every smaller float) uses the polynomials below: straight-line code that
vectorises at any width, within 2 units in the last place over the whole range, with infinities,
NaN and denormals as IEEE wants them. float64, and functions that are rare in kernels, call the
C library. Coefficients are our own near-minimax fits, lowest power first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from tilelang.codegen.cpu_builder import Builder, Val, floating, integer

_EXP = (0.5, 0.1666666567325592, 0.041666291654109955, 0.008333498612046242,
        0.0013944966485723853, 0.00019790038641076535)  # fmt: skip
_EXP2 = (0.6931471824645996, 0.24022650718688965, 0.055504102259874344, 0.00961803738027811,
         0.0013333938550204039, 0.00015467008051928133, 1.5195931155176368e-05)  # fmt: skip
_LN = (1.0, -0.5, 0.33333301544189453, -0.2500002682209015, 0.20002631843090057,
       -0.16668029129505157, 0.14211486279964447, -0.12398310750722885, 0.11931320279836655,
       -0.11737711727619171, 0.06737548857927322)  # fmt: skip
_TANH = (-0.3333333134651184, 0.1333318054676056, -0.05394339933991432, 0.021681644022464752,
         -0.008129000663757324, 0.0020977214444428682)  # fmt: skip
_ERF_SMALL = (0.12837916612625122, -0.37612631916999817, 0.11283676326274872,
              -0.026858344674110413, 0.0051984628662467, -0.0008114048978313804,
              8.25100505608134e-05)  # fmt: skip
_ERF_LARGE = (-1.128551721572876, -0.6356253027915955, -0.10526268929243088,
              0.02267412655055523, -0.002930149668827653, 4.958384306519292e-05,
              4.558176806312986e-05, -4.9382633733330294e-06)  # fmt: skip

# 1.5 * 2^23: adding it leaves the nearest integer in the low mantissa bits.
_ROUNDER: Final = 12582912.0
_ROUNDER_BITS: Final = 0x4B400000

# Functions of the C library; their float32 forms end in f.
_LIBM: Final = frozenset(
    {
        "exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "expm1", "sin", "cos", "tan",
        "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
        "erf", "erfc", "pow", "fmod", "hypot", "nextafter",
    }
)  # fmt: skip
_INTRINSICS = {
    "sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "fabs": "fabs",
    "nearbyint": "roundeven", "rint": "roundeven", "round": "round", "copysign": "copysign",
    "fma": "fma",
}  # fmt: skip


def math_call(b: Builder, name: str, args: Sequence[Val]) -> Val | None:
    """`name(args)` on float32 or float64 values; None when the function is not known."""
    if name == "rsqrt":
        root = b.intrinsic("sqrt", args[0])
        return b.binary("fdiv", floating(1.0, root.base, root.lanes), root)
    if name in _INTRINSICS:
        return b.intrinsic(_INTRINSICS[name], *args)
    if args[0].base == "float" and name in POLYNOMIALS:
        return POLYNOMIALS[name](b, args[0])
    if name == "sigmoid":
        return _sigmoid_libm(b, args[0])
    if name in _LIBM:
        return _libm(b, name, args)
    return None


def knows(name: str) -> bool:
    """Whether `math_call` has a meaning for `name`."""
    return name in _INTRINSICS or name in _LIBM or name in POLYNOMIALS or name == "rsqrt"


def _libm(b: Builder, name: str, args: Sequence[Val]) -> Val:
    base = args[0].base
    if name == "exp10":
        # Not in every C library under this name.
        return _libm(b, "pow", [floating(10.0, base, args[0].lanes), args[0]])
    symbol = name + ("f" if base == "float" else "")
    lanes = [[b.lane(a, i) for a in args] for i in range(args[0].lanes)]
    return b.pack([b.call(symbol, base, lane) for lane in lanes])


def _sigmoid_libm(b: Builder, x: Val) -> Val:
    one = floating(1.0, x.base, x.lanes)
    return b.binary("fdiv", one, b.binary("fadd", one, _libm(b, "exp", [_negate(b, x)])))


def _f(value: float) -> Val:
    return floating(value, "float")


def _negate(b: Builder, x: Val) -> Val:
    return b.emit(f"fneg {x}", x.base, x.lanes)


def _fma(b: Builder, x: Val, y: Val, z: Val) -> Val:
    lanes = max(x.lanes, y.lanes, z.lanes)
    return b.intrinsic("fmuladd", b.splat(x, lanes), y, z)


def _polynomial(b: Builder, x: Val, coefficients: Sequence[float]) -> Val:
    result = floating(coefficients[-1], "float", x.lanes)
    for c in reversed(coefficients[:-1]):
        result = _fma(b, result, x, _f(c))
    return result


def _clamp(b: Builder, x: Val, low: float, high: float) -> Val:
    """`x` limited to [low, high]; NaN stays NaN."""
    top, bottom = floating(high, "float", x.lanes), floating(low, "float", x.lanes)
    x = b.select(b.compare("ogt", x, top), top, x)
    return b.select(b.compare("olt", x, bottom), bottom, x)


def _nearest(b: Builder, x: Val) -> tuple[Val, Val]:
    """The integer nearest to `x`, |x| < 2^22, as a float and as an int."""
    shifted = b.binary("fadd", x, _f(_ROUNDER))
    whole = b.binary("fsub", shifted, _f(_ROUNDER))
    return whole, b.binary("sub", b.bitcast(shifted, "i32"), integer(_ROUNDER_BITS, "i32"))


def _scale(b: Builder, x: Val, exponent: Val) -> Val:
    """`x * 2^exponent` in two steps, so that neither overflows nor loses a denormal early."""
    if b.module.has_scale:
        lanes = f"v{x.lanes}" if x.lanes > 1 else ""
        return b.call(f"llvm.ldexp.{lanes}f32.{lanes}i32", "float", [x, exponent], x.lanes)
    half = b.binary("ashr", exponent, integer(1, "i32"))
    rest = b.binary("sub", exponent, half)
    for part in (half, rest):
        biased = b.binary("add", part, integer(127, "i32"))
        power = b.bitcast(b.binary("shl", biased, integer(23, "i32")), "float")
        x = b.binary("fmul", x, power)
    return x


def _exp2(b: Builder, x: Val) -> Val:
    x = _clamp(b, x, -152.0, 130.0)
    whole, exponent = _nearest(b, x)
    r = b.binary("fsub", x, whole)
    return _scale(b, _fma(b, r, _polynomial(b, r, _EXP2), _f(1.0)), exponent)


def _exp_of(b: Builder, x: Val, tail: Val | None = None) -> Val:
    """exp(x + tail) for a small tail."""
    whole, exponent = _nearest(b, b.binary("fmul", x, _f(1 / math.log(2))))
    minus = _negate(b, whole)
    # ln 2 in two parts: the first has trailing zeros, so its product with a small integer is
    # exact.
    r = _fma(b, minus, _f(0.693145751953125), x)
    r = _fma(b, minus, _f(1.428606765330187e-06), r)
    if tail is not None:
        r = b.binary("fadd", r, tail)
    square = b.binary("fmul", r, r)
    series = _fma(b, square, _polynomial(b, r, _EXP), r)
    return _scale(b, b.binary("fadd", series, _f(1.0)), exponent)


def _exp(b: Builder, x: Val) -> Val:
    return _exp_of(b, _clamp(b, x, -105.0, 90.0))


def _exp10(b: Builder, x: Val) -> Val:
    x = _clamp(b, x, -46.0, 39.0)
    ten = math.log(10)
    head = 2.302585124969482421875  # ln 10 as float32
    product = b.binary("fmul", x, _f(head))
    error = b.intrinsic("fma", b.splat(x, x.lanes), _f(head), _negate(b, product))
    return _exp_of(b, product, _fma(b, x, _f(ten - head), error))


def _log_parts(b: Builder, x: Val) -> tuple[Val, Val]:
    """`x = 2^e * (1 + f)` with f in [sqrt(1/2) - 1, sqrt(2) - 1): e and f, both float."""
    lanes = x.lanes
    tiny = b.compare("olt", x, floating(1.1754943508222875e-38, "float", lanes))
    x = b.select(tiny, b.binary("fmul", x, _f(8388608.0)), x)
    bits = b.bitcast(x, "i32")
    # Subtracting the bits of sqrt(1/2) moves the binade boundary there.
    moved = b.binary("sub", bits, integer(0x3F3504F3, "i32"))
    exponent = b.binary("ashr", moved, integer(23, "i32"))
    mantissa = b.binary("sub", bits, b.binary("shl", exponent, integer(23, "i32")))
    f = b.binary("fsub", b.bitcast(mantissa, "float"), _f(1.0))
    e = b.cast("sitofp", exponent, "float")
    minus = floating(-23.0, "float", lanes)
    return b.binary("fadd", e, b.select(tiny, minus, floating(0.0, "float", lanes))), f


def _log_edges(b: Builder, x: Val, result: Val) -> Val:
    """log of 0, infinity, NaN and negative numbers."""
    lanes = x.lanes
    infinity = floating(math.inf, "float", lanes)
    result = b.select(b.compare("oeq", x, infinity), infinity, result)
    zero = b.compare("oeq", x, floating(0.0, "float", lanes))
    result = b.select(zero, floating(-math.inf, "float", lanes), result)
    bad = b.compare("ult", x, floating(0.0, "float", lanes))
    return b.select(bad, floating(math.nan, "float", lanes), result)


def _log_tail(b: Builder, f: Val) -> Val:
    """log(1 + f) - f."""
    square = b.binary("fmul", f, f)
    return b.binary("fmul", square, _polynomial(b, f, _LN[1:]))


def _log(b: Builder, x: Val) -> Val:
    e, f = _log_parts(b, x)
    low = _fma(b, e, _f(1.428606765330187e-06), _log_tail(b, f))
    result = _fma(b, e, _f(0.693145751953125), b.binary("fadd", f, low))
    return _log_edges(b, x, result)


def _log_scaled(scale: float, exponent_scale: float) -> Callable[[Builder, Val], Val]:
    """log to another base: ln(1+f) times `scale`, carried in two floats, plus the exponent."""
    head = float(_round_bits(scale, 12))
    tail = scale - head
    e_head = float(_round_bits(exponent_scale, 15))
    e_tail = exponent_scale - e_head

    def compute(b: Builder, x: Val) -> Val:
        e, f = _log_parts(b, x)
        rest = _log_tail(b, f)
        # ln(1+f) = high + low exactly enough, high having few bits.
        total = b.binary("fadd", f, rest)
        mask = integer(0xFFFFF000, "i32")
        high = b.bitcast(b.binary("and", b.bitcast(total, "i32"), mask), "float")
        low = b.binary("fadd", b.binary("fsub", f, high), rest)
        small = _fma(b, high, _f(tail), b.binary("fmul", low, _f(scale)))
        small = _fma(b, e, _f(e_tail), small)
        result = _fma(b, high, _f(head), small)
        return _log_edges(b, x, _fma(b, e, _f(e_head), result))

    return compute


def _round_bits(value: float, bits: int) -> float:
    """`value` with only its leading `bits` mantissa bits."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(mantissa * (1 << bits)), exponent - bits)


def _log1p(b: Builder, x: Val) -> Val:
    lanes = x.lanes
    one = floating(1.0, "float", lanes)
    u = b.binary("fadd", one, x)
    # What the addition lost, relative to u, is all that is missing from log(u).
    lost = b.binary("fsub", x, b.binary("fsub", u, one))
    correction = b.binary("fdiv", lost, u)
    usable = b.compare("olt", b.intrinsic("fabs", correction), _f(1.0))
    correction = b.select(usable, correction, floating(0.0, "float", lanes))
    e, f = _log_parts(b, u)
    low = _fma(b, e, _f(1.428606765330187e-06), _log_tail(b, f))
    low = b.binary("fadd", low, correction)
    result = _fma(b, e, _f(0.693145751953125), b.binary("fadd", f, low))
    result = _log_edges(b, u, result)
    tiny = b.compare("olt", b.intrinsic("fabs", x), floating(2.0**-25, "float", lanes))
    return b.select(tiny, x, result)


def _tanh(b: Builder, x: Val) -> Val:
    magnitude = b.intrinsic("fabs", x)
    square = b.binary("fmul", x, x)
    small = _fma(b, b.binary("fmul", square, x), _polynomial(b, square, _TANH), x)
    doubled = b.binary("fadd", magnitude, magnitude)
    power = _exp_of(b, _clamp(b, doubled, 0.0, 40.0))
    one = _f(1.0)
    quotient = b.binary("fdiv", floating(2.0, "float", x.lanes), b.binary("fadd", power, one))
    large = b.intrinsic("copysign", b.binary("fsub", floating(1.0, "float", x.lanes), quotient), x)
    is_large = b.compare("ogt", magnitude, floating(0.625, "float", x.lanes))
    return b.select(is_large, large, small)


def _erf(b: Builder, x: Val) -> Val:
    lanes = x.lanes
    magnitude = b.intrinsic("fabs", x)
    square = b.binary("fmul", x, x)
    small = _fma(b, _polynomial(b, square, _ERF_SMALL), x, x)
    t = _clamp(b, magnitude, 0.0, 3.95)
    power = _exp_of(b, b.binary("fmul", t, _polynomial(b, t, _ERF_LARGE)))
    large = b.binary("fsub", floating(1.0, "float", lanes), power)
    is_large = b.compare("ogt", magnitude, floating(0.927, "float", lanes))
    return b.select(is_large, b.intrinsic("copysign", large, x), small)


def _sigmoid(b: Builder, x: Val) -> Val:
    one = floating(1.0, "float", x.lanes)
    return b.binary("fdiv", one, b.binary("fadd", one, _exp(b, _negate(b, x))))


POLYNOMIALS: Final[dict[str, Callable[[Builder, Val], Val]]] = {
    "exp": _exp,
    "exp2": _exp2,
    "exp10": _exp10,
    "log": _log,
    "log2": _log_scaled(1 / math.log(2), 1.0),
    "log10": _log_scaled(1 / math.log(10), math.log10(2)),
    "log1p": _log1p,
    "tanh": _tanh,
    "erf": _erf,
    "sigmoid": _sigmoid,
}
