"""Results leave registers by way of shared memory where that fills whole sectors of a tensor.

Before: T.gemm(A_s, B_s, C_l)
        T.copy(C_l, C[by * 128, bx * 128])          each quad of threads has 16 bytes of a row
After:  T.gemm(A_s, B_s, C_l)
        C_l_shared = T.alloc_shared((128, 128), "float16")
        T.copy(C_l, C_l_shared)
        T.copy(C_l_shared, C[by * 128, bx * 128])   each thread has 16 bytes, a warp whole rows

Only at the end of a launch, where nobody needs what shared memory held, and the tile fits in its
place: no block takes more memory than before.
"""

from __future__ import annotations

import math
from typing import Any, Final

from tilelang.analysis.tile_effects import effects_of, unwrapped
from tilelang.dtypes import dtype as find_dtype
from tilelang.ir import attrs, build, tirx
from tilelang.ir.gpu_context import STAGE_SCOPE, is_whole
from tilelang.ir.homes import FRAGMENT, SHARED, Home, allocate_home, homes_of
from tilelang.ir.tile_op import TileRegion, called_op
from tilelang.ir.visit import collect, storage_roots, with_body
from tilelang.layout.fragment import Fragment
from tilelang.layout.layout import Layout
from tilelang.layout.lazy import np
from tilelang.layout.loops import loop_layout
from tilelang.layout.spread import Spread
from tilelang.layout.swizzle import Tile, make_swizzled_layout
from tilelang.passes.context import PassContext
from tilelang.passes.scoped import ScopedRewriter
from tilelang.passes.thread_scope import WARP_SPECIALIZED, Threads, group_of

_SECTOR: Final = 256  # bits that memory moves at least
_WIDEST: Final = 128  # bits that a thread stores at most
_BARRIERS: Final = "shared.barrier"


def stage_stores(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Stage the last copies out of registers."""
    return with_body(func, _Stage(func, ctx).any(func.body))


class _Stage(ScopedRewriter):
    def __init__(self, func: tirx.PrimFunc, ctx: PassContext) -> None:
        super().__init__(func)
        self._ctx = ctx
        self._homes = homes_of(func.body)
        self._views = storage_roots(func.body)
        self._threads = 1

    def attr(self, s: Any) -> Any:
        if str(s.attr_key) != attrs.THREAD_EXTENT:
            return super().attr(s)
        if str(s.node.thread_tag) in attrs.THREAD_TAGS:
            self._threads *= build.int_value(s.value) or 1
        inner = s.body
        if isinstance(inner, tirx.AttrStmt) and str(inner.attr_key) == attrs.THREAD_EXTENT:
            new = super().attr(s)
        else:
            super().attr(s)  # for the facts
            body = self._launch(inner)
            new = tirx.AttrStmt(s.node, s.attr_key, s.value, body, s.span)
            self._threads = 1
        return new

    def _launch(self, body: Any) -> Any:
        """The body of a launch, its last copies staged."""
        if _has_barriers(body):
            return body
        return self._end(body, sum(self._bits(s) for s in collect(body, tirx.AllocBuffer)))

    def _end(self, body: Any, room: int) -> Any:
        """What stands at the end of a launch, or of the part of it that comes last."""
        parts = _flat(body)
        last = parts[-1]
        if isinstance(last, tirx.AttrStmt) and last.attr_key == WARP_SPECIALIZED:
            outer, self._threads = self._threads, group_of(last, self._whole()).count
            inner = self._end(last.body, room)
            self._threads = outer
            new = tirx.AttrStmt(last.node, last.attr_key, last.value, inner, last.span)
            return body if inner is last.body else build.seq([*parts[:-1], new], body.span)
        uses = [n for n, s in enumerate(parts) if self._touches_shared(s)]
        if not uses:
            return body
        tail = [self._staged(s, room) for s in parts[uses[-1] + 1 :]]
        if all(s is None for s in tail):
            return body
        self._ctx.count("stores staged", sum(s is not None for s in tail))
        kept = parts[uses[-1] + 1 :]
        after = [old if new is None else new for old, new in zip(kept, tail, strict=True)]
        return build.seq([*parts[: uses[-1] + 1], *after], body.span)

    def _whole(self) -> Threads:
        return Threads((), 0, self._threads, self._threads)

    def _touches_shared(self, s: Any) -> bool:
        return any(str(b.scope()) in SHARED for b in effects_of(s, self._views).touches())

    def _bits(self, s: Any) -> int:
        """How much shared memory an allocation takes."""
        flat = s.annotations.get(attrs.FLAT)
        if flat is None or str(s.buffer.scope()) not in SHARED:
            return 0
        elements = math.prod(build.int_value(d) or 0 for d in flat.shape)
        versions = int(s.annotations.get(attrs.VERSIONS, 1))
        return elements * versions * find_dtype(str(flat.dtype)).bits

    def _staged(self, s: Any, room: int) -> Any | None:
        """A copy in two; None for any other statement, and where it is not done."""
        made = self._tried(s, room)
        copy = unwrapped(s)
        if isinstance(made, str):
            self._ctx.passed_over("copy", "through shared memory", made, copy.span)
            return None
        if made is not None:
            name = TileRegion.of(copy.value.args[0]).buffer.name
            self._ctx.note(
                "copy", f"`{name}` leaves by way of shared memory", copy.span,
                "a warp then fills whole rows of the tensor instead of parts of sectors",
            )  # fmt: skip
        return made

    def _tried(self, s: Any, room: int) -> Any | str | None:
        """A copy in two, or why not; None for any other statement."""
        copy = unwrapped(s)
        if called_op(copy) != "copy" or _says_how(copy):
            return None
        src, dst = (TileRegion.of(a) for a in list(copy.value.args)[:2])
        home = self._homes.find(src.buffer)
        if src.scope != FRAGMENT or home is None or not is_whole(src) or dst.scope != "global":
            return None
        layout = home.layout
        if isinstance(s, tirx.AttrStmt):
            layout = attrs.unheld(s.node)
        if not isinstance(layout, Fragment) or len(home.shape) != 2:
            return None
        shape, bits = home.shape, find_dtype(dst.dtype).bits
        wide = max(1, _WIDEST // bits)
        vectors, rest = divmod(math.prod(shape), wide * self._threads)
        if not _is_narrow(layout, self._threads, bits):
            return "a warp fills whole sectors of the tensor as it is"
        if not vectors or rest:
            return f"the tile is no multiple of 16 bytes for each of {self._threads} threads"
        if math.prod(shape) * bits > room:
            needed, there = math.prod(shape) * bits // 8, room // 8
            return f"the tile takes {needed} bytes, and operands leave {there}"
        if not self._is_aligned(dst, shape, wide):
            return f"rows of `{dst.buffer.name}` are not known to begin at 16 bytes"
        return self._in_two(s, copy, home, dst, loop_layout(shape, self._threads, wide))

    def _is_aligned(self, dst: TileRegion, shape: tuple[int, ...], wide: int) -> bool:
        """Whether rows of a region begin at multiples of `wide` elements and are as long."""
        sizes = [build.int_value(e) for e in dst.extents]
        outer, rows = sizes[:-2], sizes[-2:]
        if rows != list(shape) or any(n != 1 for n in outer) or list(dst.buffer.strides or []):
            return False
        analyzer = self.prover.analyzer
        for value in (dst.mins[-1], dst.buffer.shape[-1]):
            known = analyzer.modular_set(analyzer.simplify(value))
            if int(known.coeff) % wide or int(known.base) % wide:
                return False
        return shape[-1] % wide == 0

    def _in_two(self, s: Any, copy: Any, home: Home, dst: TileRegion, rows: Fragment) -> Any:
        span, bits = copy.span, find_dtype(dst.dtype).bits
        layout = make_swizzled_layout(Tile(home.shape, bits))
        if layout.map.forms is None:
            layout = Layout.row_major(home.shape)
        name = f"{home.buffer.name}_shared"
        allocate, stage = allocate_home(name, home.shape, dst.dtype, STAGE_SCOPE, layout, span)
        tile = TileRegion.of(stage.buffer).expr()
        said = dict(copy.value.attrs or {})
        first = build.evaluate(build.call("copy", [copy.value.args[0], tile], span=span), span)
        if isinstance(s, tirx.AttrStmt):
            first = tirx.AttrStmt(s.node, s.attr_key, s.value, first, span)
        second = build.call("copy", [tile, copy.value.args[1]], attrs=said, span=span)
        zero = build.const(0, "int32", span)
        out = build.evaluate(second, span)
        out = tirx.AttrStmt(attrs.Held(rows), attrs.LOOP_LAYOUT, zero, out, span)
        return build.seq([allocate, first, out], span)


def _flat(s: Any) -> list[Any]:
    return [x for part in s.seq for x in _flat(part)] if isinstance(s, tirx.SeqStmt) else [s]


def _says_how(copy: Any) -> bool:
    """Whether the author decided how threads store."""
    said = dict(copy.value.attrs or {})
    return any(said.get(key) is not None for key in ("coalesced_width", "loop_layout"))


def _has_barriers(body: Any) -> bool:
    """Whether bulk copies may be under way that only the author knows of."""
    made = [s for s in collect(body, tirx.AllocBuffer) if str(s.buffer.scope()) == _BARRIERS]
    return not all(s.annotations.get(attrs.DRAINED) for s in made)


def _is_narrow(layout: Fragment, threads: int, bits: int) -> bool:
    """Whether a warp that stores by `layout` fills no whole sectors."""
    spread = Spread.of(layout, threads)
    if spread is None:
        return False
    stored = np.unique(spread.elements[:32, 0, :])
    stored = stored[stored >= 0]
    columns = spread.shape[-1]
    begins = np.diff(stored, prepend=-2) != 1
    begins |= stored % columns == 0
    return bool(len(stored) * bits < _SECTOR * int(begins.sum()))
