"""How is a TIRX node built with its span?

TVM's Python operators and implicit conversions attach no span, so every node of ours is built
through these functions; a rewritten node inherits the span of what it replaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tilelang.dtypes import DType
from tilelang.dtypes import dtype as named_dtype
from tilelang.ir import tirx
from tilelang.ir.attrs import op_name
from tilelang.ir.spans import TirSpan

_NODE_OF = {
    "+": "Add", "-": "Sub", "*": "Mul", "/": "Div", "//": "FloorDiv", "%": "FloorMod",
    "truncdiv": "Div", "truncmod": "Mod", "min": "Min", "max": "Max",
    "==": "EQ", "!=": "NE", "<": "LT", "<=": "LE", ">": "GT", ">=": "GE",
    "and": "And", "or": "Or",
    "&": "BitwiseAnd", "|": "BitwiseOr", "^": "BitwiseXor", "<<": "LShift", ">>": "RShift",
}  # fmt: skip

# How TVM stores what has no type of its own there.
_STORED_AS = {"tfloat32": "float32", "handle": "int64", "float4_e2m1_unpacked": "uint8"}


def tir_dtype(dtype: DType) -> str:
    """TVM's name of `dtype`."""
    base = _STORED_AS.get(dtype.base, dtype.base)
    return base if dtype.lanes == 1 else f"{base}x{dtype.lanes}"


def dtype_of(expr: tirx.Expr) -> str:
    """The dtype of an expression, by TVM's name; `handle` for a pointer."""
    return str(getattr(expr.ty, "dtype", "handle"))


def is_float(dtype: str) -> bool:
    """Whether TVM's `dtype` is a floating-point type of any width."""
    return dtype.startswith(("float", "bfloat"))


def lanes_of(dtype: str) -> int:
    """How many lanes TVM's `dtype` has."""
    _, separator, lanes = dtype.rpartition("x")
    return int(lanes) if separator and lanes.isdigit() else 1


def const(value: int | float | bool, dtype: str, span: TirSpan = None) -> tirx.Expr:
    """A literal; a vector dtype gives a broadcast."""
    lanes = lanes_of(dtype)
    if lanes > 1:
        scalar = const(value, dtype.rpartition("x")[0], span)
        return tirx.Broadcast(scalar, lanes, span)
    if is_float(dtype):
        # TVM refuses what the compiler made of constants that were in range.
        return tirx.FloatImm(dtype, named_dtype(dtype).overflowed(float(value)), span)
    return tirx.IntImm(dtype, int(value), span)


def binary(op: str, left: tirx.Expr, right: tirx.Expr, span: TirSpan = None) -> tirx.Expr:
    """`left op right`, `op` as the tile program spells it."""
    if op in ("//", "%") and is_float(dtype_of(left)):
        return _float_division(op, left, right, span)
    return getattr(tirx, _NODE_OF[op])(left, right, span)


def add(left: tirx.Expr, right: tirx.Expr, span: TirSpan = None) -> tirx.Expr:
    """`left + right`, without additions of a literal zero."""
    if is_int(left, 0):
        return right
    return left if is_int(right, 0) else tirx.Add(left, right, span)


def mul(left: tirx.Expr, right: tirx.Expr, span: TirSpan = None) -> tirx.Expr:
    """`left * right`, without multiplications by a literal one."""
    if is_int(left, 1):
        return right
    return left if is_int(right, 1) else tirx.Mul(left, right, span)


def folded(e: tirx.Expr) -> tirx.Expr:
    """`e`, an integer operation, without literals that decide it."""
    kind = type(e).__name__
    a, b = int_value(getattr(e, "a", e)), int_value(getattr(e, "b", e))
    dtype = dtype_of(e)
    if kind == "Add":
        if a is not None and b is not None:
            return const(a + b, dtype, e.span)
        return e.b if a == 0 else e.a if b == 0 else e
    if kind == "Mul":
        if a is not None and b is not None:
            return const(a * b, dtype, e.span)
        if 0 in (a, b):
            return const(0, dtype, e.span)
        return e.b if a == 1 else e.a if b == 1 else e
    if kind in ("FloorDiv", "FloorMod") and a is not None and b:
        return const(a // b if kind == "FloorDiv" else a % b, dtype, e.span)
    return e


def all_of(conditions: Iterable[tirx.Expr], span: TirSpan = None) -> tirx.Expr | None:
    """The conjunction, or None when there is nothing to demand."""
    result: tirx.Expr | None = None
    for condition in conditions:
        result = condition if result is None else tirx.And(result, condition, span)
    return result


def cast(value: tirx.Expr, dtype: str, span: TirSpan = None) -> tirx.Expr:
    """`value` converted to `dtype`; conversions of literals and to the same dtype vanish."""
    source = dtype_of(value)
    if source == dtype:
        return value
    if isinstance(value, tirx.IntImm) and lanes_of(dtype) == 1 and dtype != "bool":
        return const(int(value.value), dtype, value.span if span is None else span)
    if dtype.startswith("bool"):
        return tirx.NE(value, const(0, source, span), span)
    return tirx.Cast(dtype, value, span)


def select(
    condition: tirx.Expr, true: tirx.Expr, false: tirx.Expr, lazy: bool, span: TirSpan = None
) -> tirx.Expr:
    """`true if condition else false`; lazy evaluates only the taken side."""
    if lazy and lanes_of(dtype_of(condition)) == 1:
        args = [condition, true, false]
        return tirx.Call("prim.if_then_else", args, ret_ty=true.ty, span=span)
    return tirx.Select(condition, true, false, span)


def load(buffer: tirx.Buffer, indices: Sequence[tirx.Expr], span: TirSpan = None) -> tirx.Expr:
    """`buffer[indices]`."""
    return tirx.BufferLoad(buffer, list(indices), span)


def store(
    buffer: tirx.Buffer, indices: Sequence[tirx.Expr], value: tirx.Expr, span: TirSpan = None
) -> tirx.Stmt:
    """`buffer[indices] = value`, converted to the dtype of the buffer."""
    return tirx.BufferStore(buffer, cast(value, str(buffer.dtype), span), list(indices), span)


def region(
    buffer: tirx.Buffer,
    ranges: Sequence[tuple[tirx.Expr, tirx.Expr]],
    span: TirSpan = None,
) -> tirx.Expr:
    """A box of `buffer` from (min, extent) pairs."""
    boxes = [tirx.Range.from_min_extent(low, extent) for low, extent in ranges]
    plain = tirx.BufferRegion(buffer, boxes)
    return tirx.TensorRegion(plain.source, plain.region, plain.ty, span)


def call(
    name: str,
    args: Sequence[tirx.Expr],
    dtype: str = "void",
    attrs: Mapping[str, Any] | None = None,
    span: TirSpan = None,
) -> tirx.Expr:
    """A call of our operator `name`."""
    found = dict(attrs) if attrs else None
    return tirx.Call(op_name(name), list(args), attrs=found, ret_ty=dtype, span=span)


def evaluate(value: tirx.Expr, span: TirSpan = None) -> tirx.Stmt:
    """A statement evaluated for its effect."""
    return tirx.Evaluate(value, span)


def allocate(
    buffer: tirx.Buffer, annotations: Mapping[str, Any] | None = None, span: TirSpan = None
) -> tirx.Stmt:
    """`buffer` exists from here on."""
    return tirx.AllocBuffer(buffer, dict(annotations) if annotations else None, span)


def declare(buffer: tirx.Buffer, data: tirx.Expr, span: TirSpan = None) -> tirx.Stmt:
    """`buffer` is a view of the storage at `data` from here on."""
    return tirx.DeclBuffer(buffer, data=data, span=span)


def data_of(buffer: tirx.Buffer, span: TirSpan = None) -> tirx.Expr:
    """The address of the storage of `buffer`."""
    plain = tirx.buffer_data(buffer)
    return tirx.Call(plain.op, list(plain.args), ret_ty=plain.ty, span=span)


def assertion(
    kind: tirx.Expr, condition: tirx.Expr, parts: Sequence[tirx.Expr], span: TirSpan = None
) -> tirx.Stmt:
    """Stop with an error of `kind` when `condition` is false.

    TVM 0.27 hands its first two arguments over by position, and the node wants the condition first.
    """
    return tirx.AssertStmt(condition, kind, list(parts), span)


def nothing(span: TirSpan = None) -> tirx.Stmt:
    """The empty statement."""
    return tirx.Evaluate(tirx.IntImm("int32", 0), span)


def is_nothing(stmt: tirx.Stmt) -> bool:
    """Whether `stmt` certainly does nothing."""
    return isinstance(stmt, tirx.Evaluate) and isinstance(stmt.value, tirx.IntImm)


def seq(stmts: Iterable[tirx.Stmt], span: TirSpan = None) -> tirx.Stmt:
    """The statements in order, nested sequences flattened, empty ones dropped."""
    flat: list[tirx.Stmt] = []
    for stmt in stmts:
        if isinstance(stmt, tirx.SeqStmt):
            flat.extend(s for s in stmt.seq if not is_nothing(s))
        elif not is_nothing(stmt):
            flat.append(stmt)
    if not flat:
        return nothing(span)
    return flat[0] if len(flat) == 1 else tirx.SeqStmt(flat, span)


def loop(
    var: tirx.Var,
    extent: tirx.Expr,
    body: tirx.Stmt,
    *,
    kind: str = "SERIAL",
    low: tirx.Expr | None = None,
    annotations: Mapping[str, Any] | None = None,
    span: TirSpan = None,
) -> tirx.Stmt:
    """`for var in [low, low + extent)`."""
    start = const(0, dtype_of(var)) if low is None else low
    found = dict(annotations) if annotations else None
    node_kind = getattr(tirx.ForKind, kind)
    return tirx.For(var, start, extent, node_kind, body, annotations=found, span=span)


def replace_body(stmt: tirx.For, body: tirx.Stmt) -> tirx.Stmt:
    """The same loop around another body."""
    return tirx.For(
        stmt.loop_var, stmt.min, stmt.extent, stmt.kind, body,
        stmt.thread_binding, stmt.annotations, stmt.step, stmt.span,
    )  # fmt: skip


def is_int(expr: Any, value: int) -> bool:
    """Whether `expr` is the integer literal `value`."""
    return isinstance(expr, tirx.IntImm) and int(expr.value) == value


def int_value(expr: Any) -> int | None:
    """The value of an integer literal, else None."""
    return int(expr.value) if isinstance(expr, tirx.IntImm) else None


def constant_number(expr: Any) -> int | float | None:
    """The value of a literal, else None; a cast has a `value` too, which is an expression."""
    if isinstance(expr, (tirx.IntImm, tirx.FloatImm)):
        return int(expr.value) if isinstance(expr, tirx.IntImm) else float(expr.value)
    return None


def _float_division(op: str, left: tirx.Expr, right: tirx.Expr, span: TirSpan) -> tirx.Expr:
    """Floor division and modulo of floats, as Python defines them."""
    quotient = tirx.Div(left, right, span)
    floored = tirx.Call("tirx.floor", [quotient], ret_ty=left.ty, span=span)
    if op == "//":
        return floored
    return tirx.Sub(left, tirx.Mul(floored, right, span), span)
