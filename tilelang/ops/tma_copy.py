"""T.tma_copy: the copy engine moves a tile between global and shared memory, in the background.

Before: T.tma_copy(A[by * 128, k * 64], A_s, barrier=full[0])          128 x 64 float16
After:  (host) A_map = T.tensor_map(A, 128, 64, swizzle=128)
        if this is the first thread: T.mbarrier_expect_tx(full[0], 16384)
                                     T.tma_load(A_s, A_map, full[0], k * 64, by * 128)

A tile is cut into boxes, each of which is one run of shared memory: columns of one row of its
swizzle, 256 rows at most. What lies outside the tensor is read as zero and not written; its bytes
count all the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from tilelang.dtypes import dtype as find_dtype
from tilelang.ir import build, tirx
from tilelang.ir.device_ops import call, tensor_map
from tilelang.ir.flatten import strides_of
from tilelang.ir.gpu_context import GpuContext
from tilelang.ir.spans import from_tir
from tilelang.ir.tile_op import Refused, TileOp, TileRegion
from tilelang.layout.layout import Layout
from tilelang.layout.swizzle import LONGEST_BOX, SwizzleMode
from tilelang.layout.wgmma import swizzle_of
from tilelang_diagnostics.model import Label

MOST_DIMS: Final = 5
UNIT: Final = 16  # bytes that strides, rows of a box and addresses are multiples of
ALIGNMENT: Final = 128  # of a box in shared memory, in bytes
PATTERN: Final = 8  # rows after which a swizzle repeats
_EVICTION: Final = {None: "normal", "evict_normal": "normal"}


@dataclass(frozen=True, slots=True, eq=False)
class TmaCopy(TileOp):
    """`dst = src`, one of them in global memory; `barrier` counts the bytes that arrive."""

    NAME: ClassVar[str] = "tma_copy"

    src: TileRegion
    dst: TileRegion
    barrier: TileRegion | None = None
    cluster_mask: int | None = None
    leader_scope_threads: int | None = None
    eviction_policy: Any = None

    def reads(self) -> tuple[TileRegion, ...]:
        return (self.src,)

    def writes(self) -> tuple[TileRegion, ...]:
        return (self.dst,)

    def lower_gpu(self, ctx: GpuContext) -> tirx.Stmt:
        return _Bulk(self, ctx).lower()


@dataclass(frozen=True, slots=True)
class _Boxes:
    """How a tile is cut: `box` is the extent of one box in each dimension of the tile, `counts`
    how many there are along it."""

    box: tuple[int, ...]
    counts: tuple[int, ...]
    swizzle: int


class _Bulk:
    """One copy."""

    def __init__(self, op: TmaCopy, ctx: GpuContext) -> None:
        self.op, self.ctx, self.span = op, ctx, ctx.span
        self.loads = op.src.scope == "global"
        self.tensor, self.tile = (op.src, op.dst) if self.loads else (op.dst, op.src)

    def lower(self) -> tirx.Stmt:
        ctx, span = self.ctx, self.span
        self._check()
        pairs = self._pairs()
        boxes = self._boxes(pairs)
        self._check_tensor(pairs[-1][0])
        self._check_start()
        descriptor = self._map(pairs, boxes)
        self._told(boxes)
        body: list[tirx.Stmt] = []
        if self.loads:
            total = math.prod(self._extents(self.tile)) * self.bits // 8
            barrier = self._barrier()
            operands = [barrier.expr(), ctx.const(total)]
            body.append(build.evaluate(call("mbarrier_expect_tx", operands, span=span), span))
        body.append(self._each_box(pairs, boxes, descriptor))
        if not self.loads:
            ctx.launch.stores = True
            body.append(build.evaluate(call("bulk_commit", [], span=span), span))
        return self._by_leader(build.seq(body, span))

    def _told(self, boxes: _Boxes) -> None:
        box = " x ".join(map(str, boxes.box))
        swizzle = f"swizzled by {boxes.swizzle} bytes" if boxes.swizzle else "rows as they are"
        count = math.prod(boxes.counts)
        self.ctx.chose(
            "copy", f"`{self.op.src.buffer.name}` → `{self.op.dst.buffer.name}` by TMA, "
            f"{count} box{'es' * (count != 1)} of {box}, {swizzle}",
        )  # fmt: skip

    @property
    def bits(self) -> int:
        return find_dtype(self.tile.dtype).bits

    def _barrier(self) -> TileRegion:
        assert self.op.barrier is not None, "the front end asks for it"
        return self.op.barrier

    def _refuse(self, reason: str, help: str, *labels: tuple[Any, str]) -> Refused:
        """A copy that the engine cannot make."""
        found = [(from_tir(span), text) for span, text in labels]
        return Refused(
            "TL419",
            f"TMA cannot copy `{self.op.src.buffer.name}` to `{self.op.dst.buffer.name}`: {reason}",
            self.span,
            help=help,
            labels=tuple(Label(span, text) for span, text in found if span is not None),
        )

    # --- what it cannot do ---

    def _check(self) -> None:
        op, ctx = self.op, self.ctx
        if not ctx.capabilities.has_tma:
            raise Refused(
                "TL402", f"`T.tma_copy` needs cuda:sm_90, and the target is {ctx.target}",
                self.span, label="there is no copy engine", help="use `T.copy`",
            )  # fmt: skip
        if op.cluster_mask is not None:
            raise Refused(
                "TL401", "`cluster_mask` of `T.tma_copy` is not available yet", self.span,
                help="leave it out: each block of the cluster then loads its own tile",
            )  # fmt: skip
        if op.src.dtype != op.dst.dtype:
            raise self._refuse(
                f"it moves bytes, and {op.src.dtype} is not {op.dst.dtype}",
                "use `T.copy`, which converts",
            )
        if self.bits < 8:
            raise self._refuse(f"elements of {self.bits} bits are none to it", "use `T.copy`")
        safe = ctx.safe_values.get(self.tensor.buffer)
        if self.loads and safe is not None and not build.is_int(safe, 0):
            value = getattr(safe, "value", None)
            if value is None or float(value) != 0:
                raise self._refuse(
                    "what lies outside the tensor reads as its safe value, and TMA writes zeros",
                    "use `T.copy`, or a safe value of 0",
                )

    def _extents(self, region: TileRegion) -> tuple[int, ...]:
        found = region.constant_extents
        if any(n is None for n in found):
            raise self._refuse(
                f"the extents of `{region.buffer.name}` there are only known at run time",
                "name a tile of constant size: what lies outside the tensor is left out anyway",
            )
        return tuple(n for n in found if n is not None)

    def _pairs(self) -> list[tuple[int, int]]:
        """Which dimension of the tensor each dimension of the tile with an extent follows."""
        sizes = self._extents(self.tensor), self._extents(self.tile)
        wide = [[d for d, n in enumerate(row) if n != 1] for row in sizes]
        shapes = [tuple(row[d] for d in dims) for row, dims in zip(sizes, wide, strict=True)]
        if shapes[0] != shapes[1] or not shapes[0]:
            raise self._refuse(
                f"a tile of {shapes[0] or 1} is not one of {shapes[1] or 1}",
                "both sides need the same extents, in the same order",
            )
        return list(zip(*wide, strict=True))

    def _check_tensor(self, innermost: int) -> None:
        buffer = self.tensor.buffer
        rank = len(buffer.shape)
        declared = (buffer.span, f"`{buffer.name}` is declared here")
        if not any(buffer.same_as(p) for p in self.ctx.launch.params):
            raise self._refuse(
                f"`{buffer.name}` is no argument of the kernel, so the host cannot describe it",
                "copy from an argument itself, or use `T.copy`", declared,
            )  # fmt: skip
        if rank > MOST_DIMS:
            raise self._refuse(
                f"`{buffer.name}` has {rank} dimensions, TMA counts up to {MOST_DIMS}",
                "view it with fewer dimensions, or use `T.copy`", declared,
            )  # fmt: skip
        strides = strides_of(buffer)
        if innermost != rank - 1 or not build.is_int(strides[-1], 1):
            raise self._refuse(
                f"rows of the tile are not contiguous in `{buffer.name}`",
                "let the last dimensions of both sides correspond, or use `T.copy`", declared,
            )  # fmt: skip
        size = self.bits // 8
        for stride in strides[:-1]:
            count = build.int_value(stride)
            if count is not None and count * size % UNIT:
                step = UNIT // math.gcd(size, UNIT)
                raise self._refuse(
                    f"rows of `{buffer.name}` are {count * size} bytes apart, no multiple of "
                    f"{UNIT}",
                    f"pad the last dimension to a multiple of {step} elements, or use `T.copy`",
                    declared,
                )

    def _check_start(self) -> None:
        """Where a box begins, as far as it is known: an H200 stops at others with an illegal
        instruction (`tests/emulator/golden`)."""
        name, starts = self.tensor.buffer.name, self.tensor.mins
        step = max(1, UNIT * 8 // self.bits)
        # The compiler only takes what is certain (`roles`), an author may know more.
        barrier = self.op.barrier
        chosen = barrier is not None and self.ctx.allocation_attr(barrier.buffer, "drained")
        legal = (0,) if chosen else (0, None)
        if self.ctx.remainder(starts[-1], step) not in legal:
            raise self._refuse(
                f"it starts within a row of `{name}` at no multiple of {UNIT} bytes",
                f"start at a multiple of {step} elements, or use `T.copy`",
            )

    # --- boxes ---

    def _boxes(self, pairs: Sequence[tuple[int, int]]) -> _Boxes:
        """Boxes of the tile, each one run of shared memory."""
        buffer = self.tile.buffer
        home = self.ctx.homes.find(buffer)
        assert home is not None and isinstance(home.layout, Layout)
        shape = home.shape
        if self.ctx.homes.views.get(buffer) is not None:
            raise self._refuse(
                f"`{buffer.name}` shows another tile in another shape", "name that tile itself"
            )
        extents = self._extents(self.tile)
        last = pairs[-1][1]
        if last != len(shape) - 1:
            raise self._refuse(
                f"its rows are not contiguous in `{buffer.name}`",
                "let the last dimension of the shared tile be the contiguous one",
            )
        plain = home.layout == Layout.row_major(shape)
        mode = SwizzleMode.NONE if plain else swizzle_of(home.layout, self.bits)
        if mode is None:
            raise self._refuse(
                f"`{buffer.name}` is laid out as {home.layout}, which is no swizzle of TMA",
                "leave the layout to the compiler, or annotate one of the named swizzles",
                (buffer.span, "allocated here"),
            )
        counts = [1] * len(shape)
        box = list(extents)
        if mode is SwizzleMode.NONE:
            self._plain_row(box, counts, extents, shape, pairs)
        else:
            box[-1] = mode.row_bits // self.bits
            self._whole(extents[-1] % box[-1] == 0 and self._starts(-1, box[-1]), -1, box[-1])
            counts[-1] = extents[-1] // box[-1]
        self._rows(box, counts, extents, 1 if mode is SwizzleMode.NONE else PATTERN)
        for d in range(len(shape) - 2):
            box[d], counts[d] = 1, extents[d]
        found = _Boxes(tuple(box), tuple(counts), mode.value)
        self._check_addresses(found, shape)
        return found

    def _check_addresses(self, boxes: _Boxes, shape: Sequence[int]) -> None:
        """Each box starts at a multiple of 128 bytes of shared memory."""
        row = shape[-1] if boxes.swizzle == 0 else boxes.swizzle * 8 // self.bits
        for d, (low, count) in enumerate(zip(self.tile.mins, boxes.counts, strict=True)):
            part = boxes.box[d]
            if d == len(shape) - 1:
                # Elements between boxes, and between neighbours a box may start at.
                step = part if boxes.swizzle == 0 else shape[-2] * row
                unit = 1 if boxes.swizzle == 0 else part
            elif d == len(shape) - 2:
                step, unit = part * row, 1
            else:
                step, unit = math.prod(shape[d + 1 :]), 1
            start = build.int_value(self.ctx.simplify(low))
            own = step * unit // part
            moves = [own if start is None else start // unit * own]
            moves += [step] if count > 1 else []
            if any(m * self.bits // 8 % ALIGNMENT for m in moves):
                raise self._refuse(
                    f"parts of `{self.tile.buffer.name}` would start at addresses that are no "
                    f"multiple of {ALIGNMENT} bytes",
                    f"make its rows or slices a multiple of {ALIGNMENT} bytes",
                    (self.tile.buffer.span, "allocated here"),
                )

    def _plain_row(
        self, box: list[int], counts: list[int], extents: Sequence[int], shape: Sequence[int],
        pairs: Sequence[tuple[int, int]],
    ) -> None:  # fmt: skip
        if len(pairs) == 1:
            box[-1] = _divisor(extents[-1], 1)
            counts[-1] = extents[-1] // box[-1]
        elif extents[-1] != shape[-1] or extents[-1] > LONGEST_BOX:
            raise self._refuse(
                f"a box of {extents[-1]} columns is no run of memory in rows of {shape[-1]}"
                if extents[-1] != shape[-1]
                else f"a row of {extents[-1]} elements is longer than the {LONGEST_BOX} of a box",
                "use a tile whose rows are a multiple of 32 bytes, so that it can be swizzled, or "
                "`T.copy`",
            )
        if box[-1] * self.bits // 8 % UNIT:
            raise self._refuse(
                f"a row of {box[-1]} elements is {box[-1] * self.bits // 8} bytes, no multiple of "
                f"{UNIT}",
                "use a wider tile, or `T.copy`",
            )

    def _rows(
        self, box: list[int], counts: list[int], extents: Sequence[int], pattern: int
    ) -> None:
        if len(box) < 2:
            return
        box[-2] = _divisor(extents[-2], pattern)
        counts[-2] = extents[-2] // box[-2]
        if counts[-2] > 1 or pattern > 1:
            self._whole(self._starts(-2, pattern), -2, pattern)

    def _starts(self, dim: int, unit: int) -> bool:
        return self.ctx.remainder(self.tile.mins[dim], unit) == 0

    def _whole(self, holds: bool, dim: int, unit: int) -> None:
        if not holds:
            what = "columns" if dim == -1 else "rows"
            raise self._refuse(
                f"the {what} of `{self.tile.buffer.name}` that are copied are no whole groups of "
                f"{unit}, which its swizzle moves together",
                f"start at a multiple of {unit}, and copy a multiple of {unit}",
            )

    # --- code ---

    def _map(self, pairs: Sequence[tuple[int, int]], boxes: _Boxes) -> tirx.Var:
        """The tensor map, declared once a launch."""
        buffer, maps = self.tensor.buffer, self.ctx.launch.maps
        extents = [1] * len(buffer.shape)
        for outer, inner in pairs:
            extents[outer] = boxes.box[inner]
        key = (str(buffer.name), tuple(extents), boxes.swizzle)
        if key not in maps:
            whole = TileRegion.of(buffer).expr()
            taken = sum(1 for k in maps if k[0] == key[0])
            name = f"{buffer.name}_map" + (f"_{taken}" if taken else "")
            var = tirx.Var(name, "handle", self.span)
            value = tensor_map(whole, extents, swizzle=boxes.swizzle, span=self.span)
            maps[key] = tirx.Bind(var, value, self.span)
        found: tirx.Var = maps[key].var
        return found

    def _each_box(
        self, pairs: Sequence[tuple[int, int]], boxes: _Boxes, descriptor: tirx.Var
    ) -> tirx.Stmt:
        """One instruction per box, in unrolled loops over the dimensions that have several."""
        ctx, span = self.ctx, self.span
        variables = {d: ctx.var(f"box{d}") for d, n in enumerate(boxes.counts) if n > 1}
        offsets: dict[int, tirx.Expr] = {
            d: build.mul(v, ctx.const(boxes.box[d]), span) for d, v in variables.items()
        }
        sizes = [ctx.const(n) for n in boxes.box]
        lows = self.tile.place(offsets)
        there = build.region(self.tile.buffer, list(zip(lows, sizes, strict=True)), span)
        follows = {outer: offsets[inner] for outer, inner in pairs if inner in offsets}
        place = [build.cast(x, "int32", span) for x in reversed(self.tensor.place(follows))]
        policy = str(_EVICTION.get(self.op.eviction_policy, self.op.eviction_policy))
        if self.loads:
            operands = [there, descriptor, self._barrier().expr(), *place]
            made = call("tma_load", operands, span=span, eviction=policy)
        else:
            made = call("tma_store", [there, descriptor, *place], span=span)
        body = build.evaluate(made, span)
        for d, var in reversed(variables.items()):
            body = ctx.unrolled(var, boxes.counts[d], body)
        return body

    def _by_leader(self, body: tirx.Stmt) -> tirx.Stmt:
        ctx = self.ctx
        leader = ctx.leader()
        if leader is None:
            raise Refused(
                "TL510",
                f"which thread starts the copy to `{self.op.dst.buffer.name}` is only known at run "
                "time",
                self.span,
                help="one thread starts it: stand outside of conditions on data that differ "
                "between threads",
            )
        if ctx.threads == 1:
            return body
        first = tirx.EQ(ctx.thread, ctx.const(leader), self.span)
        return tirx.IfThenElse(first, body, None, self.span)


def _divisor(extent: int, unit: int) -> int:
    """The largest part of `extent` that a box can have, a multiple of `unit` where it is cut."""
    if extent <= LONGEST_BOX:
        return extent
    fitting = (n for n in range(LONGEST_BOX, 0, -1) if extent % n == 0 and n % unit == 0)
    return next(fitting, 1)
