"""Gemms for the GPU lowering: types, transposes, tiles, warp policies, operands in registers."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang.language as T
from tests.kernels.case import KernelCase


def gemm(
    M: int, N: int, K: int, tile: tuple[int, int, int], dtype: str = "float16",
    out: str = "float32", accum: str = "float32", transpose_A: bool = False,
    transpose_B: bool = False, threads: int = 128, policy: int = 0, a_in: str = "shared",
    b_in: str = "shared", c_in: str = "fragment", other: str | None = None,
) -> Any:  # fmt: skip
    block_M, block_N, block_K = tile
    a_shape = (K, M) if transpose_A else (M, K)
    b_shape = (N, K) if transpose_B else (K, N)
    a_tile = (block_K, block_M) if transpose_A else (block_M, block_K)
    b_tile = (block_N, block_K) if transpose_B else (block_K, block_N)
    b_dtype = other or dtype

    @T.prim_func
    def main(A: T.Tensor(a_shape, dtype), B: T.Tensor(b_shape, b_dtype), C: T.Tensor((M, N), out)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_s = T.alloc_shared(a_tile, dtype)
            B_s = T.alloc_shared(b_tile, b_dtype)
            C_l = T.alloc_fragment((block_M, block_N), accum)
            T.clear(C_l)
            for k in T.serial(T.ceildiv(K, block_K)):
                if transpose_A:
                    T.copy(A[k * block_K, by * block_M], A_s)
                else:
                    T.copy(A[by * block_M, k * block_K], A_s)
                if transpose_B:
                    T.copy(B[bx * block_N, k * block_K], B_s)
                else:
                    T.copy(B[k * block_K, bx * block_N], B_s)
                if a_in == "fragment" and b_in == "fragment":
                    A_f = T.alloc_fragment(a_tile, dtype)
                    B_f = T.alloc_fragment(b_tile, b_dtype)
                    T.copy(A_s, A_f)
                    T.copy(B_s, B_f)
                    T.gemm(A_f, B_f, C_l, transpose_A=transpose_A, transpose_B=transpose_B,
                           policy=policy)  # fmt: skip
                elif a_in == "fragment":
                    A_f = T.alloc_fragment(a_tile, dtype)
                    T.copy(A_s, A_f)
                    T.gemm(A_f, B_s, C_l, transpose_A=transpose_A, transpose_B=transpose_B,
                           policy=policy)  # fmt: skip
                elif b_in == "fragment":
                    B_f = T.alloc_fragment(b_tile, b_dtype)
                    T.copy(B_s, B_f)
                    T.gemm(A_s, B_f, C_l, transpose_A=transpose_A, transpose_B=transpose_B,
                           policy=policy)  # fmt: skip
                else:
                    T.gemm(A_s, B_s, C_l, transpose_A=transpose_A, transpose_B=transpose_B,
                           policy=policy)  # fmt: skip
            if c_in == "shared":
                C_s = T.alloc_shared((block_M, block_N), out)
                T.copy(C_l, C_s)
                T.copy(C_s, C[by * block_M, bx * block_N])
            else:
                T.copy(C_l, C[by * block_M, bx * block_N])

    return main


def slices(M: int, N: int, K: int, parts: int, by: str) -> Any:
    """One gemm over parts of its tiles: along K of shared operands, or along N of C."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128) as bx:
            A_s = T.alloc_shared((M, K), "float16")
            B_s = T.alloc_shared((K, N), "float16")
            C_l = T.alloc_fragment((M, N), "float32")
            T.copy(A, A_s)
            T.copy(B, B_s)
            T.clear(C_l)
            for p in T.serial(parts):
                if by == "k":
                    T.gemm(
                        A_s[:, p * (K // parts) : (p + 1) * (K // parts)],
                        B_s[p * (K // parts) : (p + 1) * (K // parts), :],
                        C_l,
                    )
                else:
                    T.gemm(
                        A_s,
                        B_s[:, p * (N // parts) : (p + 1) * (N // parts)],
                        C_l[:, p * (N // parts) : (p + 1) * (N // parts)],
                    )
            T.copy(C_l, C)

    return main


def stages(M: int, N: int, K: int, block_K: int) -> Any:
    """Shared operands with a leading dimension, indexed by the step; C cleared by the first."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "bfloat16"), B: T.Tensor((N, K), "bfloat16"),
        C: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=256) as bx:
            A_s = T.alloc_shared((2, M, block_K), "bfloat16")
            B_s = T.alloc_shared((2, N, block_K), "bfloat16")
            C_l = T.alloc_fragment((M, N), "float32")
            for k in T.serial(K // block_K):
                T.copy(A[0:M, k * block_K : (k + 1) * block_K], A_s[k % 2, :, :])
                T.copy(B[0:N, k * block_K : (k + 1) * block_K], B_s[k % 2, :, :])
                T.gemm(A_s[k % 2, :, :], B_s[k % 2, :, :], C_l, transpose_B=True,
                       clear_accum=k == 0)  # fmt: skip
            T.copy(C_l, C)

    return main


def columns_of_b(dtype: str, accum: str) -> Any:
    """B is stored by columns: threads read along them."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 256), dtype), B: T.StridedTensor((256, 64), (1, 256), dtype),
        C: T.Tensor((64, 64), accum),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            A_s = T.alloc_shared((64, 64), dtype)
            B_s = T.alloc_shared((64, 64), dtype)
            C_l = T.alloc_fragment((64, 64), accum)
            T.clear(C_l)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[0, k * 64], A_s)
                T.copy(B[k * 64, 0], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C)

    return main


def columns_inputs(rng: np.random.Generator, dtype: str, **_: Any) -> tuple[Any, ...]:
    a, b = _random(rng, (64, 256), dtype), _random(rng, (64, 256), dtype)
    return a, b.T


def inputs(
    rng: np.random.Generator, M: int, N: int, K: int, dtype: str = "float16",
    transpose_A: bool = False, transpose_B: bool = False, other: str | None = None, **_: Any,
) -> tuple[Any, ...]:  # fmt: skip
    a = (K, M) if transpose_A else (M, K)
    b = (N, K) if transpose_B else (K, N)
    return _random(rng, a, dtype), _random(rng, b, other or dtype)


def _random(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    if dtype.startswith(("int", "uint")):
        low = 0 if dtype.startswith("uint") else -8
        return rng.integers(low, 8, shape).astype(dtype)
    values = rng.standard_normal(shape)
    if dtype in ("float16", "float32", "float64"):
        return values.astype(dtype)
    import torch

    return torch.from_numpy(values).to(getattr(torch, dtype))


def reference(
    a: Any, b: Any, transpose_A: bool = False, transpose_B: bool = False, **_: Any
) -> tuple[Any, ...]:
    left = a.T if transpose_A else a
    right = b.T if transpose_B else b
    if left.dtype.kind in "iu":
        return (left.astype(np.int64) @ right.astype(np.int64),)
    return (left @ right,)


def _case(
    name: str, precision: str | None = None, make: Any = gemm, sizes: Any = None, **params: Any
) -> KernelCase:
    columns = make is columns_of_b
    if str(params.get("dtype", "")).startswith("float8"):
        precision = precision or "float16"  # WGMMA keeps 14 bits of their sums
    needs_torch = any(
        str(params.get(key, "")).startswith(("bfloat", "float8")) for key in ("dtype", "other")
    )
    return KernelCase(
        name=f"gpu_{name}", row="gpu", tier=1, style="prim_func", make=make,
        inputs=columns_inputs if columns else inputs,
        reference=reference, params=params, sizes=sizes or {}, out_idx=(2,),
        targets=("cuda:sm_80",), precision=(precision,), needs_torch=needs_torch or make is stages,
    )  # fmt: skip


_SMALL = {"M": 128, "N": 128, "K": 64, "tile": (64, 64, 32)}
_ODD = {"M": 100, "N": 77, "K": 90, "tile": (64, 64, 32)}

TRANSPOSES = tuple(
    _case(
        f"gemm_{dtype}_{'n' if not a else 't'}{'n' if not b else 't'}",
        "float16" if dtype == "float32" else None,
        dtype=dtype, accum=accum, out=accum, transpose_A=a, transpose_B=b, **_SMALL,
    )
    for dtype, accum in (
        ("float16", "float32"), ("bfloat16", "float32"), ("float32", "float32"),
        ("int8", "int32"), ("float8_e4m3fn", "float32"), ("float64", "float64"),
    )
    for a in (False, True)
    for b in (False, True)
)  # fmt: skip

# Tiles that only a shallower, or a smaller, matrix instruction divides.
SHALLOW = tuple(
    _case(
        f"gemm_{dtype}_k{k}_{'n' if not a else 't'}{'n' if not b else 't'}",
        "float16" if dtype == "float32" else None,
        dtype=dtype, accum=accum, out=accum, transpose_A=a, transpose_B=b,
        M=64, N=64, K=3 * k, tile=(64, 64, k),
    )
    for dtype, accum, k in (
        ("float16", "float32", 8), ("float16", "float16", 24), ("bfloat16", "float32", 8),
        ("float32", "float32", 4), ("float32", "float32", 12), ("int8", "int32", 16),
        ("int8", "int32", 48), ("float8_e4m3fn", "float32", 16), ("float64", "float64", 12),
    )
    for a, b in ((False, False), (False, True), (True, True))
)  # fmt: skip

CASES: tuple[KernelCase, ...] = (
    *TRANSPOSES,
    *SHALLOW,
    _case("gemm_int8_8_rows", dtype="int8", accum="int32", out="int32", M=8, N=32, K=64,
          tile=(8, 32, 32), threads=64),
    _case("gemm_k8_a_in_registers", a_in="fragment", M=64, N=64, K=40, tile=(64, 64, 8)),
    _case("gemm_k8_b_in_registers", b_in="fragment", M=64, N=64, K=40, tile=(64, 64, 8)),
    *(_case(f"gemm_policy_{p}_{threads}", policy=p, threads=threads, **_SMALL)
      for p in (0, 1, 2) for threads in (64, 128, 256)
      if not (threads == 256 and p == 1)),
    _case("gemm_odd", **_ODD),
    _case("gemm_odd_tt", transpose_A=True, transpose_B=True, **_ODD),
    _case("gemm_a_in_registers", a_in="fragment", **_SMALL),
    _case("gemm_b_in_registers", b_in="fragment", **_SMALL),
    _case("gemm_ab_in_registers", a_in="fragment", b_in="fragment", transpose_A=True, **_SMALL),
    _case("gemm_tf32_a_in_registers", "float16", a_in="fragment", dtype="float32", **_SMALL),
    _case("gemm_c_shared", c_in="shared", out="float16", **_SMALL),
    _case("gemm_f16_sums", "bfloat16", accum="float16", out="float16", **_SMALL),
    _case("gemm_k16", M=64, N=64, K=40, tile=(64, 64, 16)),
    _case("gemm_wide", M=64, N=256, K=64, tile=(64, 256, 32), threads=128),
    _case("gemm_tall", M=256, N=32, K=64, tile=(256, 32, 64), threads=256),
    _case("gemm_one_warp", M=48, N=24, K=48, tile=(48, 24, 16), threads=32),
    _case("gemm_mixed_int8", dtype="uint8", other="int8", accum="int32", out="int32", **_SMALL),
    _case("gemm_mixed_float8", dtype="float8_e4m3fn", other="float8_e5m2", **_SMALL),
    _case("gemm_f16_from_f8", dtype="float8_e5m2", out="float16", **_SMALL),
    _case("gemm_without_matrix_units", dtype="int32", accum="int32", out="int32", **_SMALL),
    _case("gemm_f64_sums_of_f32", "float32", dtype="float32", accum="float64", out="float32",
          **_SMALL),
    _case("gemm_slices_of_k", make=slices, M=64, N=64, K=128, parts=4, by="k"),
    _case("gemm_slices_of_n", make=slices, M=64, N=128, K=32, parts=2, by="n"),
    *(_case(f"gemm_columns_of_b_{dtype}", "float16" if dtype == "float32" else None,
            make=columns_of_b, dtype=dtype, accum=accum)
      for dtype, accum in (("float16", "float32"), ("float32", "float32"), ("int8", "int32"),
                           ("float64", "float64"))),
    _case("gemm_stages", make=stages, M=64, N=64, K=256, block_K=64,
          sizes={"transpose_B": True, "dtype": "bfloat16"}),
)  # fmt: skip
