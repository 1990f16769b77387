"""What `import tilelang` gives, and what it does not load."""

from __future__ import annotations

import doctest
import subprocess
import sys
from pathlib import Path

import pytest

import tilelang
import tilelang.math

ROOT = Path(__file__).parents[2]


def modules_after(statement: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {statement}; print(*sys.modules)"],
        capture_output=True, text=True, check=True, env={"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return set(done.stdout.split())


def test_a_bare_checkout_is_importable() -> None:
    assert "tilelang_diagnostics" in modules_after("import tilelang, tilelang_diagnostics")


@pytest.mark.parametrize(
    "statement",
    ["import tilelang", "import tilelang.language", "import tilelang; tilelang.jit",
     "import tilelang; tilelang.layout", "from tilelang.cli import main"],
)  # fmt: skip
def test_imports_load_neither_tvm_nor_torch(statement: str) -> None:
    loaded = modules_after(statement)
    assert not {"tvm", "tvm_ffi", "torch"} & loaded


def test_help_loads_no_compiler() -> None:
    loaded = modules_after("from tilelang.cli import main; main(['--help'])")
    assert not {"numpy", "rich", "tilelang.language", "tilelang_diagnostics"} & loaded


def test_every_public_name_resolves() -> None:
    for name in tilelang.__all__:
        assert getattr(tilelang, name) is not None, name
    assert set(tilelang.__all__) <= set(dir(tilelang))


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'comple'; did you mean `compile`\?"):
        tilelang.comple


def test_math() -> None:
    assert doctest.testmod(tilelang.math).failed == 0
    assert [tilelang.next_power_of_2(n) for n in (0, 1, 2, 3, 64, 65)] == [1, 1, 2, 4, 64, 128]
    assert [tilelang.cdiv(n, 4) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]
