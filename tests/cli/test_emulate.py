"""`tilelang run --emulate` and what `doctor` says of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from tests.cli.conftest import Result, Run
from tests.emulator.needs import needs_compiler

SESSION_CACHE: Final = os.environ["TILELANG_CACHE_DIR"]
KERNEL = """\
import tilelang.language as T


def scale(N=200):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, 64), threads=64) as bx:
            tile = T.alloc_shared((64,), "float32")
            T.copy(A[bx * 64], tile)
            for i in T.Parallel(64):
                tile[i] = tile[i] * 2
            T.copy(tile, B[bx * 64])

    return main


def reference(A):
    return A * 2
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "scale.py"
    path.write_text(KERNEL)
    return path


@pytest.fixture
def emulate(run: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`tilelang run scale.py`, with the cache of the session: the emulator is built once."""
    monkeypatch.setenv("TILELANG_CACHE_DIR", SESSION_CACHE)

    def command(*arguments: str) -> Result:
        return run("run", "scale.py", *arguments)

    return command


@needs_compiler
def test_same_arguments_and_results(emulate: Run) -> None:
    done = emulate("--target", "cuda:sm_80", "--emulate", "--set", "N=300")
    assert done.status == 0, done.err
    assert "  target   cuda:sm_80\n" in done.out
    assert "  inputs   A (300,) float32\n           B (300,) float32\n" in done.out
    assert "relative to reference() in float64" in done.out
    assert done.out.endswith(" s, emulated\n")


@needs_compiler
def test_checked_and_shuffled(emulate: Run) -> None:
    done = emulate("--target", "cuda:sm_80", "--emulate", "--check", "--schedule", "shuffle:3")
    assert done.status == 0, done.err
    assert done.out.endswith(" s, emulated and checked\n")


@needs_compiler
def test_a_mistake_is_told_at_its_line(run: Run, emulate: Run, file: Path) -> None:
    """The compiler places no barriers inside foreign code."""
    put = "static __device__ void put(float* to, float* tile, int i) "
    put += "{ tile[i] = float(i); to[i] = tile[63 - i]; }"
    text = KERNEL.replace(
        "T.copy(tile, B[bx * 64])",
        'T.call_extern("void", "put", T.access_ptr(B[bx * 64], "w"), '
        'T.access_ptr(tile[0], "rw", 64), T.get_thread_binding())',
    ).replace("        with T.Kernel", f'        T.import_source("{put}")\n        with T.Kernel')
    file.write_text(text)
    done = emulate("--target", "cuda:sm_80", "--emulate", "--check", "--set", "N=256")
    assert done.status == 1
    assert "TL731" in done.err and "scale.py:" in done.err


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (("--emulate", "--target", "cpu"), 1, "TL817"),
        (("--emulate",), 1, "TL817"),
        (("--check",), 2, "add --emulate"),
        (("--schedule", "fifo"), 2, "add --emulate"),
        (("--emulate", "--schedule", "sometimes"), 2, "shuffle:SEED"),
    ],
)
def test_refusals(emulate: Run, arguments: tuple[str, ...], status: int, text: str) -> None:
    done = emulate(*arguments)
    assert done.status == status
    assert text in done.err


@needs_compiler
def test_doctor_names_the_compiler(run: Run) -> None:
    assert "✓ emulator  " in run("doctor").out


def test_doctor_without_a_compiler(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    out = run("doctor").out
    assert "· emulator" in out and "pip install ziglang" in out
