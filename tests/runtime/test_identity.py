"""Which compiler this is: the same on every machine, and found without reading it all each time."""

from __future__ import annotations

import importlib.metadata
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tilelang.runtime import identity


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small compiler in place of this one."""
    package = tmp_path / "package"
    for name in identity._FOLDERS:
        (package / name / "deep").mkdir(parents=True)
        (package / name / "deep" / "a.py").write_text(name)
    (package / "top.py").write_text("top")
    (package / "ops" / "h.h").write_text("header")
    (package / "runtime").mkdir()
    for name in identity._FILES:
        (package / name).write_text(name)
    monkeypatch.setattr(identity, "_PACKAGE", package)
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path / "cache"))
    forget()
    yield package  # type: ignore[misc]
    forget()


def forget() -> None:
    for function in (identity._known, identity.compiler_digest, identity.tool_versions):
        function.cache_clear()


def digest() -> str:
    forget()
    return identity.compiler_digest()


@pytest.mark.parametrize(
    "file",
    ["top.py", "ops/h.h", "layouts/deep/a.py", "program/deep/a.py", "runtime/toolchain_cuda.py",
     "runtime/cuda_build.py"],
)  # fmt: skip
def test_another_text_is_another_compiler(compiler: Path, file: str) -> None:
    before = digest()
    times = (compiler / file).stat()
    text = (compiler / file).read_text()
    (compiler / file).write_text(text.swapcase())
    # As a reproducible archive would leave it: the same size and time.
    os.utime(compiler / file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert digest() != before
    (compiler / file).write_text(text)
    assert digest() == before


@pytest.mark.parametrize(
    "change",
    [
        lambda at: (at / "top.py").touch(),
        lambda at: (at / "ops" / "notes.txt").write_text("no source"),
        lambda at: (at / "cli").mkdir(),
    ],
)
def test_what_is_no_part_of_it_does_not_count(
    compiler: Path, change: Callable[[Path], object]
) -> None:
    before = digest()
    change(compiler)
    assert digest() == before


def test_it_is_read_once(compiler: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest()
    monkeypatch.setattr(identity, "_digest", None)  # calling it would fail
    assert digest() == before
    assert identity.tool_versions() == tuple(
        f"{name} {importlib.metadata.version(name)}" for name in ("apache-tvm", "apache-tvm-ffi")
    )


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", json.dumps({"stamp": "x", "digest": "y"})])
def test_a_note_that_says_nothing_is_written_anew(
    compiler: Path, tmp_path: Path, text: str
) -> None:
    before = digest()
    (note,) = (tmp_path / "cache").glob("compiler-*.json")
    note.write_text(text)
    assert digest() == before
    assert json.loads(note.read_text())["digest"] == before


def test_without_a_place_for_notes(
    compiler: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = digest()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path / "file"))
    assert digest() == before


def test_versions_are_those_that_are_installed() -> None:
    for name in ("numpy", "apache-tvm", "rich"):
        assert identity.version_of(name) == importlib.metadata.version(name)
    assert identity.version_of("no-such-package") is None
