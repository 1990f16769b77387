"""Kernels in which Pyright and mypy underline nothing, whatever the settings."""

import numpy as np

import tilelang
import tilelang.language as T
from tilelang.profiler import Profiler


@T.macro
def scaled(x: T.Tensor((64,), "float32"), factor: T.float32, out: T.Ref):
    for i in T.Parallel(64):
        out[i] = x[i] * factor


def add(N, block=64, dtype="float32"):
    @T.prim_func
    def main(
        A: T.Tensor((N,), dtype),
        B: T.Tensor[[N], dtype],
        C: T.Tensor((N,), "float32"),
        n: T.int32,
        p: T.ptr,
        q: "float32",
    ):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            tile = T.alloc_shared((block,), dtype)
            T.copy(A[bx * block : (bx + 1) * block], tile)
            scaled(tile, 2.0, tile)
            for i in T.Parallel(block):
                C[bx * block + i] = tile[i] + B[bx * block + i]

    return main


kernel = tilelang.compile(add(256), out_idx=[2])
source: str = kernel.get_kernel_source()
profiler: Profiler = kernel.get_profiler()
kernel(np.zeros(256, np.float32), np.zeros(256, np.float32))


@tilelang.autotune(configs=[{"block": 32}, {"block": 64}], warmup=1, rep=1)
@tilelang.jit(out_idx=[-1], target="cpu", pass_configs={"tl.disable_tma_lower": True})
def tuned(N, block=64):
    return add(N, block)


best = tuned(256)
best(np.zeros(256, np.float32))
tuned.jit.compile(256).get_kernel_source()


@tilelang.jit
def first_rows(A: T.Tensor[[64, 32], T.float32], p: T.ptr, dtype=T.float16, rows=8):
    """Types stand in brackets: `T.Tensor[[M, K], dtype]`."""
    out = T.empty((rows, 32), dtype)
    with T.Kernel(rows, threads=32) as row:
        for j in T.Parallel(32):
            out[row, j] = T.cast(A[row, j], dtype)
    return out


first_rows(np.zeros((64, 32), np.float32), 0)
first_rows.compile().get_kernel_source()
