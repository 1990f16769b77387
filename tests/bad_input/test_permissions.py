"""Files and folders without permission, also where the tests run as root, whom nothing stops."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import tilelang
import tilelang.language as T
from tests.cli.conftest import EAGER, Run, eager, run
from tilelang.runtime import build, report
from tilelang.runtime.cache import KernelCache
from tilelang.runtime.report import TileLangWarning

__all__ = ["eager", "run"]  # fixtures

NOBODY = 65534
pytestmark = pytest.mark.skipif(not hasattr(os, "seteuid"), reason="no users here")


@contextmanager
def as_a_user() -> Iterator[None]:
    """Root becomes nobody for a while; anybody else stays who they are."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that any user may enter; pytest's own are for one user."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o755)
    yield made
    for path in made.rglob("*"):
        if path.is_dir():
            path.chmod(0o755)
    shutil.rmtree(made)


def scaled(factor: float) -> bool:
    """Whether the kernel came from the cache; its result is right either way."""

    @T.prim_func
    def main(A: T.Tensor((32,), "float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[i] = A[i] * factor

    kernel = tilelang.compile(main, out_idx=[1], target="cpu")
    assert kernel(np.ones(32, np.float32)).tolist() == [factor] * 32
    return kernel.from_cache


def test_a_file_one_may_not_read(run: Run, eager: Path, folder: Path) -> None:
    (folder / "kernel.py").write_text(EAGER)
    (folder / "kernel.py").chmod(0)
    run("compile", "eager.py", "--set", "M=3,N=40")  # imports what it needs, as root
    with as_a_user():
        done = run("compile", str(folder / "kernel.py"), "--set", "M=3,N=40")
    assert done.status == 1
    assert "error[TL103]: cannot read `" in done.err and "`: permission denied" in done.err
    with as_a_user():
        done = run("lint", str(folder / "kernel.py"))
    assert done.status == 1
    assert "TL103" in done.out and "permission denied" in done.out


def test_a_folder_one_may_not_enter(run: Run, eager: Path, folder: Path) -> None:
    (folder / "inner").mkdir()
    (folder / "inner" / "kernel.py").write_text(EAGER)
    (folder / "inner").chmod(0)
    run("compile", "eager.py", "--set", "M=3,N=40")
    with as_a_user():
        done = run("compile", str(folder / "inner" / "kernel.py"))
    assert done.status == 1
    assert "error[TL103]: cannot read `" in done.err and "`: permission denied" in done.err


def test_a_read_only_cache_still_serves(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(folder / "cache"))
    build.forget()
    report._said.clear()
    assert not scaled(2.0)
    build.forget()
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    with as_a_user():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert scaled(2.0)
        with pytest.warns(TileLangWarning, match="TL803"):
            assert not scaled(3.0)


def test_a_cache_that_cannot_be_made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(folder / "closed" / "cache"))
    (folder / "closed").mkdir()
    (folder / "closed").chmod(0o555)
    build.forget()
    report._said.clear()
    with as_a_user():
        with pytest.warns(TileLangWarning, match="TL803") as caught:
            assert not scaled(4.0)
            assert not scaled(5.0)
        assert len(caught) == 1
        assert KernelCache().info().problem


def test_an_output_one_may_not_write(run: Run, folder: Path) -> None:
    (folder / "kernel.py").write_text(EAGER)
    (folder / "mine.ll").write_text("old")
    (folder / "mine.ll").chmod(0o444)
    command = ("compile", str(folder / "kernel.py"), "--set", "M=3,N=40", "--emit", "source", "-o")
    assert run(*command, str(folder / "other.ll")).status == 0
    with as_a_user():
        done = run(*command, str(folder / "mine.ll"))
    assert done.status == 1
    assert "error[TL810]" in done.err and "denied" in done.err
    assert (folder / "mine.ll").read_text() == "old"
