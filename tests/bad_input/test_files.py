"""Files that are no text, no Python, or more than Python can read: where, and what is wrong."""

from __future__ import annotations

import encodings.aliases
from pathlib import Path

import pytest

from tilelang.cli.dispatch import run_command
from tilelang.cli.files import read
from tilelang_diagnostics import CompileError, SourceMap

_ENCODINGS = {*encodings.aliases.aliases.values(), "undefined", "idna", "punycode", "no-such"}
_BODIES = (b"x = 1\n", b"x = '\\x'\n", b"\xff\xfe\x00 \xe9\n", b"x" * 70 + b"..\n")


def test_whatever_a_codec_raises(tmp_path: Path) -> None:
    """Each raises errors of its own; the excerpt reads the file again."""
    path = tmp_path / "k.py"
    refused = set()
    for encoding in _ENCODINGS:
        for body in _BODIES:
            path.write_bytes(f"# -*- coding: {encoding} -*-\n".encode() + body)
            try:
                read(path)
            except CompileError as error:
                (found,) = error.diagnostics
                assert found.code == "TL106" and found.span is not None
                refused.add(encoding)
            assert SourceMap().lines(str(path))
    assert {"undefined", "no-such", "rot_13", "utf_8"} <= refused


@pytest.mark.parametrize("command", ["lint", "trace", "compile"])
def test_an_encoding_that_never_decodes(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "u.py"
    path.write_text("# -*- coding: undefined -*-\nx = 1\n")
    assert run_command([command, str(path)]) == 1
    said = capsys.readouterr()
    assert "error[TL106]" in said.out + said.err
    assert f"{path}:1:1" in said.out + said.err


_KERNEL = """\
import tilelang.language as T
@T.prim_func
def f(A: T.Tensor((128,), 'float32')):
    with T.Kernel(1, threads=128) as bx:
"""
_TOO_DEEP = {
    "sum": ("        A[0] = " + "+".join(["1.0"] * 3000), 5, "this expression nests"),
    "signs": ("        x = 1\n        A[0] = " + "-" * 5000 + "1.0", 6, "this expression nests"),
    "attributes": ("        A[0] = A" + ".a" * 3000, 5, "this expression nests"),
    "condition": (f"        if bx{'+1' * 3000}:\n            pass", 5, "this expression nests"),
    "only its compiler": ("        A[0] = A[1]" + "+1" * 1300, 5, "this expression nests"),
    "long but flat": (
        "        t = (" + "1, " * 9000 + ")\n        A[0] = " + "+".join(["1.0"] * 3000),
        6, "this expression nests",
    ),
    "elif": (
        "        if bx == 0:\n            A[0] = 1.0\n"
        + "        elif bx == 1:\n            A[1] = 1.0\n" * 1500,
        7, "this chain of `elif` has more branches",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", _TOO_DEEP)
@pytest.mark.parametrize("command", ["lint", "trace"])
def test_what_nests_too_deeply(
    command: str, case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body, line, message = _TOO_DEEP[case]
    path = tmp_path / "k.py"
    path.write_text(f"{_KERNEL}{body}\n")
    assert run_command([command, str(path)]) == 1
    captured = capsys.readouterr()
    said = captured.out + captured.err
    assert said.count("error[") == 1
    assert f"error[TL101]: {message}" in said and "= help:" in said
    assert f"{path}:{line}:9" in said


@pytest.mark.parametrize(
    ("name", "text", "code", "place"),
    [
        ("syn.py", "def f(:\n", "TL101", ":1:7"),
        ("plain.py", "x = 1\n", None, ""),
        ("README.md", "This is text.\n", "TL103", ""),
        ("README.md", "this is text\n", "TL103", ""),  # a comparison
        ("pyproject.toml", "[tool.tilelang]\n", "TL103", ""),
        ("nested.py", _KERNEL + "".join("  " * (i + 4) + f"for i{i} in T.serial(2):\n"
         for i in range(30)) + " " * 99 + "A[0] = 1.0\n", "TL101", ":24:"),
        ("outside.py", "import tilelang\nreturn 3\n", "TL101", ":2:1"),
    ],
)  # fmt: skip
def test_lint_of_a_named_file(
    name: str, text: str, code: str | None, place: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    path = tmp_path / name
    path.write_text(text)
    assert run_command(["lint", str(path)]) == (0 if code is None else 1)
    said = capsys.readouterr().out
    assert said.count("error[") == (code is not None)
    assert code is None or (f"error[{code}]" in said and f"{path}{place}" in said)


def test_lint_of_a_folder_leaves_other_programs_alone(tmp_path: Path) -> None:
    (tmp_path / "template.py").write_text("def {{ name }}(:\n")
    assert run_command(["lint", str(tmp_path)]) == 0
