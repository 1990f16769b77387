"""What a test of the emulator needs of the machine."""

from __future__ import annotations

import pytest

from tilelang.emulator.toolchain import find_compiler
from tilelang_diagnostics import CompileError


def _has_compiler() -> bool:
    try:
        find_compiler()
    except CompileError:
        return False
    return True


needs_compiler = pytest.mark.skipif(not _has_compiler(), reason="needs a C++ compiler")
