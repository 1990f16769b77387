"""Without a target a kernel is shown as on the oldest usual GPU that has what it calls."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.lsp.asking import analysis_of, ask, in_launch, looked_into
from tests.support.markers import kernel_text
from tilelang_lsp.features import hover
from tilelang_lsp.stand_in import stand_in

KERNELS = Path(__file__).resolve().parents[1] / "kernels"
BODIES = {
    "T.clear(C)": "cuda:sm_80",
    "T.no_such_function(C)": "cuda:sm_80",
    "T.async_copy(A, C)": "cuda:sm_80",
    "T.alloc_barrier(128)": "cuda:sm_90a",
    "T.tma_copy(A, C)": "cuda:sm_90a",
    "T.wgmma_gemm(A, A, C)": "cuda:sm_90a",
    "T.set_max_nreg(240, 1)": "cuda:sm_90a",
    "T.alloc_tmem([128, 64], 'float32')": "cuda:sm_100a",
    "T.gemm_blockscaled(A, A, C)": "cuda:sm_100a",
    "T.mma_gemm_blockscaled(A, A, C)": "cuda:sm_120a",
    # No GPU has both: the ordinary one.
    "T.alloc_tmem([128, 64], 'float32')\nT.wgmma_gemm(A, A, C)": "cuda:sm_80",
    "helper(A)": "cuda:sm_90a",
}
HELPER = "\n\n@T.macro\ndef helper(A):\n    T.alloc_barrier(128)\n"


@pytest.mark.parametrize("body, target", BODIES.items())
def test_the_oldest_that_has_all(body: str, target: str) -> None:
    text = kernel_text(in_launch(body)) + HELPER
    line = next(i for i, s in enumerate(text.splitlines(), 1) if s.startswith("def main"))
    assert str(stand_in(ast.parse(text), line)) == target


BARRIER = """
    @T.prim_func
    def ma$0in(A: T.Tensor((128, 64), "float16"), C: T.Tensor((128, 64), "float16")):
        with T.Kernel(1, threads=128) as bx:
            tile = T.alloc_shared((128, 64), "float16")
            full = T.alloc_barrier(128)
            T.tma_copy(A[0, 0], tile, barrier=full)
            T.barrier_arrive(full)
            T.barrier_wait(full, 0)
            T.tma_copy(tile, C[0, 0])
    """


def test_a_kernel_for_hopper_is_looked_into_and_the_hover_says_as_on_what() -> None:
    text = kernel_text(BARRIER).replace("$0", "")
    insights = looked_into(text)
    (known,) = insights.known.values()
    assert known.insight.nominal and not known.insight.failure
    assert known.insight.target == "cuda:sm_90a"
    became = [f.label for f in known.insight.facts if f.kind == "instructions"]
    assert became == [" TMA load", " TMA store"]
    found = ask(hover.FEATURE, BARRIER, insights=insights)
    assert "as on cuda:sm_90a, which it needs: no target is set" in found.markdown


@pytest.mark.parametrize(
    "name, names",
    [("dequant_mm", "M, N, K"), ("hopper_copy", "M, N"), ("tcgen05_gemm", "in_dtype")],
)
def test_what_is_open_is_said_in_words(name: str, names: str) -> None:
    text = (KERNELS / f"{name}.py").read_text()
    for known in looked_into(text).known.values():
        failure = known.insight.failure
        assert failure.endswith(" open; `# tilelang: set` gives a value"), failure
        assert set(names.split(", ")) <= set(failure.partition(" open;")[0].split(", "))


def test_a_fault_of_the_compiler_is_not_shown_raw(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ValueError("too many values to unpack (expected 1)")

    monkeypatch.setattr("tilelang_lsp.lowered.lowered_facts", broken)
    (known,) = looked_into(kernel_text(in_launch("T.clear(C)", grid="1"))).known.values()
    assert known.insight.failure == "the compiler cannot do it yet"
    assert analysis_of(kernel_text(in_launch("T.clear(C)"))).diagnostics == ()
