"""Random numbers: Philox4x32-10 counted as cuRAND counts it, written a second time in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang.language as T
from tests.kernels.case import KernelCase

MASK = (1 << 32) - 1
DRAWS = 11


def philox(counter: list[int], key: list[int]) -> list[int]:
    """Four words of a counter (Salmon et al., 2011)."""
    a, b, c, d = counter
    k, low = key
    for _ in range(10):
        one, two = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (two >> 32) ^ b ^ k, two & MASK, (one >> 32) ^ d ^ low, one & MASK
        k, low = (k + 0x9E3779B9) & MASK, (low + 0xBB67AE85) & MASK
    return [a, b, c, d]


def words(seed: int, sequence: int, offset: int, count: int) -> list[int]:
    """What `curand` gives after `curand_init(seed, sequence, offset)`."""
    found: list[int] = []
    for n in range(offset, offset + count):
        whole = (sequence << 64) + n // 4
        counter = [whole >> (32 * i) & MASK for i in range(4)]
        found.append(philox(counter, [seed & MASK, seed >> 32 & MASK])[n % 4])
    return found


def bits(seed: int, offset: int, given: bool) -> Any:
    @T.prim_func
    def main(A: T.Tensor((4, 64, DRAWS), "uint32")):
        with T.Kernel(4, threads=64) as bx:
            tx = T.get_thread_binding()
            if given:
                T.rng_init(seed, bx * 100 + tx, offset)
            else:
                T.rng_init(seed, off=offset)
            for i in T.serial(DRAWS):
                A[bx, tx, i] = T.rng_rand()

    return main


def floats(seed: int, dist: str, bit: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((4, 64, DRAWS), f"float{bit}")):
        with T.Kernel(4, threads=64) as bx:
            tx = T.get_thread_binding()
            T.rng_init(seed)
            for i in T.serial(DRAWS):
                A[bx, tx, i] = T.rng_rand_float(bit=bit, dist=dist)

    return main


def _bits(seed: int, offset: int, given: bool) -> tuple[Any, ...]:
    rows = [
        words(seed, bx * 100 + tx if given else bx * 64 + tx, offset, DRAWS)
        for bx in range(4) for tx in range(64)
    ]  # fmt: skip
    return (np.array(rows, dtype=np.uint32).reshape(4, 64, DRAWS),)


def _floats(seed: int, dist: str, bit: int) -> tuple[Any, ...]:
    rows = []
    for thread in range(256):
        drawn = np.array(words(seed, thread, 0, 2 * DRAWS + 2), dtype=np.uint64)
        if bit == 32:
            unit = drawn.astype(np.float64) * 2.0**-32 + 2.0**-33
        else:
            wide = drawn[0::2] ^ (drawn[1::2] << np.uint64(21))
            unit = wide.astype(np.float64) * 2.0**-53 + 2.0**-54
        if dist == "normal":
            u, v = unit[0::2][: len(unit) // 2], unit[1::2]
            radius = np.sqrt(-2 * np.log(u))
            unit = np.stack([np.sin(2 * np.pi * v), np.cos(2 * np.pi * v)], 1) * radius[:, None]
            unit = unit.ravel()
        rows.append(unit[:DRAWS])
    return (np.array(rows).reshape(4, 64, DRAWS),)


def _case(name: str, make: Any, reference: Any, precision: str, **params: Any) -> KernelCase:
    return KernelCase(
        name=f"random_numbers_{name}", row="gpu", tier=1, style="prim_func", make=make,
        inputs=lambda _rng, **_: (), reference=reference, params=params, out_idx=(0,),
        targets=("cuda:sm_80",), precision=(precision,),
    )  # fmt: skip


CASES: tuple[KernelCase, ...] = (
    *(_case(f"bits_{seed}_{offset}_{given}", bits, _bits, "exact", seed=seed, offset=offset,
            given=given)
      for seed, offset, given in ((42, 0, True), (42, 0, False), ((5 << 32) + 1, 3, True),
                                  (7, 1001, False))),
    *(_case(f"{dist}_{bit}", floats, _floats, "float16" if bit == 32 else "float64", seed=1234,
            dist=dist, bit=bit)
      for dist in ("uniform", "normal") for bit in (32, 64)),
)  # fmt: skip
