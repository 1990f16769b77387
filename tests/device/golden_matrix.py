"""Matrix instructions of one warp, and what moves their operands: `mma.sync`, `ldmatrix`,
`stmatrix`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import tilelang.language as T
from tests.device.checks import _table
from tests.device.golden import DRAWS, Golden, floats, is_float, whole_numbers
from tilelang.ir.device_rows_mma import mma_name, type_combinations
from tilelang.layout.atoms import ATOMS, Atom
from tilelang.layout.instructions import MMA_SYNC

TRIALS = len(DRAWS)


def products() -> Iterator[Golden]:
    """Each instruction with random numbers: integers of any size, floats of each kind of draw."""
    rng = np.random.default_rng(20261130)
    for atom in ATOMS:
        tables = {f"T{x}": _table(f) for x, f in (("a", atom.a), ("b", atom.b), ("c", atom.c))}
        for accumulator, a_type, b_type in type_combinations(atom):
            name = mma_name(MMA_SYNC, atom, accumulator, a_type, b_type)
            operands = {
                "A": _drawn(rng, atom.m * atom.k, a_type),
                "B": _drawn(rng, atom.k * atom.n, b_type),
                "D": _drawn(rng, atom.m * atom.n, accumulator),
            }  # fmt: skip
            rounded = is_float(accumulator)
            yield Golden(
                f"mma {name}", _mma(name, atom, accumulator, a_type, b_type),
                {**operands, **tables}, ("D",), rounded={"D": accumulator} if rounded else {},
                signed=("A", "B", "D") if rounded else (),
            )  # fmt: skip


def _drawn(rng: np.random.Generator, count: int, dtype: str) -> np.ndarray:
    """`TRIALS` operands, one behind the other."""
    if not is_float(dtype):
        return whole_numbers(rng, TRIALS * count, dtype)
    stored = "float32" if dtype == "tfloat32" else dtype
    return np.concatenate([floats(rng, count, stored, draw) for draw in DRAWS])


def _mma(name: str, atom: Atom, accumulator: str, a_type: str, b_type: str) -> Any:
    m, n, k = atom.m, atom.n, atom.k
    na, nb, nc = m * k // 32, k * n // 32, m * n // 32
    a_type, b_type = ({"tfloat32": "float32"}.get(t, t) for t in (a_type, b_type))

    @T.prim_func
    def main(
        A: T.Tensor((TRIALS * m * k,), a_type), B: T.Tensor((TRIALS * k * n,), b_type),
        D: T.Tensor((TRIALS * m * n,), accumulator), Ta: T.Tensor((32 * na,), "int32"),
        Tb: T.Tensor((32 * nb,), "int32"), Tc: T.Tensor((32 * nc,), "int32"),
    ):  # fmt: skip
        with T.Kernel(TRIALS, threads=32) as trial:
            tx = T.get_thread_binding()
            a = T.alloc_local((na,), a_type)
            b = T.alloc_local((nb,), b_type)
            d = T.alloc_local((nc,), accumulator)
            for i in T.unroll(na):
                a[i] = A[trial * m * k + Ta[tx * na + i]]
            for i in T.unroll(nb):
                b[i] = B[trial * k * n + Tb[tx * nb + i]]
            for i in T.unroll(nc):
                d[i] = D[trial * m * n + Tc[tx * nc + i]]
            T.call_extern("handle", name, d[0:nc], a[0:na], b[0:nb])
            for i in T.unroll(nc):
                D[trial * m * n + Tc[tx * nc + i]] = d[i]

    return main


def moves() -> Iterator[Golden]:
    """`ldmatrix` and `stmatrix`, rows in any order."""
    rng = np.random.default_rng(20261201)
    for count in (1, 2, 4):
        for suffix in ("", "_trans"):
            rows = rng.permutation(32).astype(np.int32)
            memory = rng.integers(0, 1 << 16, 256).astype(np.uint16)
            registers = rng.integers(0, 1 << 16, 64 * count).astype(np.uint16)
            yield Golden(
                f"ldmatrix x{count}{suffix}", _load(count, suffix),
                {"A": memory, "R": rows, "B": np.zeros(64 * count, np.uint16)}, ("B",),
            )  # fmt: skip
            yield Golden(
                f"stmatrix x{count}{suffix}", _store(count, suffix),
                {"A": registers, "R": rows, "B": memory}, ("B",),
            )  # fmt: skip


def _load(count: int, suffix: str) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((256,), "uint16"), R: T.Tensor((32,), "int32"),
        B: T.Tensor((64 * count,), "uint16"),
    ):  # fmt: skip
        with T.Kernel(1, threads=32) as _:
            tx = T.get_thread_binding()
            tile = T.alloc_shared((256,), "uint16")
            held = T.alloc_local((2 * count,), "uint16")
            for i in T.unroll(8):
                tile[tx * 8 + i] = A[tx * 8 + i]
            T.sync_threads()
            row = R[tx] * 8
            T.call_extern(
                "handle", f"ldmatrix_x{count}{suffix}", held[0 : 2 * count], tile[row : row + 8]
            )
            for i in T.unroll(2 * count):
                B[tx * 2 * count + i] = held[i]

    return main


def _store(count: int, suffix: str) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((64 * count,), "uint16"), R: T.Tensor((32,), "int32"),
        B: T.Tensor((256,), "uint16"),
    ):  # fmt: skip
        with T.Kernel(1, threads=32) as _:
            tx = T.get_thread_binding()
            tile = T.alloc_shared((256,), "uint16")
            held = T.alloc_local((2 * count,), "uint16")
            for i in T.unroll(8):
                tile[tx * 8 + i] = B[tx * 8 + i]
            for i in T.unroll(2 * count):
                held[i] = A[tx * 2 * count + i]
            T.sync_threads()
            row = R[tx] * 8
            T.call_extern(
                "handle", f"stmatrix_x{count}{suffix}", tile[row : row + 8], held[0 : 2 * count]
            )
            T.sync_threads()
            for i in T.unroll(8):
                B[tx * 8 + i] = tile[tx * 8 + i]

    return main


FAMILIES = (products, moves)
