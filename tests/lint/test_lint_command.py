"""`tilelang lint` over files and directories, and what it exits with."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.markers import kernel_text
from tilelang.cli import main
from tilelang_diagnostics import from_json

BAD = kernel_text("""
@T.prim_func
def main(A: T.Tensor((128,), "float32")):
    with T.Kernel(4) as bx:
        T.clear(missing)
""")
GOOD = BAD.replace("missing", "A")
WARNED = BAD.replace("T.clear(missing)", "T.sync_global()")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.py").write_text(GOOD)
    (tmp_path / "bad.py").write_text(BAD)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["good.py"], 0),
        (["bad.py"], 1),
        (["."], 1),
        (["good.py", "bad.py"], 1),
        (["bad.py", "--ignore", "unknown-name"], 0),
        (["bad.py", "--select", "TL2"], 0),
        (["none.py"], 1),
        ([], 2),
        (["bad.py", "--select", "TL999"], 2),
        (["bad.py", "--format", "xml"], 2),
        (["bad.py", "--wrong"], 2),
        (["--help"], 0),
    ],
)
def test_exit_status(folder: Path, arguments: list[str], status: int) -> None:
    assert main(["lint", *arguments]) == status


def test_warnings_count_as_findings(folder: Path) -> None:
    Path("warned.py").write_text(WARNED)
    assert main(["lint", "warned.py"]) == 1


def test_text_shows_the_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["lint", "bad.py", "good.py"])
    out = capsys.readouterr().out
    assert "error[TL110]" in out
    assert "--> bad.py:" in out
    assert "T.clear(missing)" in out
    assert out.endswith("found 1 error in 2 files\n")


def test_a_clean_run_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["lint", "good.py"])
    assert capsys.readouterr().out == "found no problems in 1 file\n"


def test_json_is_one_document(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", ".", "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert {k: document[k] for k in ("schema", "major", "minor", "files")} == {
        "schema": "tilelang-lint", "major": 1, "minor": 0, "files": 2,
    }  # fmt: skip
    (found,) = map(from_json, document["diagnostics"])
    assert found.code == "TL110"
    assert found.span is not None
    assert os.path.basename(found.span.file) == "bad.py"


def test_json_without_findings_is_still_a_document(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lint", "good.py", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["diagnostics"] == []


def test_directories_are_searched_and_each_file_read_once(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("sub/deep/bad.py", ".hidden/bad.py", "venv/bad.py", "__pycache__/bad.py"):
        path = folder / name
        path.parent.mkdir(parents=True)
        path.write_text(BAD)
    (folder / "notes.txt").write_text(BAD)
    main(["lint", ".", "bad.py", str(folder / "sub")])
    assert capsys.readouterr().out.endswith("found 2 errors in 3 files\n")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"import tilelang\nx = '\xe9'\n", "TL106"),
        (b"# coding: no-such-codec\nimport tilelang\n", "TL106"),
        (b"import tilelang\nx = (\n", "TL101"),
        (b"import tilelang\n\0", "TL101"),
    ],
)
def test_files_that_cannot_be_read_as_python(
    folder: Path, capsys: pytest.CaptureFixture[str], data: bytes, code: str
) -> None:
    Path("odd.py").write_bytes(data)
    assert main(["lint", "odd.py", "good.py"]) == 1
    out = capsys.readouterr().out
    assert f"error[{code}]" in out
    assert out.endswith("in 2 files\n")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"# coding: latin-1\nimport tilelang\nx = '\xe9'\n",
        b"\xef\xbb\xbf" + GOOD.encode(),
        GOOD.replace("\n", "\r\n").encode(),
    ],
)
def test_unusual_files_that_are_fine(folder: Path, data: bytes) -> None:
    Path("odd.py").write_bytes(data)
    assert main(["lint", "odd.py"]) == 0


def test_a_missing_file_is_a_finding(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["lint", "godo.py"])
    out = capsys.readouterr().out
    assert "TL103" in out
    assert "good.py" in out  # did you mean


def test_values_reach_the_kernels(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("sized.py").write_text(
        kernel_text("""
        def factory(n):
            @T.prim_func
            def main(A: T.Tensor((128,), "float32")):
                with T.Kernel(1, threads=n) as bx:
                    T.clear(A)
            return main
        """)
    )
    assert main(["lint", "sized.py"]) == 0
    assert main(["lint", "sized.py", "--set", "n=4096"]) == 1
    assert "TL164" in capsys.readouterr().out
    assert main(["lint", "sized.py", "--set", "4096"]) == 1
    assert "TL725" in capsys.readouterr().err


@pytest.mark.parametrize(("value", "code"), [("64", "TL220"), ("1.5", "TL215"), ("-3", "TL215")])
def test_values_reach_the_dims_of_eager_kernels(
    folder: Path, capsys: pytest.CaptureFixture[str], value: str, code: str
) -> None:
    Path("eager.py").write_text(
        kernel_text("""
        @tilelang.jit
        def first(A):
            M = T.const("M")
            A: T.Tensor((M,), "float32")
            B = T.empty((M,), "float32")
            with T.Kernel(M, threads=32) as bx:
                B[bx] = A[100]
            return B
        """)
    )
    assert main(["lint", "eager.py"]) == 0
    assert main(["lint", "eager.py", "--set", f"M={value}"]) == 1
    assert code in capsys.readouterr().out


def test_an_unknown_target_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "good.py", "--target", "cudda:sm_90"]) == 1
    assert "error[TL403]: there is no target 'cudda'; did you mean `cuda`?" in (
        capsys.readouterr().err
    )


def test_names_no_file_can_have(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "", "a" * 5000 + ".py"]) == 1
    out = capsys.readouterr().out
    assert "cannot read ``: the name is empty" in out
    assert "file name too long" in out


def test_what_has_no_end_is_not_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("pipe.py")
    assert main(["lint", "."]) == 1  # and comes to an end
    assert "pipe.py" not in capsys.readouterr().out
    assert main(["lint", "/dev/zero"]) == 1
    assert "it is no regular file" in capsys.readouterr().out


def test_what_a_target_lacks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("hopper.py").write_text(BAD.replace("T.clear(missing)", "T.fence_proxy_async()"))
    assert main(["lint", "hopper.py"]) == 0
    assert main(["lint", "hopper.py", "--target", "cpu"]) == 1
    assert "TL401" in capsys.readouterr().out


def test_our_own_failure_is_told_apart(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tilelang_lint import engine

    def failing(*_: object, **__: object) -> object:
        raise TypeError("oops")

    monkeypatch.setattr(engine, "parse_static", failing)
    assert main(["lint", "bad.py", "--ignore", "TL9"]) == 3
    assert "TL900" in capsys.readouterr().out


DOUBLES = kernel_text("""
@T.prim_func
def main(A: T.Tensor((128,), "float64")):
    with T.Kernel(1, threads=128):
        T.clear(A)
""")


def test_what_a_target_lacks_is_found_without_lowering(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "doubles.py").write_text(DOUBLES)
    assert main(["lint", "doubles.py", "--target", "metal:apple9"]) == 1
    assert "error[TL401]: dtype float64 of `A`" in capsys.readouterr().out
    assert main(["lint", "doubles.py", "--target", "cuda:sm_80"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["lint", "doubles.py"]) == 0
    assert capsys.readouterr().err.endswith(": what a target lacks was not checked\n")
