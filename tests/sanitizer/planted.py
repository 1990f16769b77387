"""Kernels with one mistake each, of the kinds compute-sanitizer finds.

`reverse` is right: its barrier is taken out of the generated source to make it wrong.
"""

from __future__ import annotations

import tilelang.language as T

N, TILE = 1000, 256


@T.prim_func
def past_the_end(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
    T.annotate_pass_configs({"tl.disable_safe_memory_access": True})
    with T.Kernel(T.ceildiv(N, TILE), threads=TILE) as bx:
        for i in T.Parallel(TILE):
            B[bx * TILE + i] = T.if_then_else(bx * TILE + i < N, A[bx * TILE + i], 0.0)


@T.prim_func
def far_away(A: T.Tensor((N,), "float32"), step: T.int64):
    T.annotate_pass_configs({"tl.disable_safe_memory_access": True})
    with T.Kernel(1, threads=32):
        for i in T.Parallel(32):
            A[i * step] = 1.0


@T.prim_func
def reverse(A: T.Tensor((TILE,), "float32"), B: T.Tensor((TILE,), "float32")):
    with T.Kernel(1, threads=TILE):
        tile = T.alloc_shared((TILE,), "float32")
        t = T.get_thread_binding()
        tile[t] = A[t]
        B[t] = tile[TILE - 1 - t]


@T.prim_func
def half_written(A: T.Tensor((TILE,), "float32"), B: T.Tensor((TILE,), "float32")):
    with T.Kernel(1, threads=TILE):
        for i in T.Parallel(TILE):
            B[i] += A[i]


@T.prim_func
def negative(A: T.Tensor((TILE,), "float32"), B: T.Tensor((TILE,), "float32")):
    with T.Kernel(1, threads=TILE):
        for i in T.Parallel(TILE):
            T.device_assert(A[i] >= -100.0, "an input below -100")
            B[i] = T.sqrt(A[i] + 100.0)
