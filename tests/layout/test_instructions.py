"""The instruction of a gemm: the deepest that divides the tile and that the warps can share."""

from __future__ import annotations

import pytest

from tilelang.layout.gemm import NoPartition
from tilelang.layout.instructions import Chosen, Unsuitable, choose_instruction, instructions

DEPTHS = (
    ("float16", "float32", 80, 64, "m16n8k16"),
    ("float16", "float32", 80, 24, "m16n8k8"),
    ("float16", "float16", 80, 8, "m16n8k8"),
    ("float16", "float32", 75, 64, "m16n8k8"),
    ("bfloat16", "float32", 80, 40, "m16n8k8"),
    ("float32", "float32", 80, 16, "m16n8k8"),
    ("float32", "float32", 80, 12, "m16n8k4"),
    ("int8", "int32", 80, 96, "m16n8k32"),
    ("int8", "int32", 80, 48, "m16n8k16"),
    ("int4", "int32", 80, 64, "m16n8k64"),
    ("int4", "int32", 80, 96, "m16n8k32"),
    ("float8_e4m3fn", "float32", 89, 16, "m16n8k16"),
    ("float64", "float64", 80, 4, "m8n8k4"),
    ("float64", "float64", 90, 16, "m16n8k4"),
)


@pytest.mark.parametrize(("dtype", "accumulator", "arch", "k", "shape"), DEPTHS)
def test_the_deepest_that_divides_k(
    dtype: str, accumulator: str, arch: int, k: int, shape: str
) -> None:
    usable = instructions(dtype, dtype, accumulator, arch)
    found = choose_instruction(usable, 64, 64, k, warps=4)
    assert isinstance(found, Chosen)
    assert found.atom.shape == shape


@pytest.mark.parametrize(
    ("dtype", "accumulator", "arch", "unit"),
    [
        ("float16", "float32", 80, 8),
        ("bfloat16", "float32", 80, 8),
        ("float32", "float32", 80, 4),
        ("int8", "int32", 80, 16),
        ("int4", "int32", 80, 32),
        ("float8_e5m2", "float32", 89, 16),
        ("float64", "float64", 80, 4),
    ],
)
def test_every_k_is_legal_or_names_the_unit(
    dtype: str, accumulator: str, arch: int, unit: int
) -> None:
    usable = instructions(dtype, dtype, accumulator, arch)
    for k in range(1, 130):
        found = choose_instruction(usable, 64, 64, k, warps=4)
        if k % unit:
            assert found == Unsuitable("k", 8 if min(a.m for a in usable) == 8 else 16, 8, unit)
        else:
            assert isinstance(found, Chosen)
            assert k % found.atom.k == 0


def test_fewer_rows_than_the_tall_instruction_has() -> None:
    usable = instructions("int8", "int8", "int32", 80)
    found = choose_instruction(usable, 8, 32, 32, warps=2)
    assert isinstance(found, Chosen)
    assert found.atom.shape == "m8n8k16"
    assert choose_instruction(usable, 12, 32, 32, warps=2) == Unsuitable("tile", 8, 8, 16)


def test_a_smaller_instruction_where_the_warps_need_it() -> None:
    usable = instructions("int8", "uint8", "int32", 80)
    found = choose_instruction(usable, 16, 8, 32, warps=2)
    assert isinstance(found, Chosen)
    assert (found.atom.shape, str(found.grid)) == ("m8n8k16", "2x1 warps")
    assert isinstance(choose_instruction(usable, 16, 8, 32, warps=4), NoPartition)


def test_types_that_do_not_go_together() -> None:
    assert not instructions("float16", "bfloat16", "float32", 90)
    assert not instructions("float8_e4m3fn", "float8_e4m3fn", "float32", 80)
