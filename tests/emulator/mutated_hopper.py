"""The same for Hopper: kernels that load by TMA, signal by mbarriers and multiply by WGMMA."""

from __future__ import annotations

from typing import Any

import tilelang.language as T


def warp_specialised(M: int = 64, N: int = 64, K: int = 960) -> Any:
    """One warp group loads by TMA into a ring of three, another one multiplies (WGMMA)."""
    stages = 3

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):  # fmt: skip
        with T.Kernel(N // 64, M // 64, threads=256) as (bx, by):
            a = T.alloc_shared((stages, 64, 64), "float16")
            b = T.alloc_shared((stages, 64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            c_tile = T.alloc_shared((64, 64), "float16")
            loaded = T.alloc_barrier([128] * stages)
            consumed = T.alloc_barrier([128] * stages)
            with T.ws(0):
                T.set_max_nreg(24, 0)
                for k in range(T.ceildiv(K, 64)):
                    slot = k % stages
                    T.barrier_wait(consumed[slot], ((k // stages) & 1) ^ 1)
                    T.tma_copy(A[by * 64, k * 64], a[slot, :, :], barrier=loaded[slot])
                    T.tma_copy(B[k * 64, bx * 64], b[slot, :, :], barrier=loaded[slot])
                    T.barrier_arrive(loaded[slot])
            with T.ws(1):
                T.set_max_nreg(240, 1)
                T.clear(c)
                for k in range(T.ceildiv(K, 64)):
                    slot = k % stages
                    T.barrier_wait(loaded[slot], (k // stages) & 1)
                    T.wgmma_gemm(a[slot, :, :], b[slot, :, :], c)
                    T.wait_wgmma(0)
                    T.barrier_arrive(consumed[slot])
                T.copy(c, c_tile)
                T.tma_copy(c_tile, C[by * 64, bx * 64])

    return main


def hopper_products(M: int = 64, N: int = 64, K: int = 320) -> Any:
    """Ordinary copies feed WGMMA: one product is under way while the next tile is written."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(N // 64, M // 64, threads=128) as (bx, by):
            a = T.alloc_shared((2, 64, 32), "float16")
            b = T.alloc_shared((2, 32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.serial(K // 32):
                T.copy(A[by * 64, k * 32], a[k % 2, :, :])
                T.copy(B[k * 32, bx * 64], b[k % 2, :, :])
                T.wgmma_gemm(a[k % 2, :, :], b[k % 2, :, :], c)
                T.wait_wgmma(1)
            T.wait_wgmma(0)
            T.copy(c, C[by * 64, bx * 64])

    return main


def tma_stream(tiles: int = 7) -> Any:
    """Tiles come by TMA, are changed, and leave by TMA, each way through a ring of two."""
    shape = (tiles * 16, 64)

    @T.prim_func
    def main(A: T.Tensor(shape, "float32"), B: T.Tensor(shape, "float32")):
        with T.Kernel(1, threads=128):
            into = T.alloc_shared((2, 16, 64), "float32")
            out = T.alloc_shared((2, 16, 64), "float32")
            full = T.alloc_barrier([128, 128])
            for k in T.serial(tiles):
                slot = k % 2
                T.tma_copy(A[k * 16, 0], into[slot, :, :], barrier=full[slot])
                T.barrier_arrive(full[slot])
                T.barrier_wait(full[slot], (k // 2) & 1)
                T.tma_store_wait(1)
                T.sync_threads()
                for i, j in T.Parallel(16, 64):
                    out[slot, i, j] = into[slot, i, j] * 2.0 + 1.0
                T.tma_copy(out[slot, :, :], B[k * 16, 0])

    return main
