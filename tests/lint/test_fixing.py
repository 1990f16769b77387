"""`tilelang lint --fix`: what is applied, what is left, and what a file looks like afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tilelang.cli import main
from tilelang_lint.cli import command

HEAD = """\
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "{dtype}"), n: T.int32):
    with T.Kernel({grid}, threads=64):
        for i in T.Parallel(64):
            B[i] = {value}
"""
PLAIN = {"dtype": "float32", "grid": "1", "value": "A[i]"}
# What is wrong, what --fix makes of it, and what --suggestions do.
CASES = (
    ({"grid": "(1, 2)"}, {"grid": "1, 2"}, {"grid": "1, 2"}),
    ({"dtype": "flot32"}, {"dtype": "flot32"}, {"dtype": "float32"}),
    ({"value": "A[n / 2]"}, {"value": "A[n / 2]"}, {"value": "A[n // 2]"}),
    ({"dtype": "flot32", "grid": "(1, 2)"}, {"dtype": "flot32", "grid": "1, 2"}, {"grid": "1, 2"}),
    ({"value": "A[nn]"}, {"value": "A[nn]"}, {"value": "A[n]"}),
    ({"value": "A["}, {"value": "A["}, {"value": "A["}),
)  # fmt: skip


def text(changed: dict[str, str]) -> str:
    return HEAD.format(**PLAIN | changed)


@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize(("wrong", "safe", "meant"), CASES)
def test_what_is_applied(
    tmp_path: Path, wrong: dict[str, str], safe: dict[str, str], meant: dict[str, str], ends: str
) -> None:
    path = tmp_path / "kernel.py"
    for options, right in (((), wrong), (("--fix",), safe), (("--fix", "--suggestions"), meant)):
        path.write_bytes(text(wrong).replace("\n", ends).encode("utf-8-sig"))
        done = CliRunner().invoke(command, [str(path), *options], standalone_mode=False)
        assert done.exception is None, done.output
        assert path.read_bytes() == text(right).replace("\n", ends).encode("utf-8-sig")


def test_what_is_left_is_told(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(text({"dtype": "flot32", "grid": "(1, 2)"}))
    told = CliRunner().invoke(command, [str(path), "--fix"], standalone_mode=False).output
    assert "TL230" in told and "TL163" not in told and "= fix: write 'float32'" in told


def test_nothing_is_taken_out_unasked(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    before = text({"value": "A[i]\n        tile = T.alloc_shared((64,), 'float32')"})
    path.write_text(before)
    CliRunner().invoke(command, [str(path), "--fix", "--suggestions"], standalone_mode=False)
    assert path.read_text() == before


def test_a_command_that_runs_the_file_says_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(text({"dtype": "flot32"}))
    told = []
    for words in (["lint"], ["compile", "--target", "cpu"]):
        assert main([*words[:1], str(path), *words[1:]]) == 1
        told.append("".join(capsys.readouterr()))
    shown = [one[one.index("error[TL230]") :].partition("\n\n")[0] for one in told]
    assert shown[0] == shown[1] and "= fix: write 'float32'" in shown[0]
