"""Runtime tests keep their kernels in a cache of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tilelang.runtime import build, report


@pytest.fixture
def cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache, with nothing remembered by this process before or after."""
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path / "cache"))
    build.forget()
    report._said.clear()
    yield tmp_path / "cache"
    build.forget()
    report._said.clear()
