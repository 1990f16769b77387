"""What Python's operators build: type promotion, constant folding, and the rules of the language.

Python numbers have no dtype of their own: they adopt the dtype of the other operand.
"""

from __future__ import annotations

import math
import operator as python
from collections.abc import Callable
from typing import Any

from tilelang.dtypes import LARGEST, DType, as_dtype
from tilelang.program import expr as ex
from tilelang.program.context import current_span, reject, warn
from tilelang.program.unknown import Unknown, is_unknown
from tilelang_diagnostics import with_article
from tilelang_diagnostics.model import Severity

_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": python.add, "-": python.sub, "*": python.mul, "//": python.floordiv, "%": python.mod,
    "/": python.truediv, "<<": python.lshift, ">>": python.rshift, "&": python.and_,
    "|": python.or_, "^": python.xor, "min": min, "max": max,
    "==": python.eq, "!=": python.ne, "<": python.lt, "<=": python.le,
    ">": python.gt, ">=": python.ge,
    "and": lambda a, b: bool(a) and bool(b), "or": lambda a, b: bool(a) or bool(b),
    "truncdiv": lambda a, b: abs(a) // abs(b) * (1 if (a >= 0) == (b >= 0) else -1),
    "truncmod": lambda a, b: abs(a) % abs(b) * (1 if a >= 0 else -1),
}  # fmt: skip
_INTEGER_ONLY = frozenset({"<<", ">>", "&", "|", "^"})
_DIVISIONS = frozenset({"//", "%", "/", "truncdiv", "truncmod"})


def binary(op: str, left: Any, right: Any) -> Any:
    """`left op right`; folds constants, promotes dtypes, or rejects with a diagnostic."""
    if is_unknown(left) or is_unknown(right):
        return Unknown(f"({left} {op} {right})")
    if (op == "==" or op == "!=") and not (_compares_as_value(left) and _compares_as_value(right)):
        return op == "!="  # an expression never equals None, a string or a tuple
    if _is_container(left) or _is_container(right):
        # `[1] * num_stages` with a stage count the text does not give.
        if all(_is_container(v) or _is_symbol(v) for v in (left, right)):
            return Unknown(f"({left} {op} {right})")
    lhs, rhs = as_operands(left, right, op)
    if op == "/" and lhs.dtype.is_integer and rhs.dtype.is_integer:
        reject(
            "TL232",
            f"`/` between two integers ({lhs.dtype} / {rhs.dtype}) is ambiguous",
            help="use `//` for floor division, `T.truncdiv` for C-like division, or cast one side",
        )
    if op in _INTEGER_ONLY and lhs.dtype.is_float:
        reject("TL236", f"`{op}` needs integers, got {lhs.dtype}", help="cast with `T.cast` first")
    if op in _DIVISIONS and isinstance(rhs, ex.Const) and rhs.value == 0 and not lhs.dtype.is_float:
        reject(
            "TL117",
            f"division by zero in `{_written(op, lhs, rhs)}`",
            help="divide by something else than 0",
        )
    bits = lhs.dtype.bits  # 0 for a dtype that is not chosen yet
    if op in ("<<", ">>") and bits and isinstance(rhs, ex.Const) and not 0 <= rhs.value < bits:
        reject(
            "TL117",
            f"`{_written(op, lhs, rhs)}` shifts {lhs.dtype} by {rhs.value} bits",
            help=f"shift by 0 to {bits - 1} bits, or cast to a wider dtype first",
        )
    folded = _fold(op, lhs, rhs)
    if folded is not None:
        return folded
    is_comparison = op in ex.COMPARISONS
    result = ex.BOOL.with_lanes(lhs.dtype.lanes) if is_comparison else lhs.dtype
    return ex.Binary(op, lhs, rhs, result, current_span())  # type: ignore[arg-type]


def _written(op: str, lhs: ex.Expr, rhs: ex.Expr) -> str:
    """The operation as one writes it, with its parentheses."""
    return str(ex.Binary(op, lhs, rhs, lhs.dtype))  # type: ignore[arg-type]


def as_operands(left: Any, right: Any, op: str) -> tuple[ex.Expr, ex.Expr]:
    """Both operands as expressions of one common dtype."""
    if op in ("and", "or"):
        return as_condition(left), as_condition(right)
    lhs, rhs = _value(left), _value(right)
    if not isinstance(lhs, ex.Expr) and not isinstance(rhs, ex.Expr):
        return as_expr(lhs), as_expr(rhs)
    if not isinstance(lhs, ex.Expr):
        assert isinstance(rhs, ex.Expr)
        return _adopt(lhs, rhs, op)
    if not isinstance(rhs, ex.Expr):
        second, first = _adopt(rhs, lhs, op)
        return first, second
    common = promote(lhs.dtype, rhs.dtype)
    if common is None:
        reject(
            "TL236",
            f"`{op}` cannot combine {lhs.dtype} and {rhs.dtype}",
            help="cast one side with `T.cast`",
        )
    return cast(lhs, common), cast(rhs, common)


def promote(left: DType, right: DType) -> DType | None:
    """The dtype in which `left op right` is computed, or None when there is none."""
    if left == right:
        return left
    if "symbol" in (left.kind, right.kind):
        return left if left.kind == "symbol" else right
    lanes = max(left.lanes, right.lanes)
    if min(left.lanes, right.lanes) not in (1, lanes):
        return None
    a, b = left.scalar, right.scalar
    if "handle" in (a.kind, b.kind):
        wide = ex.INT64
    elif a.is_float and b.is_float:
        # Two different 16-bit or smaller formats meet in fp32: neither holds the other.
        wide = ex.FLOAT32 if a.bits == b.bits and a != b else max(a, b, key=lambda d: d.bits)
    elif a.is_float or b.is_float:
        wide = a if a.is_float else b
    elif a.kind == b.kind:
        wide = max(a, b, key=lambda d: d.bits)
    elif "bool" in (a.kind, b.kind):
        wide = b if a.kind == "bool" else a
    else:
        signed, unsigned = (a, b) if a.kind == "int" else (b, a)
        wide = signed if signed.bits > unsigned.bits else unsigned
    return wide.with_lanes(lanes)


def cast(value: Any, dtype: Any) -> Any:
    """`value` as `dtype`; constants convert now, saturating is left to the target."""
    if is_unknown(value):
        return value
    target = as_dtype(dtype)
    if target is None:
        reject("TL230", f"{dtype!r} is not a dtype", help="for example `T.float16` or 'int8'")
    value = _value(value)
    if not isinstance(value, ex.Expr):
        return constant(value, target)
    if value.dtype == target:
        return value
    if isinstance(value, ex.Const):
        return constant(value.value, target)
    if target.lanes > 1 and value.dtype.lanes == 1:
        scalar = cast(value, target.scalar)
        return ex.Vector((scalar,) * target.lanes, target, current_span())
    return ex.Cast(value, target, current_span())


def constant(value: ex.Number, dtype: DType) -> ex.Expr:
    """A literal of `dtype`; with a warning one that does not fit, which wraps or overflows."""
    if dtype.lanes > 1:
        scalar = constant(value, dtype.scalar)
        return ex.Vector((scalar,) * dtype.lanes, dtype, current_span())
    if dtype.kind == "bool":
        return ex.Const(bool(value), dtype, current_span())
    if dtype.is_integer:
        number = int(value)
        low, high = dtype.integer_range()
        if not low <= number <= high:
            warn(
                "TL235",
                f"{value} does not fit {dtype} ({low} … {high})",
                severity=Severity.WARNING,
                notes=(f"it wraps to {(number - low) % (high - low + 1) + low}",),
                help="use a wider dtype, or a constant in range",
            )
            number = (number - low) % (high - low + 1) + low
        return ex.Const(number, dtype, current_span())
    if dtype.kind in ("handle", "symbol"):
        return ex.Const(value, dtype, current_span())
    return ex.Const(_float(value, dtype), dtype, current_span())


def _float(value: ex.Number, dtype: DType) -> float:
    try:
        number, text = float(value), f"{value:g}"
    except OverflowError:  # an int beyond every float
        number, text = (
            (-math.inf if value < 0 else math.inf),
            f"an int of {int(value).bit_length()} bits",
        )
    held = dtype.overflowed(number)
    finite = math.isfinite(number) or isinstance(value, int)
    if finite and abs(held) != abs(value) and (math.isinf(held) or dtype.bits <= 8):
        warn(
            "TL235",
            f"{text} does not fit {dtype} (largest value {LARGEST[dtype.base]:g})",
            severity=Severity.WARNING,
            notes=(f"it becomes {held:g}",),
            help="use a wider dtype, or a constant in range",
        )
    return held


def as_expr(value: Any, dtype: DType | None = None) -> ex.Expr:
    """Any scalar as a typed expression: int → int32 (int64 when it must), float → float32."""
    value = _value(value)
    if isinstance(value, ex.Expr):
        return value if dtype is None else cast(value, dtype)
    if dtype is not None:
        return constant(value, dtype)
    if isinstance(value, bool):
        return ex.Const(value, ex.BOOL, current_span())
    if isinstance(value, int):
        wide = not -(1 << 31) <= value < (1 << 31)
        return ex.Const(value, ex.INT64 if wide else ex.INT32, current_span())
    return ex.Const(float(value), ex.FLOAT32, current_span())


def as_condition(value: Any) -> ex.Expr:
    """`value` as bool; integers compare with zero."""
    expr = as_expr(value)
    return expr if expr.dtype.kind == "bool" else binary("!=", expr, 0)


def negate(value: ex.Expr) -> Any:
    if isinstance(value, ex.Const) and value.dtype.kind != "bool":
        return constant(-value.value, value.dtype)
    if value.dtype.kind == "bool":
        value = cast(value, ex.INT32)
    return ex.Unary("-", value, value.dtype, current_span())


def invert(value: ex.Expr) -> Any:
    if value.dtype.kind == "bool":
        return logical_not(value)
    if value.dtype.is_float:
        reject("TL236", f"`~` needs integers, got {value.dtype}", help="cast with `T.cast` first")
    return ex.Unary("~", value, value.dtype, current_span())


def logical_not(value: Any) -> Any:
    """`not value`, on Python values and expressions alike."""
    if is_unknown(value):
        return value
    if not isinstance(value, ex.Expr):
        return not value
    condition = as_condition(value)
    if isinstance(condition, ex.Const):
        return ex.Const(not condition.value, ex.BOOL, current_span())
    return ex.Unary("not", condition, ex.BOOL, current_span())


def absolute(value: ex.Expr) -> Any:
    return ex.Intrinsic("abs", (value,), value.dtype, current_span())


def power(base: Any, exponent: Any) -> Any:
    """`base ** exponent`; small constant integer powers multiply."""
    if is_unknown(base) or is_unknown(exponent):
        return Unknown(f"({base} ** {exponent})")
    if isinstance(exponent, int) and isinstance(base, ex.Expr) and 1 <= exponent <= 4:
        result: Any = base
        for _ in range(exponent - 1):
            result = binary("*", result, base)
        return result
    lhs, rhs = as_operands(base, exponent, "**")
    if not lhs.dtype.is_float:
        lhs, rhs = cast(lhs, ex.FLOAT32), cast(rhs, ex.FLOAT32)
    return ex.Intrinsic("pow", (lhs, rhs), lhs.dtype, current_span())


def truth(value: ex.Expr) -> bool:
    """Python's `bool(value)`: decided for constants and `==`/`!=`, refused otherwise."""
    from tilelang.program import arith

    if isinstance(value, ex.Const):
        return bool(value.value)
    if isinstance(value, ex.Binary) and value.op in ("==", "!="):
        # Containers and `in` compare expressions with `==`; structure decides, as no value exists.
        return arith.same(value.left, value.right) == (value.op == "==")
    decided = arith.decide(value)
    if decided is not None:
        return decided
    reject(
        "TL152",
        f"`{value}` has no value while the kernel is being traced",
        label="only known when the kernel runs",
        help="use `T.if_then_else`, a device `if`, or `T.min`/`T.max` instead of Python's own; a "
        "function that the kernel calls may branch if it is a `@T.macro`",
    )


def _fold(op: str, lhs: ex.Expr, rhs: ex.Expr) -> Any:
    """A Python number or constant when the result is known, `lhs`/`rhs` for neutral elements."""
    if isinstance(lhs, ex.Const) and isinstance(rhs, ex.Const):
        try:
            value = _ARITHMETIC[op](lhs.value, rhs.value)
        except (ZeroDivisionError, OverflowError):
            return None  # an infinity or NaN, which the device computes as IEEE 754 says
        if op in ex.COMPARISONS:
            return ex.Const(bool(value), ex.BOOL, current_span())
        return constant(value, lhs.dtype)
    if isinstance(rhs, ex.Const) and lhs.dtype.is_integer:
        if (op in ("+", "-", "<<", ">>", "|", "^") and rhs.value == 0) or (
            op in ("*", "//", "truncdiv") and rhs.value == 1
        ):
            return lhs
        if op == "*" and rhs.value == 0:
            return constant(0, lhs.dtype)
        if op in ("%", "truncmod") and rhs.value == 1:
            return constant(0, lhs.dtype)
    if isinstance(lhs, ex.Const) and rhs.dtype.is_integer:
        if (op == "+" and lhs.value == 0) or (op == "*" and lhs.value == 1):
            return rhs
        if op == "*" and lhs.value == 0:
            return constant(0, rhs.dtype)
    if op in ("and", "or"):
        return _fold_logical(op, lhs, rhs)
    return None


def _fold_logical(op: str, lhs: ex.Expr, rhs: ex.Expr) -> ex.Expr | None:
    for known, other in ((lhs, rhs), (rhs, lhs)):
        if isinstance(known, ex.Const):
            decides = bool(known.value) == (op == "or")
            return known if decides else other
    return None


def _adopt(number: ex.Number, other: ex.Expr, op: str) -> tuple[ex.Expr, ex.Expr]:
    """A Python number beside `other`: it takes that dtype, unless a float meets an integer."""
    dtype = other.dtype
    if isinstance(number, float) and not dtype.is_float:
        dtype = ex.FLOAT32.with_lanes(dtype.lanes)
    elif dtype.kind == "bool" and not isinstance(number, bool):
        dtype = ex.INT32.with_lanes(dtype.lanes)
    elif dtype.is_integer and dtype.lanes == 1 and isinstance(number, int):
        low, high = dtype.integer_range()
        if not low <= number <= high:
            dtype = as_expr(number).dtype if dtype.bits <= 32 else dtype
            dtype = ex.INT64 if dtype.bits < 64 and not -(1 << 31) <= number < 1 << 31 else dtype
    return constant(number, dtype), cast(other, dtype)


def _value(value: Any) -> Any:
    """A scalar operand: expressions and numbers as they are, one-element regions loaded."""
    from tilelang.program import buffer as buffers
    from tilelang.program import indexing

    if isinstance(value, (ex.Expr, bool, int, float)):
        return value
    if isinstance(value, buffers.Region):
        return indexing.region_value(value)
    if isinstance(value, buffers.Buffer):
        reject(
            "TL151",
            f"buffer `{value.name}` is used as a scalar",
            help=f"index it, for example `{value.name}[{', '.join('i' * value.ndim)}]`",
        )
    refuse = getattr(value, "refuse_as_value", None)  # what knows better why it is no value
    if refuse is not None:
        refuse()
    item = getattr(value, "item", None)  # NumPy scalars
    if item is not None and getattr(value, "shape", None) == ():
        return item()
    reject(
        "TL116",
        f"{_kind_text(value)} cannot be part of an expression",
        help="use a number, an element of a buffer, or an expression of them",
    )


def _kind_text(value: Any) -> str:
    if value is None or value is ...:
        return f"`{'...' if value is ... else None}`"
    if isinstance(value, str | complex):
        shown = repr(value) if len(repr(value)) < 40 else f"{repr(value)[:36]}…'"
        return f"the {'string' if isinstance(value, str) else 'complex number'} `{shown}`"
    return "a function" if callable(value) else with_article(type(value).__name__)


def _is_container(value: Any) -> bool:
    return isinstance(value, (list, tuple, str))


def _is_symbol(value: Any) -> bool:
    return isinstance(value, ex.Var) and value.kind == "symbol"


def _compares_as_value(value: Any) -> bool:
    from tilelang.program.buffer import Region

    return isinstance(value, (ex.Expr, bool, int, float, Region)) or hasattr(value, "item")
