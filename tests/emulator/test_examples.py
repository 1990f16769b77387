"""Every example, at small sizes, on the emulator in checked mode: right, and accused of nothing."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.emulator.needs import needs_compiler

EXAMPLES = tuple(sorted((Path(__file__).parents[2] / "examples").glob("*.py")))
SMALL = {
    "autograd": "--m 33 --n 21 --k 40",
    "convolution": "--batch 1 --height 9 --width 11 --channels 5 --filters 19",
    "dequant_gemm_int4": "--m 17 --n 40 --k 64",
    "elementwise_broadcast": "--m 103 --n 77",
    "flash_attention": "--heads 2 --groups 2 --seq-len 77",
    "grouped_gemm": "--group-sizes 17,0,33 --n 70 --k 45",
    "quickstart": "--m 70 --n 65 --k 50 --repeat 1",
    "rms_layer_norm": "--m 33 --n 301",
    "softmax": "--m 33 --n 501",
    "split_k": "--m 20 --n 40 --k 603 --split 3",
    "top_k": "--m 40",
}
# A GPU multiplies float32 as tf32 (docs/concepts.md): these state what a CPU keeps.
TF32 = {"autograd": 1e-3, "quickstart": 1e-3}


def test_every_example_has_small_sizes() -> None:
    assert {path.stem for path in EXAMPLES} == set(SMALL)


@needs_compiler
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_runs_checked(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if "import torch" in path.read_text():
        pytest.importorskip("torch")
    monkeypatch.setenv("TILELANG_EMULATE", "check")
    monkeypatch.setenv("TILELANG_DEFAULT_TARGET", "cuda:sm_80")
    monkeypatch.setattr(sys, "argv", [str(path), *SMALL[path.stem].split()])
    module = _loaded(path, monkeypatch)
    if path.stem in TF32:
        monkeypatch.setattr(module, "TOLERANCE", TF32[path.stem])
    assert module.main() == 0, capsys.readouterr().out


def _loaded(path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The file as a module of its own, compiled with today's environment."""
    name = f"emulated_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module
