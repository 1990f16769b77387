"""Kernels written at thread level, as the lowering makes them: what the printer is tested with."""

from __future__ import annotations

from typing import Any

import tilelang.language as T

STAGES = 3


def scale(dtype: str = "float16") -> Any:
    """Ragged rows, a conversion, shared memory, a scalar parameter, a runtime dimension."""
    m = T.dynamic("m")

    @T.prim_func
    def main(A: T.Tensor((m, 1024), dtype), B: T.Tensor((m, 1024), "float32"), alpha: T.float32):
        with T.Kernel(T.ceildiv(m, 4), threads=128) as bx:
            tx = T.get_thread_binding()
            acc = T.alloc_local((8,), "float32")
            S = T.alloc_shared((1024,), dtype)
            for i in T.serial(4):
                for v in T.vectorized(8):
                    S[tx * 8 + v] = T.if_then_else(
                        bx * 4 + i < m, A[bx * 4 + i, tx * 8 + v], T.cast(0, dtype)
                    )
                T.sync_threads()
                for v in T.vectorized(8):
                    acc[v] = T.cast(S[(tx // 8) * 64 + ((tx % 8) ^ i) * 8 + v], "float32") * alpha
                T.sync_threads()
                if bx * 4 + i < m:
                    for v in T.vectorized(8):
                        B[bx * 4 + i, ((tx // 8) * 8 + ((tx % 8) ^ i)) * 8 + v] = acc[v] + 1.0

    return main


def gemm(M: int = 256, N: int = 256, K: int = 128) -> Any:
    """128x128x32 tiles, cp.async in three stages, swizzles, ldmatrix, mma: fp16 into fp32."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(N // 128, M // 128, threads=128) as (bx, by):
            tx = T.get_thread_binding()
            A_shared = T.alloc_shared((STAGES * 4096,), "float16")
            B_shared = T.alloc_shared((STAGES * 4096,), "float16")
            A_local = T.alloc_local((32,), "float16")
            B_local = T.alloc_local((32,), "float16")
            C_local = T.alloc_local((128,), "float32")
            for i in T.unroll(128):
                C_local[i] = 0.0
            for s in T.unroll(STAGES - 1):
                for i in T.unroll(4):
                    load_A(A, A_shared, s, i * 128 + tx, by, s)
                    load_B(B, B_shared, s, i * 128 + tx, bx, s)
                T.call_extern("handle", "cp_async_commit")
            for k in T.serial(K // 32):
                T.call_extern("handle", f"cp_async_wait groups={STAGES - 2}")
                T.sync_threads()
                for kk in T.unroll(2):
                    for mi in T.unroll(4):
                        row = (tx // 64) * 64 + mi * 16 + tx % 16
                        chunk = (kk * 2 + (tx % 32) // 16) ^ ((row // 2) % 4)
                        a = (k % STAGES) * 4096 + row * 32 + chunk * 8
                        T.call_extern(
                            "handle", "ldmatrix_x4", A_local[mi * 8 : mi * 8 + 8],
                            A_shared[a : a + 8],
                        )  # fmt: skip
                    for ni in T.unroll(4):
                        brow = kk * 16 + tx % 16
                        bchunk = (((tx // 32) % 2) * 8 + ni * 2 + (tx % 32) // 16) ^ (brow % 8)
                        b = (k % STAGES) * 4096 + brow * 128 + bchunk * 8
                        T.call_extern(
                            "handle", "ldmatrix_x4_trans", B_local[ni * 8 : ni * 8 + 8],
                            B_shared[b : b + 8],
                        )  # fmt: skip
                    for mi in T.unroll(4):
                        for nj in T.unroll(8):
                            c = (mi * 8 + nj) * 4
                            T.call_extern(
                                "handle", "mma_m16n8k16_f32_f16_f16", C_local[c : c + 4],
                                A_local[mi * 8 : mi * 8 + 8], B_local[nj * 4 : nj * 4 + 4],
                            )  # fmt: skip
                if k + STAGES - 1 < K // 32:
                    for i in T.unroll(4):
                        load_A(A, A_shared, (k + 2) % STAGES, i * 128 + tx, by, k + STAGES - 1)
                        load_B(B, B_shared, (k + 2) % STAGES, i * 128 + tx, bx, k + STAGES - 1)
                T.call_extern("handle", "cp_async_commit")
            for mi in T.unroll(4):
                for nj in T.unroll(8):
                    for h in T.unroll(2):
                        for v in T.vectorized(2):
                            C[
                                by * 128 + (tx // 64) * 64 + mi * 16 + h * 8 + (tx % 32) // 4,
                                bx * 128 + ((tx // 32) % 2) * 64 + nj * 8 + (tx % 4) * 2 + v,
                            ] = C_local[(mi * 8 + nj) * 4 + h * 2 + v]

    return main


@T.macro
def load_A(A, A_shared, stage, id, by, k):
    row = id // 4
    to = stage * 4096 + row * 32 + ((id % 4) ^ ((row // 2) % 4)) * 8
    T.call_extern(
        "handle", "cp_async bytes=16", A_shared[to : to + 8],
        A[by * 128 + row, k * 32 + (id % 4) * 8 : k * 32 + (id % 4) * 8 + 8],
    )  # fmt: skip


@T.macro
def load_B(B, B_shared, stage, id, bx, k):
    row = id // 16
    to = stage * 4096 + row * 128 + ((id % 16) ^ (row % 8)) * 8
    T.call_extern(
        "handle", "cp_async bytes=16", B_shared[to : to + 8],
        B[k * 32 + row, bx * 128 + (id % 16) * 8 : bx * 128 + (id % 16) * 8 + 8],
    )  # fmt: skip


def hopper_gemm(M: int, N: int, K: int) -> Any:
    """C = A @ B^T: one producer warp feeds a ring through TMA, one warp group multiplies."""
    layout = "a_swizzle=128 a_leading=16 a_stride=1024 b_swizzle=128 b_leading=16 b_stride=1024"

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((N, K), "float16"),
        C: T.Tensor((M, N), "float32"), A_map: T.int64, B_map: T.int64, C_map: T.int64,
    ):  # fmt: skip
        with T.Kernel(N // 128, M // 64, threads=256) as (bx, by):
            tx = T.get_thread_binding()
            A_shared = T.alloc_shared((2 * 4096,), "float16")
            B_shared = T.alloc_shared((2 * 8192,), "float16")
            C_shared = T.alloc_shared((64 * 128,), "float32")
            full = T.alloc_barrier([1, 1])
            empty = T.alloc_barrier([128, 128])
            if tx == 0:
                for i in T.unroll(2):
                    T.call_extern("handle", "mbarrier_init", full[i], 1)
                    T.call_extern("handle", "mbarrier_init", empty[i], 128)
                T.call_extern("handle", "fence_mbarrier_init")
            T.sync_threads()
            if tx >= 128:
                T.set_max_nreg(40, 0)
                if tx == 128:
                    for k in T.serial(K // 64):
                        T.mbarrier_wait_parity(empty[k % 2], (k // 2 + 1) % 2)
                        T.mbarrier_arrive_expect_tx(full[k % 2], 24576)
                        T.call_extern(
                            "handle", "tma_load",
                            A_shared[k % 2 * 4096 : k % 2 * 4096 + 4096], A_map, full[k % 2],
                            k * 64, by * 64,
                        )  # fmt: skip
                        T.call_extern(
                            "handle", "tma_load eviction=evict_last",
                            B_shared[k % 2 * 8192 : k % 2 * 8192 + 8192], B_map, full[k % 2],
                            k * 64, bx * 128,
                        )  # fmt: skip
            else:
                T.set_max_nreg(232, 1)
                d = T.alloc_local((64,), "float32")
                for k in T.serial(K // 64):
                    T.mbarrier_wait_parity(full[k % 2], k // 2 % 2)
                    T.warpgroup_arrive()
                    for kk in T.unroll(4):
                        a = k % 2 * 4096 + kk * 16
                        b = k % 2 * 8192 + kk * 16
                        T.call_extern(
                            "handle", f"wgmma_ss_k16_f32_f16_f16 n=128 {layout}", d[0:64],
                            A_shared[a : a + 16], B_shared[b : b + 16],
                            T.if_then_else(k + kk > 0, 1, 0),
                        )  # fmt: skip
                    T.warpgroup_commit_batch()
                    T.wait_wgmma(0)
                    T.mbarrier_arrive(empty[k % 2])
                for j in T.unroll(16):
                    for h in T.unroll(2):
                        for v in T.vectorized(2):
                            row = tx // 32 * 16 + tx % 32 // 4 + h * 8
                            col = j * 8 + tx % 4 * 2 + v
                            C_shared[col // 32 * 2048 + row * 32 + col % 32] = d[j * 4 + h * 2 + v]
                T.fence_proxy_async()
                T.sync_threads(1, 128)
                if tx == 0:
                    for j in T.unroll(4):
                        T.call_extern(
                            "handle", "tma_store", C_shared[j * 2048 : j * 2048 + 2048], C_map,
                            bx * 128 + j * 32, by * 64,
                        )  # fmt: skip
                    T.tma_store_arrive()
                    T.tma_store_wait(0, read=False)

    return main


def statements() -> Any:
    """Every statement kind, a view, a workspace, two launches, host values, debugging."""
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "int32"), limit: T.int32):
        half = n // 2
        with T.Kernel(T.ceildiv(half, 64), threads=64) as bx:
            tx = T.get_thread_binding()
            i = bx * 64 + tx
            total = T.alloc_var("float32")
            total = 0.0
            if i >= half:
                T.thread_return()
            for k in T.serial(2, 10):
                if k == limit:
                    break
                elif k % 3 == 1:
                    continue
                else:
                    total = total + A[i] * T.cast(k, "float32")
            count = T.alloc_var("int32")
            count = B[i]
            while count > 1:
                count = T.if_then_else(count % 2 == 0, count // 2, count * 3 + 1)
                total = total - 1.0
            T.device_assert(total < 1e30, "out of range")
            T.print(total, msg="total")
            A[i] = total
        with T.Kernel(1, threads=32) as _:
            S = T.alloc_shared((32,), "int32")
            words = T.view(S, (16,), "int64")
            tx = T.get_thread_binding()
            S[tx] = B[tx]
            T.sync_threads()
            if tx < 16:
                T.atomic_add(B[0], T.cast(words[tx], "int32"), memory_order="acq_rel")

    return main


def dtypes() -> Any:
    """A buffer of each kind of dtype, and arithmetic on it."""
    names = ("bool", "int8", "uint16", "int64", "bfloat16", "float64", "float8_e4m3fn",
             "float6_e2m3fn", "int4")  # fmt: skip

    @T.prim_func
    def main(
        b: T.Tensor((64,), names[0]), i8: T.Tensor((64,), names[1]), u16: T.Tensor((64,), names[2]),
        i64: T.Tensor((64,), names[3]), bf: T.Tensor((64,), names[4]),
        f64: T.Tensor((64,), names[5]), e4m3: T.Tensor((64,), names[6]),
        e2m3: T.Tensor((64,), names[7]), i4: T.Tensor((64,), names[8]),
    ):  # fmt: skip
        with T.Kernel(1, threads=64) as _:
            t = T.get_thread_binding()
            b[t] = i8[t] > 0
            i8[t] = i8[t] + T.cast(u16[t], "int8")
            u16[t] = T.max(u16[t], T.cast(i64[t], "uint16"))
            i64[t] = i64[t] * 3 + T.cast(t, "int64")
            bf[t] = bf[t] * T.cast(f64[t], "bfloat16") + T.bfloat16(0.5)
            f64[t] = T.exp(f64[t]) + T.float64(1e-300)
            bf[t] = T.__exp(bf[t])
            e4m3[t] = e4m3[t] + T.cast(bf[t], "float8_e4m3fn")
            e2m3[t] = T.cast(e4m3[t], "float6_e2m3fn")
            if t < 32:
                for v in T.vectorized(2):
                    i4[t * 2 + v] = i4[t * 2 + v] + T.cast(i8[t * 2 + v], "int4")

    return main


GOLDEN = {
    "scale": lambda: (scale(), {}),
    "gemm": lambda: (gemm(), {}),
    "hopper_gemm": lambda: (
        hopper_gemm(128, 256, 320),
        {
            "A_map": ("A", (64, 64), 128),
            "B_map": ("B", (128, 64), 128),
            "C_map": ("C", (64, 32), 0),
        },
    ),
    "statements": lambda: (statements(), {}),
    "dtypes": lambda: (dtypes(), {}),
}
