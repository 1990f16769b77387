"""Products of warp groups: types, orders of storage, tiles, groups, A in registers."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang.language as T
from tests.kernels.case import KernelCase


def product(
    M: int, N: int, K: int, tile: tuple[int, int, int], dtype: str = "float16",
    sums: str = "float32", out: str = "float32", transpose_A: bool = False,
    transpose_B: bool = False, groups: int = 1, policy: int = 0, a_in: str = "shared",
    by: str = "tma", other: str | None = None,
) -> Any:  # fmt: skip
    """Whole blocks of warp groups; tiles come by the copy engine, or as ordinary copies."""
    block_M, block_N, block_K = tile
    a_shape = (K, M) if transpose_A else (M, K)
    b_shape = (N, K) if transpose_B else (K, N)
    a_tile = (block_K, block_M) if transpose_A else (block_M, block_K)
    b_tile = (block_N, block_K) if transpose_B else (block_K, block_N)
    b_dtype = other or dtype
    threads = 128 * groups

    @T.prim_func
    def main(A: T.Tensor(a_shape, dtype), B: T.Tensor(b_shape, b_dtype), C: T.Tensor((M, N), out)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by_):
            A_s = T.alloc_shared(a_tile, dtype)
            B_s = T.alloc_shared(b_tile, b_dtype)
            C_l = T.alloc_fragment((block_M, block_N), sums)
            full = T.alloc_barrier(threads)
            for k in T.serial(T.ceildiv(K, block_K)):
                m, n, kk = by_ * block_M, bx * block_N, k * block_K
                a_at = (kk, m) if transpose_A else (m, kk)
                b_at = (n, kk) if transpose_B else (kk, n)
                if by == "tma":
                    T.tma_copy(A[a_at[0], a_at[1]], A_s, barrier=full)
                    T.tma_copy(B[b_at[0], b_at[1]], B_s, barrier=full)
                    T.barrier_arrive(full)
                    T.barrier_wait(full, k & 1)
                else:
                    T.copy(A[a_at[0], a_at[1]], A_s)
                    T.copy(B[b_at[0], b_at[1]], B_s)
                if a_in == "fragment":
                    A_f = T.alloc_fragment(a_tile, dtype)
                    T.copy(A_s, A_f)
                    T.wgmma_gemm(A_f, B_s, C_l, transpose_A=transpose_A, transpose_B=transpose_B,
                                 policy=policy, clear_accum=k == 0)  # fmt: skip
                else:
                    T.wgmma_gemm(A_s, B_s, C_l, transpose_A=transpose_A, transpose_B=transpose_B,
                                 policy=policy, clear_accum=k == 0)  # fmt: skip
                T.wait_wgmma(0)
            T.copy(C_l, C[by_ * block_M, bx * block_N])

    return main


def slices(M: int, N: int, K: int, parts: int) -> Any:
    """One tile along K, multiplied in parts; two of them under way at a time."""
    step = K // parts

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
            for p in T.unroll(parts):
                T.wgmma_gemm(
                    A_s[:, p * step : (p + 1) * step], B_s[p * step : (p + 1) * step, :], C_l
                )
                T.wait_wgmma(1)
            T.wait_wgmma(0)
            T.copy(C_l, C)

    return main


def attention_like(M: int, N: int, D: int) -> Any:
    """A product of a product: the sums of the first are operand A of the second, in registers."""

    @T.prim_func
    def main(
        Q: T.Tensor((M, D), "float16"), K: T.Tensor((N, D), "float16"),
        V: T.Tensor((N, D), "float16"), O: T.Tensor((M, D), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128) as bx:
            Q_s = T.alloc_shared((M, D), "float16")
            K_s = T.alloc_shared((N, D), "float16")
            V_s = T.alloc_shared((N, D), "float16")
            S_l = T.alloc_fragment((M, N), "float32")
            P_l = T.alloc_fragment((M, N), "float16")
            O_l = T.alloc_fragment((M, D), "float32")
            row = T.alloc_fragment((M,), "float32")
            full = T.alloc_barrier(128)
            T.tma_copy(Q, Q_s, barrier=full)
            T.tma_copy(K, K_s, barrier=full)
            T.tma_copy(V, V_s, barrier=full)
            T.barrier_arrive(full)
            T.barrier_wait(full, 0)
            T.wgmma_gemm(Q_s, K_s, S_l, transpose_B=True, clear_accum=True)
            T.wait_wgmma(0)
            T.reduce_max(S_l, row, dim=1)
            for i, j in T.Parallel(M, N):
                S_l[i, j] = T.exp((S_l[i, j] - row[i]) * 0.125)
            T.copy(S_l, P_l)
            T.wgmma_gemm(P_l, V_s, O_l, clear_accum=True)
            T.wait_wgmma(0)
            T.copy(O_l, O)

    return main


def inputs(
    rng: np.random.Generator, M: int, N: int, K: int, dtype: str = "float16",
    transpose_A: bool = False, transpose_B: bool = False, other: str | None = None, **_: Any,
) -> tuple[Any, ...]:  # fmt: skip
    from tests.gpu.gemms import inputs as of_gemm

    return of_gemm(rng, M, N, K, dtype, transpose_A, transpose_B, other)


def reference(a: Any, b: Any, **params: Any) -> tuple[Any, ...]:
    from tests.gpu.gemms import reference as of_gemm

    return of_gemm(a, b, params.get("transpose_A", False), params.get("transpose_B", False))


def attention_inputs(rng: np.random.Generator, M: int, N: int, D: int, **_: Any) -> tuple[Any, ...]:
    return tuple(rng.standard_normal(s).astype(np.float16) for s in ((M, D), (N, D), (N, D)))


def attention_reference(q: Any, k: Any, v: Any, **_: Any) -> tuple[Any, ...]:
    scores = q @ k.T
    return (np.exp((scores - scores.max(1, keepdims=True)) * 0.125) @ v,)


def _case(name: str, precision: str | None, needs_torch: bool = False, **params: Any) -> KernelCase:
    return KernelCase(
        name=f"wgmma_{name}", row="wgmma", tier=4, style="prim_func", make=product, inputs=inputs,
        reference=reference, params=params, out_idx=(2,), targets=("cuda:sm_90a",),
        precision=(precision,), needs_torch=needs_torch,
    )  # fmt: skip


_SIZES: dict[str, Any] = {"M": 192, "N": 200, "K": 208, "tile": (64, 128, 64)}
_ORDERS = tuple((a, b) for a in (False, True) for b in (False, True))

CASES: tuple[KernelCase, ...] = (
    *(
        _case(f"{dtype}_{'nt'[a]}{'nt'[b]}", "float32", dtype == "bfloat16",
              **_SIZES, dtype=dtype, transpose_A=a, transpose_B=b)
        for dtype in ("float16", "bfloat16") for a, b in _ORDERS
    ),
    _case("float32", "float16", **_SIZES, dtype="float32", transpose_B=True),
    _case("int8", "int32", M=192, N=200, K=208, tile=(64, 96, 64), dtype="int8", sums="int32",
          out="int32", transpose_B=True),
    _case("uint8_int8", "int32", M=128, N=64, K=128, tile=(128, 64, 128), dtype="uint8",
          other="int8", sums="int32", out="int32", transpose_B=True),
    *(
        _case(f"{dtype[7:]}_{other[7:]}", "float16", True, M=192, N=200, K=208,
              tile=(64, 64, 64), dtype=dtype, other=other, transpose_B=True)
        for dtype, other in (
            ("float8_e4m3fn", "float8_e4m3fn"), ("float8_e5m2", "float8_e4m3fn"),
        )
    ),
    _case("float16_sums", "float8_e4m3fn", **_SIZES, sums="float16", out="float16"),
    *(
        _case(f"registers_{dtype}_{'nt'[a]}{'nt'[b]}", "float32", **_SIZES, dtype=dtype,
              transpose_A=a, transpose_B=b, a_in="fragment")
        for dtype, a, b in (("float16", False, False), ("float16", True, True))
    ),
    _case("registers_int8", "int32", M=64, N=64, K=128, tile=(64, 64, 64), dtype="int8",
          sums="int32", out="int32", transpose_B=True, a_in="fragment"),
    *(
        _case(f"groups_{groups}_{policy}_{m}x{n}", "float32", M=2 * m - 24, N=2 * n - 8, K=128,
              tile=(m, n, 64), groups=groups, policy=policy)
        for groups, policy, m, n in ((2, 0, 128, 128), (2, 2, 64, 256), (2, 1, 128, 64),
                                     (3, 0, 192, 64), (2, 0, 128, 256))
    ),
    *(
        _case(f"tile_{m}x{n}x{k}", "float32", M=m + 8, N=n + 8, K=2 * k, tile=(m, n, k))
        for m, n, k in ((64, 8 * 4, 16), (64, 48, 32), (64, 256, 64), (64, 320, 16), (256, 96, 64))
    ),
    *(
        _case(f"copied_{'nt'[a]}{'nt'[b]}", "float32", **_SIZES, transpose_A=a, transpose_B=b,
              by="copy")
        for a, b in ((False, False), (True, True))
    ),
    KernelCase(
        name="wgmma_slices", row="wgmma", tier=4, style="prim_func", make=slices, inputs=inputs,
        reference=reference, params={"M": 64, "N": 64, "K": 256, "parts": 4}, out_idx=(2,),
        targets=("cuda:sm_90a",), precision=("float32",),
    ),
    KernelCase(
        name="wgmma_twice", row="wgmma", tier=4, style="prim_func", make=attention_like,
        inputs=attention_inputs, reference=attention_reference,
        params={"M": 64, "N": 128, "D": 64}, out_idx=(3,), targets=("cuda:sm_90a",),
        precision=("float16",),
    ),
)  # fmt: skip
