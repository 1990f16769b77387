"""Buffers, regions of them, and what indexing in Python does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tilelang.dtypes import DType
from tilelang.program import indexing
from tilelang.program.expr import Expr
from tilelang_diagnostics.model import Span

Dim: TypeAlias = "int | Expr"

Scope = Literal[
    "global", "shared", "shared.dyn", "shared.barrier", "shared.cluster_barrier", "shared.tmem",
    "local", "local.var", "local.fragment", "local.reducer",
]  # fmt: skip

BufferRole = Literal["param", "output", "alloc", "view", "pointer"]
# param: argument of the kernel; output: T.empty, allocated by the runtime; alloc: storage inside
# the kernel; view: other shape or dtype over `source`; pointer: T.make_tensor over an address.


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """A named array in one memory scope. Identity is equality.

    `strides` are in elements and None for row-major contiguous. `source` is what a view aliases,
    `pointer` the address expression of a `make_tensor` buffer.
    """

    name: str
    shape: tuple[Dim, ...]
    dtype: DType
    scope_name: Scope
    span: Span | None
    role: BufferRole = "alloc"
    strides: tuple[Dim, ...] | None = None
    source: Buffer | None = None
    pointer: Expr | None = None
    nullable: bool = False
    attrs: tuple[tuple[str, Any], ...] = field(default=())

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def data(self) -> Buffer:
        """The storage itself, for `T.Tensor(shape, dtype, data)` views."""
        return self

    def scope(self) -> str:
        """The memory scope, as the public API spells it."""
        return self.scope_name

    @property
    def is_shared(self) -> bool:
        return self.scope_name in ("shared", "shared.dyn")

    @property
    def is_fragment(self) -> bool:
        return self.scope_name == "local.fragment"

    @property
    def is_empty(self) -> bool:
        """Whether it is a tensor of size zero: reads of it give 0, and nothing is written."""
        return self.is_global and any(isinstance(d, int) and d == 0 for d in self.shape)

    @property
    def is_global(self) -> bool:
        return self.scope_name == "global"

    @property
    def is_reducer(self) -> bool:
        """A write-only accumulator; with the deprecated `replication` it is a plain fragment."""
        plain = dict(self.attrs).get("replication") is not None
        return self.scope_name == "local.reducer" and not plain

    def __getitem__(self, index: Any) -> Any:
        return indexing.getitem(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        indexing.setitem(self, index, value)

    def __len__(self) -> int:
        return indexing.length(self)

    def __bool__(self) -> bool:
        indexing.refuse_truth(self)

    def __iter__(self) -> Iterator[Any]:
        indexing.refuse_iteration(self)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, eq=False)
class Range:
    """`[min, min + extent)` of one dimension; `is_point` when the user wrote a plain index."""

    min: Expr
    extent: Expr
    is_point: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """A box of a buffer, one range per dimension."""

    buffer: Buffer
    ranges: tuple[Range, ...]
    span: Span | None = None

    def __post_init__(self) -> None:
        if len(self.ranges) != self.buffer.ndim:
            raise ValueError(
                f"{self.buffer.name} has {self.buffer.ndim} dimensions, got {len(self.ranges)}"
            )

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype

    @property
    def extents(self) -> tuple[Expr, ...]:
        return tuple(r.extent for r in self.ranges)

    @property
    def shape(self) -> tuple[Dim, ...]:
        return indexing.region_shape(self)

    def __getitem__(self, index: Any) -> Any:
        return indexing.region_getitem(self, index)

    def __iter__(self) -> Iterator[Any]:
        indexing.refuse_iteration(self)
