"""Small kernels, right ones, that tests of the checked mode damage."""

from __future__ import annotations

from typing import Any

import tilelang.language as T


def reverse(N: int = 256) -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=N):
            tile = T.alloc_shared((N,), "float32")
            tx = T.get_thread_binding()
            tile[tx] = A[tx]
            T.sync_threads()
            B[tx] = tile[N - 1 - tx]

    return main


def handover(count: int = 64, arriving: int = 64) -> Any:
    """One warp waits at barrier 1 for another one."""

    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tile = T.alloc_shared((64,), "int32")
            tx = T.get_thread_binding()
            tile[tx] = A[tx]
            if tx < arriving:
                T.sync_threads(1, count)
            B[tx] = tile[tx]

    return main
