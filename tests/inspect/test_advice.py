"""Pipelines that could be deeper at no cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tilelang
import tilelang.language as T
from tests.support.cuda import needs_nvdisasm, needs_nvrtc
from tilelang_diagnostics.model import Diagnostic

pytestmark = [needs_nvrtc, needs_nvdisasm]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path))


def pipeline(stages: int, tile: int = 64, dtype: str = "float16", turns: int = 128) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((tile, 32 * turns), dtype),
        B: T.Tensor((32 * turns, tile), dtype),
        C: T.Tensor((tile, tile), "float32"),
    ):
        with T.Kernel(1, threads=128):
            A_s = T.alloc_shared((tile, 32), "float16")
            B_s = T.alloc_shared((32, tile), "float16")
            C_l = T.alloc_fragment((tile, tile), "float32")
            T.clear(C_l)
            for k in T.Pipelined(turns, num_stages=stages):
                T.copy(A[0, k * 32], A_s)
                T.copy(B[k * 32, 0], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C)

    return main


def advice(kernel: Any, arch: str) -> list[Diagnostic]:
    found = tilelang.compile(kernel, target=f"cuda:{arch}").inspect().remarks
    return [d for d in found if d.code == "TL513"]


def test_a_third_stage_that_costs_no_block() -> None:
    """128 x 128 accumulators take so many registers that shared memory is not the limit."""
    (found,) = advice(pipeline(2, 128), "sm_90a")
    assert found.message.startswith(
        "3 stages of this pipeline would fit as well: 49152 of 232448 bytes of shared memory"
    )
    assert found.help == "try num_stages=3" and found.label == "2 stages"
    assert [x.text for x in found.labels] == ["8192 bytes a stage"] * 2
    assert found.span is not None
    line = Path(found.span.file).read_text().splitlines()[found.span.line - 1]
    assert line.strip().startswith("for k in T.Pipelined")


def test_no_pipeline_at_all() -> None:
    (found,) = advice(pipeline(1, 128), "sm_90a")
    assert found.label == "1 stage" and found.help == "try num_stages=3"


@pytest.mark.parametrize(
    ("kernel", "arch"),
    [
        pytest.param(pipeline(3, 128), "sm_90a", id="deep enough"),
        pytest.param(pipeline(2, 64), "sm_86", id="costs a block"),
        pytest.param(pipeline(2, 128, "float32"), "sm_90a", id="cannot be asynchronous"),
        pytest.param(pipeline(2, 128, turns=2), "sm_90a", id="too few iterations"),
    ],
)
def test_nothing_to_gain(kernel: Any, arch: str) -> None:
    assert advice(kernel, arch) == []
