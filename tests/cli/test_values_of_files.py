"""Comments, pyproject.toml and calls give values to every command alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import EAGER, FACTORY, Run
from tilelang.cli.files import load
from tilelang.cli.project import project_values
from tilelang.language.frontend import parse_static
from tilelang_diagnostics import CompileError
from tilelang_lint.engine import Settings, lint_text
from tilelang_lsp.analysis import analyse
from tilelang_lsp.options import Options

COMMENTED = EAGER.replace("@tilelang.jit\n", "# tilelang: set M=3, N=40\n@tilelang.jit\n")
PROJECT = "[tool.tilelang.set]\nM = 5\nN = 70\nfactor = 3.0\nunrelated = 'x'\n"


def line_of(text: str, start: str) -> str:
    return next(line.strip() for line in text.splitlines() if line.strip().startswith(start))


def test_a_comment_names_sizes(run: Run, tmp_path: Path) -> None:
    (tmp_path / "eager.py").write_text(COMMENTED)
    done = run("run", "eager.py", "--rep", "1")
    assert done.status == 0, done.err
    assert "M=3, N=40  (a comment in the file)" in done.out
    done = run("run", "eager.py", "--rep", "1", "--set", "N=41")
    assert "N=41  (--set)" in done.out and "M=3  (a comment in the file)" in done.out
    assert "(3, 40)" in run("compile", "eager.py", "--emit", "program", "--target", "cpu").out
    done = run("trace", "eager.py", "--target", "cpu", "--json", "-")
    assert '"M":"3","N":"40"' in done.out.splitlines()[0]


def test_a_project_names_sizes(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    folder = tmp_path / "kernels"
    folder.mkdir()
    (folder / "eager.py").write_text(EAGER)
    done = run("run", "kernels/eager.py", "--rep", "1")
    assert done.status == 0, done.err
    assert "factor=3.0, M=5, N=70  (pyproject.toml)" in done.out
    (folder / "eager.py").write_text(COMMENTED)
    done = run("run", "kernels/eager.py", "--rep", "1")
    assert "M=3, N=40  (a comment in the file)" in done.out
    assert "factor=3.0  (pyproject.toml)" in done.out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.tilelang\n", "is not valid TOML"),
        ("[tool.tilelang]\nset = 'M=3'\n", "`set` of [tool.tilelang]"),
        ("[tool.tilelang.set]\n'a b' = 3\n", "`a b` of [tool.tilelang.set]"),
        ("[tool.tilelang.set]\nM = 1979-05-27\n", "`M` of [tool.tilelang.set]"),
        ("[tool]\ntilelang = 3\n", "`[tool.tilelang]` in"),
    ],
)
def test_a_project_that_sets_nothing(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(CompileError) as caught:
        project_values(tmp_path / "kernel.py")
    (found,) = caught.value.diagnostics
    assert found.code == "TL725" and message in found.message


def test_a_project_without_our_table(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert project_values(tmp_path / "kernel.py") == {}


TWO = """\
# tilelang: set M=1


# tilelang: set N=2
@f
def first(M, N):
    pass


def second(M, N):
    # tilelang: set M=4, N=5
    pass


text = '''
# tilelang: set M=99
'''
"""


def test_a_comment_at_a_function_is_for_that_function(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text("f = lambda x: x\n\n" + TWO)
    values = load(tmp_path / "two.py").values()
    assert values.commented.of("first") == {"M": 1, "N": 2}
    assert values.commented.of("second") == {"M": 4, "N": 5}
    assert values.commented.of("third") == {"M": 1}


@pytest.mark.parametrize(
    ("comment", "code", "message"),
    [
        ("# tilelang: set M:3", "TL725", "`M:3` is not NAME=VALUE"),
        ("# tilelang: set", "TL725", "an empty part of `` is not NAME=VALUE"),
        ("# tilelang: set M=3,N=4,blck=32", "TL720",
         "`scale` has no parameter or dimension `blck`; did you mean `block`?"),
    ],
)  # fmt: skip
def test_a_comment_that_is_wrong(
    run: Run, tmp_path: Path, comment: str, code: str, message: str
) -> None:
    (tmp_path / "eager.py").write_text(f"{comment}\n{EAGER}")
    done = run("run", "eager.py")
    assert (done.status, f"error[{code}]: {message}" in done.err) == (1, True), done.err
    assert "--> eager.py:1:1" in done.err
    if code == "TL725":
        found = parse_static(f"{comment}\n{EAGER}", "eager.py").diagnostics
        assert [(d.code, d.span and d.span.line) for d in found] == [(code, 1)]


WIDE = FACTORY.replace("T.ceildiv(N, 32), threads=32", "T.ceildiv(N, 32), threads=width").replace(
    'dtype="float32"):', 'dtype="float32", width=32):'
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "project"),
    [
        ("# tilelang: set width=5000\n" + WIDE, {}),
        (WIDE, {"width": 5000}),
        (WIDE + "\n\nWIDTH = 5000\nkernel = add(64, width=WIDTH)\n", {}),
        (WIDE + "\n\nif __name__ == '__main__':\n    w = 5000\n    add(64, 'float32', w)\n", {}),
        (WIDE + "\n\ndef main():\n    p = parser()\n    p.add_argument('--w', default=5000)\n"
         "    args = p.parse_args()\n    add(64, width=args.w)\n", {}),
    ],
)  # fmt: skip
def test_lint_and_the_editor_read_them_too(text: str, project: dict[str, int]) -> None:
    found = lint_text(text, "wide.py", Settings(project=project))
    assert [d.code for d in found] == ["TL164"]
    shown = analyse(text, "wide.py", Options(project=project)).diagnostics
    assert [d.code for d in shown] == ["TL164"]
    assert lint_text(text, "wide.py", Settings(values={"width": 32}, project=project)) == ()


def test_the_editor_says_what_it_assumed() -> None:
    (kernel,) = analyse(COMMENTED, "eager.py").kernels
    assert kernel.values == (("M", "3"), ("N", "40"))


def test_sizes_nobody_names_stay_open_in_lint() -> None:
    """So that what is found holds for every size."""
    (parsed,) = parse_static(EAGER + "\n\nM = 64\nN = 64\n", "eager.py")
    assert set(parsed.consts) == {"M", "N"}
    (parsed,) = parse_static(COMMENTED, "eager.py")
    assert parsed.consts == {} and parsed.assumed == {"M": 3, "N": 40}


def test_the_first_call_whose_arguments_are_all_known(run: Run, tmp_path: Path) -> None:
    calls = "\n\ndef use(x):\n    add(x.size)\n    add(48, 'float16')\n"
    (tmp_path / "calls.py").write_text(FACTORY.split("def ref_program")[0] + calls)
    done = run("run", "calls.py", "--rep", "1")
    assert "N=48, dtype=float16  (the call in line 20)" in done.out, done.err


def test_names_that_stand_for_each_other(run: Run, tmp_path: Path) -> None:
    text = FACTORY + "\n\nif 0:\n    a = b\n    b = a\n    add(a)\n"
    (tmp_path / "circle.py").write_text(text)
    done = run("run", "circle.py")
    assert "error[TL716]: `N` of `add` has no value" in done.err
