"""Macros and constants of other files: lint knows what the editor knows, and imports nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.lsp.across.project import project
from tests.lsp.across.test_analysed import FOUND
from tests.support.markers import kernel_text
from tilelang.cli import main
from tilelang_lint.engine import lint_text
from tilelang_lint.imports import imported_modules
from tilelang_lsp.features.diagnostics import editor_diagnostic

# Without a text that only the editor has, and without one that lint does not read around.
ON_DISK = [
    case for case, text in FOUND.items()
    if "(open)" not in text and "untitled:" not in text and "broken" not in case
]  # fmt: skip
KERNEL = """
    @T.prim_func
    def main(A: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32) as bx:
            put(A, BLOCK)
    """
OPS = """
    raise SystemExit("it is read, never imported")

    @T.macro
    def put(x, size):
        x[size - 1] = 0.0
    """


@pytest.mark.parametrize("case", ON_DISK)
def test_as_in_the_editor(case: str, tmp_path: Path) -> None:
    made = project(FOUND[case], tmp_path)
    (made.root / "pyproject.toml").touch()
    modules = imported_modules()
    found = [
        (d.code, str(made.place(editor_diagnostic(d, made.path(name)).span)))
        for name, text in made.texts.items()
        for d in lint_text(text, made.path(name), modules=modules)
    ]
    expected = [(code, str(place)) for code, places in made.marks.items() for place in places]
    assert sorted(found) == sorted(expected)


def test_without_other_files_nothing_is_known_of_them(tmp_path: Path) -> None:
    made = project(FOUND["a constant"], tmp_path)
    assert lint_text(made.texts["main.py"], made.path("main.py")) == ()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "kernels" / "deep").mkdir(parents=True)
    (tmp_path / "ops.py").write_text(kernel_text(OPS))
    (tmp_path / "kernels" / "config.py").write_text("BLOCK = 16\n")
    using = "from config import BLOCK\nfrom ops import put\n" + kernel_text(KERNEL)
    (tmp_path / "kernels" / "deep" / "main.py").write_text(using)
    (tmp_path / "kernels" / "deep" / "again.py").write_text(using)
    monkeypatch.chdir(tmp_path / "kernels")
    return tmp_path


def test_the_folder_of_the_project(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "deep/main.py"]) == 0  # nothing says that `ops.py` is of the project
    capsys.readouterr()
    (folder / "pyproject.toml").touch()
    assert main(["lint", "deep"]) == 1
    said = capsys.readouterr().out
    assert said.count("error[TL220]") == 2
    assert f"--> ..{os.sep}ops.py:8:" in said
    assert "x[size - 1] = 0.0" in said
    assert f"::: deep{os.sep}main.py:7:" in said
    assert said.endswith("found 2 errors in 2 files\n")


def test_what_the_other_file_says_is_fine(folder: Path) -> None:
    (folder / "pyproject.toml").touch()
    ops = folder / "ops.py"
    ops.write_text(ops.read_text().replace("= 0.0", "= 0.0  # tilelang: ignore[TL220] for tests"))
    assert main(["lint", "deep", str(folder / "kernels" / "deep" / "main.py")]) == 0
