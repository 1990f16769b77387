"""Tensors without elements are tensors: nothing is read, nothing is written, results are empty."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import tilelang
import tilelang.language as T


@tilelang.jit(target="cpu")
def increment(A, block_M=4, block_N=32):
    M, N = T.const("M, N")
    A: T.Tensor((M, N), T.float32)
    B = T.empty((M, N), T.float32)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=64) as (bx, by):
        tile = T.alloc_fragment((block_M, block_N), T.float32)
        T.copy(A[by * block_M, bx * block_N], tile)
        for i, j in T.Parallel(block_M, block_N):
            tile[i, j] += 1
        T.copy(tile, B[by * block_M : (by + 1) * block_M, bx * block_N : (bx + 1) * block_N])
    return B


@tilelang.jit(target="cpu")
def matmul(A, B, block=16):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), T.float32)
    B: T.Tensor((K, N), T.float32)
    C = T.empty((M, N), T.float32)
    with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=64) as (bx, by):
        A_tile = T.alloc_shared((block, block), T.float32)
        B_tile = T.alloc_shared((block, block), T.float32)
        C_tile = T.alloc_fragment((block, block), T.float32)
        T.clear(C_tile)
        for k in T.Pipelined(T.ceildiv(K, block), num_stages=2):
            T.copy(A[by * block, k * block], A_tile)
            T.copy(B[k * block, bx * block], B_tile)
            T.gemm(A_tile, B_tile, C_tile)
        T.copy(C_tile, C[by * block, bx * block])
    return C


@tilelang.jit(target="cpu")
def first_and_total(A, B):
    M, N = T.const("M, N")
    A: T.Tensor((M,), T.int32)
    B: T.Tensor((N,), T.int32)
    with T.Kernel(T.ceildiv(M, 32), threads=32) as bx:
        for i in T.Parallel(32):
            T.atomic_add(B[0], A[bx * 32 + i])


@pytest.mark.parametrize("shape", [(0, 7), (7, 0), (0, 0)])
@pytest.mark.parametrize("family", [np.zeros, torch.zeros], ids=["numpy", "torch"])
def test_elementwise(shape: tuple[int, int], family: Any) -> None:
    A = family(shape, dtype=np.float32 if family is np.zeros else torch.float32)
    for _ in range(2):  # the second call takes the short way
        assert tuple(increment(A).shape) == shape


@pytest.mark.parametrize(("m", "n", "k"), [(0, 5, 6), (5, 0, 6), (5, 6, 0), (0, 0, 0)])
def test_a_product(m: int, n: int, k: int) -> None:
    C = matmul(np.ones((m, k), np.float32), np.ones((k, n), np.float32))
    assert C.shape == (m, n)
    assert not C.any()


def test_constant_indices() -> None:
    total = np.zeros(1, np.int32)
    first_and_total(np.zeros(0, np.int32), total)
    assert total.tolist() == [0]
    first_and_total(np.ones(5, np.int32), np.zeros(0, np.int32))  # written nowhere
