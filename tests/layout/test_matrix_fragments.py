"""Operand fragments against the formulas of the PTX ISA, and block-wide gemm fragments."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilelang.layout import Fragment
from tilelang.layout.atoms import ATOMS, Atom, find_atoms, ldmatrix
from tilelang.layout.banks import ldmatrix_rows
from tilelang.layout.digits import Digit
from tilelang.layout.gemm import (
    GemmWarpPolicy,
    NoPartition,
    WarpGrid,
    accumulator,
    operand_a,
    operand_b,
    partition_warps,
)

# (row, column) of element i of a lane, as the manual writes it, with g = groupID and
# t = threadID_in_group. Keys: m, n, k, bits.
Formula = Callable[[int, int, int], tuple[int, int]]
Shape = tuple[int, int, int, int]

A_FORMULAS: dict[Shape, Formula] = {
    (16, 8, 4, 32): lambda g, t, i: (g if i == 0 else g + 8, t),
    (16, 8, 8, 32): lambda g, t, i: (g if i in (0, 2) else g + 8, t if i in (0, 1) else t + 4),
    (16, 8, 8, 16): lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1)),
    (16, 8, 16, 16): lambda g, t, i: (
        g if 0 <= i < 2 or 4 <= i < 6 else g + 8,
        t * 2 + (i & 1) + (0 if i < 4 else 8),
    ),
    (8, 8, 16, 8): lambda g, t, i: (g, t * 4 + i),
    (16, 8, 16, 8): lambda g, t, i: (g if i < 4 else g + 8, t * 4 + (i & 3)),
    (16, 8, 32, 8): lambda g, t, i: (
        g if 0 <= i < 4 or 8 <= i < 12 else g + 8,
        t * 4 + (i & 3) + (0 if i < 8 else 16),
    ),
    (8, 8, 32, 4): lambda g, t, i: (g, t * 8 + i),
    (16, 8, 32, 4): lambda g, t, i: (g if i < 8 else g + 8, t * 8 + (i & 7)),
    (16, 8, 64, 4): lambda g, t, i: (
        g if 0 <= i < 8 or 16 <= i < 24 else g + 8,
        t * 8 + (i & 7) + (0 if i < 16 else 32),
    ),
    (8, 8, 4, 64): lambda g, t, i: (g, t),
    (16, 8, 4, 64): lambda g, t, i: (g if i == 0 else g + 8, t),
    (16, 8, 8, 64): lambda g, t, i: (g if i in (0, 2) else g + 8, t if i in (0, 1) else t + 4),
    (16, 8, 16, 64): lambda g, t, i: (
        g if i % 2 == 0 else g + 8,
        i * 2 + t if i % 2 == 0 else i * 2 - 2 + t,
    ),
}
B_FORMULAS: dict[Shape, Formula] = {
    (16, 8, 4, 32): lambda g, t, i: (t, g),
    (16, 8, 8, 32): lambda g, t, i: (t if i == 0 else t + 4, g),
    (16, 8, 8, 16): lambda g, t, i: (t * 2 + i, g),
    (16, 8, 16, 16): lambda g, t, i: (t * 2 + (i & 1) + (0 if i < 2 else 8), g),
    (8, 8, 16, 8): lambda g, t, i: (t * 4 + i, g),
    (16, 8, 16, 8): lambda g, t, i: (t * 4 + i, g),
    (16, 8, 32, 8): lambda g, t, i: (t * 4 + (i & 3) + (0 if i < 4 else 16), g),
    (8, 8, 32, 4): lambda g, t, i: (t * 8 + i, g),
    (16, 8, 32, 4): lambda g, t, i: (t * 8 + i, g),
    (16, 8, 64, 4): lambda g, t, i: (t * 8 + (i & 7) + (0 if i < 8 else 32), g),
    (8, 8, 4, 64): lambda g, t, i: (t, g),
    (16, 8, 4, 64): lambda g, t, i: (t, g),
    (16, 8, 8, 64): lambda g, t, i: (t if i == 0 else t + 4, g),
    (16, 8, 16, 64): lambda g, t, i: (t + 4 * i, g),
}
C_FORMULAS: dict[int, Formula] = {
    8: lambda g, t, i: (g, t * 2 + i),
    16: lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1)),
}


def by_formula(formula: Formula, count: int) -> list[list[tuple[int, int]]]:
    return [[formula(lane // 4, lane % 4, i) for i in range(count)] for lane in range(32)]


def held(fragment: Fragment) -> list[list[tuple[int, ...]]]:
    return [list(fragment.elements(lane)) for lane in range(32)]


@pytest.mark.parametrize("atom", ATOMS, ids=str)
def test_every_operand_is_laid_out_as_the_manual_says(atom: Atom) -> None:
    key = (atom.m, atom.n, atom.k, atom.bits)
    assert held(atom.a) == by_formula(A_FORMULAS[key], atom.m * atom.k // 32)
    assert held(atom.b) == by_formula(B_FORMULAS[key], atom.k * atom.n // 32)
    assert held(atom.c) == by_formula(C_FORMULAS[atom.m], atom.m * atom.n // 32)


@pytest.mark.parametrize("atom", ATOMS, ids=str)
def test_every_operand_is_bijective_over_lanes_and_registers(atom: Atom) -> None:
    for fragment, shape in (
        (atom.a, (atom.m, atom.k)),
        (atom.b, (atom.k, atom.n)),
        (atom.c, (atom.m, atom.n)),
    ):
        assert fragment.shape == shape
        assert fragment.is_bijective
        assert (fragment.thread_extent, fragment.replicas) == (atom.threads, 1)
        assert fragment.map.digits is not None


def test_every_formula_has_its_row() -> None:
    rows = {(a.m, a.n, a.k, a.bits) for a in ATOMS}
    assert rows == set(A_FORMULAS) == set(B_FORMULAS)


@pytest.mark.parametrize(
    ("dtype", "accumulator", "arch", "shapes"),
    [
        ("float16", "float32", 90, ["m16n8k16", "m16n8k8"]),
        ("float16", "float16", 75, ["m16n8k8"]),
        ("bfloat16", "float32", 75, []),
        ("bfloat16", "float16", 80, []),
        ("int8", "int32", 80, ["m16n8k32", "m16n8k16", "m8n8k16"]),
        ("float8_e4m3fn", "float32", 80, []),
        ("float8_e5m2", "float32", 89, ["m16n8k32", "m16n8k16"]),
        ("float64", "float64", 80, ["m8n8k4"]),
        ("tfloat32", "float32", 80, ["m16n8k8", "m16n8k4"]),
    ],
)
def test_lookup(dtype: str, accumulator: str, arch: int, shapes: list[str]) -> None:
    found = find_atoms(dtype, accumulator, arch)
    assert [f"m{a.m}n{a.n}k{a.k}" for a in found] == shapes


def test_ldmatrix_loads_an_operand() -> None:
    """Four matrices in the order of `ldmatrix_rows` make A of m16n8k16."""
    atom = find_atoms("float16", "float32", 80)[0]
    loaded = ldmatrix(4)
    assert loaded.is_bijective
    for i in range(16):
        for j in range(16):
            matrix = i // 8 + 2 * (j // 8)
            assert loaded.owners(matrix, i % 8, j % 8) == atom.a.owners(i, j)
    # Which lane names the address of each row, shape (matrices, 8) (PTX ISA 9.7.14.5.15).
    addresses = Fragment.from_digits((4, 8), thread=(Digit(0, 1, 4, 8), Digit(1, 1, 8, 1)), slot=())
    for lane, (row, column) in enumerate(ldmatrix_rows(16).lanes):
        assert addresses.owners(row // 8 + 2 * (column // 8), row % 8) == ((lane, 0),)


def test_ldmatrix_transposed() -> None:
    straight, turned = ldmatrix(2), ldmatrix(2, transposed=True)
    assert turned == straight.permute((0, 2, 1))
    assert turned != straight


@pytest.mark.parametrize(
    ("m", "n", "warps", "square", "rows", "columns"),
    [
        (64, 64, 4, (2, 2), (4, 1), (1, 4)),
        (128, 128, 4, (2, 2), (4, 1), (1, 4)),
        (128, 128, 8, (4, 2), (8, 1), (1, 8)),
        (128, 256, 8, (2, 4), (8, 1), (1, 8)),
        (256, 128, 8, (4, 2), (8, 1), (1, 8)),
        (64, 64, 8, (4, 2), (4, 2), (1, 8)),
        (16, 64, 4, (1, 4), (1, 4), (1, 4)),
        (64, 8, 4, (4, 1), (4, 1), (4, 1)),
        (96, 64, 8, (2, 4), (2, 4), (1, 8)),
        (192, 64, 6, (3, 2), (6, 1), (3, 2)),
    ],
)
def test_warp_partition(
    m: int,
    n: int,
    warps: int,
    square: tuple[int, int],
    rows: tuple[int, int],
    columns: tuple[int, int],
) -> None:
    expected = {
        GemmWarpPolicy.Square: square,
        GemmWarpPolicy.FullRow: rows,
        GemmWarpPolicy.FullCol: columns,
    }
    for policy, grid in expected.items():
        assert partition_warps(m, n, warps, policy) == WarpGrid(*grid)


@pytest.mark.parametrize(
    ("m", "n", "warps", "message", "hint"),
    [
        (
            16,
            104,
            12,
            "no grid of 12 warps covers a 16x104 tile with whole 16x8 instructions",
            "use 32 or 416 threads, or make N 96 or 192, or make M 192",
        ),
        (
            20,
            20,
            4,
            "no grid of 4 warps covers a 20x20 tile with whole 16x8 instructions",
            "make the tile 32x32",
        ),
    ],
)
def test_no_partition(m: int, n: int, warps: int, message: str, hint: str) -> None:
    for policy in GemmWarpPolicy:
        failure = partition_warps(m, n, warps, policy)
        assert isinstance(failure, NoPartition)
        assert str(failure) == message
        assert failure.help == hint


GRIDS = [WarpGrid(4, 1), WarpGrid(2, 2), WarpGrid(1, 4), WarpGrid(3, 2)]


@pytest.mark.parametrize("grid", GRIDS, ids=str)
@pytest.mark.parametrize("atom", [a for a in ATOMS if a.m == 16], ids=str)
def test_a_block_multiplies_what_it_holds(grid: WarpGrid, atom: Atom) -> None:
    """Each warp holds exactly the rows of A and columns of B its accumulators need."""
    m, n, k = 16 * grid.m_warps * 2, 8 * grid.n_warps * 2, atom.k * 2
    c = accumulator(m, n, grid, atom)
    a, b = operand_a(m, k, grid, atom), operand_b(k, n, grid, atom)
    assert c.is_bijective
    assert a.is_bijective
    assert b.is_bijective
    assert (a.replicas, b.replicas, c.replicas) == (grid.n_warps, grid.m_warps, 1)
    assert c.thread_extent == a.thread_extent == b.thread_extent == 32 * grid.warps
    for warp in range(grid.warps):
        lanes = range(32 * warp, 32 * warp + 32, 3)
        rows = {index[0] for lane in lanes for index in c.elements(lane)}
        columns = {index[1] for lane in lanes for index in c.elements(lane)}
        assert rows <= {index[0] for lane in lanes for index in a.elements(lane)}
        assert columns <= {index[1] for lane in lanes for index in b.elements(lane)}


def test_transposed_operands() -> None:
    atom, grid = find_atoms("float16", "float32", 80)[0], WarpGrid(2, 2)
    assert operand_a(64, 32, grid, atom, transposed=True).shape == (32, 64)
    assert operand_a(64, 32, grid, atom, True)(3, 5) == operand_a(64, 32, grid, atom)(5, 3)
    assert operand_b(32, 64, grid, atom, True)(5, 3) == operand_b(32, 64, grid, atom)(3, 5)


def test_a_tile_smaller_than_the_instruction_is_refused() -> None:
    atom = find_atoms("int8", "int32", 80)[0]
    with pytest.raises(ValueError, match="do not cover"):
        operand_a(64, 16, WarpGrid(2, 2), atom)
