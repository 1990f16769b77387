"""What is a tile operation to the compiler?

A frozen dataclass that stands for one `Evaluate(Call("tl.<name>", …))`: its fields are the
operands of `program.tile_ops.SCHEMAS[name]`, then the attributes. A class in `ops/` adds what
the operation touches and how it lowers. Passes know operations only through this interface.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tilelang.ir import attrs, build, tirx
from tilelang.ir.spans import TirSpan
from tilelang.program.tile_ops import SCHEMAS

if TYPE_CHECKING:
    from tilelang.ir.gpu_context import GpuContext


@dataclass(frozen=True, slots=True, eq=False)
class TileRegion:
    """A box of a buffer: one (min, extent) per dimension."""

    buffer: tirx.Buffer
    mins: tuple[tirx.Expr, ...]
    extents: tuple[tirx.Expr, ...]
    span: TirSpan = None

    def __post_init__(self) -> None:
        if not len(self.mins) == len(self.extents) == len(self.buffer.shape):
            raise ValueError(f"region of {self.buffer.name} has {len(self.mins)} ranges")

    @staticmethod
    def of(expr: tirx.Expr) -> TileRegion:
        """From a TensorRegion, or a whole buffer."""
        if isinstance(expr, tirx.TensorRegion):
            ranges = list(expr.region)
            return TileRegion(
                expr.source,
                tuple(r.min for r in ranges),
                tuple(r.extent for r in ranges),
                expr.span,
            )
        if not tirx.is_buffer_var(expr):
            raise TypeError(f"not a region: {expr}")
        shape = tuple(expr.shape)
        zeros = tuple(build.const(0, build.dtype_of(d)) for d in shape)
        return TileRegion(expr, zeros, shape, expr.span)

    def expr(self) -> tirx.Expr:
        """The TensorRegion."""
        pairs = list(zip(self.mins, self.extents, strict=True))
        return build.region(self.buffer, pairs, self.span)

    @property
    def dtype(self) -> str:
        return str(self.buffer.dtype)

    @property
    def scope(self) -> str:
        return str(self.buffer.scope())

    @property
    def constant_extents(self) -> tuple[int | None, ...]:
        """Each extent as an int, None where it is only known at run time."""
        return tuple(build.int_value(e) for e in self.extents)

    def place(self, offsets: Mapping[int, tirx.Expr]) -> list[tirx.Expr]:
        """Indices of the element at `offsets` (dimension -> offset) from the origin."""
        indices = []
        for dimension, low in enumerate(self.mins):
            offset = offsets.get(dimension)
            if offset is None:
                indices.append(low)
                continue
            if build.dtype_of(low) != build.dtype_of(offset):
                low, offset = build.cast(low, "int64"), build.cast(offset, "int64")
            indices.append(build.add(low, offset, self.span))
        return indices

    def load(self, offsets: Mapping[int, tirx.Expr]) -> tirx.Expr:
        """The element at `offsets` from the origin."""
        return build.load(self.buffer, self.place(offsets), self.span)

    def store(self, offsets: Mapping[int, tirx.Expr], value: tirx.Expr, span: TirSpan) -> tirx.Stmt:
        """Assign the element at `offsets` from the origin."""
        return build.store(self.buffer, self.place(offsets), value, span)


@dataclass(frozen=True, slots=True)
class LowerContext:
    """What an operation may know while it lowers itself.

    `span` is that of the statement; `safe_values` what a buffer reads as outside its bounds;
    `allocations` the annotations of each allocated buffer; `analyzer` knows the variables in
    scope.
    """

    target: str
    span: TirSpan
    analyzer: tirx.Analyzer
    allocations: Mapping[tirx.Buffer, Mapping[str, Any]] = field(default_factory=dict)
    safe_values: Mapping[tirx.Buffer, tirx.Expr] = field(default_factory=dict)

    def simplify(self, expr: tirx.Expr) -> tirx.Expr:
        return self.analyzer.simplify(expr)

    def zero_of(self, region: TileRegion) -> tirx.Expr:
        """What an element outside `region` counts as."""
        safe = self.safe_values.get(region.buffer)
        return build.const(0, region.dtype, self.span) if safe is None else safe

    def allocation_attr(self, buffer: tirx.Buffer, key: str, default: Any = None) -> Any:
        """An attribute the author gave the allocation of `buffer`."""
        return self.allocations.get(buffer, {}).get(attrs.ALLOC_PREFIX + key, default)


@dataclass(frozen=True, slots=True, eq=False)
class TileOp:
    """Base of the operations; see `ops.OPS` for the list."""

    NAME: ClassVar[str]

    @classmethod
    def from_call(cls, call: tirx.Call) -> Self:
        """The operation a `tl.<name>` call stands for."""
        values: dict[str, Any] = {}
        args = list(call.args)
        for operand, arg in zip(SCHEMAS[cls.NAME].operands, args, strict=False):
            values[operand.lstrip("?=")] = as_operand(arg)
        said = dict(call.attrs) if call.attrs is not None else {}
        known = {f.name: f for f in fields(cls)}
        for key, value in said.items():
            if key in known:
                values[key] = _plain(value)
        missing = [
            f.name
            for f in fields(cls)
            if f.name not in values and f.default is MISSING and f.default_factory is MISSING
        ]
        if missing:
            raise TypeError(f"{attrs.op_name(cls.NAME)} lacks {', '.join(missing)}")
        return cls(**values)

    def to_call(self, span: TirSpan = None) -> tirx.Call:
        """The call that stands for this operation."""
        operands = [name.lstrip("?=") for name in SCHEMAS[self.NAME].operands]
        args = [getattr(self, name) for name in operands]
        found = [a.expr() if isinstance(a, TileRegion) else a for a in args if a is not None]
        said = {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if f.name not in operands and getattr(self, f.name) is not None
        }
        return build.call(self.NAME, found, attrs=said, span=span)

    def reads(self) -> tuple[TileRegion, ...]:
        """Regions whose elements matter before the operation."""
        raise NotImplementedError(type(self).__name__)

    def writes(self) -> tuple[TileRegion, ...]:
        """Regions whose elements may differ after the operation."""
        raise NotImplementedError(type(self).__name__)

    def lower(self, ctx: LowerContext) -> tirx.Stmt:
        """Loops and scalar statements that do the work on `ctx.target`."""
        if ctx.target.split(":")[0] == "cpu":
            return self.lower_cpu(ctx)
        return self.lower_gpu(ctx)  # type: ignore[arg-type]

    def lower_cpu(self, ctx: LowerContext) -> tirx.Stmt:
        """For one block executed by one core."""
        raise NotImplementedError(f"{self.NAME} has no CPU lowering")

    def lower_gpu(self, ctx: GpuContext) -> tirx.Stmt:
        """For a block of cooperating threads."""
        raise NotImplementedError(f"{self.NAME} has no lowering for {ctx.target}")


class NestOp(TileOp):
    """An operation that is one nest of independent iterations wherever it runs."""

    __slots__ = ()

    def lower_gpu(self, ctx: GpuContext) -> tirx.Stmt:
        return ctx.spread(self.lower_cpu(ctx))


class Refused(Exception):
    """An operation cannot be lowered here; what the author is told, at `span`."""

    def __init__(self, code: str, message: str, span: TirSpan, **details: Any) -> None:
        super().__init__(message)
        self.code, self.message, self.span, self.details = code, message, span, details


def as_operand(arg: tirx.Expr) -> Any:
    """A call argument as operations see it: regions as TileRegion, scalars as they are."""
    if isinstance(arg, tirx.TensorRegion) or tirx.is_buffer_var(arg):
        return TileRegion.of(arg)
    return arg


def called_op(stmt: tirx.Stmt) -> str | None:
    """The language's name of the operator `stmt` calls, when it is one of ours."""
    if not isinstance(stmt, tirx.Evaluate):
        return None
    return op_of(stmt.value)


def op_of(expr: tirx.Expr) -> str | None:
    """The language's name of the operator of a call, when it is one of ours."""
    if not isinstance(expr, tirx.Call) or not isinstance(expr.op, tirx.Op):
        return None
    name = str(expr.op.name)
    return attrs.short_name(name) if attrs.is_ours(name) else None


def parallel_nest(
    extents: list[tuple[str, tirx.Expr]],
    body: tirx.Stmt,
    variables: list[tirx.Var],
    span: TirSpan,
) -> tirx.Stmt:
    """A T.Parallel nest over `variables` with (name, extent) each, outermost first."""
    rank = len(extents)
    for position in reversed(range(rank)):
        said = {attrs.PARALLEL: position, attrs.PARALLEL_RANK: rank}
        body = build.loop(
            variables[position], extents[position][1], body,
            kind="PARALLEL", annotations=said, span=span,
        )  # fmt: skip
    return body


def loop_vars(extents: list[tuple[str, tirx.Expr]], span: TirSpan) -> list[tirx.Var]:
    """Fresh loop variables, one per (name, extent)."""
    return [tirx.Var(name, build.dtype_of(extent), span) for name, extent in extents]


def _plain(value: Any) -> Any:
    """An attribute as Python sees it: containers as tuples."""
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    if type(value).__name__ in ("Array", "List"):
        return tuple(_plain(v) for v in value)
    return attrs.unheld(value)
