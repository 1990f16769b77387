"""What lanes of a warp tell each other, asynchronous copies, and rounding by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import tilelang.language as T
from tests.device.golden import Golden

# (operation, width, what it is given besides, the lanes that call it): the lane that is read is
# one of them, otherwise its value is anybody's guess.
_SHUFFLES = (
    ("shfl_sync", 32, 3, 0xFFFFFFFF),
    ("shfl_sync", 8, 5, 0xFFFFFFFF),
    ("shfl_sync", 16, 33, 0xFFFF),
    ("shfl_sync", 4, 2, 0xF00F0FF0),
    ("shfl_xor", 32, 21, 0xFFFFFFFF),
    ("shfl_xor", 8, 5, 0xFF00FF00),
    ("shfl_xor", 16, 3, 0x00F0F00F),
    ("shfl_xor", 4, 9, 0xFFFFFFFF),
    ("shfl_up", 32, 7, 0xFFFFFFFF),
    ("shfl_up", 8, 3, 0x00FF00FF),
    ("shfl_up", 16, 17, 0xFFFFFFFF),
    ("shfl_down", 32, 9, 0xFFFFFFFF),
    ("shfl_down", 8, 2, 0xFF00FF00),
    ("shfl_down", 4, 1, 0xFFFFFFFF),
    ("shfl_down", 16, 40, 0xFFFF0000),
)
_MASKS = (0xFFFFFFFF, 0x0000FFFF, 0xF0F00001, 0x80000000, 0x5A5A5A5A)


def shuffles() -> Iterator[Golden]:
    """Each shuffle by segments of several widths, with lanes left out."""
    rng = np.random.default_rng(20261202)
    for dtype in ("int32", "uint8", "float16", "float64", "int64"):
        given = rng.integers(0, 100, 64).astype(dtype)
        out = np.zeros(64 * len(_SHUFFLES), dtype)
        yield Golden(f"shuffle {dtype}", _shuffle(dtype), {"A": given, "B": out}, ("B",))


def _shuffle(dtype: str) -> Any:
    @T.prim_func
    def main(A: T.Tensor((64,), dtype), B: T.Tensor((64 * len(_SHUFFLES),), dtype)):
        with T.Kernel(1, threads=64) as _:
            tx = T.get_thread_binding()
            for number, (name, width, place, mask) in enumerate(_SHUFFLES):
                if T.bitwise_and(T.shift_right(T.uint32(mask), T.cast(tx % 32, "uint32")), 1) == 1:
                    B[number * 64 + tx] = T.call_extern(
                        dtype, f"{name} width={width}", A[tx], place, T.uint32(mask)
                    )

    return main


def votes() -> Iterator[Golden]:
    """Votes and matches, with lanes left out."""
    rng = np.random.default_rng(20261203)
    for dtype in ("int32", "float32", "int64"):
        given = rng.integers(0, 3, 64).astype(dtype)
        arrays = {"A": given, "B": np.zeros(64 * len(_MASKS) * 5, np.uint32)}
        yield Golden(f"vote {dtype}", _vote(dtype), arrays, ("B",))


def _vote(dtype: str) -> Any:
    @T.prim_func
    def main(A: T.Tensor((64,), dtype), B: T.Tensor((64 * len(_MASKS) * 5,), "uint32")):
        with T.Kernel(1, threads=64) as _:
            tx = T.get_thread_binding()
            for number, mask in enumerate(_MASKS):
                at = number * 320 + tx
                if T.bitwise_and(T.shift_right(T.uint32(mask), T.cast(tx % 32, "uint32")), 1) == 1:
                    m = T.uint32(mask)
                    B[at] = T.call_extern("uint32", "ballot_sync", A[tx] > 0, m)
                    B[at + 64] = T.cast(T.call_extern("int32", "any_sync", A[tx] > 1, m), "uint32")
                    B[at + 128] = T.cast(
                        T.call_extern("int32", "all_sync", A[tx] >= 0, m), "uint32"
                    )
                    B[at + 192] = T.call_extern("uint32", "match_any_sync", A[tx], m)
                    B[at + 256] = T.call_extern("uint32", "match_all_sync", A[tx] - A[tx], m)

    return main


def copies() -> Iterator[Golden]:
    """`cp.async` of each size, some of whose threads ask for zeros, in two groups."""
    rng = np.random.default_rng(20261204)
    for size in (4, 8, 16):
        given = rng.integers(1, 1 << 16, 64 * size // 2 * 2).astype(np.uint16)
        wanted = rng.integers(0, 2, 128).astype(np.int32)
        arrays = {"A": given, "P": wanted, "B": np.zeros_like(given)}
        yield Golden(f"cp_async {size} bytes", _copy(size), arrays, ("B",))


def _copy(size: int) -> Any:
    each = size // 2

    @T.prim_func
    def main(
        A: T.Tensor((128 * each,), "uint16"), P: T.Tensor((128,), "int32"),
        B: T.Tensor((128 * each,), "uint16"),
    ):  # fmt: skip
        with T.Kernel(1, threads=64) as _:
            tx = T.get_thread_binding()
            tile = T.alloc_shared((128 * each,), "uint16")
            for group in T.unroll(2):
                at = (group * 64 + tx) * each
                for i in T.unroll(each):
                    tile[at + i] = T.cast(7, "uint16")
                T.call_extern(
                    "handle", f"cp_async bytes={size}", tile[at : at + each], A[at : at + each],
                    P[group * 64 + tx] != 0,
                )  # fmt: skip
                T.call_extern("handle", "cp_async_commit")
            T.call_extern("handle", "cp_async_wait groups=1")
            T.sync_threads()
            for i in T.unroll(each):
                B[tx * each + i] = tile[(63 - tx) * each + i]
            T.call_extern("handle", "cp_async_wait groups=0")
            T.sync_threads()
            for i in T.unroll(each):
                B[(64 + tx) * each + i] = tile[(127 - tx) * each + i]

    return main


_ROUNDED = ("add", "sub", "mul", "fmaf", "fdiv", "frcp", "fsqrt")


def roundings() -> Iterator[Golden]:
    """Arithmetic with a named rounding, tf32, and products of bytes."""
    rng = np.random.default_rng(20261205)
    for dtype in ("float32", "float64"):
        x, y, z = (rng.standard_normal(128).astype(dtype) for _ in range(3))
        arrays = {"X": np.abs(x), "Y": y, "Z": z, "B": np.zeros(21 * 128, dtype)}
        yield Golden(f"rounding {dtype}", _rounding(dtype), arrays, ("B",))
    given = floats_of_many_sizes(rng)
    yield Golden("rounding to tf32", _tf32(), {"A": given, "B": np.zeros_like(given)}, ("B",))


def floats_of_many_sizes(rng: np.random.Generator) -> np.ndarray:
    """Random bits of finite floats."""
    return (rng.standard_normal(128) * 2.0 ** rng.integers(-60, 60, 128)).astype(np.float32)


def _rounding(dtype: str) -> Any:
    @T.prim_func
    def main(
        X: T.Tensor((128,), dtype), Y: T.Tensor((128,), dtype), Z: T.Tensor((128,), dtype),
        B: T.Tensor((21 * 128,), dtype),
    ):  # fmt: skip
        with T.Kernel(1, threads=128) as _:
            tx = T.get_thread_binding()
            for number, name in enumerate(_ROUNDED):
                for m, mode in enumerate(("rz", "ru", "rd")):
                    operands = (X[tx], Y[tx], Z[tx])[: 3 if number == 3 else 2 if number < 5 else 1]
                    B[(number * 3 + m) * 128 + tx] = T.call_extern(
                        dtype, f"ieee_{name}_{mode}", *operands
                    )

    return main


def _tf32() -> Any:
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128) as _:
            tx = T.get_thread_binding()
            B[tx] = T.call_extern("float32", "to_tf32", A[tx])

    return main


FAMILIES = (shuffles, votes, copies, roundings)
