"""How do scalar expressions, regions and buffers of a tile program become TIRX values?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any

from tilelang.dtypes import DType
from tilelang.ir import build, intrinsics, tirx
from tilelang.ir.attrs import Held
from tilelang.ir.spans import TirSpan, to_tir
from tilelang.program import buffer as bf
from tilelang.program import expr as ex
from tilelang_diagnostics.model import Frame, Span


class ExprEmitter:
    """Translates expressions, remembering which IR value each variable and buffer became."""

    def __init__(self) -> None:
        self._values: dict[ex.Var, tirx.Expr] = {}
        self._buffers: dict[bf.Buffer, tirx.Buffer] = {}
        self._span: Span | None = None
        self._calls: tuple[Frame, ...] = ()
        self._views: list[tirx.Stmt] = []
        self._implicit: list[bf.Buffer] = []

    @contextmanager
    def block(self) -> Iterator[None]:
        """Views first used inside are declared inside, and forgotten at the end."""
        pending, self._views = self._views, []
        outer, self._implicit = self._implicit, []
        try:
            yield
        finally:
            for buffer in self._implicit:
                del self._buffers[buffer]
            self._views, self._implicit = pending, outer

    def take_views(self) -> list[tirx.Stmt]:
        """Declarations of the views used since the last call, in order."""
        taken, self._views = self._views, []
        return taken

    @contextmanager
    def inside(self, span: Span | None, calls: tuple[Frame, ...]) -> Iterator[None]:
        """Expressions emitted here belong to a statement at `span` reached through `calls`."""
        previous = self._span, self._calls
        self._span, self._calls = span, calls
        try:
            yield
        finally:
            self._span, self._calls = previous

    def declare_var(self, var: ex.Var) -> tirx.Var:
        """The IR variable of `var`, made now if there is none."""
        found = self._values.get(var)
        if found is None:
            found = tirx.Var(var.name, build.tir_dtype(var.dtype), to_tir(var.span))
            self._values[var] = found
        return found

    def bind(self, var: ex.Var, value: tirx.Expr) -> None:
        """From here on `var` stands for `value`."""
        self._values[var] = value

    def declare_buffer(self, buffer: bf.Buffer) -> tirx.Buffer:
        """The IR buffer of `buffer`, made now if there is none."""
        found = self._buffers.get(buffer)
        if found is None:
            found = self._buffers[buffer] = self._new_buffer(buffer)
        return found

    def buffer(self, buffer: bf.Buffer) -> tirx.Buffer:
        """The IR buffer of one that is in scope."""
        found = self._buffers.get(buffer)
        if found is not None:
            return found
        if buffer.source is None and buffer.pointer is None:
            raise KeyError(f"buffer {buffer.name} is used before it is allocated")
        declaration = self.view(buffer, self._at(buffer.span))
        self._views.append(declaration)
        self._implicit.append(buffer)
        return self._buffers[buffer]

    def view(self, buffer: bf.Buffer, span: TirSpan) -> tirx.Stmt:
        """Declare `buffer` over the storage of its source, or over its address."""
        if buffer.source is not None:
            data = build.data_of(self.buffer(buffer.source), span)
        else:
            assert buffer.pointer is not None
            element = tirx.PrimType(build.tir_dtype(buffer.dtype))
            address = build.cast(self.expr(buffer.pointer), "int64", span)
            pointer = tirx.PointerType(element, buffer.scope_name)
            data = tirx.Call("tirx.reinterpret", [address], ret_ty=pointer, span=span)
        return build.declare(self.declare_buffer(buffer), data, span)

    def operand(self, operand: ex.Expr | bf.Region | bf.Buffer) -> tirx.Expr:
        """An operand of a call: an expression, or a region passed by reference."""
        if isinstance(operand, bf.Region):
            return self.region(operand)
        if isinstance(operand, bf.Buffer):
            return self.buffer(operand)
        return self.expr(operand)

    def region(self, region: bf.Region) -> tirx.Expr:
        """The box as a TensorRegion."""
        buffer = self.buffer(region.buffer)
        ranges = []
        for r in region.ranges:
            low, extent = self.expr(r.min), self.expr(r.extent)
            if build.dtype_of(low) != build.dtype_of(extent):
                low, extent = build.cast(low, "int64"), build.cast(extent, "int64")
            ranges.append((low, extent))
        return build.region(buffer, ranges, self._at(region.span))

    def expr(self, expr: ex.Expr | int | float | bool) -> tirx.Expr:
        """The IR expression of `expr`."""
        if not isinstance(expr, ex.Expr):
            return build.const(expr, _dtype_of_number(expr), self._at(None))
        span = self._at(expr.span)
        dtype = build.tir_dtype(expr.dtype)
        match expr:
            case ex.Const(value=value):
                return build.const(value, dtype, span)
            case ex.Var():
                return self.declare_var(expr)
            case ex.Binary(op=op, left=left, right=right):
                return build.binary(op, *self._matched(left, right), span)
            case ex.Unary(op=op, operand=operand):
                return self._unary(op, self.expr(operand), dtype, span)
            case ex.Cast(operand=operand):
                return build.cast(self.expr(operand), dtype, span)
            case ex.Select(condition=condition, true=true, false=false, lazy=lazy):
                sides = self._matched(true, false)
                return build.select(self.expr(condition), *sides, lazy, span)
            case ex.Load(buffer=buffer, indices=indices):
                return build.load(self.buffer(buffer), [self.expr(i) for i in indices], span)
            case ex.Intrinsic(name=name, args=args, attrs=attrs):
                operands = [self.operand(a) for a in args]
                return intrinsics.scalar_call(name, operands, dtype, literal_attrs(attrs), span)
            case ex.Vector(lanes=lanes):
                return self._vector(lanes, span)
            case _:
                raise TypeError(f"cannot emit {type(expr).__name__}: {expr}")

    def constant(self, value: Any, dtype: DType) -> tirx.Expr:
        """A number or expression as `dtype`."""
        return build.cast(
            self.expr(value)
            if isinstance(value, ex.Expr)
            else build.const(value, build.tir_dtype(dtype)),
            build.tir_dtype(dtype),
        )

    def _matched(self, left: ex.Expr, right: ex.Expr) -> tuple[tirx.Expr, tirx.Expr]:
        """Both sides with the same number of lanes."""
        a, b = self.expr(left), self.expr(right)
        if left.dtype.lanes < right.dtype.lanes:
            a = tirx.Broadcast(a, right.dtype.lanes, self._at(left.span))
        elif right.dtype.lanes < left.dtype.lanes:
            b = tirx.Broadcast(b, left.dtype.lanes, self._at(right.span))
        return a, b

    def _unary(self, op: str, operand: tirx.Expr, dtype: str, span: TirSpan) -> tirx.Expr:
        if op == "not":
            return tirx.Not(operand, span)
        if op == "~":
            return tirx.BitwiseNot(operand, span)
        if build.is_float(dtype):  # 0 - x would turn -0.0 into 0.0
            return tirx.Mul(operand, build.const(-1, dtype, span), span)
        return tirx.Sub(build.const(0, dtype, span), operand, span)

    def _vector(self, lanes: Sequence[ex.Expr], span: TirSpan) -> tirx.Expr:
        if all(lane is lanes[0] for lane in lanes):
            return tirx.Broadcast(self.expr(lanes[0]), len(lanes), span)
        emitted = [self.expr(lane) for lane in lanes]
        order = [build.const(n, "int32", span) for n in range(len(lanes))]
        return tirx.Shuffle(emitted, order, span)

    def _new_buffer(self, buffer: bf.Buffer) -> tirx.Buffer:
        dtype = build.tir_dtype(buffer.dtype)
        shape = [self.expr(d) for d in buffer.shape]
        strides = None if buffer.strides is None else [self.expr(d) for d in buffer.strides]
        return tirx.decl_buffer(
            shape, dtype, name=buffer.name, strides=strides, scope=buffer.scope_name,
            data_alignment=_alignment(buffer), span=to_tir(buffer.span), layout=None,
        )  # fmt: skip

    def _at(self, span: Span | None) -> TirSpan:
        return to_tir(span or self._span, self._calls)


def literal_attrs(attrs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Attributes as values TVM's containers hold; enums as their value, tuples as arrays."""
    return {key: _literal(value) for key, value in attrs if value is not None}


def _literal(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, DType):
        return value.name
    if isinstance(value, (tuple, list)):
        return [_literal(v) for v in value]
    if isinstance(value, dict):
        return {str(k): _literal(v) for k, v in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return Held(value)


def _alignment(buffer: bf.Buffer) -> int:
    """What the code may assume of the data pointer: one element for memory others allocate.

    TVM assumes 64 bytes by default and checks nothing; a NumPy array or PyTorch view at an odd
    offset then crashes vector code.
    """
    if buffer.role in ("param", "output", "view", "pointer"):
        return max(1, buffer.dtype.scalar.bytes)
    return 64


def _dtype_of_number(value: int | float | bool) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int32" if -(1 << 31) <= value < (1 << 31) else "int64"
    return "float32"
