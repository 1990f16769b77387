"""What settings, comments and projects say about a file, and where notebooks begin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.markers import kernel_text
from tilelang_lsp.convert import Cells
from tilelang_lsp.model import HINT_KINDS
from tilelang_lsp.notebooks import Notebooks
from tilelang_lsp.options import options_from
from tilelang_lsp.project import Projects
from tilelang_lsp.workspace import Workspace


@pytest.mark.parametrize(
    ("client", "project", "text", "targets"),
    [
        ({}, {}, "", ()),
        ({"target": "cuda:sm_90a"}, {"target": "cpu"}, "# tilelang: target cuda:sm_80",
         ("cuda:sm_80",)),
        ({"target": "cuda:sm_90a"}, {"target": "cpu"}, "", ("cuda:sm_90a",)),
        ({}, {"target": "cpu"}, "# tilelang: target cuda:sm_80", ("cuda:sm_80",)),
        ({}, {"target": "cpu"}, "", ("cpu",)),
        ({}, {"targets": ["cuda:sm_90a", "cuda:sm_80"]}, "", ("cuda:sm_90a", "cuda:sm_80")),
        ({"target": "cuda:sm_90a, cuda:sm_80"}, {}, "", ("cuda:sm_90a", "cuda:sm_80")),
        ({"target": ["cpu"]}, {}, "", ("cpu",)),
        ({"target": {"kind": "cuda", "arch": "sm_80"}}, {}, "", ("cuda:sm_80",)),
        ({"target": "auto"}, {}, "", ()),
        ({"target": ""}, {"target": "cpu"}, "", ("cpu",)),
        ({"target": 7}, {"target": None}, "#tilelang:target", ()),
    ],
)  # fmt: skip
def test_targets(client: Any, project: Any, text: str, targets: tuple[str, ...]) -> None:
    assert options_from(client, project, text).targets == targets


@pytest.mark.parametrize(
    ("client", "project", "text", "hidden"),
    [
        ({}, {}, "", ()),
        ({"inlayHints": {"layouts": False}}, {}, "", ("layouts",)),
        ({"inlayHints": {"enable": False}}, {}, "", HINT_KINDS),
        ({}, {"lsp": {"inlay-hints": {"values": False, "loops": False}}}, "", ("values", "loops")),
        ({"inlayHints": {"layouts": False}}, {"lsp": {"inlay-hints": {"types": False}}}, "",
         ("types", "layouts")),
        ({}, {}, "# tilelang: hints types, layouts",
         tuple(k for k in HINT_KINDS if k not in ("types", "layouts"))),
        ({}, {"lsp": 3}, "", ()),
        ({"inlayHints": "no"}, {}, "", ()),
    ],
)  # fmt: skip
def test_hint_kinds(client: Any, project: Any, text: str, hidden: tuple[str, ...]) -> None:
    assert set(HINT_KINDS) - options_from(client, project, text).hints == set(hidden)


def test_values_and_rules() -> None:
    found = options_from(
        {"values": {"M": 4}, "ignore": ["TL6"]},
        {"set": {"M": 8, "N": 2}, "lint": {"select": ["TL2"], "ignore": "TL3,TL4"}},
        "",
    )
    assert (dict(found.values), dict(found.project)) == ({"M": 4}, {"M": 8, "N": 2})
    assert (found.select, found.ignore) == (("TL2",), ("TL6",))


def test_a_project_file_is_read_again_when_it_changed(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    file = str(tmp_path / "below" / "kernel.py")
    toml = tmp_path / "pyproject.toml"
    projects = Projects()
    assert projects.table(file) == {} or "set" in projects.table(file)
    toml.write_text('[tool.tilelang]\ntarget = "cpu"\n')
    first = projects.stamps([file])
    assert projects.table(file) == {"target": "cpu"}
    toml.write_text('[tool.tilelang]\ntarget = "cuda:sm_80"\n')
    assert projects.stamps([file]) != first
    assert projects.table(file) == {"target": "cuda:sm_80"}


@pytest.mark.parametrize("text", ["[tool", "tool = 3", "[tool]\ntilelang = 3", "\0"])
def test_a_broken_project_file_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert Projects().table(str(tmp_path / "kernel.py")) == {}


@pytest.mark.parametrize("path", ["untitled:Untitled-1", "kernel.py", ""])
def test_untitled_documents_have_no_project(path: str) -> None:
    assert Projects().table(path) == {}


@pytest.mark.parametrize(
    ("line", "cell"), [(1, ("a", 0)), (3, ("a", 0)), (4, ("b", 3)), (9, ("c", 6)), (0, ("a", 0))]
)
def test_lines_of_cells(line: int, cell: tuple[str, int]) -> None:
    assert Cells(("a", "b", "c"), (1, 4, 7)).at(line) == cell


def test_a_notebook_is_one_text() -> None:
    seen: dict[str, str] = {}

    class Kept:
        """Keeps what was opened."""

        def open(self, uri: str, path: str, version: int, text: str) -> None:
            seen[uri] = text

    texts = {"a": "%matplotlib inline\nimport tilelang", "b": "x = 1\n!ls\n", "c": ""}
    notebooks = Notebooks(Kept())  # type: ignore[arg-type]
    notebooks.open("nb", "nb.ipynb", 1, ["a", "b", "c"], texts.__getitem__)
    assert seen["nb"] == "#%matplotlib inline\nimport tilelang\nx = 1\n#!ls\n\n\n"
    assert notebooks.cells("nb") == Cells(("a", "b", "c"), (1, 3, 6))
    assert [notebooks.whole(u) for u in ("a", "c", "other")] == ["nb", "nb", "other"]


def test_symbols_of_a_workspace(tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "kernels" / "gemm.py").write_text(kernel_text("""
        @T.macro
        def multiply(a): ...

        class Config:
            def make_kernel(self): ...

        @tilelang.jit
        def matmul(M): ...
    """))  # fmt: skip
    (tmp_path / "plain.py").write_text("def matmul_plain(): ...\n")
    (tmp_path / "broken.py").write_text("import tilelang\ndef f(:\n")
    (tmp_path / "node_modules" / "x.py").write_text("import tilelang\ndef matmul(): ...\n")
    found = Workspace([str(tmp_path)]).symbols("")
    assert {(d.name, d.kind, d.container) for d in found} == {
        ("multiply", "macro", ""), ("Config", "class", ""), ("make_kernel", "function", "Config"),
        ("matmul", "kernel", ""), ("f", "function", ""),
    }  # fmt: skip
    assert [d.name for d in Workspace([str(tmp_path)]).symbols("mml")] == ["matmul"]
