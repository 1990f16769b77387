"""Command line tests run in an empty folder with a cache of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tilelang.cli import main
from tilelang.runtime import build, devices, report


@dataclass(frozen=True, slots=True)
class Result:
    """What a command line printed and its exit status."""

    status: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def _imports_are_undone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Kernel files are imported, and stay on the path for as long as the process runs."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        file = getattr(sys.modules[name], "__file__", None) or ""
        # Not the whole temporary folder: a checkout may lie in it too.
        if file.startswith(str(tmp_path_factory.getbasetemp())):
            del sys.modules[name]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `tilelang` in the folder `tmp_path`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")
    build.forget()
    report._said.clear()
    # Each command is a process of its own to its user.
    devices._quiet.clear()
    devices._announce.cache_clear()

    def command(*arguments: str) -> Result:
        status = main(arguments)
        captured = capsys.readouterr()
        return Result(status, captured.out, captured.err)

    return command


EAGER = """\
import tilelang
import tilelang.language as T


@tilelang.jit
def scale(A, factor=2.0, block=32):
    M, N = T.const("M, N")
    A: T.Tensor((M, N), "float32")
    B = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(N, block), M, threads=32) as (bx, by):
        for i in T.Parallel(block):
            B[by, bx * block + i] = A[by, bx * block + i] * factor
    return B


def reference(A, factor):
    return A * factor
"""

FACTORY = """\
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def add(N, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, 32), threads=32) as bx:
            for i in T.Parallel(32):
                C[bx * 32 + i] = A[bx * 32 + i] + B[bx * 32 + i]

    return main


def ref_program(A, B):
    return A + B


if __name__ == "__main__":
    raise SystemExit("the file is not run as a program")
"""


@pytest.fixture
def eager(tmp_path: Path) -> Path:
    path = tmp_path / "eager.py"
    path.write_text(EAGER)
    return path


@pytest.fixture
def factory(tmp_path: Path) -> Path:
    path = tmp_path / "factory.py"
    path.write_text(FACTORY)
    return path
