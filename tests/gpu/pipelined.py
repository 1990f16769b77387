"""Pipelined gemms for a GPU: depths, few and many iterations, ragged edges, all operand orders,
and results written in the element type of the operands."""

from __future__ import annotations

import random
from typing import Any

import tilelang.language as T
from tests.gpu import gemms
from tests.kernels.case import KernelCase

SEED = 20261129
_TYPES = (
    ("float16", "float32", "float16"), ("float16", "float32", "float32"),
    ("bfloat16", "float32", "bfloat16"), ("float32", "float32", "float32"),
    ("int8", "int32", "int32"), ("float8_e4m3fn", "float32", "float32"),
    ("float16", "float16", "float16"),
)  # fmt: skip


def gemm(
    M: int, N: int, K: int, tile: tuple[int, int, int], stages: int, dtype: str = "float16",
    out: str = "float32", accum: str = "float32", transpose_A: bool = False,
    transpose_B: bool = False, threads: int = 128, persistent: int = 0,
) -> Any:  # fmt: skip
    """`persistent`: so many blocks walk over all tiles."""
    block_M, block_N, block_K = tile
    a_shape = (K, M) if transpose_A else (M, K)
    b_shape = (N, K) if transpose_B else (K, N)
    a_tile = (block_K, block_M) if transpose_A else (block_M, block_K)
    b_tile = (block_N, block_K) if transpose_B else (block_K, block_N)
    across, down = -(-N // block_N), -(-M // block_M)
    blocks = persistent or across * down

    @T.prim_func
    def main(A: T.Tensor(a_shape, dtype), B: T.Tensor(b_shape, dtype), C: T.Tensor((M, N), out)):
        with T.Kernel(blocks, threads=threads) as block:
            A_s = T.alloc_shared(a_tile, dtype)
            B_s = T.alloc_shared(b_tile, dtype)
            C_l = T.alloc_fragment((block_M, block_N), accum)
            for turn in T.serial(T.ceildiv(across * down - block, blocks)):
                by = (turn * blocks + block) // across
                bx = (turn * blocks + block) % across
                T.clear(C_l)
                for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=stages):
                    if transpose_A:
                        T.copy(A[k * block_K, by * block_M], A_s)
                    else:
                        T.copy(A[by * block_M, k * block_K], A_s)
                    if transpose_B:
                        T.copy(B[bx * block_N, k * block_K], B_s)
                    else:
                        T.copy(B[k * block_K, bx * block_N], B_s)
                    T.gemm(A_s, B_s, C_l, transpose_A=transpose_A, transpose_B=transpose_B)
                T.copy(C_l, C[by * block_M, bx * block_N])

    return main


def one_tile_a_block(
    M: int, N: int, K: int, tile: tuple[int, int, int], stages: int, dtype: str = "float16",
    out: str = "float32", accum: str = "float32", transpose_A: bool = False,
    transpose_B: bool = False, threads: int = 128,
) -> Any:  # fmt: skip
    """The loop over K is all a block does."""
    block_M, block_N, block_K = tile
    a_shape = (K, M) if transpose_A else (M, K)
    b_shape = (N, K) if transpose_B else (K, N)
    a_tile = (block_K, block_M) if transpose_A else (block_M, block_K)
    b_tile = (block_N, block_K) if transpose_B else (block_K, block_N)

    @T.prim_func
    def main(A: T.Tensor(a_shape, dtype), B: T.Tensor(b_shape, dtype), C: T.Tensor((M, N), out)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_s = T.alloc_shared(a_tile, dtype)
            B_s = T.alloc_shared(b_tile, dtype)
            C_l = T.alloc_fragment((block_M, block_N), accum)
            T.clear(C_l)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=stages):
                if transpose_A:
                    T.copy(A[k * block_K, by * block_M], A_s)
                else:
                    T.copy(A[by * block_M, k * block_K], A_s)
                if transpose_B:
                    T.copy(B[bx * block_N, k * block_K], B_s)
                else:
                    T.copy(B[k * block_K, bx * block_N], B_s)
                T.gemm(A_s, B_s, C_l, transpose_A=transpose_A, transpose_B=transpose_B)
            T.copy(C_l, C[by * block_M, bx * block_N])

    return main


def random_pipelined(number: int) -> KernelCase:
    """A pipelined gemm, with one tile a block or several."""
    rng = random.Random(SEED + number)
    dtype, accum, out = rng.choice(_TYPES)
    m_warps, n_warps = rng.choice(((1, 1), (2, 1), (1, 2), (2, 2), (4, 1), (2, 4)))
    block_M, block_N = 32 * m_warps * rng.randint(1, 2), 32 * n_warps * rng.randint(1, 2)
    block_K = 32 * rng.randint(1, 2)
    unit = rng.choice((16, 16, 16, 4, 1))  # rows are multiples of it
    params: dict[str, Any] = {
        "M": unit * rng.randint(1, -(-150 // unit)), "N": unit * rng.randint(1, -(-200 // unit)),
        "K": unit * rng.randint(1, -(-(block_K * 6) // unit)), "tile": (block_M, block_N, block_K),
        "stages": rng.randint(2, 5), "dtype": dtype, "accum": accum, "out": out,
        "transpose_A": rng.random() < 0.4, "transpose_B": rng.random() < 0.5,
        "threads": 32 * m_warps * n_warps,
    }  # fmt: skip
    make = one_tile_a_block
    if rng.random() < 0.25:
        make, params["persistent"] = gemm, rng.randint(1, 3)
    loose = {"float16": "float16", "bfloat16": "bfloat16"}.get(out)
    if dtype == "float32" or (dtype.startswith("float8") and loose is None):
        loose = "float16"  # multiplied as tf32; WGMMA keeps 14 bits of sums of float8
    if accum == "float16":
        loose = "bfloat16"
    return KernelCase(
        name=f"random_pipelined_{number}", row="random", tier=1, style="prim_func", make=make,
        inputs=gemms.inputs, reference=gemms.reference, params=params, out_idx=(2,),
        targets=("cuda:sm_80",), precision=(loose,), needs_torch=True,
    )  # fmt: skip
