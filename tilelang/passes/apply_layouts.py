"""The inferred layouts are written where they apply: on allocations, loops and tile operations.

Before: C_l = T.alloc_fragment((64, 64), "float32"); for i, j in T.Parallel(64, 64): …
After:  the allocation says which thread holds an element and in which of its registers, and names
        the one-dimensional buffer that will be those registers; the loop says which thread runs
        which iteration.

Layouts decide speed only: what lies elsewhere than where it is needed is moved there later. So a
tile that inference left open, or a layout without a closed form, gets an ordinary one here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from tilelang.dtypes import dtype as find_dtype
from tilelang.ir import attrs, build, tirx
from tilelang.ir.device_ops import SHARED_ALIGNMENT
from tilelang.ir.homes import FRAGMENT, PRIVATE, SHARED, Home, flat_buffer, said_of, shape_of
from tilelang.ir.nests import nest_extents, opens_nest
from tilelang.ir.spans import from_tir
from tilelang.ir.tile_op import TileRegion, called_op
from tilelang.ir.visit import Rewriter, collect, storage_roots, with_body
from tilelang.layout.fragment import Fragment
from tilelang.layout.layout import Layout
from tilelang.layout.loops import ordinary
from tilelang.layout.slots import seen_as
from tilelang.layout.spread import Spread
from tilelang.layouts.layout_map import Entry, LaunchLayouts
from tilelang.nested import nested
from tilelang.ops import OP_BY_NAME
from tilelang.ops.gemm import BY_GROUPS, Gemm
from tilelang.passes.context import PassContext
from tilelang.passes.thread_scope import ThreadScope
from tilelang_diagnostics.model import Span

SWIZZLE_ALIGNMENT: Final = 1024  # bytes after which the widest swizzle repeats


def apply_layouts(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Annotate `func` with the layouts of `ctx.layouts`."""
    named = with_body(func, _NameInstructions(ctx).any(func.body))
    return with_body(named, _Apply(named, ctx).any(named.body))


class _NameInstructions(Rewriter):
    """A gemm that inference gave to warp groups says so; of others it is told why."""

    def __init__(self, ctx: PassContext) -> None:
        products = [] if ctx.layouts is None else [
            p for launch in ctx.layouts.launches for p in launch.products
        ]  # fmt: skip
        others = {p.op.span for p in products if p.groups is None or p.is_async}
        if ctx.capabilities.mma == "wgmma":
            for p in products:
                if p.why_not:
                    ctx.choices.passed_over("gemm", "WGMMA", p.why_not, p.op.span)
        self._spans = {p.op.span for p in products} - others

    def evaluate(self, s: Any) -> Any:
        if called_op(s) != Gemm.NAME or from_tir(s.span) not in self._spans:
            return s
        named = replace(Gemm.from_call(s.value), instruction=BY_GROUPS)
        return build.evaluate(named.to_call(s.value.span), s.span)


class _Apply(ThreadScope):
    def __init__(self, func: tirx.PrimFunc, ctx: PassContext) -> None:
        super().__init__(func)
        found = ctx.layouts
        self._launches = iter(() if found is None else found.launches)
        self._ctx = ctx
        self._roots = storage_roots(func.body)
        self._in_place = {self._roots.get(b, b) for b in read_in_place(func.body)}
        self._made: dict[Any, Home] = {}
        self._inside = False
        self._buffers: dict[tuple[str, Span | None], list[Entry]] = {}
        self._loops: dict[Span | None, list[Entry]] = {}

    def attr(self, s: Any) -> Any:
        if s.attr_key != attrs.THREAD_EXTENT or self._inside:
            return super().attr(s)
        self._open(next(self._launches, None))
        self._inside = True
        new = super().attr(s)
        self._inside = False
        return new

    def _open(self, launch: LaunchLayouts | None) -> None:
        self._buffers, self._loops = {}, {}
        if launch is None:
            return
        for entry in launch.buffers:
            self._buffers.setdefault((entry.name, entry.span), []).append(entry)
        for entry in launch.loops:
            self._loops.setdefault(entry.span, []).append(entry)

    # --- tiles ---

    def alloc(self, s: Any) -> Any:
        buffer, scope = s.buffer, str(s.buffer.scope())
        shape = tuple(n for d in buffer.shape if (n := build.int_value(d)) is not None)
        if len(shape) != len(buffer.shape) or not self._inside:
            return s
        layout: Fragment | Layout | None = None
        if scope == FRAGMENT:
            layout = self._fragment(buffer, shape)
        elif scope in SHARED:
            layout = self._shared(buffer, shape)
        elif scope not in PRIVATE or (len(shape) == 1 and scope == "local"):
            return s
        home = Home(buffer, layout, flat_buffer(buffer, layout, s.span))
        self._made[buffer] = home
        said = {**dict(s.annotations), **said_of(home)}
        if buffer in self._in_place:
            said[SHARED_ALIGNMENT] = SWIZZLE_ALIGNMENT
        return tirx.AllocBuffer(buffer, said, s.span)

    def decl(self, s: Any) -> Any:
        """A fragment seen as elements of another width gets a home of its own."""
        root: Any = self._roots.get(s.buffer)
        home = self._made.get(root)
        if root is None or home is None or not isinstance(home.layout, Fragment):
            return super().decl(s)
        if str(root.dtype) == str(s.buffer.dtype):
            return super().decl(s)
        bits = [find_dtype(str(b.dtype)).bits for b in (root, s.buffer)]
        layout = seen_as(home.layout, bits[0], bits[1], shape_of(s.buffer))
        if layout is None:
            self._ctx.report(
                "TL304", f"`{s.buffer.name}` shows registers of `{root.name}` that lie apart",
                s.span, help="copy through shared memory to see a fragment as another type",
            )  # fmt: skip
            return super().decl(s)
        flat = flat_buffer(s.buffer, layout, s.span)
        said = {**said_of(Home(s.buffer, layout, flat)), attrs.VIEW: True}
        return build.seq(
            [
                build.declare(flat, build.data_of(home.flat, s.span), s.span),
                tirx.AllocBuffer(s.buffer, said, s.span),
            ],
            s.span,
        )

    def _fragment(self, buffer: Any, shape: tuple[int, ...]) -> Fragment:
        entry = self._entry(buffer)
        threads = self.threads.count
        if entry is not None and isinstance(entry.layout, Fragment):
            threads = entry.threads or threads
            if entry.layout.shape == shape and Spread.of(entry.layout, threads) is not None:
                self._told(entry)
                return entry.layout
        return ordinary(shape, threads, find_dtype(str(buffer.dtype)).bits)

    def _shared(self, buffer: Any, shape: tuple[int, ...]) -> Layout:
        entry = self._entry(buffer)
        found = None if entry is None else entry.layout
        if isinstance(found, Layout) and found.shape == shape and found.map.forms is not None:
            assert entry is not None
            self._told(entry)
            return found
        return Layout.row_major(shape)

    def _told(self, entry: Entry) -> None:
        """What was chosen, for who reads it: a layout takes a while to be put into words."""
        choices = self._ctx.choices
        if choices.thorough:
            with nested("explain"):
                text = f"`{entry.name}`: {entry.short}"
                choices.chose("layout", text, entry.span, entry.because)

    def _entry(self, buffer: Any) -> Entry | None:
        known = self._buffers.get((str(buffer.name), from_tir(buffer.span)), [])
        return known.pop(0) if known else None

    # --- loops ---

    def for_(self, s: Any) -> Any:
        new = super().for_(s)
        if not opens_nest(s):
            return new
        layout = self._loop(s.span, nest_extents(s))
        if layout is None:
            return new
        said = {**dict(new.annotations), attrs.LOOP_LAYOUT: attrs.Held(layout)}
        return build.loop(
            new.loop_var, new.extent, new.body, kind="PARALLEL", low=new.min,
            annotations=said, span=new.span,
        )  # fmt: skip

    def evaluate(self, s: Any) -> Any:
        if called_op(s) == "annotate" and s.value.args[0].value == "layout":
            return build.nothing(s.span)  # allocations say it from here on
        new = super().evaluate(s)
        if (called_op(s) or "") not in OP_BY_NAME:
            return new
        layout = self._loop(s.span, None)
        if layout is None:
            return new
        zero = build.const(0, "int32", s.span)
        return tirx.AttrStmt(attrs.Held(layout), attrs.LOOP_LAYOUT, zero, new, s.span)

    def _loop(self, span: Any, shape: tuple[int, ...] | None) -> Fragment | None:
        """The next layout known for a loop at `span`, if it fits and has a closed form."""
        for entry in self._loops.get(from_tir(span), ()):
            found = entry.layout
            if isinstance(found, Fragment) and shape in (None, found.shape):
                self._loops[from_tir(span)].remove(entry)
                return found if Spread.of(found, self.threads.count) is not None else None
        return None


def read_in_place(body: Any) -> list[Any]:
    """The buffers that the copy engine or the tensor cores touch themselves: a swizzle is one of
    addresses, and its pattern starts at a multiple of its size."""
    found: list[Any] = []
    for s in collect(body, tirx.Evaluate):
        name = called_op(s)
        by_groups = name == Gemm.NAME and Gemm.from_call(s.value).instruction is not None
        if name == "tma_copy" or by_groups:
            found += [TileRegion.of(a).buffer for a in list(s.value.args)[:2]]
    return found
