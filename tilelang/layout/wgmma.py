"""How do the operands of a warp-group matrix instruction lie? (PTX ISA, wgmma.mma_async)

A warp group of 128 threads multiplies 64 rows of A by `n` columns of B, 32 bytes of K at a time.
Each of its four warps holds 16 rows of the sums as `mma.sync` does, and of A where A comes from
registers. Shared operands are tiles in one of the named swizzles, in columns of one swizzled row:
`SharedMatrix` says where a block of one starts, and the two strides that describe it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from tilelang.layout.atoms import Atom, find_atoms
from tilelang.layout.fragment import Fragment
from tilelang.layout.gemm import (
    GemmWarpPolicy,
    NoPartition,
    WarpGrid,
    in_proportion,
    partition_warps,
)
from tilelang.layout.layout import Layout
from tilelang.layout.swizzle import SwizzleMode, bank_swizzle

GROUP: Final = 128  # threads of a warp group
ROWS: Final = 64  # rows of one instruction
STEP_BITS: Final = 256  # of K, in one instruction
WIDEST: Final = 256  # columns of one instruction
LINES: Final = 8  # rows of a swizzled column that form one pattern
_ARCH: Final = 90
_WARPS: Final = 4


@dataclass(frozen=True, slots=True)
class Wgmma:
    """The instructions for one pair of types: how they are called, and what they take.

    `a`, `b` and `sum` are the dtypes, `k` the elements of one step.
    """

    a: str
    b: str
    sum: str
    bits: int
    k: int

    @property
    def widths(self) -> tuple[int, ...]:
        """Legal numbers of columns; integers have fewer."""
        every = range(8, WIDEST + 1, 8)
        return tuple(n for n in every if self.sum != "int32" or n <= 24 or n % 16 == 0)

    @property
    def transposes(self) -> bool:
        """Whether shared operands may have K as their slow axis."""
        return self.bits == 16

    def width(self, columns: int, unit: int = 1) -> int | None:
        """The widest instruction of which several make `columns`, a multiple of `unit`; one that
        takes all of them need not be."""
        legal = [
            n for n in self.widths if columns % n == 0 and (n == columns or n % unit == 0)
        ]  # fmt: skip
        return max(legal, default=None)


_NAMES: Final = {
    "float16": "f16", "bfloat16": "bf16", "tfloat32": "tf32", "float32": "f32", "int32": "s32",
    "float8_e4m3fn": "e4m3", "float8_e4m3": "e4m3", "float8_e5m2": "e5m2", "int8": "s8",
    "uint8": "u8",
}  # fmt: skip
_FLOAT: Final = ("float32", "float16")
_FP8: Final = ("float8_e4m3fn", "float8_e4m3", "float8_e5m2")
_INT8: Final = ("int8", "uint8")
# Operand types that go together, and the sums they have.
TYPES: Final[tuple[tuple[tuple[str, ...], tuple[str, ...], int], ...]] = (
    (("float16",), _FLOAT, 16), (("bfloat16",), ("float32",), 16),
    (("tfloat32",), ("float32",), 32),
    (_FP8, _FLOAT, 8), (_INT8, ("int32",), 8),
)  # fmt: skip


def find_wgmma(a: str, b: str, sums: str) -> Wgmma | None:
    """The instructions that multiply `a` by `b` into `sums`; float32 is multiplied as tf32."""
    a, b = ("tfloat32" if t == "float32" else t for t in (a, b))
    for inputs, accumulators, bits in TYPES:
        if a in inputs and b in inputs and sums in accumulators:
            return Wgmma(a, b, sums, bits, STEP_BITS // bits)
    return None


def wgmma_name(found: Wgmma, from_registers: bool) -> str:
    """The device operation."""
    source = "rs" if from_registers else "ss"
    sums, a, b = (_NAMES[t] for t in (found.sum, found.a, found.b))
    return f"wgmma_{source}_k{found.k}_{sums}_{a}_{b}"


def partition_groups(
    m: int, n: int, groups: int, policy: GemmWarpPolicy = GemmWarpPolicy.Square
) -> WarpGrid | NoPartition:
    """How warp groups share an `m` x `n` tile."""
    return partition_warps(m, n, groups, policy, ROWS, 8, in_proportion)


@cache
def sums_of(m: int, n: int, grid: WarpGrid) -> Fragment:
    """The sums of an `m` x `n` tile: for each block of 64 rows, the registers of its columns."""
    rows = _atom(16).c.repeat((_WARPS, 1), repeat_on_thread=True)
    group = rows.repeat((m // grid.m_warps // ROWS, n // grid.n_warps // 8))
    return group.repeat((grid.m_warps, grid.n_warps), repeat_on_thread=True, lower_dim_first=False)


@cache
def rows_of(m: int, k: int, grid: WarpGrid, bits: int, transposed: bool = False) -> Fragment:
    """A in registers, `(m, k)`, or `(k, m)` where it is stored transposed."""
    atom = _atom(bits)
    rows = atom.a.repeat((_WARPS, 1), repeat_on_thread=True)
    group = rows.repeat((m // grid.m_warps // ROWS, k // atom.k))
    whole = group.repeat((grid.m_warps, 1), repeat_on_thread=True).replicate(grid.n_warps)
    return whole.permute((1, 0)) if transposed else whole


def _atom(bits: int) -> Atom:
    """The instruction of one warp whose fragments have the same rows."""
    dtype, sums = {8: ("int8", "int32"), 16: ("float16", "float32"), 32: ("tfloat32", "float32")}[
        bits
    ]
    wanted = STEP_BITS // bits
    return next(a for a in find_atoms(dtype, sums, _ARCH) if (a.m, a.n, a.k) == (16, 8, wanted))


@dataclass(frozen=True, slots=True)
class SharedMatrix:
    """A shared tile of `rows` x `columns` elements that the tensor cores read in place.

    `k_major`: its rows run along K. `mode` is its swizzle.
    """

    rows: int
    columns: int
    bits: int
    mode: SwizzleMode
    k_major: bool

    @property
    def unit(self) -> int:
        """Elements of a row of the swizzled column."""
        return self.mode.row_bits // self.bits

    @property
    def leading(self) -> int:
        """Bytes between columns of the swizzle; of no meaning, but 16 by convention, along K."""
        return 16 if self.k_major else self.rows * self.mode.value

    @property
    def stride(self) -> int:
        """Bytes between patterns of eight rows."""
        return LINES * self.mode.value

    def touched(self, outer: int, k: int) -> int:
        """Elements from the first to the last of a block of `outer` x `k`, both ends included."""
        if self.k_major:
            return outer * self.unit
        columns = -(-outer // self.unit)
        return (columns - 1) * self.rows * self.unit + k * self.unit


def swizzles_of(shape: tuple[int, ...], bits: int) -> Iterator[tuple[SwizzleMode, Layout]]:
    """The layouts that the tensor cores read, widest swizzle first."""
    for mode in (SwizzleMode.FULL_BANK, SwizzleMode.HALF_BANK, SwizzleMode.QUARTER_BANK):
        if len(shape) >= 2 and shape[-2] % LINES == 0 and shape[-1] * bits % mode.row_bits == 0:
            yield mode, bank_swizzle(shape, bits, mode)


def swizzle_of(layout: Layout, bits: int) -> SwizzleMode | None:
    """Which of them a layout is."""
    found = swizzles_of(layout.shape, bits)
    return next((mode for mode, candidate in found if candidate == layout), None)
