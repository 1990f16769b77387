"""What a copy asks for is done, or it is said that it is not."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang.language as T
from tests.gpu_passes.test_automatic_stages import lowered
from tilelang.ir import tirx
from tilelang.ir.device_ops import op_of_call
from tilelang.ir.visit import collect
from tilelang_diagnostics.model import Diagnostic


def moved(stages: int = 0, **options: Any) -> Any:
    @T.prim_func
    def main(A: T.Tensor((64, 512), "float16"), B: T.Tensor((64, 512), "float16")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((64, 64), "float16")
            for k in T.Pipelined(8, num_stages=stages):
                T.copy(A[0, k * 64], tile, **options)
                T.copy(tile, B[0, k * 64])

    return main


def said(kernel: Any, target: str) -> tuple[list[Diagnostic], int]:
    found = lowered(kernel, target)
    calls = [op_of_call(c) for c in collect(found.func.body, tirx.Call)]
    copies = sum(op is not None and op.name == "cp_async" for op in calls)
    return [d for d in found.diagnostics if d.code in ("TL508", "TL611")], copies


@pytest.mark.parametrize(
    ("target", "message", "help"),
    [
        ("cuda:sm_90a", "its threads load and store the elements themselves", "T.tma_copy"),
        ("cuda:sm_80", "TMA, which cuda:sm_80 does not have", "T.Pipelined"),
    ],
)
@pytest.mark.parametrize("stages", [0, 3])
def test_tma(target: str, message: str, help: str, stages: int) -> None:
    (found,), copies = said(moved(stages, prefer_instruction="tma"), target)
    assert found.code == "TL611" and message in found.message
    assert found.help is not None and help in found.help
    assert found.span is not None and found.span.line == _line_of("T.copy(A")
    assert (copies > 0) == (stages > 0)


def test_cp_async_outside_of_a_pipeline() -> None:
    (found,), copies = said(moved(0, prefer_instruction="cp_async"), "cuda:sm_80")
    assert found.code == "TL611" and "waited for at once" in found.message and copies == 0
    assert said(moved(3, prefer_instruction="cp_async"), "cuda:sm_80") == ([], 3)


def test_a_copy_that_wants_to_wait_waits() -> None:
    (found,), copies = said(moved(3, prefer_instruction="sync"), "cuda:sm_80")
    assert found.code == "TL508" and found.message.endswith('prefer_instruction="sync"')
    assert copies == 0
    assert said(moved(0, prefer_instruction="sync"), "cuda:sm_80") == ([], 0)


def test_eviction() -> None:
    (found,), _ = said(moved(3, eviction_policy="evict_first"), "cuda:sm_90a")
    assert found.code == "TL611" and 'eviction_policy="evict_first"' in found.message


def _line_of(text: str) -> int:
    with open(__file__, encoding="utf-8") as file:
        return next(n for n, line in enumerate(file, 1) if line.strip().startswith(text))
