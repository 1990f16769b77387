"""A kernel that is named is compiled, whatever is wrong with the others of its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tilelang.cli.files import choose
from tilelang_diagnostics import CompileError

FILE = '''\
"""Kernels, right and wrong."""

from __future__ import annotations

import tilelang
import tilelang.language as T
from neighbour import doubled

N: int = 64


@T.prim_func
def wrong(A: T.Tensor((N,), "float32")):
    with T.Kernel(1, threads=64):
        T.clear(missing)


@T.prim_func
def right(A: T.Tensor((N,), "float32")):
    with T.Kernel(1, threads=64):
        T.clear(A)


scheduled = tilelang.jit(wrong)
table = wrong(3) * 2
if N == 64:
    first = N
    second = wrong.name


def made(n):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=64):
            T.fill(A, table)

    return main


def fine(n):
    @T.prim_func
    def inner(A: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=64):
            T.fill(A, first)

    return inner


def doubling(n):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=64):
            T.fill(A, doubled(n))

    return main
'''
NEIGHBOUR = FILE.partition("scheduled")[0].replace("from neighbour import doubled\n", "")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernels.py").write_text(FILE)
    (tmp_path / "neighbour.py").write_text(NEIGHBOUR)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("right", None), ("fine", None), ("inner", None),
        ("wrong", "kernels.py"), ("scheduled", "kernels.py"), ("made", "kernels.py"),
        ("doubling", "neighbour.py"), ("second", "kernels.py"),
    ],
)  # fmt: skip
def test_a_kernel_that_is_named(run: Run, folder: Path, name: str, file: str | None) -> None:
    """The error is the one of the kernel that is wrong, at its place, and only where it counts."""
    values = () if name in ("right", "wrong", "scheduled", "second") else ("--set", "n=64")
    done = run("compile", f"kernels.py::{name}", "--target", "cpu", "--emit", "program", *values)
    if file is None:
        assert (done.status, done.err) == (0, "")
    else:
        assert done.status == 1
        assert done.err.startswith("error[TL110]: `missing` is not defined\n")
        assert f"{file}:" in done.err
        assert done.err.count("error[") == 1


def test_a_kernel_that_is_not_named(run: Run, folder: Path) -> None:
    done = run("compile", "kernels.py")
    assert done.err.startswith("error[TL110]: `missing` is not defined\n")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("def right(:\n", "TL101"),
        ("return 3\n", "TL101"),
        ("x = 1 / 0\n", "TL107"),
        ("import no_such_module_x\n", "TL107"),
        ("raise SystemExit(3)\n", "TL107"),
    ],
)
def test_what_ends_the_import_anyway(folder: Path, text: str, code: str) -> None:
    (folder / "kernels.py").write_text(FILE.replace("from neighbour import doubled", "") + text)
    with pytest.raises(CompileError) as caught:
        choose("kernels.py::right")
    assert caught.value.diagnostics[0].code == code


def test_the_module_is_as_python_makes_it(folder: Path) -> None:
    module = choose("kernels.py::right").file.module
    assert module.__doc__ == "Kernels, right and wrong."
    assert module.__annotations__ == {"N": "int"}
    assert (module.__name__, module.first) == ("kernels", 64)
