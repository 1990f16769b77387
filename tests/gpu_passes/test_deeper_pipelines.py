"""What is said of a pipeline of the author's depth that could be deeper for nothing."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang.language as T
from tests.gpu_passes.test_automatic_stages import lowered, matmul, versions
from tilelang_diagnostics.model import Diagnostic


def said(kernel: Any, target: str = "cuda:sm_80") -> list[Diagnostic]:
    return [d for d in lowered(kernel, target).diagnostics if d.code == "TL513"]


def test_three_stages_would_fit() -> None:
    (found,) = said(matmul(32, 2))
    assert found.message == (
        "3 stages of this pipeline would fit as well: 49152 of 166912 bytes of shared memory, "
        "with as many blocks at once"
    )
    assert found.label == "2 stages" and found.help == "try num_stages=3"
    assert [label.text for label in found.labels] == ["8192 bytes a stage"] * 2
    # It is true: three stages are taken without a word.
    deeper = lowered(matmul(32, 3), "cuda:sm_80")
    assert versions(deeper) == {"A_s": 3, "B_s": 3} and not deeper.diagnostics


@pytest.mark.parametrize(
    ("depth", "stages", "target"),
    [
        (32, 3, "cuda:sm_80"),  # deep enough
        (128, 2, "cuda:sm_80"),  # does not fit
        (64, 2, "cuda:sm_80"),  # two blocks run at once now, and one would
        (32, 0, "cuda:sm_80"),  # no pipeline
    ],
)
def test_nothing_to_say(depth: int, stages: int, target: str) -> None:
    assert not said(matmul(depth, stages), target)


def test_a_short_loop_needs_no_more() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 32), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((64, 32), "float32")
            total = T.alloc_fragment((64, 32), "float32")
            T.clear(total)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[0, k * 32], S)
                for i, j in T.Parallel(64, 32):
                    total[i, j] += S[i, j]
            T.copy(total, B)

    assert not said(main)
