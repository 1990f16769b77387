"""The layout tables of warp-group instructions agree with the manual, and with what hardware does
with a descriptor."""

from __future__ import annotations

import numpy as np
import pytest

from tilelang.layout.gemm import WarpGrid
from tilelang.layout.layout import Layout
from tilelang.layout.swizzle import SwizzleMode, bank_swizzle
from tilelang.layout.wgmma import (
    SharedMatrix,
    find_wgmma,
    rows_of,
    sums_of,
    swizzle_of,
    swizzles_of,
    wgmma_name,
)

ONE = WarpGrid(1, 1)
MODES = (SwizzleMode.FULL_BANK, SwizzleMode.HALF_BANK, SwizzleMode.QUARTER_BANK)


@pytest.mark.parametrize("columns", [8, 24, 256])
def test_sums_lie_as_the_manual_says(columns: int) -> None:
    """PTX ISA, wgmma.mma_async, register fragment D: d[i] of a lane."""
    found = sums_of(64, columns, ONE)
    for thread in (0, 1, 37, 64, 127):
        warp, lane = divmod(thread, 32)
        expected = tuple(
            (16 * warp + lane // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + lane % 4 * 2 + i % 2)
            for i in range(columns // 2)
        )
        assert found.elements(thread) == expected


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_rows_in_registers_lie_as_the_manual_says(bits: int) -> None:
    """PTX ISA, wgmma.mma_async, register fragment A: four words, each of neighbours along K."""
    packed, steps = 32 // bits, 256 // bits
    found = rows_of(64, steps, ONE, bits)
    for thread in (0, 6, 95, 127):
        warp, lane = divmod(thread, 32)
        expected = tuple(
            (16 * warp + lane // 4 + 8 * (word % 2),
             lane % 4 * packed + 4 * packed * (word // 2) + i)
            for word in range(4) for i in range(packed)
        )  # fmt: skip
        assert found.elements(thread) == expected


def test_larger_tiles_are_instructions_one_after_the_other() -> None:
    whole, one = sums_of(128, 32, ONE), sums_of(64, 32, ONE)
    for thread in (0, 77):
        first, second = whole.elements(thread)[:16], whole.elements(thread)[16:]
        assert first == one.elements(thread)
        assert second == tuple((i + 64, j) for i, j in first)
    two = sums_of(128, 32, WarpGrid(2, 1))
    assert two.thread_extent == 256
    assert two.elements(128 + 5) == tuple((i + 64, j) for i, j in one.elements(5))


def hardware_place(
    start: int, outer: int, k: int, matrix: SharedMatrix, swizzle: int
) -> int:  # fmt: skip
    """The byte that a descriptor makes of an element (PTX ISA, asynchronous warpgroup matrix
    descriptor): patterns of eight rows of one swizzled line, addressed by the two strides."""
    size = matrix.bits // 8
    unit = swizzle // size
    if matrix.k_major:
        line, along = outer, k
        place = line % 8 * swizzle + line // 8 * matrix.stride + along * size
    else:
        line, along = k, outer
        place = line % 8 * swizzle + line // 8 * matrix.stride
        place += along % unit * size + along // unit * matrix.leading
    address = start + place
    bits = swizzle // 16 - 1
    return address ^ (address >> 7 & bits) << 4


def tiles() -> list[tuple[tuple[int, int], int, bool]]:
    k_major = [((64, 64), 16), ((64, 128), 16), ((128, 16), 16), ((64, 32), 32), ((96, 128), 8)]
    other = [((64, 64), 16), ((32, 128), 16), ((16, 96), 16), ((128, 256), 16), ((64, 16), 16)]
    return [(*t, True) for t in k_major] + [(*t, False) for t in other]


@pytest.mark.parametrize(("shape", "bits", "k_major"), tiles())
def test_descriptors_read_what_the_layout_puts_there(
    shape: tuple[int, int], bits: int, k_major: bool
) -> None:
    seen = 0
    for mode, layout in swizzles_of(shape, bits):
        matrix = SharedMatrix(*shape, bits, mode, k_major)
        places = layout.offsets() * bits // 8
        depth, size = 256 // bits, bits // 8
        extent, whole_k = (shape[0], shape[1]) if k_major else (shape[1], shape[0])
        step = 8 if k_major else matrix.unit
        for k in range(0, whole_k, depth):
            for first in range(0, extent, max(step, 64)):
                start = int(layout.offsets()[(first, k) if k_major else (k, first)]) * size
                count = min(64, extent - first)
                for outer in range(count):
                    for i in range(depth):
                        at = (first + outer, k + i) if k_major else (k + i, first + outer)
                        assert hardware_place(start, outer, i, matrix, mode.value) == places[at]
                        seen += 1
                run = matrix.touched(count, depth) * size
                block = places[first : first + count, k : k + depth]
                if not k_major:
                    block = places[k : k + depth, first : first + count]
                lines = block // matrix.mode.value * matrix.mode.value
                assert lines.min() >= start // mode.value * mode.value
                assert block.max() < start // mode.value * mode.value + run
    assert seen > 0


@pytest.mark.parametrize("mode", MODES)
def test_a_layout_is_recognised(mode: SwizzleMode) -> None:
    assert swizzle_of(bank_swizzle((2, 64, 128), 16, mode), 16) is mode
    assert swizzle_of(Layout.row_major((64, 64)), 16) is None


def test_types() -> None:
    found = find_wgmma("float32", "float32", "float32")
    assert found is not None and wgmma_name(found, False) == "wgmma_ss_k8_f32_tf32_tf32"
    assert find_wgmma("float16", "bfloat16", "float32") is None
    assert find_wgmma("float16", "float16", "float64") is None
    integers = find_wgmma("int8", "uint8", "int32")
    assert integers is not None and 40 not in integers.widths and 24 in integers.widths
    assert integers.width(40) == 8 and integers.width(96) == 96
    half = find_wgmma("float16", "float16", "float16")
    assert half is not None and half.width(320) == 160
    # Columns of a swizzle are not cut, unless one instruction takes them all.
    assert half.width(320, 64) == 64 and half.width(96, 64) == 96
    assert np.all(np.diff(half.widths) == 8)
