"""Cells come, go, move and change their kind; each keeps its own findings, and only those."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from lsprotocol import types as lsp

from tests.lsp.asking import in_launch
from tests.lsp.test_more_protocol import Modern, about, capabilities, cell
from tilelang_lsp.convert import Converter
from tilelang_lsp.documents import Document, Documents
from tilelang_lsp.notebooks import Notebooks
from tilelang_lsp.worker import Worker

IMPORTS = "import tilelang.language as T\n"
WRONG = in_launch("T.copy(missing, C)")
SPACE = {"line": 4, "character": 9}


class Pushed(Modern):
    """Keeps what was published last for each document, and how often something was."""

    def __init__(self, **more: Any) -> None:
        self.shown: dict[str, list[str]] = {}
        self.published = 0
        super().__init__(**more)

    def _take(self, message: dict[str, Any]) -> None:
        if message.get("method") == "textDocument/publishDiagnostics":
            found = message["params"]["diagnostics"]
            self.shown[message["params"]["uri"]] = [d["code"] for d in found]
            self.published += 1
        super()._take(message)


class Book:
    """A notebook in an editor; cells are named by one letter."""

    def __init__(self, client: Pushed, name: str, cells: dict[str, str]) -> None:
        self.client, self.uri, self.version = client, f"file:///project/{name}.ipynb", 1
        client.notify("notebookDocument/didOpen", {
            "notebookDocument": {
                "uri": self.uri, "notebookType": "jupyter-notebook", "version": 1,
                "cells": [cell(self.cell(c)) for c in cells]},
            "cellTextDocuments": self.documents(cells)})  # fmt: skip
        client.until(self.uri, "deep", 1)

    def cell(self, name: str) -> str:
        return f"vscode-notebook-cell:{self.uri.removeprefix('file://')}#{name}"

    def documents(self, cells: dict[str, str]) -> list[dict[str, Any]]:
        return [{"uri": self.cell(c), "languageId": "python", "version": 1, "text": text}
                for c, text in cells.items()]  # fmt: skip

    def change(self, **cells: Any) -> None:
        self.version += 1
        self.client.notify("notebookDocument/didChange", {
            "notebookDocument": {"uri": self.uri, "version": self.version},
            "change": {"cells": cells}})  # fmt: skip
        self.client.until(self.uri, "deep", self.version)

    def splice(self, start: int, count: int, names: str = "", opened: dict[str, str] | None = None,
               closed: str = "") -> None:  # fmt: skip
        self.change(structure={
            "array": {"start": start, "deleteCount": count,
                      "cells": [cell(self.cell(c)) for c in names]},
            "didOpen": self.documents(opened or {}),
            "didClose": [{"uri": self.cell(c)} for c in closed]})  # fmt: skip

    def codes(self, name: str) -> list[str]:
        return self.client.shown.get(self.cell(name), [])


@pytest.fixture(scope="module")
def client() -> Iterator[Pushed]:
    able = capabilities(notebookDocument={"synchronization": {}})
    with Pushed(capabilities=able) as made:
        yield made


def test_cells_that_move_come_and_go(client: Pushed) -> None:
    book = Book(client, "moved", {"a": IMPORTS, "b": WRONG, "c": "x = 1"})
    assert (book.codes("a"), book.codes("b")) == ([], ["TL110"])
    book.splice(0, 3, "acb")
    assert (book.codes("b"), book.codes("c")) == (["TL110"], [])
    place = client.request("textDocument/definition", about(book.cell("b"), position={
        "line": 3, "character": 25}))  # fmt: skip
    assert [p["uri"] for p in place] == [book.cell("b")]
    book.splice(1, 0, "d", {"d": WRONG.replace("missing", "other")})
    assert (book.codes("b"), book.codes("d")) == (["TL110"], ["TL110"])
    book.splice(3, 1, closed="b")
    assert (book.codes("b"), book.codes("d")) == ([], ["TL110"])
    book.change(textContent=[{
        "document": {"uri": book.cell("d"), "version": 2},
        "changes": [{"text": in_launch("T.clear(C)")}]}])  # fmt: skip
    assert book.codes("d") == []


def test_a_cell_that_becomes_text(client: Pushed) -> None:
    book = Book(client, "kinds", {"a": IMPORTS, "b": WRONG})
    assert book.codes("b") == ["TL110"]
    book.change(data=[{"kind": 1, "document": book.cell("b")}])
    assert book.codes("b") == []
    assert client.request("textDocument/hover", about(book.cell("b"), position=SPACE)) is None
    book.change(data=[{"kind": 2, "document": book.cell("b")}])
    assert book.codes("b") == ["TL110"]
    client.notify("notebookDocument/didClose", {
        "notebookDocument": {"uri": book.uri}, "cellTextDocuments": []})  # fmt: skip
    client.open("file:///project/after.py", "", version=1)
    client.until("file:///project/after.py", "static", 1)
    assert book.codes("b") == []


def test_folds_and_selections_end_with_their_cell(client: Pushed) -> None:
    imports = "import os\nimport sys"
    book = Book(client, "folds", {"a": imports, "b": f"{IMPORTS}import re\nx = (1,\n 2)"})
    folds = [client.request("textDocument/foldingRange", about(book.cell(c))) for c in "ab"]
    lines = [[(f["startLine"], f["endLine"]) for f in found] for found in folds]
    assert lines == [[(0, 1)], [(2, 3)]]
    (found,) = client.request("textDocument/selectionRange", about(
        book.cell("b"), positions=[{"line": 2, "character": 6}]))  # fmt: skip
    while "parent" in found:
        found = found["parent"]
    assert found["range"] == {
        "start": {"line": 2, "character": 0}, "end": {"line": 3, "character": 3},
    }  # fmt: skip


def test_changes_of_cells_that_are_not_there(client: Pushed) -> None:
    book = Book(client, "unknown", {"a": IMPORTS, "b": WRONG})
    book.splice(7, 9, "z")  # its text was never sent
    book.change(textContent=[{
        "document": {"uri": book.cell("z"), "version": 2},
        "changes": [{"text": "x ="}]}])  # fmt: skip
    book.change(data=[{"kind": 1, "document": book.cell("y")}])
    assert book.codes("b") == ["TL110"]
    assert client.request("textDocument/hover", about(book.uri, position=SPACE)) is None
    hierarchy = about(book.uri, position=SPACE)
    assert client.request("textDocument/prepareCallHierarchy", hierarchy) is None


def test_an_edit_of_a_long_notebook_says_only_what_changed(client: Pushed) -> None:
    cells = {"a": IMPORTS, "b": WRONG, **{f"c{n}": f"x{n} = {n}" for n in range(1_000)}}
    book = Book(client, "long", cells)
    assert book.codes("b") == ["TL110"]
    before = client.published
    book.change(textContent=[{
        "document": {"uri": book.cell("b"), "version": 2},
        "changes": [{"text": in_launch("T.copy(missing, A)\nT.copy(other, C)")}]}])  # fmt: skip
    assert book.codes("b") == ["TL110", "TL110"]
    assert client.published - before <= 2


def test_nothing_went_wrong(client: Pushed) -> None:
    assert client.messages == []
    assert [line for line in client.log if "WARNING" not in line] == []


class Unread(Documents):
    """Analyses nothing: only the text of the notebook is asked for."""

    def _start(self, document: Document) -> None:
        pass


def test_a_cell_that_is_deleted_while_it_is_asked_about(client: Pushed) -> None:
    book = Book(client, "gone", {"a": IMPORTS, "b": WRONG})
    for number in range(5):
        text = {"document": {"uri": book.cell("b"), "version": 10 + number},
                "changes": [{"text": f"{WRONG}# {number}\n"}]}  # fmt: skip
        book.version += 1
        client.notify("notebookDocument/didChange", {
            "notebookDocument": {"uri": book.uri, "version": book.version},
            "change": {"cells": {"textContent": [text]}}})  # fmt: skip
        place = {"textDocument": {"uri": book.cell("b")}, "position": SPACE}
        asked = client.send("textDocument/hover", place)
        book.splice(1, 1, closed="b")
        assert client.answered(asked) in (None, lsp.LSPErrorCodes.ContentModified.value)
        book.splice(1, 0, "b", {"b": WRONG})
    assert not [line for line in client.log if "ERROR" in line]


def whole_text(*cells: str) -> tuple[str, Notebooks]:
    documents = Unread(Worker(), lambda document: None, lambda: None)
    books = Notebooks(documents)
    names = [str(n) for n in range(len(cells))]
    books.open("book", "book", 1, names, lambda uri: cells[int(uri)])
    return documents.open_files["book"].text, books


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("%pip list\n  !ls\nx = 3 % 2", "#%pip list\n  pass#!ls\nx = 3 % 2\n"),
        ("if x:\n  %pip list", "if x:\n  pass#%pip list\n"),
        ("!pip \\\n  install 'x\ny = 1", "#!pip \\\n#  install 'x\ny = 1\n"),
        ("x = !ls -l 'a", "x = globals()#!ls -l 'a\n"),
        ("  a, b.c = %sql select", "  a, b.c = globals()#%sql select\n"),
        ("x = %env HOME\ny = 2", "x = globals()#%env HOME\ny = 2\n"),
        ("T.copy?\nT.gemm??\nf(x).y?", "#T.copy?\n#T.gemm??\n#f(x).y?\n"),
        ("?T.copy\n??T.copy\n? %time", "#?T.copy\n#??T.copy\n#? %time\n"),
        ("*.read*?\n%time?", "#*.read*?\n#%time?\n"),
        # What is Python's stays.
        ("x = (a\n  % b\n  )", "x = (a\n  % b\n  )\n"),
        ("x = a \\\n  % b", "x = a \\\n  % b\n"),
        ("s = '''\n%d\nwhy?\n'''\n%ls", "s = '''\n%d\nwhy?\n'''\n#%ls\n"),
        ("s = 'why?'  # why?\n# why?\nx != 3", "s = 'why?'  # why?\n# why?\nx != 3\n"),
        ("f('(')\n%ls", "f('(')\n#%ls\n"),
        ("x = f'''{y}''' % z\n!ls", "x = f'''{y}''' % z\n#!ls\n"),
        ("%%bash\nfor x in a; do\n\ndone", "#%%bash\n#for x in a; do\n#\n#done\n"),
        ("%%time\nx = 1", "#%%time\nx = 1\n"),
        ("a\r\nb\rc\n", "a\nb\nc\n\n"),
    ],
)
def test_what_is_read_of_a_cell(text: str, read: str) -> None:
    assert whole_text(text)[0] == read


@pytest.mark.parametrize(
    ("cell_name", "line", "character", "expected"),
    [
        ("0", 0, 2, (1, 3)),
        ("0", 1, 0, (2, 1)),  # the empty line at the end of the cell
        ("0", 9, 9, (2, 1)),  # behind its end is not in the next
        ("1", 0, 9, (3, 3)),
        ("1", 1, 0, (3, 3)),
        ("2", 9, 0, (5, 1)),
    ],
)
def test_places_of_cells(
    cell_name: str, line: int, character: int, expected: tuple[int, int]
) -> None:
    text, books = whole_text("abc\n", "de", "f")
    converter = Converter(
        cell_name, "book", 1, lambda file: text.split("\n"), cells=books.cells("book")
    )
    assert converter.position(lsp.Position(line, character)) == expected
