"""The patterns that completion puts in compile as they stand, for every target, and compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.lsp.asking import PATH, analysis_of, in_launch, request_for, without_cursor
from tests.support.markers import kernel_text
from tilelang_lsp.analysis import analyse
from tilelang_lsp.client import without_places
from tilelang_lsp.features import completion
from tilelang_lsp.features.snippets import SNIPPETS
from tilelang_lsp.insight import insight
from tilelang_lsp.options import Options

TARGETS = ("cuda:sm_80", "cuda:sm_90a", "cuda:sm_100a", "hip:gfx942", "metal:apple9", "cpu")
# Its tiles take 48 KiB, and such a block has 32.
TOO_LARGE = {("flash_attention", "metal:apple9"): "TL406"}
VALUES = {"M": 256, "N": 256, "K": 256, "batch": 2, "heads": 4, "seq_len": 256, "dim": 64}
AROUND = """
    def factory(M=64, N=64, K=64, block_M=64, block_N=64, block_K=32):
        @T.prim_func
        def main(
            A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"),
            C: T.Tensor((M, N), "float32"), bias: T.Tensor((N,), "float32"),
        ):
            with T.Kernel(1, 1, threads=128) as (bx, by):
                A_shared = T.alloc_shared((block_M, block_K), "float16")
                B_shared = T.alloc_shared((block_K, block_N), "float16")
                C_local = T.alloc_fragment((block_M, block_N), "float32")
                scores = T.alloc_fragment((block_M, block_N), "float32")
                peak = T.alloc_fragment((block_M,), "float32")
                old_peak = T.alloc_fragment((block_M,), "float32")
                shrink = T.alloc_fragment((block_M,), "float32")
                block_sum = T.alloc_fragment((block_M,), "float32")
                total = T.alloc_fragment((block_M,), "float32")
                scale = 1.0
                T.fill(peak, -1e30)
                T.clear(total)
                T.clear(scores)
                T.clear(C_local)
                PLACE
        return main
    """


def filled(name: str) -> str:
    """A file with a pattern whose suggestions were taken."""
    snippet = next(s for s in SNIPPETS if s.name == name)
    body = without_places(snippet.text.replace("{tilelang}", "tilelang").replace("{T}", "T"))
    body = body.rstrip()
    if snippet.where == "top":
        return kernel_text(f"{body}\n" if not body.endswith(":") else f"{body}\n    pass\n")
    place = body.replace("\n", "\n" + " " * 16) + (" 0" if body.endswith("=") else "")
    return kernel_text(AROUND.replace("PLACE", place))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", [s.name for s in SNIPPETS])
def test_nothing_is_wrong_with_them(name: str, target: str) -> None:
    found = analyse(filled(name), PATH, Options(VALUES, (target,))).diagnostics
    # Of the tiles around a statement most are not used.
    assert [d for d in found if d.code not in ("TL186", "TL148")] == []


@pytest.mark.parametrize("name", [s.name for s in SNIPPETS])
def test_they_compile(name: str, full: bool) -> None:
    text = filled(name)
    for target in TARGETS if full else ("cuda:sm_80",):
        options = Options(VALUES, (target,))
        for kernel in analyse(text, PATH, options).kernels:
            found = insight(text, PATH, kernel.name, kernel.span.line, options)
            wrong = {d.code for d in found.diagnostics if d.severity.value in ("error", "warning")}
            assert found.failure == ""
            assert wrong == ({TOO_LARGE[name, target]} if (name, target) in TOO_LARGE else set())


def _softmax(x: Any) -> Any:
    weights = np.exp(x - x.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def _attention(q: Any, k: Any, v: Any) -> Any:
    return _softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v


COMPUTED: Mapping[str, tuple[str, tuple[Any, ...], Callable[..., Any]]] = {
    "elementwise": ("add", (("float32", 70, 90), ("float32", 70, 90)), lambda a, b: a + b),
    "gemm": ("matmul", (("float16", 70, 90), ("float16", 90, 50)), lambda a, b: a @ b),
    "gemm_split_k": ("matmul_split_k", (("float16", 70, 300), ("float16", 300, 50)),
                     lambda a, b: a @ b),
    "row_reduction": ("row_sum", (("float32", 70, 300),), lambda a: a.sum(1)),
    "softmax_rows": ("softmax", (("float32", 70, 96),), _softmax),
    "flash_attention": ("attention", (("float16", 1, 2, 100, 32),) * 3, _attention),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPUTED)
def test_they_compute_what_they_say(name: str, tmp_path: Path) -> None:
    function, inputs, expected = COMPUTED[name]
    file = tmp_path / f"{name}.py"
    file.write_text(filled(name))
    scope: dict[str, Any] = {"__name__": name, "__file__": str(file)}
    exec(compile(file.read_text(), str(file), "exec"), scope)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(dtype) for dtype, *shape in inputs]
    wanted = expected(*(a.astype(np.float64) for a in arrays))
    if name == "gemm_split_k":  # adds to what it is given
        got = np.zeros(wanted.shape, np.float32)
        scope[function](*arrays, got)
    else:
        got = scope[function](*arrays)
    assert np.linalg.norm(got - wanted) <= 2e-3 * np.linalg.norm(wanted)


@pytest.mark.parametrize("name", [s.name for s in SNIPPETS])
def test_they_use_the_names_of_the_file(name: str) -> None:
    where = next(s.where for s in SNIPPETS if s.name == name)
    kernel = in_launch("T.clear(C)\n$0") if where == "launch" else in_launch("T.clear(C)") + "\n$0"
    text = "import tilelang.language as tl\n\n" + kernel.replace("T.", "tl.")
    source, line, column = without_cursor(text)
    request = replace(request_for(analysis_of(source)), line=line, column=column)
    (found,) = [c for c in completion.complete(request) if c.label == name]
    assert "T." not in found.text.replace("tl.", "") and "{T}" not in found.text
    needs = "tilelang." in found.text
    assert [e.text for e in found.edits] == (["import tilelang\n"] if needs else [])
