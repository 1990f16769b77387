"""A cache behind a URL: shared by hosts, and no kernel fails because of it."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fsspec.implementations.local import LocalFileSystem

import tilelang
from tests.runtime import kernels
from tilelang.cli import main
from tilelang.runtime import build, report, shared_store
from tilelang.runtime.cache import KernelCache
from tilelang.runtime.shared_store import packed, unpacked
from tilelang.runtime.store import Damaged

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    shared_store._broken.clear()
    report._said.clear()
    build.forget()


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    found = f"file://{tmp_path}/bucket/kernels"
    monkeypatch.setenv("TILELANG_CACHE_DIR", found)
    return found


def run_kernel() -> bool:
    """Compile and call; whether it came from the cache."""
    build.forget()
    kernel = tilelang.compile(kernels.scale_factory(64), target="cpu")
    a, b = np.ones(64, np.float32), np.zeros(64, np.float32)
    kernel(a, b)
    assert (b == 2).all()
    return kernel.from_cache


PROCESS = """
    import sys
    sys.path[:0] = {path!r}
    import tilelang
    from tests.runtime import kernels
    kernel = tilelang.compile(kernels.scale_factory(64), target="cpu")
    import numpy as np
    a, b = np.ones(64, np.float32), np.zeros(64, np.float32)
    kernel(a, b)
    assert (b == 2).all()
    print(kernel.from_cache, "tvm" in sys.modules, "fsspec" in sys.modules)
"""


def in_a_process(home: Path, cache: str) -> str:
    """The kernel in a process of another user."""
    text = textwrap.dedent(PROCESS.format(path=sys.path))
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "TILELANG_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, "-c", text], env=environment, cwd=ROOT,
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


@pytest.mark.parametrize("form", ["file://{}", "dir::file://{}"])
def test_two_homes_share_a_url(tmp_path: Path, form: str) -> None:
    cache = form.format(tmp_path / "bucket")
    assert in_a_process(tmp_path / "one", cache) == "False True True"
    assert in_a_process(tmp_path / "two", cache) == "True False True"
    # The second time it is here already.
    assert in_a_process(tmp_path / "two", cache).startswith("True False")


def test_a_folder_needs_no_fsspec(tmp_path: Path) -> None:
    assert in_a_process(tmp_path, str(tmp_path / "cache")) == "False True False"
    assert in_a_process(tmp_path, str(tmp_path / "cache")) == "True False False"


def objects(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "bucket").rglob("*.entry"))


def forget_what_is_here(tmp_path: Path) -> None:
    (tmp_path / "home").rename(tmp_path / f"home-{len(list(tmp_path.iterdir()))}")


def test_every_entry_is_one_object(tmp_path: Path, url: str) -> None:
    assert not run_kernel()
    assert [p.parts[-3] for p in objects(tmp_path)] == ["front", "kernels"]
    files = (p for p in (tmp_path / "bucket").rglob("*") if p.is_file())
    assert sorted(files) == objects(tmp_path)


@pytest.mark.parametrize("size", [0, 10, 100, -1])
@pytest.mark.parametrize("which", [0, 1])
def test_a_truncated_entry_is_written_anew(tmp_path: Path, url: str, size: int, which: int) -> None:
    run_kernel()
    whole = [p.read_bytes() for p in objects(tmp_path)]
    objects(tmp_path)[which].write_bytes(whole[which][:size])
    forget_what_is_here(tmp_path)
    with pytest.warns(tilelang.TileLangWarning, match="TL804") as seen:
        assert not run_kernel()
    assert len(seen) == 1
    forget_what_is_here(tmp_path)
    assert run_kernel()
    assert len(objects(tmp_path)) == 2


def test_a_kernel_that_was_dropped_is_put_back(tmp_path: Path, url: str) -> None:
    run_kernel()
    objects(tmp_path)[1].unlink()
    forget_what_is_here(tmp_path)
    assert not run_kernel()
    forget_what_is_here(tmp_path)
    assert run_kernel()


@pytest.mark.parametrize(
    "place", ["file:///proc/nowhere", "nosuch://bucket/x", "file::nosuch::x", "s3://"]
)
def test_a_url_that_does_not_work_is_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("TILELANG_CACHE_DIR", place)
    with pytest.warns(tilelang.TileLangWarning, match="TL803") as seen:
        assert not run_kernel()
        assert run_kernel()  # from what is kept here
    assert len(seen) == 1
    assert f"the shared kernel cache at {place} cannot be used: " in str(seen[0].message)


def test_info_and_clear(tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    run_kernel()
    forget_what_is_here(tmp_path)
    assert main(["cache", "info"]) == 0
    shown = capsys.readouterr().out
    assert f"shared    {url}, 1 kernels, " in shown
    assert "kernels   0" in shown and str(tmp_path / "home") in shown
    run_kernel()
    assert main(["cache", "clear"]) == 0
    assert f"dropped  1 kernel from {url} and {tmp_path}/home" in capsys.readouterr().out
    assert objects(tmp_path) == []
    assert not run_kernel()


@pytest.mark.parametrize("broken", ["mv", "pipe_file"])
def test_a_write_that_fails_leaves_nothing(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    whole = LocalFileSystem.pipe_file

    def fails(fs: LocalFileSystem, path: str, *args: Any, **more: Any) -> None:
        if broken == "pipe_file":
            whole(fs, path, b"half")
        raise OSError("no room")

    monkeypatch.setattr(LocalFileSystem, broken, fails)
    with pytest.warns(tilelang.TileLangWarning, match="no room"):
        assert not run_kernel()
    assert [p for p in (tmp_path / "bucket").rglob("*") if p.is_file()] == []


def test_clear_removes_what_writers_left(tmp_path: Path, url: str) -> None:
    """One that was killed cannot do it."""
    run_kernel()
    left = objects(tmp_path)[0].parent / ".4711-0123456789ab"
    left.write_bytes(b"half")
    KernelCache().clear()
    assert [p for p in (tmp_path / "bucket").rglob("*") if p.is_file()] == []


def test_info_says_that_a_url_does_not_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TILELANG_CACHE_DIR", "nosuch://x")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert main(["cache", "info"]) == 0
    assert "writable  no: nosuch://x cannot be reached: " in capsys.readouterr().out


def test_memory_is_a_url_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILELANG_CACHE_DIR", f"memory://{tmp_path.name}")
    assert not run_kernel()
    forget_what_is_here(tmp_path)
    assert run_kernel()
    assert KernelCache().info().shared[0] == 1


@pytest.mark.parametrize("files", [{}, {"a": b""}, {"kernel.o": b"\n\0x", "kernel.ll": b"text"}])
def test_an_object_holds_an_entry(files: dict[str, bytes]) -> None:
    data = packed(files, {"n": [1, "é"]})
    assert unpacked(data) == (files, {"n": [1, "é"]})
    for end in range(len(data)):
        with pytest.raises(Damaged):
            unpacked(data[:end])


@pytest.mark.parametrize("name", ["../x", "/x", ".x", "a/b"])
def test_no_file_leaves_its_entry(name: str) -> None:
    with pytest.raises(Damaged, match="no name of a file"):
        unpacked(packed({name: b"x"}, {}))
