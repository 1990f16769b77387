"""What a group of threads demands, collected while its statements are read.

One `Builder` per group: the whole block, or the warp groups of one `with T.ws(…):`. The rules of
`rules/` add to it; `infer.py` solves what they added.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from tilelang.dtypes import DType
from tilelang.layout.constraints import (
    Access,
    Constraint,
    Equals,
    Fixed,
    Memory,
    Mode,
    Origin,
    Variable,
    fragment,
    identity,
    loop,
)
from tilelang.layout.fragment import Fragment
from tilelang.layout.index_map import IndexMap
from tilelang.layout.layout import Layout
from tilelang.layout.lazy import np
from tilelang.layouts.addresses import (
    alignment,
    constant_shape,
    element_strides,
    known_shape,
    storage_elements,
    stride_along,
    unravel,
    volume,
)
from tilelang.layouts.demands import (
    EngineUse,
    GlobalUse,
    Nest,
    Product,
    SharedUse,
    UniformWrite,
    WidthLimit,
)
from tilelang.layouts.indices import (
    MAX_POINTS,
    Counter,
    Index,
    elements,
    index_map,
    region_indices,
)
from tilelang.layouts.machine import Machine
from tilelang.program import arith
from tilelang.program import expr as ex
from tilelang.program.accesses import storage
from tilelang.program.buffer import Buffer, Region
from tilelang.program.text import region_text
from tilelang_diagnostics.model import Diagnostic, Span

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Slices of one tile that an operation may name in turn, as `A[:, k * 16 : …]` in a loop over k.
MAX_SLICES = 16
# Why a tile has no layout when the values of the kernel are not known.
UNKNOWN = "its extents or its type are not known here"
VECTOR_BITS = 128  # the widest access of one thread


@dataclass(slots=True, eq=False)
class Builder:
    """The demands of one group of threads, in program order.

    `ahead`: the loop around copies for later iterations. `counters` are the sequential loops of
    known range around the statement being read, `times` how often all of them together run it.
    `plain` are the gemms that warps do, and no warp group.
    """

    machine: Machine
    threads: int
    first_thread: int = 0
    plain: frozenset[int] = frozenset()
    constraints: list[Constraint] = field(default_factory=list)
    nests: list[Nest] = field(default_factory=list)
    global_uses: list[GlobalUse] = field(default_factory=list)
    shared_uses: list[SharedUse] = field(default_factory=list)
    engine_uses: list[EngineUse] = field(default_factory=list)
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
    ahead: bool = False
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
        found = self._index_of_part(region, rank)
        if found is None:
            return None
        whole, shape, index = found
        if index is None:
            return whole
        slices = _slices(index, len(shape))
        if len(slices) > MAX_SLICES:
            return None
        own = fragment(self.unique(region_text(region)), shape, region.buffer.dtype.bits)
        self.constraints += [Equals(own, whole, origin, index=one) for one in slices]
        return own

    def fix(
        self, region: Region, layout: Fragment, origin: Origin, convertible: bool = True
    ) -> None:
        """An instruction has the matrix `region` of a fragment laid out as `layout`.

        Slices of a larger tile lie alike, their registers one after the other, so that any of
        them serves in turn.
        """
        found = self._index_of_part(region, len(layout.shape))
        if found is None or found[1] != layout.shape:
            return
        whole, shape, index = found
        if index is None:
            self.constraints.append(Fixed(whole, layout, origin, convertible))
            return
        tiled = _repeated(layout, index, whole.shape)
        if tiled is not None:
            self.constraints.append(Fixed(whole, tiled, origin, convertible))
            return
        part = self.part(region, origin, len(shape))
        if part is not None:
            self.constraints.append(Fixed(part, layout, origin, convertible))

    def _index_of_part(
        self, region: Region, rank: int | None
    ) -> tuple[Variable, tuple[int, ...], Layout | None] | None:
        """A fragment, the extents of a region of it, and the element of the fragment at each
        element of the region (and step of the loops around); None for all of it."""
        whole = self.fragment(region.buffer)
        shape = constant_shape(region.extents[-rank:] if rank else region.extents)
        if whole is None or shape is None:
            return None
        at_start = all(arith.constant_value(r.min) == 0 for r in region.ranges)
        if at_start and shape == whole.shape:
            return whole, shape, None
        offset = len(region.ranges) - len(shape)
        dims = {offset + d: d for d in range(len(shape))}
        index = index_map(region_indices(region, dims), {}, shape, self.counters, whole.shape)
        if index is None or any(a > b for a, b in zip(index.out_shape, whole.shape, strict=True)):
            return None  # not known, or outside, which is reported elsewhere
        return whole, shape, Layout(index.shape, index.map, out_shape=whole.shape)

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

    def narrow(self) -> Iterator[tuple[Span, str]]:
        """Statements whose accesses of a tensor are narrower than vectors come, and why."""
        for use in self.global_uses:
            widest = max(1, VECTOR_BITS // use.buffer.dtype.bits)
            if use.width is not None and use.width < widest and use.origin.span is not None:
                no = "" if use.because.endswith("no multiple") else ", no multiple"
                yield use.origin.span, f"`{use.buffer.name}`: {use.because}{no} of {widest}"

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
        use = SharedUse(storage(buffer), origin, mode, nest, in_storage, times=self.times * inside)
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
        own: dict[int, ex.Var] = {dim: var for var, dim in nest.dims.items()}
        strides = tuple(
            stride_along(indices, pitches, d, own.get(d)) for d in range(len(nest.extents))
        )
        inside = self.counters[nest.outer :]
        inner = tuple(stride_along(indices, pitches, -1, c.var) for c in inside)
        vector = max(1, VECTOR_BITS // buffer.dtype.bits)
        aligned = alignment(buffer, indices, pitches, nest, strides)
        widest = None if aligned is None else min(vector, aligned[0])
        why = "" if aligned is None else aligned[1]
        self.global_uses.append(GlobalUse(nest, buffer, strides, inner, widest, origin, why))
        if limit is not None:
            widest = min(limit, vector if widest is None else widest)
        self.constraints.append(Memory(nest.variable, strides, buffer.dtype.bits, origin, widest))

    def _tie_view(self, view: Buffer, var: Variable) -> None:
        """A view of a fragment has the elements of its source, counted in row-major order."""
        assert view.source is not None
        source = self.fragment(view.source)
        origin = Origin(f"the view `{view.name}`", view.span)
        same = view.dtype.bits == view.source.dtype.bits and view.strides is None
        if source is None or not same or volume(var.shape) != volume(source.shape):
            self.unknown[view] = "it shows the registers of another fragment as another type"
            self.variables.pop(view, None)
            return
        flat = Layout.row_major(var.shape).offsets()
        index = Layout.from_table(unravel(flat, source.shape))
        self.constraints.append(Equals(var, source, origin, index=index))


def _slices(index: Layout, rank: int) -> list[Layout]:
    """One index map per value of the counters, the dimensions after the first `rank`."""
    if len(index.shape) == rank:
        return [index]
    table = index.map.table.reshape(index.map.outputs, *index.shape[:rank], -1)
    return [Layout.from_table(table[..., k]) for k in range(table.shape[-1])]


def _repeated(part: Fragment, index: Layout, shape: tuple[int, ...]) -> Fragment | None:
    """The fragment of a whole tile of slices laid out as `part`; None when the slices that `index`
    names do not start at multiples of their extents."""
    tile = (*(1 for _ in shape[: len(shape) - len(part.shape)]), *part.shape)
    outputs = len(shape)
    starts = index.map.table.reshape(outputs, part.size, -1)[:, 0]
    if any(whole % n for whole, n in zip(shape, tile, strict=True)):
        return None
    if np.any(starts % np.array(tile)[:, None]):
        return None
    leading = len(shape) - len(part.shape)
    lifted = IndexMap.trace((*tile, part.replicas), lambda *x: part.map(*x[leading:]))
    counts = tuple(whole // n for whole, n in zip(shape, tile, strict=True))
    return Fragment.of_map(lifted).repeat(counts)


def _points(extents: tuple[int, ...], shape: tuple[int, ...]) -> int:
    return volume(extents) * volume(shape)
