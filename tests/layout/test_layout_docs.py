"""The examples in the docstrings of `tilelang.layout` run, and importing it costs nothing."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import subprocess
import sys

import pytest

import tilelang.layout
from tilelang.layout import (
    atoms,
    banks,
    constraints,
    expr,
    gemm,
    instructions,
    loops,
    solve,
    swizzle,
)
from tilelang_diagnostics.model import Span

MODULES = [info.name for info in pkgutil.iter_modules(tilelang.layout.__path__)]

# What the examples use without importing it.
SHOWN = (
    tilelang.layout, atoms, banks, gemm, loops, swizzle, constraints, solve, instructions,
)  # fmt: skip
NAMES = {
    name: value
    for module in SHOWN
    for name, value in vars(module).items()
    if not name.startswith("_")
} | {"Span": Span, "text": expr.text}


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str) -> None:
    module = importlib.import_module(f"tilelang.layout.{name}")
    results = doctest.testmod(module, extraglobs=NAMES, raise_on_error=False)
    assert results.failed == 0


def test_the_examples_are_found() -> None:
    finder = doctest.DocTestFinder()
    counts = {
        name: sum(
            len(t.examples) for t in finder.find(importlib.import_module(f"tilelang.layout.{name}"))
        )
        for name in (
            "layout",
            "fragment",
            "banks",
            "swizzle",
            "gemm",
            "loops",
            "constraints",
            "draw",
        )
    }
    assert all(counts.values()), counts


def test_import_loads_neither_numpy_nor_tvm_nor_torch() -> None:
    code = (
        "import sys, tilelang.layout, tilelang.layout.solve, tilelang.layout.draw\n"
        "layout = tilelang.layout.make_swizzled_layout\n"
        "print([m for m in ('numpy', 'tvm', 'torch') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
