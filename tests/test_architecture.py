"""Imports point down, files stay small, and strings that two places must agree on have one home."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {
    "tilelang": ROOT / "tilelang",
    "tilelang_diagnostics": ROOT / "diagnostics" / "tilelang_diagnostics",
    "tilelang_lint": ROOT / "diagnostics" / "tilelang_lint",
    "tilelang_trace": ROOT / "trace" / "tilelang_trace",
    "tilelang_lsp": ROOT / "lsp" / "tilelang_lsp",
}

# Bottom first. A module may import its own layer and those before it.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("tilelang_diagnostics",),
    ("tilelang.version", "tilelang.dtypes", "tilelang.options", "tilelang.math", "tilelang.nested"),
    ("tilelang.layout", "tilelang.target", "tilelang.occupancy", "tilelang.choices"),
    ("tilelang.program",),
    ("tilelang.checks", "tilelang.layouts", "tilelang.ir"),
    ("tilelang.ops", "tilelang.roles"),
    ("tilelang.language", "tilelang.analysis", "tilelang.passes", "tilelang.codegen"),
    ("tilelang.pipeline", "tilelang.watching"),
    ("tilelang.backends", "tilelang.compiler"),
    (
        "tilelang.runtime",
        "tilelang.emulator",
        "tilelang.inspection",
        "tilelang.profiler",
        "tilelang.testing",
        "tilelang.autotuner",
    ),
    ("tilelang.cli", "tilelang.__main__", "tilelang.__init__"),
    ("tilelang_lint", "tilelang_trace"),
    ("tilelang_lsp",),
)
MAX_FILE, MAX_FUNCTION, MAX_TOTAL = 600, 60, 106_000

# Functions that read better whole: dispatch over every node of a language, one line or two each.
LONG_FUNCTIONS = frozenset({"statement_lines"})

FILES = sorted(
    path for folder in PACKAGES.values() if folder.exists() for path in folder.rglob("*.py")
)


def module_name(path: Path) -> str:
    for name, folder in PACKAGES.items():
        if path.is_relative_to(folder):
            parts = [name, *path.relative_to(folder).with_suffix("").parts]
            if parts[-1] == "__init__" and len(parts) > 2:
                parts.pop()
            return ".".join(parts)
    raise AssertionError(path)


def layer_of(module: str) -> int | None:
    found = None
    for level, names in enumerate(LAYERS):
        if any((module + ".").startswith(name + ".") for name in names):
            found = level
    if found is None and module in ("tilelang", "tilelang.__init__"):
        return next(n for n, names in enumerate(LAYERS) if "tilelang.__init__" in names)
    return found


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imports(path: Path) -> list[tuple[int, str]]:
    out: list[tuple[int, str]] = []
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            out += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            # `from tilelang.ir import tirx` may name a module or a member; take the longer one.
            out += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return [(line, name) for line, name in out if name.split(".")[0] in PACKAGES]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    here = layer_of(module_name(path))
    assert here is not None, f"{module_name(path)} belongs to no layer"
    up = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for line, name in imports(path)
        if (there := layer_of(name)) is not None and there > here
    ]
    assert not up, "\n".join(up)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_sizes(path: Path) -> None:
    lines = path.read_text().count("\n")
    assert lines <= MAX_FILE, f"{path.name} has {lines} lines; split it"
    for node in ast.walk(tree_of(path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.end_lineno:
            length = node.end_lineno - node.lineno + 1
            documented = ast.get_docstring(node) or ""
            length -= documented.count("\n")
            allowed = MAX_FUNCTION if node.name not in LONG_FUNCTIONS else 2 * MAX_FUNCTION
            assert length <= allowed, f"{path.name}:{node.lineno} {node.name}: {length} lines"


def test_total_size() -> None:
    total = sum(path.read_text().count("\n") for path in FILES)
    assert total <= MAX_TOTAL, f"{total} lines of Python"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(tree_of(path)), f"{path.name} has no docstring"


@pytest.mark.parametrize(
    ("pattern", "homes"),
    [
        (r"^\s*(import tvm|from tvm)\b", ("tilelang/ir/",)),
        (r"os\.environ|os\.getenv", ("tilelang/options.py",)),
        (r"^\s*(import lsprotocol|from lsprotocol)", ("lsp/tilelang_lsp/",)),
        (r"= \"tl\.", ("tilelang/ir/attrs.py", "tilelang/ir/device_ops.py", "tilelang/options.py")),
    ],
)
def test_one_home(pattern: str, homes: tuple[str, ...]) -> None:
    bad = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in FILES
        if not str(path.relative_to(ROOT)).startswith(homes)
        for number, line in enumerate(path.read_text().split("\n"), 1)
        if re.search(pattern, line)
    ]
    assert not bad, "\n".join(bad)


def test_top_level_folders_hide_no_standard_module() -> None:
    for folder in ("lsp", "trace", "diagnostics"):
        assert not (ROOT / folder / "__init__.py").exists()
