"""What a test of source for other processors needs of the machine."""

from __future__ import annotations

import pytest

from tilelang.runtime.clang import find_clang

needs_clang = pytest.mark.skipif(find_clang() is None, reason="needs tilelang[clang]")
