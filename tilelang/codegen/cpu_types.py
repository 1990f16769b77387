"""How does the CPU hold a value of each dtype, and how does it convert one to another?

Types that the processor computes with (integers, float16/32/64) are themselves in registers.
bfloat16, fp8 and fp4 stay as their bits and go through float32 for arithmetic; every result is
rounded to nearest even, and to the largest finite value where an 8-bit or smaller format
overflows. int4 is one nibble in memory (element 0 in the low one) and an i8 in registers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from tilelang.codegen.cpu_builder import Builder, Val, floating, integer
from tilelang.dtypes import DType
from tilelang.dtypes import dtype as dtype_of


@dataclass(frozen=True, slots=True)
class Minifloat:
    """A small floating-point format: its fields and what its largest codes mean."""

    exponent: int
    mantissa: int
    bias: int
    largest: float
    nan: int  # the code of NaN without sign, -1 when the format has none
    infinity: int = -1

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa


MINIFLOATS: Final[dict[str, Minifloat]] = {
    "float8_e3m4": Minifloat(3, 4, 3, 15.5, 0x7F, 0x70),
    "float8_e4m3": Minifloat(4, 3, 7, 448.0, 0x7F),
    "float8_e4m3fn": Minifloat(4, 3, 7, 448.0, 0x7F),
    "float8_e4m3fnuz": Minifloat(4, 3, 8, 240.0, 0x80),
    "float8_e4m3b11fnuz": Minifloat(4, 3, 11, 30.0, 0x80),
    "float8_e5m2": Minifloat(5, 2, 15, 57344.0, 0x7E, 0x7C),
    "float8_e5m2fnuz": Minifloat(5, 2, 16, 57344.0, 0x80),
    "float4_e2m1fn": Minifloat(2, 1, 1, 6.0, -1),
    "float4_e2m1_unpacked": Minifloat(2, 1, 1, 6.0, -1),
    "float6_e2m3fn": Minifloat(2, 3, 1, 7.5, -1),
    "float6_e3m2fn": Minifloat(3, 2, 3, 28.0, -1),
}
_NATIVE_FLOATS = {"float16": "half", "float32": "float", "tfloat32": "float", "float64": "double"}


@cache
def parse(name: str) -> DType:
    """The dtype TVM prints as `name`."""
    return dtype_of(name)


def register(dtype: DType) -> str:
    """The LLVM scalar type that holds one lane in a register."""
    if dtype.kind == "bool":
        return "i1"
    if dtype.kind == "float":
        return _NATIVE_FLOATS.get(dtype.base) or ("i16" if dtype.base == "bfloat16" else "i8")
    return f"i{max(8, dtype.bits)}"


def memory(dtype: DType) -> str:
    """The LLVM scalar type that holds one lane in memory (for a nibble: the byte it is in)."""
    return "i8" if dtype.kind == "bool" else register(dtype)


def width(dtype: DType) -> int:
    """Bytes of one lane in memory, and the alignment it needs; 1 for a nibble."""
    return max(1, dtype.bits // 8)


def is_nibble(dtype: DType) -> bool:
    """Whether two elements share a byte."""
    return dtype.bits == 4


def is_wide_float(dtype: DType) -> bool:
    """Whether the processor itself computes with the type."""
    return dtype.base in ("float32", "tfloat32", "float64")


def constant(value: float, dtype: DType) -> Val:
    """A literal in register form; only for types without a conversion of their own."""
    base = register(dtype)
    if base in ("half", "float", "double"):
        return floating(float(value), base, dtype.lanes)
    return integer(int(value), base, dtype.lanes)


def convert(b: Builder, value: Val, source: DType, target: DType) -> Val:
    """`value` of `source` as `target`, rounding to nearest even, in register form."""
    if source.base == target.base:
        return value
    if target.kind == "bool":
        return _to_bool(b, value, source)
    if target.is_integer or target.kind == "handle":
        return _to_integer(b, value, source, target)
    if source.is_float:
        if target.base == "float64" or source.base != "float64":
            single = to_float(b, value, source)
        else:
            single = _narrow_to_odd(b, value) if target.bits < 32 else value
        return from_float(b, single, target)
    return from_float(b, _int_to_float(b, value, source, target), target)


def to_float(b: Builder, value: Val, dtype: DType) -> Val:
    """A float of any type as float32, or as float64 when it is one; always exact."""
    match dtype.base:
        case "float64" | "float32" | "tfloat32":
            return value
        case "float16":
            return b.cast("fpext", value, "float")
        case "bfloat16":
            bits = b.binary("shl", b.cast("zext", value, "i32"), integer(16, "i32"))
            return b.bitcast(bits, "float")
        case "float8_e8m0fnu":
            return _decode_exponent(b, value)
        case base:
            return _decode(b, value, MINIFLOATS[base])


def extremum(b: Builder, name: str, x: Val, y: Val) -> Val:
    """`max` or `min` of two floats; the other operand where one is NaN, as C's fmax has it.

    Spelled out, because LLVM 22 vectorises a reduction of `llvm.maxnum` wrongly: with an extent
    that is no multiple of the vector width the last iterations are lost (seen 2026-11-29).
    """
    greater = b.compare("ogt" if name == "max" else "olt", x, y)
    return b.select(b.compare("uno", y, y), x, b.select(greater, x, y))


def from_float(b: Builder, value: Val, dtype: DType) -> Val:
    """A float32 or float64 value rounded to `dtype`, in register form."""
    match dtype.base:
        case "float64":
            return b.cast("fpext", value, "double") if value.base == "float" else value
        case "float32":
            return b.cast("fptrunc", value, "float") if value.base == "double" else value
        case "tfloat32":
            return b.cast("fptrunc", value, "float") if value.base == "double" else value
    if value.base == "double":
        value = _narrow_to_odd(b, value)
    match dtype.base:
        case "float16":
            return b.cast("fptrunc", value, "half")
        case "bfloat16":
            return _encode_bfloat(b, value)
        case "float8_e8m0fnu":
            return _encode_exponent(b, value)
        case base:
            return _encode(b, value, MINIFLOATS[base])


def _to_bool(b: Builder, value: Val, source: DType) -> Val:
    if source.is_float:
        real = to_float(b, value, source)
        return b.compare("une", real, floating(0.0, real.base, real.lanes))
    return b.compare("ne", value, integer(0, value.base, value.lanes))


def _to_integer(b: Builder, value: Val, source: DType, target: DType) -> Val:
    base = register(target)
    if source.is_float:
        # Out of range saturates and NaN gives 0, as GPUs have it; plain fptosi would be poison.
        real = to_float(b, value, source)
        narrow = f"i{target.bits}" if target.bits >= 8 else "i8"
        kind = "fptoui" if target.kind == "uint" else "fptosi"
        lanes = f"v{real.lanes}" if real.lanes > 1 else ""
        suffix = "f64" if real.base == "double" else "f32"
        name = f"llvm.{kind}.sat.{lanes}{narrow}.{lanes}{suffix}"
        result = b.call(name, narrow, [real], real.lanes)
    elif source.kind == "bool":
        return b.cast("zext", value, base)
    else:
        have, need = int(value.base[1:]), int(base[1:])
        if need > have:
            result = b.cast("sext" if source.kind == "int" else "zext", value, base)
        else:
            result = b.cast("trunc", value, base)
    return wrap_nibble(b, result, target) if target.bits < 8 else result


def wrap_nibble(b: Builder, value: Val, dtype: DType) -> Val:
    """The low bits of an i8, extended as `dtype` says."""
    if dtype.kind == "uint":
        return b.binary("and", value, integer((1 << dtype.bits) - 1, "i8"))
    up = integer(8 - dtype.bits, "i8")
    return b.binary("ashr", b.binary("shl", value, up), up)


def _int_to_float(b: Builder, value: Val, source: DType, target: DType) -> Val:
    op = "sitofp" if source.kind == "int" else "uitofp"
    # int32 and wider do not fit float32; rounding twice is avoided by passing through float64.
    wide = target.base == "float64" or (source.bits > 16 and target.bits < 32)
    return b.cast(op, value, "double" if wide else "float")


def _narrow_to_odd(b: Builder, value: Val) -> Val:
    """float64 to float32, rounding to odd, so that the next rounding is the only one."""
    near = b.cast("fptrunc", value, "float")
    back = b.cast("fpext", near, "double")
    bits = b.bitcast(near, "i32")
    one = integer(1, "i32", value.lanes)
    even = b.compare("eq", b.binary("and", bits, one), integer(0, "i32", value.lanes))
    inexact = b.compare("one", back, value)
    finite = b.compare("olt", b.intrinsic("fabs", back), floating(float("inf"), "double"))
    grew = b.compare("ogt", b.intrinsic("fabs", back), b.intrinsic("fabs", value))
    odd = b.select(grew, b.binary("sub", bits, one), b.binary("add", bits, one))
    fix = b.binary("and", b.binary("and", even, inexact), finite)
    return b.bitcast(b.select(fix, odd, bits), "float")


def _encode_bfloat(b: Builder, value: Val) -> Val:
    bits = b.bitcast(value, "i32")
    shift = integer(16, "i32")
    last = b.binary("and", b.binary("lshr", bits, shift), integer(1, "i32"))
    rounded = b.binary("add", bits, b.binary("add", last, integer(0x7FFF, "i32")))
    quiet = b.binary("or", bits, integer(0x400000, "i32"))
    is_nan = b.compare("uno", value, value)
    return b.cast("trunc", b.binary("lshr", b.select(is_nan, quiet, rounded), shift), "i16")


def _decode(b: Builder, value: Val, fmt: Minifloat) -> Val:
    wide = b.cast("zext", value, "i32")
    sign_at = fmt.exponent + fmt.mantissa
    magnitude = b.binary("and", wide, integer((1 << sign_at) - 1, "i32"))
    # Placed under float32's exponent field the code reads as value * 2^(bias - 127), denormals
    # included; one exact multiplication puts that right.
    placed = b.binary("shl", magnitude, integer(23 - fmt.mantissa, "i32"))
    scale = floating(2.0 ** (127 - fmt.bias), "float")
    bits = b.bitcast(b.binary("fmul", b.bitcast(placed, "float"), scale), "i32")
    if fmt.infinity >= 0:
        special = b.compare("uge", magnitude, integer(fmt.infinity, "i32"))
        bits = b.select(special, b.binary("or", placed, integer(0x7F800000, "i32")), bits)
    sign = b.binary("shl", b.binary("lshr", wide, integer(sign_at, "i32")), integer(31, "i32"))
    signed = b.binary("or", bits, sign)
    if fmt.infinity < 0 and fmt.nan >= 0:
        code = wide if fmt.nan >> sign_at else magnitude
        is_nan = b.compare("eq", code, integer(fmt.nan, "i32"))
        signed = b.select(is_nan, integer(0x7FC00000, "i32", value.lanes), signed)
    return b.bitcast(signed, "float")


def _encode(b: Builder, value: Val, fmt: Minifloat) -> Val:
    lanes = value.lanes
    bits = b.bitcast(value, "i32")
    magnitude = b.intrinsic("fabs", value)
    top = floating(fmt.largest, "float", lanes)
    clamped = b.select(b.compare("olt", magnitude, top), magnitude, top)
    raw = b.bitcast(clamped, "i32")
    drop = integer(23 - fmt.mantissa, "i32")
    last = b.binary("and", b.binary("lshr", raw, drop), integer(1, "i32"))
    half = integer((1 << (22 - fmt.mantissa)) - 1, "i32")
    rounded = b.binary("lshr", b.binary("add", b.binary("add", raw, half), last), drop)
    normal = b.binary("sub", rounded, integer((127 - fmt.bias) << fmt.mantissa, "i32"))
    # Below the smallest normal the codes count quanta.
    quanta = b.binary("fmul", clamped, floating(2.0 ** (fmt.bias - 1 + fmt.mantissa), "float"))
    whole = b.intrinsic("roundeven", quanta)
    smallest = floating(2.0 ** (1 - fmt.bias), "float", lanes)
    is_small = b.compare("olt", clamped, smallest)
    safe = b.select(is_small, whole, floating(0.0, "float", lanes))
    code = b.select(is_small, b.cast("fptoui", safe, "i32"), normal)
    sign_at = fmt.exponent + fmt.mantissa
    sign = b.binary("lshr", bits, integer(31, "i32"))
    signed = b.binary("or", code, b.binary("shl", sign, integer(sign_at, "i32")))
    if fmt.nan == 1 << sign_at:  # these formats have no negative zero
        zero = integer(0, "i32", lanes)
        signed = b.select(b.compare("eq", code, zero), zero, signed)
    if fmt.nan >= 0:
        is_nan = b.compare("uno", value, value)
        signed = b.select(is_nan, integer(fmt.nan, "i32", lanes), signed)
    return b.cast("trunc", signed, "i8")


def _decode_exponent(b: Builder, value: Val) -> Val:
    wide = b.cast("zext", value, "i32")
    bits = b.binary("shl", wide, integer(23, "i32"))
    smallest = integer(0x00400000, "i32", value.lanes)
    bits = b.select(b.compare("eq", wide, integer(0, "i32")), smallest, bits)
    nan = integer(0x7FC00000, "i32", value.lanes)
    return b.bitcast(b.select(b.compare("eq", wide, integer(255, "i32")), nan, bits), "float")


def _encode_exponent(b: Builder, value: Val) -> Val:
    """The power of two nearest to `value` (ties to the even code), from 2^-127 to 2^127."""
    lanes = value.lanes
    bits = b.binary("and", b.bitcast(value, "i32"), integer(0x7FFFFFFF, "i32"))
    last = b.binary("and", b.binary("lshr", bits, integer(23, "i32")), integer(1, "i32"))
    half = b.binary("add", last, integer((1 << 22) - 1, "i32"))
    code = b.binary("lshr", b.binary("add", bits, half), integer(23, "i32"))
    top = integer(254, "i32", lanes)
    code = b.select(b.compare("ugt", code, top), top, code)
    is_nan = b.compare("uno", value, value)
    return b.cast("trunc", b.select(is_nan, integer(255, "i32", lanes), code), "i8")
