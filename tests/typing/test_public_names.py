"""What type checkers see of `tilelang` is what is there."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import tilelang
import tilelang.language as T
from tilelang.language.catalog import LanguageFunction

STUB = ast.parse(Path(T.__file__).with_name("__init__.pyi").read_text(encoding="utf-8"))


def test_lazy_names_are_declared_for_checkers() -> None:
    """`tilelang/__init__.py` lists each name twice: where it is, and as an import for checkers."""
    tree = ast.parse(Path(tilelang.__file__).read_text(encoding="utf-8"))
    declared = {
        alias.asname or alias.name
        for block in tree.body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert declared == {*tilelang._NAMES, *tilelang._MODULES}
    assert set(tilelang.__all__) == declared | {"__version__"}
    for name in tilelang.__all__:
        assert getattr(tilelang, name) is not None


def test_every_function_has_a_docstring_an_editor_can_show() -> None:
    documented = {
        node.name: ast.get_docstring(node) for node in STUB.body
        if isinstance(node, ast.FunctionDef)
    }  # fmt: skip
    functions = {n for n, v in vars(T).items() if isinstance(v, LanguageFunction)}
    assert functions - {"macro", "prim_func"} == set(documented)
    assert [name for name, doc in documented.items() if not doc] == []


def test_the_marker_of_typed_packages_is_there() -> None:
    assert Path(tilelang.__file__).with_name("py.typed").is_file()
    assert inspect.getdoc(T.copy.function)
