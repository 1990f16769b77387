"""The stub file says what the language has."""

from __future__ import annotations

import ast
from pathlib import Path

import tilelang.language as T
from tilelang.language.stubs import stubs

FILE = Path(T.__file__).with_name("__init__.pyi")


def test_the_stubs_are_current(update: bool) -> None:
    if update:
        FILE.write_text(stubs(), encoding="utf-8")
    assert FILE.read_text(encoding="utf-8") == stubs(), "run this test with --update"


def test_every_name_is_declared() -> None:
    tree = ast.parse(FILE.read_text())
    declared = {a.asname or a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)
                for a in n.names}  # fmt: skip
    declared |= {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    declared |= {n.target.id for n in tree.body
                 if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}  # fmt: skip
    assert set(T.__all__) <= declared
