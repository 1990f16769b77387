"""What a test of the HIP backend needs of the machine."""

from __future__ import annotations

import pytest

from tilelang.runtime.toolchain_hip import find_clang

needs_clang = pytest.mark.skipif(find_clang() is None, reason="needs tilelang[clang]")
