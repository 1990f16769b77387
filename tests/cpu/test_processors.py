"""Do kernels also run right on processors with narrower vectors and fewer instructions?

Code for an older processor of the same family runs on this one, so the paths for them are tested
by running them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang.language as T
from tests.cpu.test_maths import FLOAT32, errors, one_argument, samples
from tests.support.cpu import run_on_cpu
from tilelang.ir.llvm import HostCpu, cpu_named, host_cpu

OLDER = ["x86-64", "sandybridge", "haswell", "x86-64-v4"]


def older(name: str) -> HostCpu:
    here = host_cpu()
    if not here.is_x86:
        pytest.skip("names of x86 processors")
    cpu = cpu_named(name)
    if cpu.vector_bits > here.vector_bits or (cpu.has_fma and not here.has_fma):
        pytest.skip(f"this processor cannot run code for {name}")
    return cpu


@pytest.mark.parametrize(
    ("name", "bits", "fma"),
    [("x86-64", 128, False), ("sandybridge", 256, False), ("haswell", 256, True),
     ("znver4", 512, True), ("sapphirerapids", 512, True)],
)  # fmt: skip
def test_processors_are_known_by_their_features(name: str, bits: int, fma: bool) -> None:
    if not host_cpu().is_x86:
        pytest.skip("names of x86 processors")
    cpu = cpu_named(name)
    assert (cpu.vector_bits, cpu.has_fma) == (bits, fma)
    assert cpu.vector_registers == (32 if bits == 512 else 16)


@pytest.mark.parametrize("cpu", OLDER)
@pytest.mark.parametrize("name", ["exp", "exp2", "log", "log1p", "tanh", "rsqrt", "nearbyint"])
def test_maths(cpu: str, name: str) -> None:
    target = older(cpu)
    _, reference = FLOAT32[name]
    x = samples("float32")
    y = np.zeros_like(x)
    run_on_cpu(one_argument(name, "float32", len(x)), x, y, cpu=target)
    # Without fused multiply-adds every step of a polynomial rounds twice.
    assert errors(x, y, reference).max() <= (2.0 if target.has_fma else 3.0)


def softmax(m: int, n: int, dtype: str) -> Any:
    @T.prim_func
    def kernel(X: T.Tensor((m, n), dtype), Y: T.Tensor((m, n), dtype)):
        with T.Kernel(T.ceildiv(m, 4), threads=128) as bx:
            rows = T.alloc_fragment((4, n), "float32")
            peak = T.alloc_fragment((4,), "float32")
            total = T.alloc_fragment((4,), "float32")
            T.copy(X[bx * 4, 0], rows)
            T.reduce_max(rows, peak, dim=1)
            for i, j in T.Parallel(4, n):
                rows[i, j] = T.exp(rows[i, j] - peak[i])
            T.reduce_sum(rows, total, dim=1)
            for i, j in T.Parallel(4, n):
                rows[i, j] = rows[i, j] / total[i]
            T.copy(rows, Y[bx * 4, 0])

    return kernel


@pytest.mark.parametrize("cpu", OLDER)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_softmax(cpu: str, dtype: str) -> None:
    x = np.random.default_rng(1).standard_normal((10, 333)).astype(dtype)
    y = np.zeros_like(x)
    run_on_cpu(softmax(10, 333, dtype), x, y, cpu=older(cpu))
    want = np.exp(x.astype(np.float64))
    want /= want.sum(1, keepdims=True)
    tolerance = {"float32": 1e-6, "float16": 1e-3}[dtype]
    assert np.linalg.norm(y - want) <= tolerance * np.linalg.norm(want)


@pytest.mark.parametrize("cpu", OLDER)
def test_gemm(cpu: str) -> None:
    @T.prim_func
    def kernel(
        A: T.Tensor((50, 40), "float16"), B: T.Tensor((70, 40), "float16"),
        C: T.Tensor((50, 70), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((50, 40), "float16")
            b = T.alloc_shared((70, 40), "float16")
            c = T.alloc_fragment((50, 70), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C)

    a, b = np.random.default_rng(2).standard_normal((2, 70, 40)).astype(np.float16)
    a, c = a[:50].copy(), np.zeros((50, 70), np.float32)
    run_on_cpu(kernel, a, b, c, cpu=older(cpu))
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.T.astype(np.float64), atol=1e-3)
