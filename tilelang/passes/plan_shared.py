"""Buffers of dynamic shared memory get their places; what is not used at once shares one.

Before: S = T.alloc_shared((4096,), "float16"); …; R = T.alloc_shared((1024,), "float32")
After:  S at byte 0; R at byte 0, if S is used no more once R is

Places are shared across loops and not within them, where threads would have to wait in every
iteration, unless nothing else fits. What fits in no way is TL406, with the deepest pipeline that
would.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tilelang.analysis.lifetimes import Lifetime, elements, shared_lifetimes
from tilelang.dtypes import dtype as find_dtype
from tilelang.ir import attrs, build, tirx
from tilelang.ir.device_ops import SHARED_ALIGNMENT, SHARED_OFFSET
from tilelang.ir.spans import from_tir
from tilelang.ir.visit import Rewriter, collect, with_body
from tilelang.options import PassConfigKey
from tilelang.passes.context import PassContext
from tilelang_diagnostics.model import Label

DYNAMIC: Final = "shared.dyn"
# Metal declares one array of shared memory, whatever scope its author gave a tile.
_ONE_ARRAY: Final = ("metal",)
# What a block may have without asking: CUDA programming guide, static shared memory.
STATIC_LIMIT: Final = 48 * 1024
_VECTOR_ALIGN, _ROW_ALIGN = 16, 128  # the widest access; a row of banks, for swizzles
ARENA_ALIGN: Final = 1024  # the widest swizzle repeats after as much
_NAMED: Final = 3  # how many of the biggest buffers an error names


def plan_shared(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Annotate each allocation of dynamic shared memory with its offset."""
    return with_body(func, _Launches(ctx).any(func.body))


@dataclass(frozen=True, slots=True)
class Tile:
    """A buffer to place: `stages` versions of `stride` bytes."""

    life: Lifetime
    stages: int
    stride: int
    align: int

    @property
    def name(self) -> str:
        return str(self.life.buffer.name)

    def bytes(self, deepest: int | None = None) -> int:
        """Its size with at most `deepest` versions."""
        return self.stride * (self.stages if deepest is None else min(self.stages, deepest))


@dataclass(frozen=True, slots=True)
class Placement:
    """Offsets by buffer, and how many bytes all of them need."""

    offsets: Mapping[Any, int]
    total: int


def place(
    tiles: Sequence[Tile], *, share: bool, in_loops: bool = False, deepest: int | None = None
) -> Placement:
    """The biggest tiles first, each at the lowest place that is free while it is used."""
    offsets: dict[Any, int] = {}
    placed: list[tuple[Tile, int, int]] = []
    for tile in sorted(tiles, key=lambda t: -t.bytes(deepest)):
        size = tile.bytes(deepest)
        taken = sorted(
            (start, end) for other, start, end in placed
            if not share or tile.life.meets(other.life, in_loops)
        )  # fmt: skip
        at = 0
        for start, end in taken:
            if start - at >= size:
                break
            at = max(at, -(-end // tile.align) * tile.align)
        placed.append((tile, at, at + size))
        offsets[tile.life.buffer] = at
    return Placement(offsets, max((end for _, _, end in placed), default=0))


class _Launches(Rewriter):
    def __init__(self, ctx: PassContext) -> None:
        self._ctx = ctx
        self._offsets: Mapping[Any, int] | None = None
        self._tiles: dict[Any, Tile] = {}
        one = ctx.target.split(":")[0] in _ONE_ARRAY
        self._planned_scopes = (DYNAMIC, "shared") if one else (DYNAMIC,)

    def attr(self, s: Any) -> Any:
        if str(s.attr_key) != attrs.THREAD_EXTENT or self._offsets is not None:
            return super().attr(s)
        tiles = [_tile(life) for life in shared_lifetimes(s, *self._planned_scopes)]
        self._tiles = {t.life.buffer: t for t in tiles}
        self._offsets = self._planned(s, tiles).offsets
        new = super().attr(s)
        self._offsets = None
        return new

    def alloc(self, s: Any) -> Any:
        offset = None if self._offsets is None else self._offsets.get(s.buffer)
        if offset is None:
            unused = self._offsets is not None and str(s.buffer.scope()) in self._planned_scopes
            return build.nothing(s.span) if unused else s
        align = self._tiles[s.buffer].align
        said = {**dict(s.annotations), SHARED_OFFSET: offset, SHARED_ALIGNMENT: align}
        return tirx.AllocBuffer(s.buffer, said, s.span)

    def _planned(self, launch: Any, tiles: list[Tile]) -> Placement:
        static = _static_bytes(launch, self._planned_scopes)
        if tiles:
            # The dynamic arena starts at the next multiple of its alignment.
            static = -(-static // ARENA_ALIGN) * ARENA_ALIGN
        limit = self._ctx.capabilities.shared_bytes
        share = not self._option(PassConfigKey.TL_DISABLE_SHARED_MEMORY_REUSE)
        eager = self._option(PassConfigKey.TL_ENABLE_AGGRESSIVE_SHARED_MEMORY_MERGE)
        found = place(tiles, share=share, in_loops=eager)
        if limit is not None and static + found.total > limit and share and not eager:
            found = place(tiles, share=True, in_loops=True)
        self._ctx.count("shared bytes", static + found.total)
        self._tell(tiles, found)
        if limit is not None and static + found.total > limit:
            self._too_much(tiles, static, found.total, limit, share)
        elif static > STATIC_LIMIT:
            self._too_much_static(launch, static)
        return found

    def _tell(self, tiles: Sequence[Tile], found: Placement) -> None:
        """Which tiles lie in the same memory, for who wants to know."""
        places = [(t, start) for t in tiles
                  if (start := found.offsets.get(t.life.buffer)) is not None]  # fmt: skip
        merged = 0
        for n, (tile, start) in enumerate(places):
            shared = [
                f"`{other.name}`" for other, at in places[:n]
                if start < at + other.bytes() and at < start + tile.bytes()
            ]  # fmt: skip
            if shared:
                merged += 1
                where = f"lies where {' and '.join(shared)} was"
                self._ctx.note(
                    "memory", f"`{tile.name}` ({_size(tile)}) {where}",
                    tile.life.buffer.span, "they are never needed at the same time",
                )  # fmt: skip
        apart = place(tiles, share=False).total
        if found.total < apart:
            many = f"{merged} buffer{'' if merged == 1 else 's'}"
            self._ctx.note(
                "memory", f"{many} merged with others: {apart} bytes → {found.total} bytes of "
                "shared memory a block",
            )  # fmt: skip

    def _option(self, key: PassConfigKey) -> bool:
        return bool(self._ctx.options[key])

    def _too_much(
        self, tiles: Sequence[Tile], static: int, total: int, limit: int, share: bool
    ) -> None:
        biggest = sorted(tiles, key=lambda t: -t.bytes())[:_NAMED]
        named = ", ".join(f"`{t.name}` {_size(t)}" for t in biggest)
        depth = max((t.stages for t in tiles), default=1)
        fitting = None
        for n in range(depth - 1, 0, -1):
            smaller = place(tiles, share=share, in_loops=True, deepest=n).total
            if static + smaller <= limit:
                fitting = (n, static + smaller)
                break
        if fitting is not None:
            help = f"num_stages={fitting[0]} fits, with {fitting[1]} bytes"
        elif depth > 1:
            help = "not even one stage fits: use smaller tiles"
        else:
            help = "use smaller tiles"
        places = [(from_tir(t.life.buffer.span), t) for t in biggest]
        labels = tuple(Label(span, _size(t)) for span, t in places[1:] if span is not None)
        self._ctx.report(
            "TL406",
            f"a block needs {static + total} bytes of shared memory, {self._ctx.target} has "
            f"{limit}: {named}",
            biggest[0].life.buffer.span if biggest else None,
            label=_size(biggest[0]) if biggest else "",
            labels=labels,
            help=help,
        )

    def _too_much_static(self, launch: Any, static: int) -> None:
        buffers = [s.buffer for s in collect(launch, tirx.AllocBuffer)
                   if str(s.buffer.scope()) == "shared"]  # fmt: skip
        worst = max(buffers, key=_bytes)
        self._ctx.report(
            "TL406",
            f"a block has {static} bytes of shared memory of scope 'shared', which is limited to "
            f"{STATIC_LIMIT}: `{worst.name}` {_bytes(worst)} bytes",
            worst.span,
            help="leave the scope of `T.alloc_shared` out: dynamic shared memory has no such limit",
        )


def _tile(life: Lifetime) -> Tile:
    said = life.stmt.annotations
    size = _bytes(life.buffer)
    stages = int(said.get(attrs.VERSIONS, 1))
    given = said.get(SHARED_ALIGNMENT)
    align = _ROW_ALIGN if size >= _ROW_ALIGN else _VECTOR_ALIGN
    return Tile(life, stages, -(-size // stages), align if given is None else int(given))


def _bytes(buffer: Any) -> int:
    return -(-elements(buffer) * find_dtype(str(buffer.dtype)).bits // 8)


def _static_bytes(launch: Any, planned: tuple[str, ...]) -> int:
    """Static shared memory, mbarriers included; without what is planned."""
    total = 0
    for s in collect(launch, tirx.AllocBuffer):
        scope = str(s.buffer.scope())
        if scope == "shared" and scope not in planned:
            total = -(-total // _ROW_ALIGN) * _ROW_ALIGN + _bytes(s.buffer)
        elif scope in ("shared.barrier", "shared.cluster_barrier"):
            total = -(-total // 8) * 8 + _bytes(s.buffer)
    return total


def _size(tile: Tile) -> str:
    if tile.stages == 1:
        return f"{tile.bytes()} bytes"
    return f"{tile.stages} stages x {tile.stride} bytes"
