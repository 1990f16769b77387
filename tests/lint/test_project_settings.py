"""`tilelang lint` does what the file and its project ask for, and names what is wrong in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Protocol

import pytest

from tests.support.markers import kernel_text
from tilelang.cli import main
from tilelang_diagnostics import Diagnostic, from_json, page

UNKNOWN = kernel_text("""
@T.prim_func
def main(A: T.Tensor((128,), "float64")):
    with T.Kernel(1, threads=128):
        T.sync_global()
        T.clear(missing)
""")  # TL110 and TL118; TL401 for a target without double precision
SIZED = kernel_text("""
def factory(n):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=n) as bx:
            T.clear(A)
    return main
""")
METAL = "[tool.tilelang]\ntarget = 'metal:apple9'\n"
LINT = "[tool.tilelang.lint]\n"


class Lint(Protocol):
    def __call__(self, text: str, project: str | None, *arguments: str) -> list[Diagnostic]:
        """What is found in a text in a project."""


@pytest.fixture
def found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Lint:
    def lint(text: str, project: str | None, *arguments: str) -> list[Diagnostic]:
        folder = tmp_path / "kernels" / "deep"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "kernel.py").write_text(text)
        if project is not None:
            (tmp_path / "pyproject.toml").write_text(project)
        main(["lint", str(folder), "--format", "json", *arguments])
        return [from_json(d) for d in json.loads(capsys.readouterr().out)["diagnostics"]]

    return lint


@pytest.mark.parametrize(
    ("project", "arguments", "codes"),
    [
        (None, (), {"TL110", "TL118"}),
        (f"{LINT}ignore = ['unknown-name']\n", (), {"TL118"}),
        (f"{LINT}ignore = 'TL110, TL118'\n", (), set()),
        (f"{LINT}select = ['TL118']\n", (), {"TL118"}),
        (f"{LINT}ignore = ['TL110']\n", ("--ignore", "TL118"), {"TL110"}),
        (f"{LINT}select = ['TL110']\n", ("--select", "TL118"), {"TL118"}),
        (f"{LINT}select = ['TL1']\n", ("--ignore", "TL118"), {"TL110"}),
        (METAL, (), {"TL110", "TL401"}),
        (METAL.replace("target", "targets").replace("'m", "['m").replace("9'", "9', 'cpu']"), (),
         {"TL110", "TL401"}),
        (METAL, ("--target", "cpu"), {"TL110", "TL118"}),
        (METAL, ("--target", "auto"), {"TL110", "TL401"}),
        (METAL + LINT + "select = ['TL4']\n", (), {"TL401"}),
        ("[tool.tilelang]\n[tool.ruff]\nselect = ['TL2']\n", (), {"TL110", "TL118"}),
    ],
)  # fmt: skip
def test_what_a_project_asks_for(
    found: Lint, project: str | None, arguments: tuple[str, ...], codes: set[str]
) -> None:
    assert {d.code for d in found(UNKNOWN, project, *arguments)} == codes


def test_a_comment_comes_before_the_project(found: Lint) -> None:
    text = f"# tilelang: target cpu\n{UNKNOWN}"
    assert {d.code for d in found(text, METAL)} == {"TL110", "TL118"}
    assert "TL401" in {d.code for d in found(text, METAL, "--target", "metal:apple9")}


def test_a_comment_in_a_string_is_none(found: Lint) -> None:
    text = f'"""\n# tilelang: target gpu\n# tilelang: nonsense\n"""\n{UNKNOWN}'
    assert {d.code for d in found(text, None)} == {"TL110", "TL118"}


def test_values_of_a_project(found: Lint) -> None:
    assert found(SIZED, "[tool.tilelang.set]\nn = 64\n") == []
    assert {d.code for d in found(SIZED, "[tool.tilelang.set]\nn = 4096\n")} == {"TL164"}


@pytest.mark.parametrize(
    ("project", "code", "line", "said"),
    [
        ("[tool.tilelang]\ntaget = 'cpu'\n", "TL725", 2, "did you mean `target`"),
        ("[tool.tilelang]\ntarget = 'cdua'\n", "TL403", 2, "did you mean `cuda`"),
        (f"{LINT}\nselct = ['TL1']\n", "TL725", 3, "did you mean `select`"),
        (f"{LINT}ignore = ['unknown-nam']\n", "TL725", 2, "did you mean `unknown-name`"),
        (f"{LINT}ignore = 3\n", "TL725", 2, "no list of codes"),
        ("[tool.tilelang.set]\nn = 1979-05-27\n", "TL725", 2, "`n` is set to no value"),
        ("[tool.tilelang]\nlint = 3\n", "TL725", 2, "`lint` is no table"),
        ("[tool.tilelang\n", "TL725", 1, "not valid TOML"),
    ],
)
def test_what_is_wrong_in_a_project_is_said_there(
    found: Lint, project: str, code: str, line: int, said: str
) -> None:
    first, *others = found(SIZED, project)
    assert others == []
    assert first.span is not None
    assert (first.code, Path(first.span.file).name, first.span.line) == (
        code, "pyproject.toml", line,
    )  # fmt: skip
    assert said in first.message
    # It is said whatever was selected, and counts as not given.
    assert found(SIZED, project, "--select", "TL2") == [first]


@pytest.mark.parametrize(
    ("comment", "code"),
    [("# tilelang: target gpu", "TL403"), ("# tilelang: traget cpu", "TL725"),
     ("# tilelang: hints types", None)],
)  # fmt: skip
def test_wrong_comments(found: Lint, comment: str, code: str | None) -> None:
    assert [d.code for d in found(f"{comment}\n{SIZED}", None)] == ([code] if code else [])


def test_what_only_editors_read_is_left_to_them(found: Lint) -> None:
    assert found(SIZED, "[tool.tilelang.lsp]\nhints = 3\n") == []


def test_the_excerpt_is_of_the_project(
    found: Lint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found(SIZED, f"{LINT}selct = ['TL1']\n")
    assert main(["lint", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "selct = ['TL1']" in out and "^^^^^" in out
    assert out.endswith("found 1 warning in 1 file\n")


def test_each_file_has_its_own_project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, ignored in (("one", "TL110"), ("two", "TL118")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kernel.py").write_text(UNKNOWN)
        (tmp_path / name / "pyproject.toml").write_text(f"{LINT}ignore = ['{ignored}']\n")
    main(["lint", str(tmp_path), "--format", "json"])
    said = [from_json(d) for d in json.loads(capsys.readouterr().out)["diagnostics"]]
    places = {(d.code, Path(d.span.file).parent.name) for d in said if d.span}
    assert places == {("TL118", "one"), ("TL110", "two")}


@pytest.mark.parametrize("code", ["TL222", "TL609"])
def test_what_is_only_looked_for_where_it_is_selected(found: Lint, code: str) -> None:
    example = page(code).failing
    target = example.options.get("target", "cpu")
    project = f"[tool.tilelang]\ntarget = '{target}'\n"
    assert found(example.text, project) == []
    assert [d.code for d in found(example.text, f"{project}{LINT}select = ['{code}']\n")] == [code]
