"""The helpers for other people's tests."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from tilelang import testing


def test_close_enough() -> None:
    a = np.ones(1000)
    b = a.copy()
    assert testing.torch_assert_close(a, b)
    b[3] = 2
    assert testing.torch_assert_close(torch.tensor(a), torch.tensor(b), max_mismatched_ratio=0.001)
    b[4] = -7
    with pytest.raises(AssertionError) as caught:
        testing.torch_assert_close(b, a)
    assert (
        "2 of 1000 elements of result differ from reference (1 allowed); the worst, at (4,), is -7 "
        "instead of 1" in str(caught.value).replace("\n", " ")
    )


def test_shapes_and_nan() -> None:
    with pytest.raises(AssertionError, match="shape"):
        testing.torch_assert_close(np.ones(2), np.ones(3))
    nan = np.array([np.nan])
    assert testing.torch_assert_close(nan, nan)
    with pytest.raises(AssertionError):
        testing.torch_assert_close(nan, np.ones(1))


def test_seed() -> None:
    drawn = []
    for _ in range(2):
        testing.set_random_seed(7)
        drawn.append((random.random(), float(np.random.rand()), float(torch.rand(1))))
    assert drawn[0] == drawn[1]


def test_marks_skip_what_is_not_here(tmp_path: Path) -> None:
    (tmp_path / "test_marks.py").write_text(
        "import tilelang.testing as t\n"
        "@t.requires_package('no_such_package')\ndef test_a(): assert False\n"
        "@t.requires_package('numpy')\ndef test_b(): pass\n"
        "@t.requires_llvm\ndef test_c(): pass\n"
        "@t.requires_metal\ndef test_d(): assert False\n"
        "@t.requires_cuda_compute_version_ge(99)\ndef test_e(): assert False\n"
        "if __name__ == '__main__': t.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "test_marks.py"], cwd=tmp_path, capture_output=True, text=True,
        check=False, env={"PYTHONPATH": ":".join(sys.path), "PATH": ""},
    )  # fmt: skip
    assert "2 passed, 3 skipped" in done.stdout, done.stdout + done.stderr
