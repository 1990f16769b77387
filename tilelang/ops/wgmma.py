"""T.wgmma_gemm, and T.gemm where it fits: warp groups multiply tiles of shared memory.

Before: T.wgmma_gemm(A_s, B_s, C_l)                        128 x 128 x 64 float16, one warp group
After:  T.wgmma_fence()
        T.wgmma_ss_k16_f32_f16_f16(C_l[0:64], A_s[0:…], B_s[0:…], 1, n=128, a_swizzle=128, …)
        …                                          for each 64 rows, and each 16 of K
        T.wgmma_commit()

`T.wait_wgmma` waits for the groups that were committed; `T.gemm` waits at once. The sums stay where
they are; what does not lie as the instruction wants it is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tilelang.dtypes import dtype as find_dtype
from tilelang.ir import build, tirx
from tilelang.ir.device_ops import call, region
from tilelang.ir.gpu_context import GpuContext, is_whole
from tilelang.ir.homes import FRAGMENT, SHARED, Home
from tilelang.ir.spans import from_tir
from tilelang.ir.tile_op import Refused, TileRegion
from tilelang.layout.fragment import Fragment
from tilelang.layout.gemm import GemmWarpPolicy, NoPartition, WarpGrid
from tilelang.layout.layout import Layout
from tilelang.layout.wgmma import (
    GROUP,
    ROWS,
    SharedMatrix,
    Wgmma,
    find_wgmma,
    partition_groups,
    rows_of,
    sums_of,
    swizzle_of,
    wgmma_name,
)
from tilelang_diagnostics.model import Label

if TYPE_CHECKING:
    from tilelang.ops.gemm import Gemm

_ALONG: Final = 8  # rows of one pattern


def wgmma_gemm(op: Gemm, ctx: GpuContext, waits: bool = False) -> tirx.Stmt:
    """The instructions of one product, committed as one group, and the wait for it if it `waits`.

    Raises `Refused` for what does not lie, or fit, as the instructions need it.
    """
    return _Product(op, ctx).lower(waits)


@dataclass(frozen=True, slots=True, eq=False)
class _InPlace:
    """A shared operand: the region it comes from, and how it lies. `step` is the dimension of the
    matrix outside of K: rows of A, columns of B."""

    region: TileRegion
    matrix: SharedMatrix
    along_k: int

    def block(self, ctx: GpuContext, first: tirx.Expr, k: int, size: int, depth: int) -> Any:
        """`size` x `depth` elements from (first, k) of the operand on, as the run of memory they
        lie in."""
        rank = len(self.region.extents)
        offsets = {rank - 2 + self.along_k: ctx.const(k), rank - 1 - self.along_k: first}
        lows = self.region.place({d: o for d, o in offsets.items() if not build.is_int(o, 0)})
        count = self.matrix.touched(size, depth)
        if self.matrix.k_major:
            # As far as is known; to the end of the last row otherwise.
            start = ctx.remainder(self.region.mins[rank - 2 + self.along_k], self.matrix.unit)
            count -= 0 if start is None else (start + k) % self.matrix.unit
        sizes = [*[1] * (rank - 1), count]
        pairs = [(low, ctx.const(n)) for low, n in zip(lows, sizes, strict=True)]
        return build.region(self.region.buffer, pairs, ctx.span)


class _Product:
    def __init__(self, op: Gemm, ctx: GpuContext) -> None:
        self.op, self.ctx, self.span = op, ctx, ctx.span
        self.kind = self._kind()
        self.m, self.n, self.k = self._sizes()
        self.grid = self._grid()
        self.rows, self.columns = self.m // self.grid.m_warps, self.n // self.grid.n_warps

    def lower(self, waits: bool) -> tirx.Stmt:
        op, span = self.op, self.span
        sums = self._held(op.C, sums_of(self.m, self.n, self.grid), "C")
        b = self._in_place(op.B, "B", k_major=op.transpose_B)
        unit = 1 if b.matrix.k_major else b.matrix.unit
        width = self.kind.width(self.columns, unit)
        if width is None or (self.grid.n_warps > 1 and self.columns % unit):
            raise self._refuse(
                "TL409", f"no instruction makes {self.columns} columns of `{op.C.buffer.name}`",
                "use a multiple of 64 columns for each warp group", op.C,
            )  # fmt: skip
        if str(op.A.buffer.scope()) == FRAGMENT:
            whole = rows_of(self.m, self.k, self.grid, self.kind.bits, op.transpose_A)
            a: _InPlace | Home = self._held(op.A, whole, "A")
        else:
            a = self._in_place(op.A, "A", k_major=not op.transpose_A)
        count = self.rows // ROWS * self.columns // 2
        pin = call("wgmma_fence_operand", [region(sums.flat, 0, count, span)], span=span)
        pinned = build.evaluate(pin, span)
        body = [pinned, self._alone("wgmma_fence")]
        for row in range(self.rows // ROWS):
            for column in range(self.columns // width):
                for step in range(self.k // self.kind.k):
                    made = self._instruction(sums, a, b, (row, column, step), width)
                    body.append(build.evaluate(made, span))
        body.append(self._alone("wgmma_commit"))
        shape = f"m{ROWS}n{width}k{self.kind.k}"
        where = "registers" if isinstance(a, Home) else "shared memory"
        self.ctx.chose(
            "gemm", f"WGMMA {shape}, {len(body) - 3} a warp group, by {self.grid}",
            f"A comes from {where}",
        )  # fmt: skip
        if waits:
            wait = call("wgmma_wait", [], span=span, groups=0)
            body += [build.evaluate(wait, span), pinned]
        return build.seq(body, span)

    def _instruction(
        self, sums: Home, a: _InPlace | Home, b: _InPlace, at: tuple[int, int, int], width: int
    ) -> Any:
        ctx, kind, span = self.ctx, self.kind, self.span
        row, column, step = at
        k = step * kind.k
        first = row * self.columns // 2 + column * width // 2
        constants: dict[str, Any] = {"n": width}
        if isinstance(a, Home):
            held = ROWS * kind.k // GROUP
            steps = self.k // kind.k
            left: Any = region(a.flat, (row * steps + step) * held, held, span)
        else:
            start = self._from_group(self.rows, row * ROWS, along_m=True)
            left = a.block(ctx, start, k, ROWS, kind.k)
            constants |= _said("a", a.matrix)
        start = self._from_group(self.columns, column * width, along_m=False)
        right = b.block(ctx, start, k, width, kind.k)
        constants |= _said("b", b.matrix)
        operands = [
            region(sums.flat, first, width // 2, span), left, right, self._keeps(step),
        ]  # fmt: skip
        return call(wgmma_name(kind, isinstance(a, Home)), operands, span=span, **constants)

    def _from_group(self, size: int, offset: int, *, along_m: bool) -> Any:
        """Where the block of this warp group starts, `offset` further on."""
        ctx, grid = self.ctx, self.grid
        if (grid.m_warps if along_m else grid.n_warps) == 1:
            return ctx.const(offset)
        group = ctx.thread_var // GROUP
        own = group % grid.m_warps if along_m else group // grid.m_warps
        return ctx.number(own * size + offset)

    def _keeps(self, step: int) -> tirx.Expr:
        """1 where products are added to the sums, 0 where they replace them."""
        op, span = self.op, self.span
        if step > 0 or op.overwrites is False:
            return self.ctx.const(1)
        if op.overwrites:
            return self.ctx.const(0)
        assert op.clear_accum is not None
        kept = tirx.Not(build.cast(op.clear_accum, "bool", span), span)
        return build.cast(kept, "int32", span)

    def _alone(self, name: str) -> tirx.Stmt:
        return build.evaluate(call(name, [], span=self.span), self.span)

    # --- what it takes ---

    def _kind(self) -> Wgmma:
        op, ctx = self.op, self.ctx
        if ctx.capabilities.mma != "wgmma":
            raise Refused(
                "TL401", f"`T.wgmma_gemm` is not available on target `{ctx.target}`", self.span,
                label="needs cuda:sm_90a",
                help="compile for cuda:sm_90a, or use `T.gemm`",
            )  # fmt: skip
        found = find_wgmma(op.A.dtype, op.B.dtype, op.C.dtype)
        if found is None:
            raise self._refuse(
                "TL412", f"WGMMA cannot multiply {op.A.dtype} by {op.B.dtype} into {op.C.dtype}",
                "use `T.gemm`", op.C,
            )  # fmt: skip
        return found

    def _sizes(self) -> tuple[int, int, int]:
        sizes = [build.int_value(e) for e in (self.op.m, self.op.n, self.op.k)]
        known = [n for n in sizes if n]
        if len(known) < len(sizes) or known[2] % self.kind.k:
            raise self._refuse(
                "TL409", "the sizes of a WGMMA are constants, K a multiple of 32 bytes",
                "use tiles of constant size", self.op.C,
            )  # fmt: skip
        m, n, k = known
        return m, n, k

    def _grid(self) -> WarpGrid:
        groups, rest = divmod(self.ctx.threads, GROUP)
        policy = GemmWarpPolicy(self.op.policy or 0)
        grid = None if rest or not groups else partition_groups(self.m, self.n, groups, policy)
        if grid is None or isinstance(grid, NoPartition):
            raise self._refuse(
                "TL408" if rest or not groups else "TL314",
                f"{self.ctx.threads} threads cannot share `{self.op.C.buffer.name}` as whole warp "
                "groups of 64 rows each", "use `with T.ws(0):`, or a taller tile", self.op.C,
            )  # fmt: skip
        return grid

    def _held(self, operand: TileRegion, wanted: Fragment, name: str) -> Home:
        """A fragment that lies in the registers of the instruction."""
        home = self.ctx.homes.find(operand.buffer)
        viewed = self.ctx.homes.views.get(operand.buffer) is not None
        if home is None or viewed or not is_whole(operand) or home.layout != wanted:
            raise self._refuse(
                "TL411",
                f"`{operand.buffer.name}` does not lie in the registers that WGMMA uses for {name}",
                "give the product a fragment of its own, whole, and work on it in the same warp "
                "groups", operand,
            )  # fmt: skip
        return home

    def _in_place(self, operand: TileRegion, name: str, k_major: bool) -> _InPlace:
        """A shared tile in a swizzle that the tensor cores read."""
        buffer, bits = operand.buffer, find_dtype(operand.dtype).bits
        home = self.ctx.homes.find(buffer)
        scope = str(buffer.scope())
        layout = None if home is None or scope not in SHARED else home.layout
        viewed = self.ctx.homes.views.get(buffer) is not None
        mode = swizzle_of(layout, bits) if isinstance(layout, Layout) and not viewed else None
        if mode is None or home is None:
            raise self._refuse(
                "TL411",
                f"`{buffer.name}`, operand {name} of WGMMA, lies in none of the swizzles of 128, "
                "64 or 32 bytes",
                "leave its layout to the compiler: neither annotate another one nor take its "
                "address", operand,
            )  # fmt: skip
        if not k_major and not self.kind.transposes:
            raise self._refuse(
                "TL411", f"WGMMA reads {operand.dtype} only along K, and `{buffer.name}` is stored "
                "the other way round", "store it with K as the last dimension", operand,
            )  # fmt: skip
        rows, columns = home.shape[-2:]
        matrix = SharedMatrix(rows, columns, bits, mode, k_major)
        units = (_ALONG, 256 // bits if k_major else matrix.unit)
        starts = zip(operand.mins[-2:], units, strict=True)
        if any(self.ctx.remainder(low, unit) != 0 for low, unit in starts):
            raise self._refuse(
                "TL411", f"the part of `{buffer.name}` that WGMMA reads starts within a swizzled "
                f"block of {units[0]} x {units[1]}", "start at multiples of both", operand,
            )  # fmt: skip
        return _InPlace(operand, matrix, 1 if k_major else 0)

    def _refuse(self, code: str, message: str, help: str, operand: TileRegion) -> Refused:
        place = from_tir(operand.buffer.span)
        text = f"`{operand.buffer.name}` is allocated here"
        labels = () if place is None else (Label(place, text),)
        return Refused(code, message, self.span, help=help, labels=labels)


def _said(name: str, matrix: SharedMatrix) -> dict[str, int]:
    """The descriptor of an operand, as constants of the instruction."""
    return {
        f"{name}_swizzle": matrix.mode.value, f"{name}_leading": matrix.leading,
        f"{name}_stride": matrix.stride, f"{name}_major": 0 if matrix.k_major else 1,
    }  # fmt: skip
