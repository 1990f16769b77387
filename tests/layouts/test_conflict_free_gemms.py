"""Shared operands of a gemm have no bank conflicts, whatever their type, direction and tile.

The layout that inference chose is counted a second time by `layout.banks`, from the patterns of
the instructions that read it.
"""

from __future__ import annotations

import itertools

import pytest

from tilelang.language.frontend import parse_static
from tilelang.layout.banks import conflicts, fragment_access, ldmatrix_rows
from tilelang.layout.instructions import Chosen, choose_instruction, instructions
from tilelang.layout.layout import Layout
from tilelang.layouts.infer import infer_layouts
from tilelang.layouts.layout_map import LayoutMap

TYPES = (
    ("float16", "float32", 16), ("bfloat16", "float32", 16), ("float32", "float32", 32),
    ("int8", "int32", 8), ("float8_e4m3fn", "float32", 8), ("float64", "float64", 64),
)  # fmt: skip
TILES = (
    (128, 128, 32), (64, 64, 64), (128, 64, 16), (64, 128, 128), (32, 32, 32), (16, 64, 48),
    (64, 96, 96),
)  # fmt: skip


def layouts_of(
    dtype: str, accumulator: str, m: int, n: int, k: int, ta: bool, tb: bool
) -> LayoutMap:
    a, b = (k, m) if ta else (m, k), (n, k) if tb else (k, n)
    text = f"""
import tilelang.language as T
@T.prim_func
def main(A: T.Tensor({a}, "{dtype}"), B: T.Tensor({b}, "{dtype}"),
         C: T.Tensor({(m, n)}, "{accumulator}")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared({a}, "{dtype}")
        b = T.alloc_shared({b}, "{dtype}")
        c = T.alloc_fragment({(m, n)}, "{accumulator}")
        T.copy(A, a)
        T.copy(B, b)
        T.clear(c)
        T.gemm(a, b, c, transpose_A={ta}, transpose_B={tb})
        T.copy(c, C)
"""
    (parsed,) = parse_static(text, "kernel.py", target="cuda:sm_90")
    assert not [d for d in parsed.diagnostics if d.code == "TL306"]
    assert parsed.function is not None
    return infer_layouts(parsed.function, "cuda:sm_90")


@pytest.mark.parametrize(("dtype", "accumulator", "bits"), TYPES)
@pytest.mark.parametrize("tile", TILES, ids=str)
def test_no_conflicts(dtype: str, accumulator: str, bits: int, tile: tuple[int, int, int]) -> None:
    usable = instructions(dtype, dtype, accumulator, 90)
    chosen = choose_instruction(usable, *tile, warps=4)
    assert isinstance(chosen, Chosen)
    for ta, tb in itertools.product((False, True), repeat=2):
        (launch,) = layouts_of(dtype, accumulator, *tile, ta, tb).launches
        shared = {e.name: e for e in launch.buffers if e.kind == "shared"}
        for name, along_k, atom in (("a", not ta, chosen.atom.a), ("b", tb, chosen.atom.b)):
            entry = shared[name]
            assert isinstance(entry.layout, Layout)
            assert entry.bank_uses
            assert max(use.degree for use in entry.bank_uses) <= 1, entry.why
            if bits == 16 or (along_k and bits < 64):
                patterns = [ldmatrix_rows(bits)]
            else:
                stored = atom if (name == "a") == along_k else atom.permute((1, 0))
                patterns = list(fragment_access(stored, width=1))
            for pattern in patterns:
                assert conflicts(entry.layout, pattern, bits).degree <= 1, (name, entry.why)


@pytest.mark.parametrize("n", [512, 600, 604, 640, 40000])
def test_contiguous_copies_do_not_collide_in_a_last_round_that_is_not_full(n: int) -> None:
    text = f"""
import tilelang.language as T
@T.prim_func
def main(A: T.Tensor(({4 * n},), "float32"), B: T.Tensor(({4 * n},), "float32")):
    with T.Kernel(4, threads=128) as bx:
        s = T.alloc_shared(({n},), "float32")
        T.copy(A[bx * {n}], s)
        T.copy(s, B[bx * {n}])
"""
    (parsed,) = parse_static(text, "kernel.py", target="cuda:sm_80")
    assert parsed.function is not None
    tile = infer_layouts(parsed.function, "cuda:sm_80").of("s")
    assert [use.degree for use in tile.bank_uses] == [1, 1]
