"""Bank conflicts, counted against a plain simulation, and the named swizzles."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilelang.layout import (
    Layout,
    SwizzleMode,
    make_full_bank_swizzled_layout,
    make_half_bank_swizzled_layout,
    make_linear_layout,
    make_quarter_bank_swizzled_layout,
    make_swizzled_layout,
    make_wgmma_swizzled_layout,
)
from tilelang.layout.atoms import ATOMS
from tilelang.layout.banks import (
    Pattern,
    bank_conflicts,
    conflicts,
    fragment_access,
    ldmatrix_rows,
    reads_column,
    reads_row,
    worst,
)
from tilelang.layout.swizzle import Tile, bank_swizzle, operand_reads

ROW_MAJOR = Layout.row_major((32, 32))
XOR = Layout((32, 32), lambda i, j: (i, j ^ i))
PADDED = Layout((32, 32), lambda i, j: i * 33 + j)
COLUMNS = [reads_column(32, column) for column in range(32)]


@pytest.mark.parametrize(
    ("layout", "degree", "text"),
    [
        (ROW_MAJOR, 32, "32-way bank conflict"),
        (XOR, 1, "conflict-free"),
        (PADDED, 1, "conflict-free"),
        (Layout((32, 32), lambda i, j: i * 34 + j), 2, "2-way bank conflict"),
        (Layout((32, 32), lambda i, j: (i, j ^ i % 8)), 4, "4-way bank conflict"),
    ],
)
def test_a_float_tile_read_by_columns(layout: Layout, degree: int, text: str) -> None:
    found, pattern = worst(layout, COLUMNS, bits=32)
    assert (found.degree, str(found)) == (degree, text)
    assert found.wasted == degree - 1
    assert pattern in COLUMNS
    assert conflicts(layout, reads_row(32), bits=32).degree == 1


@pytest.mark.parametrize(
    ("addresses", "width", "degree", "transactions"),
    [
        ([0] * 32, 4, 1, 1),  # broadcast
        ([4 * lane for lane in range(32)], 4, 1, 1),
        ([8 * lane for lane in range(32)], 4, 2, 1 * 2),
        ([128 * lane for lane in range(32)], 4, 32, 32),
        ([2 * lane for lane in range(32)], 2, 1, 1),  # two lanes share a word
        ([128 * lane + 2 for lane in range(32)], 2, 32, 32),
        ([8 * lane for lane in range(32)], 8, 1, 2),  # half warps
        ([16 * lane for lane in range(32)], 16, 1, 4),  # quarter warps
        ([128 * (lane % 8) + 16 * (lane // 8) for lane in range(32)], 16, 8, 32),
        ([128 * lane for lane in range(8)], 16, 8, 8),
    ],
)
def test_known_accesses(addresses: list[int], width: int, degree: int, transactions: int) -> None:
    found = bank_conflicts(addresses, width)
    assert (found.degree, found.transactions) == (degree, transactions)


@settings(deadline=None)
@given(st.lists(st.integers(0, 255), min_size=1, max_size=32), st.sampled_from([4, 8, 16]))
def test_against_a_queue_per_bank(slots: list[int], width: int) -> None:
    """Serve the phases word by word, one word of each bank per pass."""
    addresses = [slot * width for slot in slots]
    lanes_per_phase = 128 // width
    passes = 0
    for start in range(0, len(addresses), lanes_per_phase):
        wanted = {
            address // 4 + word
            for address in addresses[start : start + lanes_per_phase]
            for word in range(width // 4)
        }
        while wanted:
            passes += 1
            served: dict[int, int] = {}
            for word in wanted:
                served.setdefault(word % 32, word)
            wanted -= set(served.values())
    assert bank_conflicts(addresses, width).transactions == passes


@pytest.mark.parametrize(
    ("shape", "bits", "mode", "text"),
    [
        ((64, 64), 16, SwizzleMode.FULL_BANK, "(i*64 + j) ^ i%8*8"),
        ((64, 32), 16, SwizzleMode.HALF_BANK, "(i*32 + j) ^ i//2%4*8"),
        ((64, 16), 16, SwizzleMode.QUARTER_BANK, "(i*16 + j) ^ i//4%2*8"),
        ((64, 128), 8, SwizzleMode.FULL_BANK, "(i*128 + j) ^ i%8*16"),
        ((64, 256), 4, SwizzleMode.FULL_BANK, "(i*256 + j) ^ i%8*32"),
        ((64, 128), 16, SwizzleMode.FULL_BANK, "(j//64*4096 + i*64 + j%64) ^ i%8*8"),
    ],
)
def test_named_swizzles(shape: tuple[int, int], bits: int, mode: SwizzleMode, text: str) -> None:
    layout = make_swizzled_layout(Tile(shape, bits))
    assert layout == bank_swizzle(shape, bits, mode)
    assert str(layout) == text
    assert layout.is_bijective
    assert layout.vector_width() == 128 // bits
    assert layout.inverse().compose(layout) == Layout(shape, lambda i, j: (i, j))
    assert conflicts(layout, ldmatrix_rows(bits), bits).degree == 1
    # Filling the tile in 16-byte vectors costs nothing either.
    assert conflicts(layout, reads_row(shape[1], width=128 // bits), bits).degree == 1


def test_a_swizzle_is_an_involution_of_row_major() -> None:
    layout = bank_swizzle((64, 64), 16, SwizzleMode.FULL_BANK)
    flat = layout.reshape((4096,))
    assert flat.compose(flat) == Layout.row_major((4096,))


@pytest.mark.parametrize("bits", [16, 32, 64])
@pytest.mark.parametrize("k_major", [True, False])
@pytest.mark.parametrize("shape", [(64, 64), (32, 16), (128, 32)])
def test_operand_reads_are_conflict_free(shape: tuple[int, int], bits: int, k_major: bool) -> None:
    """fp64 too, whose lanes read 8 bytes: the 16-byte unit of the named swizzles is not enough."""
    layout = make_swizzled_layout(Tile(shape, bits), k_major=k_major)
    assert layout.is_bijective
    for pattern in operand_reads(shape, k_major):
        assert conflicts(layout, pattern, bits).degree == 1


def test_plain_fp64_rows_do_conflict() -> None:
    for pattern in operand_reads((32, 16), True):
        assert conflicts(Layout.row_major((32, 16)), pattern, 64).degree == 4


def test_the_operand_pattern_is_that_of_the_instruction() -> None:
    atom = next(a for a in ATOMS if (a.m, a.k, a.bits) == (8, 4, 64))
    (pattern,) = fragment_access(atom.a)
    assert sorted(pattern.lanes) == sorted(operand_reads((32, 16), True)[0].lanes)


@pytest.mark.parametrize("row", [12, 20, 28, 36, 44])
def test_rows_no_swizzle_fits_are_padded(row: int) -> None:
    padded = make_swizzled_layout(Tile((32, row), 16))
    assert padded.storage > padded.size
    assert padded.is_injective
    assert conflicts(padded, ldmatrix_rows(16, matrices=1), 16).degree == 1
    assert make_swizzled_layout(Tile((32, row), 16), allow_pad=False) == Layout.row_major((32, row))


def test_leading_dimensions_are_stages() -> None:
    staged = make_swizzled_layout(Tile((3, 64, 64), 16))
    single = make_swizzled_layout(Tile((64, 64), 16))
    assert staged(2, 5, 7) == 2 * 4096 + single(5, 7)


def test_the_public_names_take_any_buffer() -> None:
    class Half:
        bits = 16

    class Buffer:
        shape = (64, 64)
        dtype = Half()

    buffer = Buffer()
    full = make_full_bank_swizzled_layout(buffer)
    assert make_swizzled_layout(buffer, k_major=True) == full
    assert make_swizzled_layout(buffer, k_major=False) == full
    assert make_wgmma_swizzled_layout(buffer) == full
    half = make_half_bank_swizzled_layout(buffer)
    assert make_wgmma_swizzled_layout(buffer, continuity=32) == half
    assert half != make_quarter_bank_swizzled_layout(buffer)
    assert make_linear_layout(buffer) == Layout.row_major((64, 64)) == make_linear_layout((64, 64))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bank_conflicts([0], 3), "1, 2, 4, 8 or 16 bytes"),
        (lambda: bank_conflicts([2], 4), "not aligned to 4"),
        (lambda: Pattern("none", ()), "needs lanes"),
        (lambda: conflicts(Layout.row_major((4,)), reads_column(4), 32), "does not index"),
        (lambda: bank_swizzle((64,), 16, SwizzleMode.FULL_BANK), "rows of a tile"),
        (
            lambda: make_full_bank_swizzled_layout(Tile((64, 32), 16)),
            "rows of 32 x 16 bits are no multiple of the 128 bytes that the full bank swizzle",
        ),
    ],
)
def test_refusals(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=message):
        make()
