"""Inspections of the kernels, each compiled once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tilelang
from tests.inspect import kernels
from tilelang.inspection.model import Inspection
from tilelang.runtime.nvrtc import find_nvrtc

Inspect = Callable[..., Inspection]


@pytest.fixture(scope="session")
def inspect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inspect]:
    """The inspection of a kernel of `kernels` for an architecture."""
    if find_nvrtc() is None:
        pytest.skip("NVRTC is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILELANG_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))

        @cache
        def inspected(name: str, arch: str = "sm_80", **config: Any) -> Inspection:
            kernel = tilelang.compile(getattr(kernels, name), target=f"cuda:{arch}", **config)
            return kernel.inspect()

        yield inspected


@pytest.fixture
def kernel_file() -> str:
    return str(Path(kernels.__file__))
