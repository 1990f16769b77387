"""The layouts a shared tile may get: all one to one, and counted as `layout.banks` counts."""

from __future__ import annotations

import numpy as np
import pytest

from tilelang.layout.banks import Pattern, conflicts, ldmatrix_rows, reads_column, reads_row
from tilelang.layouts.shared import _counted
from tilelang.layouts.swizzles import candidates

TILES = [
    ((32, 32), 32), ((64, 64), 16), ((64, 32), 8), ((128, 64), 8), ((16, 64), 64), ((32, 96), 16),
    ((20, 20), 32), ((3, 16, 64), 16), ((7, 5), 32), ((64, 32), 4), ((256,), 32),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "bits"), TILES, ids=str)
def test_candidates_are_layouts(shape: tuple[int, ...], bits: int) -> None:
    found = list(candidates(shape, bits))
    assert found[0].name == "row-major"
    for one in found:
        assert one.layout.is_injective, one.name
        assert one.layout.shape == shape
        assert np.array_equal(one.offsets, one.layout.offsets().ravel())
        assert one.extra == 0 or "padded" in one.name


@pytest.mark.parametrize(("shape", "bits"), [t for t in TILES if len(t[0]) == 2], ids=str)
def test_counted_as_by_banks(shape: tuple[int, int], bits: int) -> None:
    if bits < 8:
        pytest.skip("addresses of packed elements are not whole bytes")
    rows, columns = shape
    patterns = [reads_column(rows, columns // 2), reads_row(columns)]
    wide = 128 // bits
    if columns % wide == 0 and rows * columns >= 32 * wide:
        patterns.append(reads_row(columns, width=wide))
    if columns >= 2 * wide and rows >= 16:
        patterns.append(ldmatrix_rows(bits))
    patterns = [p for p in patterns if all(lane[0] < rows for lane in p.lanes)]
    assert patterns
    for one in candidates(shape, bits):
        for pattern in patterns:
            want = conflicts(one.layout, pattern, bits)
            got = _counted(one, _positions(pattern, shape), pattern.width, bits, 32)
            assert (got.degree, got.passes) == (want.degree, want.transactions), (
                one.name, pattern.name,
            )  # fmt: skip


def _positions(pattern: Pattern, shape: tuple[int, int]) -> tuple[int, ...]:
    return tuple(i * shape[1] + j for i, j in pattern.lanes)
