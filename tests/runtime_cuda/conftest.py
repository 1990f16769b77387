"""Fixtures of the tests of the CUDA runtime."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tilelang.runtime import build


@pytest.fixture
def cache_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache of the test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(folder))
    build.forget()
    yield folder
    build.forget()
