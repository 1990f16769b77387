"""A kernel file as somebody would have it open, and the configuration that the docs give."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[2]
PATHS = (ROOT, ROOT / "diagnostics", ROOT / "trace", ROOT / "lsp")
DOCS = ROOT / "docs" / "editors.md"
T = TypeVar("T")

KERNEL = """import tilelang
import tilelang.language as T


@tilelang.jit
def scale(N=256, factor=2.0):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(N // 128, threads=128) as bx:
            tile = T.alloc_shared((128,), "float32")
            T.copy(A[bx * 128], tile)
            for i in T.Parallel(128):
                B[bx * 128 + i] = tile[i] * factor

    return main


def scale_reference(A):
    return A * 3


@T.prim_func
def wrong(A: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64) as bx:
        tile = T.alloc_sharde((64,), "float32")
        T.copy(A, tile)
"""
LINES = KERNEL.split("\n")


def line_of(text: str) -> int:
    """The first line with a text, from 0."""
    return next(n for n, line in enumerate(LINES) if text in line)


def column_of(text: str) -> int:
    """Where a text starts in the first line that has it, from 0."""
    return LINES[line_of(text)].index(text)


def snippet(heading: str, language: str) -> str:
    """The first block of a language under a heading of the documentation."""
    section = DOCS.read_text().split(f"\n### {heading}", 1)[1].split("\n### ", 1)[0]
    found = re.search(rf"^```{language}\n(.*?)^```", section, re.M | re.S)
    assert found is not None, f"no {language} under {heading}"
    return found[1]


def environment(folder: Path) -> dict[str, str]:
    """Variables of an editor that finds `tilelang`, and keeps what it writes in a folder."""
    bin = folder / "bin"
    bin.mkdir()
    command = bin / "tilelang"
    paths = os.pathsep.join(map(str, PATHS))
    command.write_text(
        f'#!/bin/sh\nPYTHONPATH="{paths}" exec "{sys.executable}" -m tilelang "$@"\n'
    )
    command.chmod(0o755)
    home = folder / "home"
    home.mkdir()
    return {
        **os.environ, "PATH": f"{bin}{os.pathsep}{os.environ['PATH']}", "HOME": str(home),
        "XDG_CONFIG_HOME": str(home), "XDG_STATE_HOME": str(home), "XDG_DATA_HOME": str(home),
        "XDG_CACHE_HOME": str(home),
    }  # fmt: skip


def until(ask: Callable[[], T], what: str, seconds: float = 90.0) -> T:
    """What `ask` says once that is true."""
    end = time.monotonic() + seconds
    while not (found := ask()):
        assert time.monotonic() < end, what
        time.sleep(0.1)
    return found
