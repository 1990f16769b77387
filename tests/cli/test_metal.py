"""What the command line makes of a kernel for an Apple GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.support.clang import needs_clang

KERNEL = """\
import tilelang.language as T


@T.prim_func
def product(A: T.Tensor((64, 32), "float16"), B: T.Tensor((32, 64), "float16"),
            C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((64, 32), "float16")
        b = T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.clear(c)
        T.copy(A, a)
        T.copy(B, b)
        T.gemm(a, b, c)
        T.copy(c, C)
"""
APPLE9 = ("--target", "metal:apple9")


@pytest.fixture(autouse=True)
def file(tmp_path: Path) -> Path:
    path = tmp_path / "product.py"
    path.write_text(KERNEL)
    return path


def test_one_text_is_written(run: Run, tmp_path: Path) -> None:
    done = run("compile", "product.py", *APPLE9, "--emit", "metal", "-o", "product.metal")
    assert done.status == 0
    text = (tmp_path / "product.metal").read_text()
    assert "metal::simdgroup_multiply_accumulate(" in text and "#include <tl/" not in text
    assert "tl::simdgroup_multiply(&c_matrices[" in text


def test_the_source_is_shown(run: Run) -> None:
    done = run("compile", "product.py", *APPLE9, "--emit", "source")
    assert done.status == 0 and "#include <tl/simdgroup.h>" in done.out


def test_nothing_is_launched(run: Run) -> None:
    done = run("run", "product.py", *APPLE9)
    assert done.status == 1 and "error[TL821]" in done.err and "--emulate" in done.err


def test_what_goes_together(run: Run) -> None:
    done = run("compile", "product.py", "--target", "cpu", "--emit", "metal")
    assert done.status == 2 and "--emit metal needs a Metal target" in done.err


@needs_clang
def test_doctor_says_who_checks(run: Run) -> None:
    assert "source is checked by" in run("doctor").out
