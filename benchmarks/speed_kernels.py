"""Which kernels does `gpu_speed` time, on which problems, in which configurations?

They are what a user would write; a configuration is what a user would tune.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import tilelang.language as T
from tilelang.layout.layout import Layout

EPSILON = 1e-6
LOG2_E = 1.44269504


@dataclass(frozen=True, slots=True)
class Timed:
    """A kernel at fixed sizes. Those of one `problem` are compared with each other and with its
    peer; `made_for` are the architectures it is built for."""

    problem: str
    config: str
    function: Any
    made_for: tuple[str, ...] = ("sm_90a",)
    shape: tuple[int, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Blocks:
    """The tuning parameters of a GEMM. `panel` rows of blocks run together; `layout` is how its
    tiles lie in shared memory: as the compiler chooses, row by row, or as it says itself."""

    m: int
    n: int
    k: int
    stages: int
    threads: int
    panel: int = 8
    layout: str = "chosen"

    def __str__(self) -> str:
        base = f"{self.m}x{self.n}x{self.k} s{self.stages} t{self.threads} p{self.panel}"
        return base if self.layout == "chosen" else f"{base} {self.layout}"


GEMM_BLOCKS = (
    Blocks(128, 128, 32, 4, 128),
    Blocks(128, 128, 64, 3, 128),
    Blocks(128, 128, 64, 2, 128),
    Blocks(128, 128, 64, 3, 256),
    Blocks(128, 256, 32, 4, 256),
    Blocks(128, 256, 64, 3, 256),
    Blocks(256, 128, 32, 4, 256),
    Blocks(256, 128, 64, 3, 256),
)
SWIZZLES = tuple(
    Blocks(128, 128, 32, 4, 128, panel, layout)
    for panel, layout in ((0, "chosen"), (8, "chosen"), (8, "row by row"), (8, "annotated"))
)
GEMM_SHAPES = ((4096, 4096, 4096), (8192, 8192, 8192), (1024, 4096, 8192))


def gemm(M: int, N: int, K: int, blocks: Blocks, transposed: bool) -> Any:
    """C = A @ B, or A @ B.T, in half precision."""
    bm, bn, bk = blocks.m, blocks.n, blocks.k
    b_tile = (bn, bk) if transposed else (bk, bn)

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), T.float16),
        B: T.Tensor((N, K) if transposed else (K, N), T.float16),
        C: T.Tensor((M, N), T.float16),
    ):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=blocks.threads) as (bx, by):
            A_tile = T.alloc_shared((bm, bk), T.float16)
            B_tile = T.alloc_shared(b_tile, T.float16)
            C_tile = T.alloc_fragment((bm, bn), T.float32)
            if blocks.layout != "chosen":
                T.annotate_layout(
                    {A_tile: _layout(blocks, (bm, bk)), B_tile: _layout(blocks, b_tile)}
                )
            T.use_swizzle(blocks.panel, enable=blocks.panel > 0)
            T.clear(C_tile)
            for k in T.Pipelined(T.ceildiv(K, bk), num_stages=blocks.stages):
                T.copy(A[by * bm, k * bk], A_tile)
                if transposed:
                    T.copy(B[bx * bn, k * bk], B_tile)
                else:
                    T.copy(B[k * bk, bx * bn], B_tile)
                T.gemm(A_tile, B_tile, C_tile, transpose_B=transposed)
            T.copy(C_tile, C[by * bm, bx * bn])

    return gemm


def _layout(blocks: Blocks, shape: tuple[int, ...]) -> Layout:
    """Row by row, or with the 16-byte chunks of a row exchanged by what row it is."""
    columns = shape[1]
    if blocks.layout == "row by row":
        return Layout(shape, lambda i, j: (i, j))
    chunks = columns // 8
    if chunks >= 8:
        return Layout(shape, lambda i, j: (i, (j // 8 ^ i % 8) * 8 + j % 8))
    step = 8 // chunks
    return Layout(shape, lambda i, j: (i, (j // 8 ^ i // step % chunks) * 8 + j % 8))


def copy(M: int, N: int, rows: int, columns: int, threads: int) -> Any:
    """B = A, through registers."""

    @T.prim_func
    def copy(A: T.Tensor((M, N), T.float16), B: T.Tensor((M, N), T.float16)):
        with T.Kernel(N // columns, M // rows, threads=threads) as (bx, by):
            tile = T.alloc_fragment((rows, columns), T.float16)
            T.copy(A[by * rows, bx * columns], tile)
            T.copy(tile, B[by * rows, bx * columns])

    return copy


def add(M: int, N: int, rows: int, columns: int, threads: int) -> Any:
    """C = A + B."""

    @T.prim_func
    def add(
        A: T.Tensor((M, N), T.float16),
        B: T.Tensor((M, N), T.float16),
        C: T.Tensor((M, N), T.float16),
    ):
        with T.Kernel(N // columns, M // rows, threads=threads) as (bx, by):
            for i, j in T.Parallel(rows, columns):
                y, x = by * rows + i, bx * columns + j
                C[y, x] = A[y, x] + B[y, x]

    return add


def softmax(M: int, N: int, threads: int) -> Any:
    """The softmax of each row, which a block holds in registers: one division for a row."""

    @T.prim_func
    def softmax(x: T.Tensor((M, N), T.float16), y: T.Tensor((M, N), T.float16)):
        with T.Kernel(M, threads=threads) as bx:
            row = T.alloc_fragment((1, N), T.float32)
            peak = T.alloc_fragment((1,), T.float32)
            scale = T.alloc_fragment((1,), T.float32)
            T.copy(x[bx, 0], row)
            T.reduce_max(row, peak, dim=1)
            for i, j in T.Parallel(1, N):
                row[i, j] = T.exp2((row[i, j] - peak[i]) * LOG2_E)
            T.reduce_sum(row, scale, dim=1)
            for i in T.Parallel(1):
                scale[i] = 1.0 / scale[i]
            for i, j in T.Parallel(1, N):
                row[i, j] *= scale[i]
            T.copy(row, y[bx, 0])

    return softmax


def softmax_dividing(M: int, N: int, threads: int) -> Any:
    """The same with a division, correctly rounded, for each element."""

    @T.prim_func
    def softmax(x: T.Tensor((M, N), T.float16), y: T.Tensor((M, N), T.float16)):
        with T.Kernel(M, threads=threads) as bx:
            row = T.alloc_fragment((1, N), T.float32)
            peak = T.alloc_fragment((1,), T.float32)
            total = T.alloc_fragment((1,), T.float32)
            T.copy(x[bx, 0], row)
            T.reduce_max(row, peak, dim=1)
            for i, j in T.Parallel(1, N):
                row[i, j] = T.exp2((row[i, j] - peak[i]) * LOG2_E)
            T.reduce_sum(row, total, dim=1)
            for i, j in T.Parallel(1, N):
                row[i, j] /= total[i]
            T.copy(row, y[bx, 0])

    return softmax


def rms_norm(M: int, N: int, threads: int) -> Any:
    """Each row over its root mean square, times a weight."""

    @T.prim_func
    def rms_norm(
        x: T.Tensor((M, N), T.float16),
        weight: T.Tensor((N,), T.float16),
        y: T.Tensor((M, N), T.float16),
    ):
        with T.Kernel(M, threads=threads) as bx:
            row = T.alloc_fragment((1, N), T.float32)
            squares = T.alloc_fragment((1, N), T.float32)
            scale = T.alloc_fragment((1,), T.float32)
            T.copy(x[bx, 0], row)
            for i, j in T.Parallel(1, N):
                squares[i, j] = row[i, j] * row[i, j]
            T.reduce_sum(squares, scale, dim=1)
            for i in T.Parallel(1):
                scale[i] = T.rsqrt(scale[i] / N + EPSILON)
            for i, j in T.Parallel(1, N):
                row[i, j] = row[i, j] * scale[i] * weight[j]
            T.copy(row, y[bx, 0])

    return rms_norm


def all_timed() -> Iterator[Timed]:
    """Everything there is to time."""
    for shape in GEMM_SHAPES:
        for transposed in (False, True):
            problem = f"gemm {'x'.join(map(str, shape))} {'nt' if transposed else 'nn'}"
            for blocks in GEMM_BLOCKS:
                function = gemm(*shape, blocks, transposed)
                yield Timed(problem, str(blocks), function, ("sm_90a", "sm_80"), shape)
    shape = GEMM_SHAPES[0]
    for blocks in SWIZZLES:
        yield Timed("swizzle 4096x4096x4096 nn", str(blocks), gemm(*shape, blocks, False),
                    shape=shape)  # fmt: skip
    for name, make, size in (("copy", copy, 16384), ("add", add, 16384)):
        for rows, columns, threads in ((8, 512, 256), (16, 256, 128), (4, 1024, 256)):
            yield Timed(f"{name} {size}x{size}", f"{rows}x{columns} t{threads}",
                        make(size, size, rows, columns, threads), shape=(size, size))  # fmt: skip
    for name, note, make_rows in (
        ("softmax", "", softmax), ("softmax", " divides", softmax_dividing),
        ("rms_norm", "", rms_norm),
    ):  # fmt: skip
        for threads in (128, 256, 512):
            yield Timed(f"{name} 8192x8192", f"t{threads}{note}", make_rows(8192, 8192, threads),
                        shape=(8192, 8192))  # fmt: skip
