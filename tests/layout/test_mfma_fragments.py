"""Fragments of AMD's matrix instructions, operands exchanged, against the mapping that AMD's matrix
instruction calculator prints."""

from __future__ import annotations

import pytest

from tilelang.layout.atoms import Atom
from tilelang.layout.gemm import WarpGrid, accumulator, operand_a
from tilelang.layout.instructions import (
    FAMILY_OF,
    MFMA,
    Chosen,
    choose_instruction,
    instructions,
)
from tilelang.layout.mfma import MFMA_ATOMS
from tilelang.target import ARCHS, Target

GFX90A, GFX942 = Target("hip", "gfx90a").number, Target("hip", "gfx942").number


def places(atom: Atom) -> dict[str, dict[tuple[int, int], tuple[int, int]]]:
    """(lane, element) of each operand of the instruction, as the calculator prints it.

    For v_mfma_f32_32x32x8_f16: A[i][k] lane 32 floor(k / 4) + i, B[k][j] lane 32 floor(k / 4) + j,
    D[i][j] register 4 floor(i / 8) + i % 4 of lane (32 floor(i / 4)) % 64 + j; others alike.
    """
    m, k = atom.m, atom.k
    held = k * m // 64  # elements of A in a lane
    rows = 4 * 64 // m  # after so many rows of D the lanes begin anew
    return {
        "a": {(i, s): (m * (s // held) + i, s % held) for i in range(m) for s in range(k)},
        "b": {(s, j): (m * (s // held) + j, s % held) for j in range(m) for s in range(k)},
        "d": {
            (i, j): (m * (i // 4) % 64 + j, 4 * (i // rows) + i % 4)
            for i in range(m) for j in range(m)
        },
    }  # fmt: skip


@pytest.mark.parametrize("atom", MFMA_ATOMS, ids=str)
def test_fragments_are_the_instruction_with_operands_exchanged(atom: Atom) -> None:
    of = places(atom)
    for (row, column), place in of["a"].items():  # the instruction's A is our B
        assert atom.b.owners(column, row) == (place,)
    for (row, column), place in of["b"].items():
        assert atom.a.owners(column, row) == (place,)
    for (row, column), place in of["d"].items():  # its D is our sums, turned
        assert atom.c.owners(column, row) == (place,)


@pytest.mark.parametrize("atom", MFMA_ATOMS, ids=str)
def test_every_register_of_a_wave_is_used_once(atom: Atom) -> None:
    for fragment in (atom.a, atom.b, atom.c):
        rows, columns = fragment.shape
        held = {fragment.owners(i, j) for i in range(rows) for j in range(columns)}
        assert len(held) == rows * columns == fragment.slots * 64
        assert fragment.thread_extent == 64


@pytest.mark.parametrize("atom", [a for a in MFMA_ATOMS if a.bits == 16], ids=str)
def test_sums_lie_as_the_next_product_wants_its_operand(atom: Atom) -> None:
    grid = WarpGrid(2, 1)
    sums = accumulator(64, 32, grid, atom)
    wanted = operand_a(64, 32, grid, atom)
    assert {(i, j): sums.owners(i, j) for i in range(64) for j in range(32)} == {
        (i, j): wanted.owners(i, j) for i in range(64) for j in range(32)
    }


@pytest.mark.parametrize(
    ("dtype", "sums", "arch", "m", "n", "k", "shape"),
    [
        ("float16", "float32", GFX942, 64, 64, 32, "m32n32k8"),
        ("float16", "float32", GFX90A, 64, 64, 32, "m32n32k8"),
        ("bfloat16", "float32", GFX942, 64, 48, 16, "m16n16k16"),
        ("float32", "float32", GFX942, 64, 64, 4, "m32n32k2"),
        ("int8", "int32", GFX942, 64, 64, 32, "m32n32k16"),
    ],
)
def test_chosen(dtype: str, sums: str, arch: int, m: int, n: int, k: int, shape: str) -> None:
    usable = instructions(dtype, dtype, sums, arch, MFMA)
    found = choose_instruction(usable, m, n, k, warps=1)
    assert isinstance(found, Chosen) and found.atom.shape == shape


def test_what_there_is_none_for() -> None:
    assert not instructions("int8", "int8", "int32", GFX90A, MFMA)
    assert not instructions("float16", "float16", "float16", GFX942, MFMA)
    assert not instructions("float8_e4m3fn", "float8_e4m3fn", "float32", GFX942, MFMA)
    assert not instructions("float16", "bfloat16", "float32", GFX942, MFMA)


def test_families_fit_their_targets() -> None:
    for kind, archs in ARCHS.items():
        for row in archs.values():
            family = FAMILY_OF.get(row.mma)
            assert family is None or (family.kind, family.lanes) == (kind, row.warp_size)
    assert GFX90A < GFX942 < Target("hip", "gfx950").number
