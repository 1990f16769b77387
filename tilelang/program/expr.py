"""Scalar expressions of a tile program, and what Python's operators do to them.

Expressions are immutable and carry a dtype and, where known, the span of the Python text they
came from. `==` between expressions builds a comparison; use `arith.same` to ask whether two
expressions are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tilelang.dtypes import SCALARS, DType
from tilelang.program import operators
from tilelang_diagnostics.model import Span

if TYPE_CHECKING:
    from tilelang.program.buffer import Buffer, Region

BOOL = SCALARS["bool"]
INT32 = SCALARS["int32"]
INT64 = SCALARS["int64"]
FLOAT32 = SCALARS["float32"]

Number: TypeAlias = "int | float | bool"

BinaryOp = Literal[
    "+", "-", "*", "/", "//", "%", "truncdiv", "truncmod", "min", "max",
    "<<", ">>", "&", "|", "^", "==", "!=", "<", "<=", ">", ">=", "and", "or",
]  # fmt: skip
COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">=", "and", "or"})

VarKind = Literal["loop", "let", "param", "dim", "const", "symbol", "block", "thread"]
# loop: bound by a for; let: bound by an assignment; param: scalar argument at run time;
# dim: runtime dimension (T.dynamic); const: eager compile-time dimension (T.const) not yet known;
# symbol: a Python value the static environment does not know; block/thread: launch indices.


class Expr:
    """Base of all expressions. Python operators build new expressions at the current span."""

    __slots__ = ()
    dtype: DType
    span: Span | None

    def __bool__(self) -> bool:
        return operators.truth(self)

    def __hash__(self) -> int:
        return id(self)

    # fmt: off
    def __add__(self, other: Any) -> Any: return operators.binary("+", self, other)
    def __radd__(self, other: Any) -> Any: return operators.binary("+", other, self)
    def __sub__(self, other: Any) -> Any: return operators.binary("-", self, other)
    def __rsub__(self, other: Any) -> Any: return operators.binary("-", other, self)
    def __mul__(self, other: Any) -> Any: return operators.binary("*", self, other)
    def __rmul__(self, other: Any) -> Any: return operators.binary("*", other, self)
    def __truediv__(self, other: Any) -> Any: return operators.binary("/", self, other)
    def __rtruediv__(self, other: Any) -> Any: return operators.binary("/", other, self)
    def __floordiv__(self, other: Any) -> Any: return operators.binary("//", self, other)
    def __rfloordiv__(self, other: Any) -> Any: return operators.binary("//", other, self)
    def __mod__(self, other: Any) -> Any: return operators.binary("%", self, other)
    def __rmod__(self, other: Any) -> Any: return operators.binary("%", other, self)
    def __pow__(self, other: Any) -> Any: return operators.power(self, other)
    def __rpow__(self, other: Any) -> Any: return operators.power(other, self)
    def __lshift__(self, other: Any) -> Any: return operators.binary("<<", self, other)
    def __rlshift__(self, other: Any) -> Any: return operators.binary("<<", other, self)
    def __rshift__(self, other: Any) -> Any: return operators.binary(">>", self, other)
    def __rrshift__(self, other: Any) -> Any: return operators.binary(">>", other, self)
    def __and__(self, other: Any) -> Any: return operators.binary("&", self, other)
    def __rand__(self, other: Any) -> Any: return operators.binary("&", other, self)
    def __or__(self, other: Any) -> Any: return operators.binary("|", self, other)
    def __ror__(self, other: Any) -> Any: return operators.binary("|", other, self)
    def __xor__(self, other: Any) -> Any: return operators.binary("^", self, other)
    def __rxor__(self, other: Any) -> Any: return operators.binary("^", other, self)
    def __neg__(self) -> Any: return operators.negate(self)
    def __pos__(self) -> Any: return self
    def __invert__(self) -> Any: return operators.invert(self)
    def __abs__(self) -> Any: return operators.absolute(self)
    def __eq__(self, other: object) -> Any: return operators.binary("==", self, other)
    def __ne__(self, other: object) -> Any: return operators.binary("!=", self, other)
    def __lt__(self, other: Any) -> Any: return operators.binary("<", self, other)
    def __le__(self, other: Any) -> Any: return operators.binary("<=", self, other)
    def __gt__(self, other: Any) -> Any: return operators.binary(">", self, other)
    def __ge__(self, other: Any) -> Any: return operators.binary(">=", self, other)
    # fmt: on

    def astype(self, dtype: Any) -> Any:
        """The value converted to `dtype`."""
        return operators.cast(self, dtype)

    def __str__(self) -> str:
        from tilelang.program.text import expr_text

        return expr_text(self)


@dataclass(frozen=True, slots=True, eq=False)
class Const(Expr):
    """A typed literal. Untyped Python numbers stay Python numbers until they meet a dtype."""

    value: Number
    dtype: DType
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Var(Expr):
    """A named immutable scalar; two variables are the same only if they are the same object.

    `definition` is the value of a `let` that reads no memory, so that reasoning sees through it.
    """

    name: str
    dtype: DType
    span: Span | None
    kind: VarKind
    definition: Expr | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Binary(Expr):
    """`left op right`, operands already of one dtype; comparisons yield bool."""

    op: BinaryOp
    left: Expr
    right: Expr
    dtype: DType
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Unary(Expr):
    """`-x`, `~x` or `not x`."""

    op: Literal["-", "~", "not"]
    operand: Expr
    dtype: DType
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Cast(Expr):
    """`operand` converted to `dtype`, rounding to nearest even, saturating for fp8."""

    operand: Expr
    dtype: DType
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Select(Expr):
    """`true if condition else false`; with `lazy` only the taken side is evaluated."""

    condition: Expr
    true: Expr
    false: Expr
    lazy: bool
    dtype: DType
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Load(Expr):
    """`buffer[indices]`, one element."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    dtype: DType
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False)
class VarRef(Load):
    """The current value of an `alloc_var`; assigning to its Python name stores to it."""

    def __getitem__(self, index: Any) -> Any:
        return self.buffer[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.buffer[index] = value


@dataclass(frozen=True, slots=True, eq=False)
class Intrinsic(Expr):
    """A call of a named scalar operation (`exp2`, `shfl_xor`, `atomic_add` …).

    `args` are expressions or regions (an element passed by reference is a Region of extent 1);
    everything that is neither goes into `attrs`.
    """

    name: str
    args: tuple[Expr | Region, ...]
    dtype: DType
    span: Span | None = None
    attrs: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Vector(Expr):
    """A vector value from its lanes, first lane first."""

    lanes: tuple[Expr, ...]
    dtype: DType
    span: Span | None = None


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct operands of `expr`; bounds of regions included."""
    match expr:
        case Binary(left=left, right=right):
            return (left, right)
        case Unary(operand=operand) | Cast(operand=operand):
            return (operand,)
        case Select(condition=condition, true=true, false=false):
            return (condition, true, false)
        case Load(indices=indices):
            return indices
        case Vector(lanes=lanes):
            return lanes
        case Intrinsic(args=args):
            out: list[Expr] = []
            for arg in args:
                if isinstance(arg, Expr):
                    out.append(arg)
                else:
                    out.extend(bound for r in arg.ranges for bound in (r.min, r.extent))
            return tuple(out)
        case _:
            return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """`expr` and everything below it, outermost first."""
    yield expr
    for child in children(expr):
        yield from walk(child)
