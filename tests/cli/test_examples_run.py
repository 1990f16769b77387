"""`tilelang run` does every example without a flag, and agrees with its reference."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tilelang.cli.files import load

EXAMPLES = tuple(sorted((Path(__file__).parents[2] / "examples").glob("*.py")))
# Files with several kernels name them; `FILE` alone does not choose.
SEVERAL = {
    "rms_layer_norm.py": ("rms_norm", "layer_norm"),
    "softmax.py": ("softmax", "online_softmax"),
}
# Sizes for a clock; here they need only be odd.
SET = {"quickstart.py": ("--set", "M=203,N=101,K=77")}
SPECS = [
    (path, f"{path.name}{suffix}")
    for path in EXAMPLES
    for suffix in [f"::{name}" for name in SEVERAL.get(path.name, ())] or [""]
]


@pytest.mark.parametrize(("path", "spec"), SPECS, ids=[spec for _, spec in SPECS])
def test_every_example_runs(run: Run, tmp_path: Path, path: Path, spec: str) -> None:
    if "import torch" in path.read_text():
        pytest.importorskip("torch")
    shutil.copy(path, tmp_path)
    done = run("run", spec, *SET.get(path.name, ()), "--target", "cpu", "--rep", "1")
    assert (done.status, done.err) == (0, "")
    assert "  error    " in done.out


@pytest.mark.parametrize("name", SEVERAL)
def test_files_with_several_kernels_say_how_to_name_one(
    run: Run, tmp_path: Path, name: str
) -> None:
    shutil.copy(EXAMPLES[0].parent / name, tmp_path)
    assert tuple(load(tmp_path / name).kernels()) == SEVERAL[name]
    done = run("run", name)
    assert done.status == 1
    for kernel in SEVERAL[name]:
        assert f"            tilelang run {name}::{kernel}\n" in done.err
