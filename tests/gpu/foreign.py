"""Kernels that bring CUDA source of their own: as a file, as a string, and as functions to call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import tilelang.language as T
from tests.kernels.case import KernelCase

REVERSED = r"""
// Reverses blocks of 128 elements, through shared memory.
extern "C" __global__ void reversed_blocks(const int* A, int* B, int offset, int n) {
  __shared__ int tile[128];
  int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) tile[threadIdx.x] = A[i];
  __syncthreads();
  int last = min(128, n - int(blockIdx.x) * 128) - 1;
  if (i < n) B[i] = tile[last - int(threadIdx.x)] + offset;
}
"""
SOFTSIGN = """
static __device__ float softsign(float x) { return x / (1.0f + fabsf(x)); }
static __device__ void store_pair(float* to, float first, float second) {
  to[0] = first;
  to[1] = second;
}
"""


def reversed_blocks(n: Any = None) -> Any:
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int32"), offset: T.int32):
        T.CUDASourceCodeKernel(
            T.ceildiv(n, 128), threads=128, source_code_or_path=REVERSED,
            entry_name="reversed_blocks",
        )  # fmt: skip

    return main


def weighted_rows() -> Any:
    rows = T.dynamic("rows")

    @T.prim_func
    def main(
        A: T.Tensor((rows, 96), "float16"), weights: T.Tensor((rows,), "float32"),
        B: T.Tensor((rows, 96), "float16"),
    ):  # fmt: skip
        with T.CUDASourceCodeKernel(
            rows, threads=64, entry_name="weighted_rows",
            source_code_or_path=Path(__file__).with_name("weighted_rows.cu"),
        ):  # fmt: skip
            pass

    return main


def called_functions(n: int = 200) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), C: T.Tensor((n, 2), "float32")
    ):
        T.import_source(SOFTSIGN)
        with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
            for i in T.Parallel(64):
                if bx * 64 + i < n:
                    B[bx * 64 + i] = T.call_pure_extern("float32", "softsign", A[bx * 64 + i])
            t = T.get_thread_binding()
            if bx * 64 + t < n:
                T.call_extern(
                    "handle", "store_pair", T.access_ptr(C[bx * 64 + t, 0], "w", 2),
                    A[bx * 64 + t], T.cast(t, "float32"),
                )  # fmt: skip

    return main


def _reversed_inputs(rng: Any, **values: Any) -> tuple[Any, ...]:
    return rng.integers(-9, 9, 300).astype(np.int32), np.zeros(300, np.int32), 1000


def _reversed_reference(A: Any, B: Any, offset: Any, **values: Any) -> tuple[Any, ...]:
    parts = [A[at : at + 128][::-1] for at in range(0, len(A), 128)]
    return (np.concatenate(parts).astype(np.int32) + 1000,)


def _weighted_inputs(rng: Any, **values: Any) -> tuple[Any, ...]:
    return (rng.standard_normal((37, 96)).astype(np.float16),
            rng.standard_normal(37).astype(np.float32), np.zeros((37, 96), np.float16))  # fmt: skip


def _called_inputs(rng: Any, **values: Any) -> tuple[Any, ...]:
    return (rng.standard_normal(200).astype(np.float32), np.zeros(200, np.float32),
            np.zeros((200, 2), np.float32))  # fmt: skip


def _called_reference(A: Any, B: Any, C: Any, **values: Any) -> tuple[Any, ...]:
    pairs = np.stack([A, np.arange(200) % 64], axis=1)
    return A / (1 + np.abs(A)), pairs


CASES = (
    KernelCase(
        name="foreign_reversed_blocks", row="embedded CUDA", tier=2, style="prim_func",
        make=reversed_blocks, inputs=_reversed_inputs, reference=_reversed_reference,
        mutates=(1,), targets=("cuda:sm_80",),
    ),
    KernelCase(
        name="foreign_weighted_rows", row="embedded CUDA", tier=2, style="prim_func",
        make=weighted_rows, inputs=_weighted_inputs,
        reference=lambda A, weights, B, **values: (A * weights[:, None],),
        mutates=(2,), targets=("cuda:sm_80",),
    ),
    KernelCase(
        name="foreign_called_functions", row="embedded CUDA", tier=2, style="prim_func",
        make=called_functions, inputs=_called_inputs, reference=_called_reference,
        mutates=(1, 2), targets=("cuda:sm_80",),
    ),
)  # fmt: skip
