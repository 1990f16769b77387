"""What is proposed, and which signature is shown, while a name of another file is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lsp.across.project import Project, project
from tilelang_lsp.features import completion, hover, semantic_tokens, signature_help

FILES = """
    -- lib.py --
    '''Tiles of ours.'''
    import tilelang.language as T
    from sizes import *
    from sizes import WIDE as BROAD

    BLOCK: int = 64
    _own = 1

    @T.macro
    def tile_add(x, y, /, by=2, *, clear=False):
        '''Adds y to x.'''
        x[0] = x[0] + y[0] * by

    def rows(n: int = 4):
        return n * 2

    class Shape:
        '''Extents.'''
    -- sizes.py --
    WIDE = 256
    -- pack/__init__.py --
    ONE = 1
    -- pack/inner.py --
    def far(a, b): ...
    -- pack/deep/__init__.py --
    -- main.py --
    import tilelang.language as T
    import lib
    import lib as other
    import pack
    import pack.inner
    from lib import tile_add, rows as count, BLOCK
    import unknown

    @T.macro
    def own(a, width):
        a[0] = width

    @T.prim_func
    def main(A: T.Tensor((8,), "float32")):
        with T.Kernel(1) as bx:
            T.clear(A)
            {line}
"""
IN_LIB = {"BLOCK", "tile_add", "rows", "Shape", "WIDE", "BROAD"}


def made(line: str, tmp_path: Path) -> Project:
    return project(FILES.replace("{line}", line), tmp_path)


@pytest.mark.parametrize(
    ("call", "active"),
    [
        ("lib.tile_add($0", "x"),
        ("lib.tile_add(A, $0)", "y"),
        ("tile_add(A, A, $0", "by=2"),
        ("tile_add(A, A, clear=$0", "clear=False"),
        ("other.rows($0)", "n: int = 4"),
        ("x = count($0", "n: int = 4"),
        ("own(A, $0)", "width"),
        ("pack.inner.far(1, $0", "b"),
        ("tile_add(A, A, 1, 2, 3, $0", None),
    ],
)
def test_the_signature_of_a_call(call: str, active: str | None, tmp_path: Path) -> None:
    found = made(call, tmp_path).ask(signature_help.FEATURE)
    assert found.label.startswith(call.removeprefix("x = ").partition("(")[0] + "(")
    assert active == (None if found.active is None else found.parameters[found.active])


def test_a_signature_says_what_the_function_does(tmp_path: Path) -> None:
    found = made("lib.tile_add($0", tmp_path).ask(signature_help.FEATURE)
    assert (found.label, found.markdown) == (
        "lib.tile_add(x, y, by=2, *, clear=False)", "Adds y to x.",
    )  # fmt: skip


@pytest.mark.parametrize("call", ["lib.nothing($0", "unknown.f($0", "lib.BLOCK($0", "print($0"])
def test_what_has_no_signature(call: str, tmp_path: Path) -> None:
    assert made(call, tmp_path).ask(signature_help.FEATURE) is None


@pytest.mark.parametrize(
    ("line", "labels"),
    [
        ("lib.$0", IN_LIB),
        ("other.ti$0", IN_LIB),
        ("x = pack.$0", {"ONE", "inner", "deep"}),
        ("pack.inner.$0", {"far"}),
        ("from lib import $0", IN_LIB),
        ("from lib import rows, ti$0", IN_LIB),
        ("from .pack import (inner, $0", {"ONE", "inner", "deep"}),
        ("from unknown import $0", set()),
        ("from pack.$0", {"inner", "deep"}),
        ("import pack.in$0", {"inner", "deep"}),
        ("from .$0", {"lib", "sizes", "main", "pack"}),
        ("from .pack.$0", {"inner", "deep"}),
        ("import $0", {"lib", "sizes", "main", "pack"}),
        ("from pa$0", {"lib", "sizes", "main", "pack"}),
        ("import unknown.$0", set()),
        ("x = '''\n            from pack import $0\n'''", set()),
        ("unknown.$0", set()),
    ],
)
def test_the_names_of_a_module(line: str, labels: set[str], tmp_path: Path) -> None:
    found = made(line, tmp_path).ask(completion.FEATURE)
    assert {c.label for c in found} == labels


def test_names_that_an_import_star_gives_and_functions_around(tmp_path: Path) -> None:
    text = FILES.replace("import lib\n", "from lib import *\n    from pack import *\n", 1)
    text = text.replace("{line}", "def near(a): ...\n            $0")
    found = {c.label: c.kind for c in project(text, tmp_path).ask(completion.FEATURE)}
    wanted = {"WIDE": "constant", "Shape": "class", "near": "function", "ONE": "constant"}
    assert {name: found.get(name) for name in wanted} == wanted
    assert "inner" not in found


def test_a_proposal_says_what_it_is(tmp_path: Path) -> None:
    found = {c.label: c for c in made("lib.$0", tmp_path).ask(completion.FEATURE)}
    assert {name: (c.kind, c.detail) for name, c in found.items()} == {
        "BLOCK": ("constant", "= 64"), "WIDE": ("constant", "= 256"),
        "BROAD": ("constant", "= 256"), "Shape": ("class", "Shape"),
        "rows": ("function", "rows(n: int = 4)"),
        "tile_add": ("macro", "tile_add(x, y, by=2, *, clear=False)"),
    }  # fmt: skip
    assert "Adds y to x." in found["tile_add"].markdown


def test_names_of_the_file_and_its_imports_are_proposed_alone(tmp_path: Path) -> None:
    found = {c.label: c.kind for c in made("$0", tmp_path).ask(completion.FEATURE)}
    wanted = {"own": "macro", "tile_add": "macro", "count": "function", "lib": "module",
              "A": "parameter", "bx": "block", "pack": "module"}  # fmt: skip
    assert {name: found.get(name) for name in wanted} == wanted
    assert "unknown" not in found


@pytest.mark.parametrize(
    ("call", "keywords"),
    [("lib.tile_add(A, $0)", {"by=", "clear="}), ("own($0)", {"a=", "width="})],
)
def test_keywords_of_a_macro(call: str, keywords: set[str], tmp_path: Path) -> None:
    found = made(call, tmp_path).ask(completion.FEATURE)
    assert {c.label for c in found if c.kind == "keyword"} == keywords


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("lib.tile_$0add(A, A)", "def tile_add(x, y, /, by=2, *, clear=False)  # of lib.py"),
        ("x = lib.BLO$0CK", "BLOCK = 64  # of lib.py"),
        ("x = lib.WI$0DE", "WIDE = 256  # of sizes.py"),
        ("x = lib.Sha$0pe", "class Shape  # of lib.py"),
        ("lib.tile_add(A, A, b$0y=1)", "by=2  # of tile_add"),
    ],
)
def test_a_hover_says_the_same(line: str, says: str, tmp_path: Path) -> None:
    found = made(line, tmp_path).ask(hover.FEATURE)
    assert found is not None
    assert says in found.markdown


def test_macros_of_other_files_have_their_colour(tmp_path: Path) -> None:
    found = made("tile_add(A, A)\n            own(A, count(1))  # $0", tmp_path)
    lines = found.texts["main.py"].split("\n")
    kinds = {
        lines[t.line - 1][t.column - 1 : t.column - 1 + t.length]: t.kind
        for t in found.ask(semantic_tokens.FEATURE)
    }
    wanted = {"tile_add": "macro", "own": "macro", "count": "function", "A": "parameter"}
    assert {name: kinds.get(name) for name in wanted} == wanted
