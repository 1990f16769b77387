"""What a group of threads demands, collected while its statements are read.

One `Builder` per group: the whole block, or the warp groups of one `with T.ws(…):`. The rules of
`rules/` add to it; `infer.py` solves what they added.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from tilelang.dtypes import DType
from tilelang.layout.banks import Pattern
from tilelang.layout.constraints import (
    Access,
    Constraint,
    Equals,
    Memory,
    Mode,
    Origin,
    Variable,
    fragment,
    identity,
    loop,
)
from tilelang.layout.gemm import GemmWarpPolicy
from tilelang.layout.layout import Layout
from tilelang.layout.lazy import np
from tilelang.layouts.indices import (
    MAX_POINTS,
    Counter,
    Index,
    element_strides,
    elements,
    index_map,
    region_indices,
    step_of,
)
from tilelang.layouts.machine import Machine
from tilelang.program import arith
from tilelang.program import expr as ex
from tilelang.program.accesses import storage
from tilelang.program.buffer import Buffer, Region
from tilelang.program.stmt import TileOp
from tilelang.program.text import region_text
from tilelang_diagnostics.model import Diagnostic, Span

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Slices of one tile that an operation may name in turn, as `A[:, k * 16 : …]` in a loop over k.
MAX_SLICES = 16
# Why a tile has no layout when the values of the kernel are not known.
UNKNOWN = "its extents or its type are not known here"
VECTOR_BITS = 128  # the widest access of one thread


@dataclass(frozen=True, slots=True, eq=False)
class Nest:
    """A loop nest whose iterations are spread over threads: a T.Parallel, or a tile operation that
    goes element by element."""

    variable: Variable
    dims: Mapping[ex.Var, int]
    kind: Literal["parallel", "operation"]
    text: str
    span: Span | None
    outer: int = 0  # how many sequential loops stand around it

    @property
    def extents(self) -> tuple[int, ...]:
        return self.variable.shape


@dataclass(frozen=True, slots=True, eq=False)
class GlobalUse:
    """Iterations of `nest` touch a tensor, `strides` elements apart along each of its dims.

    `inner` are the strides of the sequential loops inside, `width` the widest aligned vector.
    """

    nest: Nest
    buffer: Buffer
    strides: tuple[int | None, ...]
    inner: tuple[int | None, ...]
    width: int | None
    origin: Origin


@dataclass(frozen=True, slots=True, eq=False)
class SharedUse:
    """A use of a shared tile: by the iterations of `nest` (`elements[dim, *extents]`), or by the
    lanes of a warp as the `patterns` say (`count` times each); all of it `times` times."""

    buffer: Buffer
    origin: Origin
    mode: Mode
    nest: Nest | None = None
    elements: NDArray[np.int64] | None = None
    patterns: tuple[Pattern, ...] = ()
    count: int = 1
    what: str = ""
    times: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class UniformWrite:
    """All of `threads` write one element of a fragment: its owners must be among them."""

    var: Variable
    element: tuple[int, ...]
    threads: NDArray[np.int64]
    origin: Origin


@dataclass(frozen=True, slots=True, eq=False)
class WidthLimit:
    """`coalesced_width` of a loop or copy, and the widest its accesses allow."""

    given: int
    widest: int
    because: str
    origin: Origin


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """One gemm of known sizes, `c[m, n] += a[m, k] @ b[k, n]`."""

    op: TileOp
    origin: Origin
    a: Region
    b: Region
    c: Region
    m: int
    n: int
    k: int

    @property
    def transpose_a(self) -> bool:
        return bool(self.op.attr("transpose_A"))

    @property
    def transpose_b(self) -> bool:
        return bool(self.op.attr("transpose_B"))

    @property
    def policy(self) -> GemmWarpPolicy:
        return GemmWarpPolicy(int(self.op.attr("policy") or 0))

    @property
    def dtype(self) -> DType:
        return self.a.buffer.dtype


@dataclass(slots=True, eq=False)
class Builder:
    """The demands of one group of threads, in program order.

    `counters` are the sequential loops of known range around the statement being read, `times`
    how often all of them together run it.
    """

    machine: Machine
    threads: int
    first_thread: int = 0
    constraints: list[Constraint] = field(default_factory=list)
    nests: list[Nest] = field(default_factory=list)
    global_uses: list[GlobalUse] = field(default_factory=list)
    shared_uses: list[SharedUse] = field(default_factory=list)
    uniform_writes: list[UniformWrite] = field(default_factory=list)
    widths: list[WidthLimit] = field(default_factory=list)
    fixed_shared: dict[Buffer, tuple[Layout, Origin]] = field(default_factory=dict)
    products: list[Product] = field(default_factory=list)
    filled: set[Buffer] = field(default_factory=set)
    found: list[Diagnostic] = field(default_factory=list)
    unknown: dict[Buffer, str] = field(default_factory=dict)
    variables: dict[Buffer, Variable] = field(default_factory=dict)
    counters: tuple[Counter, ...] = ()
    times: int = 1
    _names: set[str] = field(default_factory=set)

    # -- variables -------------------------------------------------------------------------

    def fragment(self, buffer: Buffer) -> Variable | None:
        """The variable of a fragment; None for other memory, and where something is not known."""
        if not buffer.is_fragment or buffer in self.unknown:
            return None
        known = self.variables.get(buffer)
        if known is None:
            shape = known_shape(buffer)
            if shape is None:
                self.unknown[buffer] = UNKNOWN
                return None
            known = fragment(self.unique(buffer.name), shape, buffer.dtype.bits)
            self.variables[buffer] = known
            if buffer.source is not None:
                self._tie_view(buffer, known)
        return known

    def part(self, region: Region, origin: Origin, rank: int | None = None) -> Variable | None:
        """The part of a fragment that an operation works on, its last `rank` dimensions; a
        variable of its own where that is not the whole buffer."""
        whole = self.fragment(region.buffer)
        shape = constant_shape(region.extents[-rank:] if rank else region.extents)
        if whole is None or shape is None:
            return None
        offset = len(region.ranges) - len(shape)
        at_start = all(arith.constant_value(r.min) == 0 for r in region.ranges)
        if at_start and shape == whole.shape:
            return whole
        dims = {offset + d: d for d in range(len(shape))}
        index = index_map(region_indices(region, dims), {}, shape, self.counters, whole.shape)
        if index is None:
            return None
        name = self.unique(region_text(region))
        own = fragment(name, shape, region.buffer.dtype.bits)
        slices = _slices(index, len(shape))
        if len(slices) > MAX_SLICES:
            return None
        self.constraints += [Equals(own, whole, origin, index=one) for one in slices]
        return own

    def nest(
        self,
        text: str,
        extents: Sequence[int],
        origin: Origin,
        kind: Literal["parallel", "operation"] = "operation",
        dims: Mapping[ex.Var, int] | None = None,
    ) -> Nest:
        """A new loop nest. `text` says what it is; its variable is called so with its line."""
        line = f" at line {origin.span.line}" if origin.span is not None else ""
        variable = loop(self.unique(f"{text}{line}"), tuple(extents) or (1,))
        made = Nest(variable, dims or {}, kind, text, origin.span, len(self.counters))
        self.nests.append(made)
        return made

    def unique(self, name: str) -> str:
        """`name`, or `name #2` … when there is one."""
        candidate, count = name, 1
        while candidate in self._names:
            count += 1
            candidate = f"{name} #{count}"
        self._names.add(candidate)
        return candidate

    def hold(self, nest: Nest, held: Variable, mode: Mode, origin: Origin) -> None:
        """Iteration `x` of `nest` touches element `x` of a tile of registers."""
        self.constraints.append(Access(nest.variable, held, identity(held.shape), mode, origin))

    def limit_width(self, nest: Nest, given: int, dtype: DType, origin: Origin) -> None:
        """Remember a `coalesced_width`, which the accesses of `nest` may not allow."""
        if not dtype.bits:
            return
        widest = max(1, VECTOR_BITS // dtype.bits)
        because = f"{widest} {dtype} are the {VECTOR_BITS // 8} bytes a thread moves at once"
        for use in self.global_uses:
            if use.nest is not nest:
                continue
            if use.width is not None and use.width < widest:
                widest = use.width
                because = f"`{use.buffer.name}` is addressed in steps of {widest}"
            for extent, stride in zip(nest.extents, use.strides, strict=True):
                run = extent & -extent
                if stride == 1 and run < widest:
                    widest = run
                    because = f"a row of {extent} elements of `{use.buffer.name}` allows no more"
        self.widths.append(WidthLimit(given, widest, because, origin))

    # -- accesses --------------------------------------------------------------------------

    def touch(
        self,
        nest: Nest,
        buffer: Buffer,
        indices: Sequence[Index],
        mode: Mode,
        origin: Origin,
        limit: int | None = None,
    ) -> None:
        """Every iteration of `nest` touches `buffer[indices]`."""
        if buffer.is_fragment:
            self._touch_fragment(nest, buffer, indices, mode, origin)
        elif buffer.is_shared:
            self.touch_shared(nest, buffer, indices, mode, origin)
        elif buffer.is_global:
            self._touch_global(nest, buffer, indices, mode, origin, limit)

    def touch_shared(
        self, nest: Nest, buffer: Buffer, indices: Sequence[Index], mode: Mode, origin: Origin
    ) -> None:
        """The same for a shared tile, whose layout is chosen once the threads are known."""
        if known_shape(buffer) is not None:
            places = elements(indices, nest.dims, nest.extents)
            if places is not None:
                self.touch_shared_at(nest, buffer, places, mode, origin)

    def touch_shared_at(
        self, nest: Nest, buffer: Buffer, places: NDArray[np.int64], mode: Mode, origin: Origin
    ) -> None:
        """Iteration `x` of `nest` touches the element `places[:, *x]`."""
        in_storage = storage_elements(buffer, places)
        if in_storage is None:
            why = f"`{buffer.name}` shows it as {buffer.dtype}"
            self.unknown.setdefault(storage(buffer), why)
            return
        inside = math.prod(len(c.values) for c in self.counters[nest.outer :])
        use = SharedUse(
            storage(buffer), origin, mode, nest, in_storage, times=self.times * inside
        )
        self.shared_uses.append(use)

    def _touch_fragment(
        self, nest: Nest, buffer: Buffer, indices: Sequence[Index], mode: Mode, origin: Origin
    ) -> None:
        tile = self.fragment(buffer)
        if tile is None:
            return
        index = index_map(indices, nest.dims, nest.extents, self.counters, tile.shape)
        if index is None and _points(nest.extents, tile.shape) > MAX_POINTS:
            return
        self.constraints.append(Access(nest.variable, tile, index, mode, origin))

    def _touch_global(
        self,
        nest: Nest,
        buffer: Buffer,
        indices: Sequence[Index],
        mode: Mode,
        origin: Origin,
        limit: int | None,
    ) -> None:
        if not buffer.dtype.bits:
            return
        pitches = element_strides(buffer)
        loop_vars: dict[int, ex.Var] = {dim: var for var, dim in nest.dims.items()}
        strides = tuple(
            _stride(indices, pitches, dim, loop_vars.get(dim)) for dim in range(len(nest.extents))
        )
        inside = self.counters[nest.outer :]
        inner = tuple(_stride(indices, pitches, -1, c.var) for c in inside)
        vector = max(1, VECTOR_BITS // buffer.dtype.bits)
        aligned = aligned_width(buffer, indices, pitches, nest, strides)
        widest = None if aligned is None else min(vector, aligned)
        self.global_uses.append(GlobalUse(nest, buffer, strides, inner, widest, origin))
        if limit is not None:
            widest = min(limit, vector if widest is None else widest)
        self.constraints.append(
            Memory(nest.variable, strides, buffer.dtype.bits, origin, widest)
        )

    def _tie_view(self, view: Buffer, var: Variable) -> None:
        """A view of a fragment has the elements of its source, counted in row-major order."""
        assert view.source is not None
        source = self.fragment(view.source)
        origin = Origin(f"the view `{view.name}`", view.span)
        same = view.dtype.bits == view.source.dtype.bits and view.strides is None
        if source is None or not same or _size(var.shape) != _size(source.shape):
            self.unknown[view] = "it shows the registers of another fragment as another type"
            self.variables.pop(view, None)
            return
        flat = Layout.row_major(var.shape).offsets()
        index = Layout.from_table(_unravel(flat, source.shape))
        self.constraints.append(Equals(var, source, origin, index=index))


def constant_shape(dims: Sequence[object]) -> tuple[int, ...] | None:
    """Extents as ints, when all of them are known."""
    found = tuple(arith.constant_value(d) for d in dims)
    known = tuple(n for n in found if n is not None and n > 0)
    return known if len(known) == len(found) and _size(known) <= MAX_POINTS else None


def known_shape(buffer: Buffer) -> tuple[int, ...] | None:
    """The extents of a tile whose element type is known too."""
    return constant_shape(buffer.shape) if buffer.dtype.bits else None


def storage_elements(buffer: Buffer, places: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Elements of a view as elements of the buffer it shows; None when they are of other widths.

    Elements outside are brought inside: guards keep lanes that would touch them idle."""
    shape = known_shape(buffer)
    assert shape is not None
    limits = np.array(shape).reshape(-1, *[1] * (places.ndim - 1))
    inside = np.clip(places, 0, limits - 1)
    while buffer.source is not None:
        source = buffer.source
        inner = known_shape(source)
        if inner is None or source.dtype.bits != buffer.dtype.bits:
            return None
        pitches = element_strides(buffer)
        if any(p is None for p in pitches):
            return None
        flat = sum(row * p for row, p in zip(inside, pitches, strict=True) if p is not None)
        inside = _unravel(np.minimum(flat, _size(inner) - 1), inner)
        buffer = source
    return inside


def aligned_width(
    buffer: Buffer,
    indices: Sequence[Index],
    pitches: Sequence[int | None],
    nest: Nest,
    strides: Sequence[int | None],
) -> int | None:
    """The widest vector of a global access that starts at a multiple of its width and does not
    straddle the edge of the tensor; None when sizes decide that are not known here.

    Every step of the address other than along the contiguous dimension must be a multiple.
    """
    if any(p is None for p in pitches) or buffer.role == "pointer":
        return None
    unit = next((d for d, p in enumerate(pitches) if p == 1), None)
    if unit is None:
        return None
    steps = [s for s in strides if s not in (None, 0, 1)]
    for dim, (index, pitch) in enumerate(zip(indices, pitches, strict=True)):
        assert pitch is not None
        if dim == unit:
            for factors, coefficient in arith.normal_form(index.base).items():
                alone = len(factors) == 1 and any(
                    factors[0] == arith.structure(v) for v in nest.dims
                )
                if not alone:
                    steps.append(coefficient)
            extent = arith.constant_value(buffer.shape[dim])
            if extent is None:
                return None
            steps.append(extent)
        elif buffer.shape[dim] != 1:
            steps.append(pitch)
    width = 128
    for step in steps:
        assert step is not None
        while step % width:
            width //= 2
    return width


def _stride(
    indices: Sequence[Index], pitches: Sequence[int | None], dim: int, var: ex.Var | None
) -> int | None:
    total = 0
    for index, pitch in zip(indices, pitches, strict=True):
        step = step_of(index, dim, var)
        if step == 0:
            continue
        if step is None or pitch is None:
            return None
        total += step * pitch
    return total


def _slices(index: Layout, rank: int) -> list[Layout]:
    """One index map per value of the counters, the dimensions after the first `rank`."""
    if len(index.shape) == rank:
        return [index]
    table = index.map.table.reshape(index.map.outputs, *index.shape[:rank], -1)
    return [Layout.from_table(table[..., k]) for k in range(table.shape[-1])]


def _unravel(flat: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.int64]:
    return np.stack(np.unravel_index(flat, shape))


def _size(shape: Sequence[int]) -> int:
    total = 1
    for extent in shape:
        total *= extent
    return total


def _points(extents: tuple[int, ...], shape: tuple[int, ...]) -> int:
    return _size(extents) * _size(shape)
