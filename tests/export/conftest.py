"""Exported kernels are called in processes of their own, with a driver that only remembers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tilelang.runtime import build
from tilelang.runtime.programs import find_program

HERE = Path(__file__).parent
H200 = (9, 0, 232448)
A100 = (8, 0, 166912)

Dtype = tuple[str, int, int]
FLOAT16, FLOAT32, INT8 = ("float", 16, 1), ("float", 32, 1), ("int", 8, 1)


def tensor(
    *shape: int, dtype: Dtype = FLOAT16, device: tuple[int, int] = (2, 0), **more: Any
) -> dict[str, Any]:  # fmt: skip
    """A tensor of the request of `host.py`."""
    return {"shape": list(shape), "dtype": dtype, "device": device, **more}


@dataclass(frozen=True)
class Answer:
    """What became of one call."""

    error: tuple[str, str] | None
    log: tuple[str, ...]
    depth: int
    arrays: tuple[bytes | None, ...]
    allocations: tuple[str, ...] = ()

    @property
    def launches(self) -> list[dict[str, str]]:
        """The launches, as the words of their lines."""
        rows = [line.split() for line in self.log if line.startswith("launch")]
        return [{"symbol": row[1], **dict(word.split("=", 1) for word in row[2:])} for row in rows]


Host = Callable[..., list[Answer]]


@pytest.fixture(scope="session")
def compiler() -> str:
    found = find_program("cc", "gcc", "clang")
    if found is None:
        pytest.skip("no C compiler")
    return str(found)


@pytest.fixture(scope="session")
def fake_libcuda(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fake") / "libcuda.so.1"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-Wl,-soname,libcuda.so.1",
         str(HERE / "fake_libcuda.c"), "-o", str(path)],
        check=True,
    )  # fmt: skip
    return path


@pytest.fixture(scope="session")
def host(fake_libcuda: Path) -> Host:
    """Calls functions of a library: `host(library, calls, devices=…)`."""

    def run(
        library: Path, calls: Sequence[dict[str, Any]],
        devices: Sequence[tuple[int, int, int]] = (H200,), **more: Any,
    ) -> list[Answer]:  # fmt: skip
        request = {"library": str(library), "fake": str(fake_libcuda), "devices": devices,
                   "calls": calls, **more}  # fmt: skip
        return ask(request)

    return run


def ask(request: dict[str, Any]) -> list[Answer]:
    """The answers of a new process."""
    return [
        Answer(
            tuple(a["error"]) if "error" in a else None,
            tuple(a.get("log", ())),
            a.get("depth", 0),
            tuple(None if x is None else bytes.fromhex(x) for x in a["arrays"]),
            tuple(a["allocations"]),
        )
        for a in _said(request)["answers"]
    ]


def docs_of(library: Path, *names: str) -> dict[str, str]:
    """What the functions of a library say of themselves."""
    found: dict[str, str] = _said({"library": str(library), "calls": [], "docs": names})["docs"]
    return found


def _said(request: dict[str, Any]) -> Any:
    done = subprocess.run(
        [sys.executable, str(HERE / "host.py")], input=json.dumps(request), capture_output=True,
        text=True, check=False, cwd=HERE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="session", autouse=True)
def cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One cache for all tests here: each kernel is compiled once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILELANG_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        build.forget()
        yield
    build.forget()
