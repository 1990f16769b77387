"""Parameter annotations: `T.Tensor`, `T.StridedTensor`, pointers, references, and their dtypes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from tilelang.dtypes import SCALARS, VECTOR_LANES, DType, as_dtype
from tilelang.language.catalog import language_function
from tilelang.language.slips import literal_in_call, string_fixes
from tilelang.program import arith, operators
from tilelang.program.buffer import Buffer, BufferRole, Dim, Scope
from tilelang.program.context import active_trace, argument_span, reject, warn
from tilelang.program.expr import Expr, Var
from tilelang.program.unknown import Unknown, contains_unknown
from tilelang_diagnostics import counted
from tilelang_diagnostics.model import Applicability, Edit, Fix, Span
from tilelang_diagnostics.suggest import did_you_mean


@dataclass(frozen=True, slots=True, eq=False)
class TensorType:
    """The type of a tensor parameter; `strides` are in elements, None for contiguous."""

    shape: tuple[Dim, ...]
    dtype: DType
    strides: tuple[Dim, ...] | None = None
    scope: Scope = "global"
    nullable: bool = False

    def buffer(self, name: str, span: Span | None, role: BufferRole = "param") -> Buffer:
        """A parameter of this type called `name`."""
        return Buffer(
            name, self.shape, self.dtype, self.scope, span, role, self.strides,
            nullable=self.nullable,
        )  # fmt: skip

    def __or__(self, other: Any) -> Any:
        return _optional(self, other)

    def __ror__(self, other: Any) -> Any:
        return _optional(self, other)

    @property
    def __origin__(self) -> Any:
        raise AttributeError("__origin__")


def _optional(tensor: TensorType, other: Any) -> Any:
    if other is None or other is type(None):
        return TensorType(tensor.shape, tensor.dtype, tensor.strides, tensor.scope, True)
    return NotImplemented


@dataclass(frozen=True, slots=True, eq=False)
class TensorFactory:
    """`T.Tensor(shape, dtype)` and `T.Tensor[shape, dtype]` for one memory scope."""

    name: str
    scope: Scope
    strided: bool = False

    @property
    def positional(self) -> tuple[str, ...]:
        """What can be given by position, in order."""
        return ("shape", "strides", "dtype") if self.strided else ("shape", "dtype")

    def __call__(
        self,
        shape: Any = None,
        *args: Any,
        dtype: Any = None,
        strides: Any = None,
        data: Any = None,
        scope: Any = None,
        **unused: Any,
    ) -> Any:
        if shape is None:
            return TensorType((), SCALARS["float32"], None, self.scope)
        rest = list(args)
        if self.strided and strides is None and rest:
            strides = rest.pop(0)
        if dtype is None:
            dtype = rest.pop(0) if rest else "float32"
        if contains_unknown(shape) or contains_unknown(strides):
            return Unknown(f"T.{self.name}(…)")
        if data is not None or (rest and rest[0] is not None):
            return make_tensor(data if data is not None else rest[0], shape, dtype, strides)
        if isinstance(shape, (str, DType)) and isinstance(dtype, (tuple, list, int)):
            _refuse_shape("extent", f"`T.{self.name}` takes the shape first, then the dtype")
        element = resolve_dtype(dtype)
        dims = resolve_shape(shape)
        steps = None if strides is None else resolve_shape(strides, what="stride")
        if steps is not None and len(steps) != len(dims):
            reject(
                "TL217",
                f"{counted(len(steps), 'stride')} for a tensor of rank {len(dims)}",
                span=argument_span("strides"),
                help="give one stride per dimension, in elements",
            )
        return TensorType(dims, element, steps, scope or self.scope)

    def __getitem__(self, key: Any) -> Any:
        """`[shape, dtype]`, `[(M, N), dtype]`, `[M, dtype]` or `[shape, strides, dtype]`."""
        if not isinstance(key, tuple):
            return self(key)
        *head, last = key
        if _names_dtype(last) or (len(head) == 1 and isinstance(head[0], (tuple, list))):
            if len(head) == 1 or (self.strided and len(head) == 2):
                return self(*head, dtype=last) if len(head) == 1 else self(head[0], head[1], last)
            return self(tuple(head), dtype=last)
        return self(key)


Tensor = TensorFactory("Tensor", "global")
StridedTensor = TensorFactory("StridedTensor", "global", strided=True)
FragmentBuffer = TensorFactory("FragmentBuffer", "local.fragment")
SharedBuffer = TensorFactory("SharedBuffer", "shared.dyn")
LocalBuffer = TensorFactory("LocalBuffer", "local")


class PointerType:
    """`T.ptr` as an annotation or dtype: a 64-bit address."""

    dtype = SCALARS["handle"]
    name = "handle"

    def __call__(self, dtype: Any = None, storage_scope: str = "global", **_: Any) -> PointerType:
        return self


ptr = PointerType()


class Ref:
    """Annotation of macro parameters that are passed by reference."""

    def __class_getitem__(cls, item: Any) -> type[Ref]:
        return cls


@language_function("type")
def make_tensor(ptr: Any, shape: Any, dtype: Any = "float32", strides: Any = None) -> Any:
    """A tensor over memory at an address.

    Args:
        ptr: a `T.ptr` parameter or a 64-bit address loaded from a pointer table.
        shape: extents; dtype: element type; strides: in elements, row-major when left out.

    >>> A = T.make_tensor(table[bx], (M, N), "float16")
    """
    trace = active_trace()
    if isinstance(ptr, Buffer):
        return _view_of(ptr, shape, dtype, strides)
    address = operators.as_expr(ptr)
    dims = resolve_shape(shape)
    steps = None if strides is None else resolve_shape(strides, what="stride")
    name = trace.unique(trace.target_name or "tensor") if trace else "tensor"
    span = trace.span if trace else None
    return Buffer(
        name, dims, resolve_dtype(dtype), "global", span, "pointer", steps, pointer=address
    )


def _view_of(source: Buffer, shape: Any, dtype: Any, strides: Any) -> Buffer:
    """Another shape over the storage of `source`."""
    trace = active_trace()
    name = trace.unique(trace.target_name or f"{source.name}_view") if trace else source.name
    steps = None if strides is None else resolve_shape(strides, what="stride")
    return Buffer(
        name, resolve_shape(shape), resolve_dtype(dtype), source.scope_name,
        trace.span if trace else None, "view", steps, source=source,
    )  # fmt: skip


def resolve_dtype(value: Any, position: int | None = None) -> DType:
    """The dtype a user means, or a diagnostic; unknown symbols give a symbolic dtype."""
    if isinstance(value, Var) and value.kind == "symbol":
        return DType(value.name, "symbol", 0)
    if isinstance(value, Unknown):
        return DType(str(value), "symbol", 0)
    if value is ptr:
        return SCALARS["int64"]
    found = as_dtype(value)
    if found is None:
        names = (*SCALARS, "half", "float", "double", "int", "long")
        text = value if isinstance(value, str) else type(value).__name__
        base, _, lanes = text.rpartition("x")
        if lanes.isdigit() and as_dtype(base) is not None:
            reject(
                "TL239",
                f"`{text}` is a vector of {lanes} lanes, which does not exist",
                span=argument_span("dtype", position),
                help=f"a vector has {', '.join(map(str, VECTOR_LANES))} lanes",
            )
        is_text, place = isinstance(value, str), argument_span("dtype", position)
        if place is None and is_text:
            place = literal_in_call(text)
        reject(
            "TL230",
            f"`{text}` is not a dtype{did_you_mean(text, names) if is_text else ''}",
            span=place,
            fixes=string_fixes(place, text, names) if is_text else (),
            help=_how_to_order(value) or "for example `T.float16` or 'int8'",
        )
    if value == "float8_e4m3" and isinstance(value, str):
        warn(
            "TL231",
            "`float8_e4m3` names no format of its own; `float8_e4m3fn` is taken",
            span=(span := argument_span("dtype", position)),
            fixes=()
            if span is None
            else (
                Fix("write 'float8_e4m3fn'", (Edit(span, '"float8_e4m3fn"'),), Applicability.SAFE),
            ),
            help="write `float8_e4m3fn` (finite, no infinities) or `float8_e4m3fnuz`",
        )
    return found


def _how_to_order(value: Any) -> str | None:
    """For what looks like a shape where the dtype belongs."""
    if isinstance(value, (tuple, list)):
        return "the shape comes first, then the dtype: `((64, 64), 'float32')`"
    if isinstance(value, (int, Expr)) and not isinstance(value, bool):
        return "several extents are one tuple: `((64, 64), 'float32')`"
    return None


def resolve_shape(shape: Any, what: str = "extent") -> tuple[Dim, ...]:
    """Extents as ints or expressions; one value means rank 1."""
    if isinstance(shape, (int, Expr)) or (
        hasattr(shape, "__index__") and getattr(shape, "shape", ()) == ()
    ):
        shape = (shape,)
    if hasattr(shape, "tolist") and getattr(shape, "ndim", None) == 1:
        shape = tuple(shape.tolist())  # a NumPy array or PyTorch tensor of extents
    if not isinstance(shape, (tuple, list)):
        _refuse_shape(what, f"a shape is a tuple of integers, got {type(shape).__name__}")
    return tuple(_dim(extent, what) for extent in shape)


def declare_scalar(name: str, dtype: DType, span: Span | None) -> Var:
    """A scalar parameter of a kernel."""
    return Var(name, dtype, span, "param")


def _dim(extent: Any, what: str) -> Dim:
    if isinstance(extent, Expr):
        if not (extent.dtype.is_integer or extent.dtype.kind == "symbol"):
            _refuse_shape(what, f"{what} `{extent}` is {extent.dtype}, not an integer")
        simple: Dim = arith.simplify(extent)
        return simple
    if isinstance(extent, bool) or not hasattr(extent, "__index__"):
        _refuse_shape(what, f"{what} {extent!r} is not an integer")
    number = int(extent)
    if number < 0:
        _refuse_shape(what, f"{what} {number} is negative")
    if number >= 1 << 63:
        _refuse_shape(what, f"{what} {number} does not fit int64")
    return number


def _refuse_shape(what: str, problem: str) -> NoReturn:
    reject(
        "TL215",
        problem,
        span=argument_span("strides" if what == "stride" else "shape"),
        help="write a tuple of positive integers, such as `(128, 64)`",
    )


def _names_dtype(value: Any) -> bool:
    if isinstance(value, (DType, PointerType)):
        return True
    if isinstance(value, Var):
        return False
    return not isinstance(value, (int, tuple, list, Expr)) and as_dtype(value) is not None


__all__ = [
    "FragmentBuffer", "LocalBuffer", "PointerType", "Ref", "SharedBuffer", "StridedTensor",
    "Tensor", "TensorFactory", "TensorType", "declare_scalar", "make_tensor",
    "ptr", "resolve_dtype", "resolve_shape",
]  # fmt: skip
