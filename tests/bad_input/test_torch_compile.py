"""`torch.compile` around a kernel: the graph ends there, and the results are the kernel's."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tilelang
import tilelang.language as T
from tilelang_diagnostics import CompileError


@tilelang.jit(target="cpu")
def double(A, factor=2.0):
    M = T.const("M")
    A: T.Tensor((M,), T.float32)
    B = T.empty((M,), T.float32)
    with T.Kernel(M, threads=32) as bx:
        B[bx] = A[bx] * factor
    return B


@tilelang.jit(out_idx=[-1], target="cpu")
def factory(M):
    @T.prim_func
    def main(A: T.Tensor((M,), T.float32), B: T.Tensor((M,), T.float32)):
        with T.Kernel(M, threads=32) as bx:
            B[bx] = A[bx] * 2

    return main


compiled = factory(3)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: double(x + 1) - 1,
        lambda x: double.compile(M=3)(x + 1) - 1,
        lambda x: factory(x.shape[0])(x + 1) - 1,
        lambda x: compiled(x + 1) - 1,
    ],
    ids=["eager", "eager compile", "factory", "kernel"],
)
def test_kernels_are_not_traced(function: Any) -> None:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    made = torch.compile(function, backend="eager")
    for value in (1.0, 2.0, 3.0):
        assert made(torch.full((3,), value)).tolist() == [2 * (value + 1) - 1] * 3
    # What comes before the kernel and what comes after it; of ours at most the way to the wrapper,
    # once in a process, and nothing of the compiler; filelock's audit hook may be one more.
    assert torch._dynamo.utils.counters["frames"]["total"] <= 9


def test_it_is_known_when_dynamo_comes_later() -> None:
    """A kernel that was called before, eagerly, is out of the graph as well."""
    assert double(torch.ones(3)).tolist() == [2.0] * 3
    made = torch.compile(lambda x: double(x) + 1, backend="eager", fullgraph=True)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="disable"):
        made(torch.ones(3))


def test_the_callers_line_is_shown_behind_dynamo() -> None:
    """Its wrapper around a kernel's call is nobody's mistake."""
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1))
    with pytest.raises(CompileError) as caught:
        factory("3")
    span = caught.value.diagnostics[0].span
    assert span is not None and span.file == __file__
