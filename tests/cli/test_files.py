"""Files and kernels that cannot be used: each is a diagnostic, none a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import EAGER, Run
from tilelang.cli.files import choose, load
from tilelang_diagnostics import CompileError

TWO = EAGER + EAGER.split("\n\n\n")[1].replace("def scale", "def other") + "\n"


@pytest.mark.parametrize(
    ("text", "spec", "code", "message"),
    [
        (EAGER, "fil.py", "TL103", "cannot read `fil.py`: no such file"),
        (EAGER, ".", "TL103", "cannot read `.`: is a directory"),
        (EAGER, "notes.md", "TL103", "`notes.md` is not a Python file"),
        (EAGER, "file.py::scal", "TL104",
         "`file.py` has no kernel `scal`; did you mean `scale`?"),
        (EAGER, "file.py::reference", "TL104", "`file.py` has no kernel `reference`"),
        ("x = 1\n", "file.py", "TL104", "`file.py` has no kernel"),
        ("", "file.py", "TL104", "`file.py` has no kernel"),
        (TWO, "file.py", "TL105", "`file.py` has 2 kernels: `scale`, `other`"),
        ("def f(:\n", "file.py", "TL101", "syntax error: invalid syntax"),
        ("x = '\x00'\n", "file.py", "TL101", "syntax error: source code string cannot contain null "
         "bytes"),
        ("import no_such_module_x\n", "file.py", "TL107",
         "importing `file.py` raised ModuleNotFoundError: No module named 'no_such_module_x'"),
        ("def f():\n    return 1 / 0\n\nf()\n", "file.py", "TL107",
         "importing `file.py` raised ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(3)\n", "file.py", "TL107",
         "importing `file.py` raised SystemExit: 3"),
    ],
)  # fmt: skip
def test_files_without_a_usable_kernel(
    run: Run, tmp_path: Path, text: str, spec: str, code: str, message: str
) -> None:
    (tmp_path / "file.py").write_text(text)
    (tmp_path / "notes.md").write_text("# Notes\n\nIt isn't Python.\n")
    for command in ("run", "compile"):
        done = run(command, spec)
        assert done.status == 1
        assert f"error[{code}]: {message}\n" in done.err
        assert "Traceback" not in done.err


def test_the_place_of_a_failing_import(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file.py").write_text("def f():\n    return 1 / 0\n\nf()\n")
    assert "file.py:2:12\n" in run("run", "file.py").err


def test_a_latin_1_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "old.py").write_bytes(EAGER.encode() + "# caf\xe9\n".encode("latin-1"))
    done = run("run", "old.py")
    line = EAGER.count("\n") + 1
    assert done.status == 1
    assert f"error[TL106]: `old.py` is not valid UTF-8: byte 0xe9 in line {line}" in done.err
    assert f"old.py:{line}:6" in done.err
    declared = b"# -*- coding: latin-1 -*-\n" + EAGER.encode() + "# caf\xe9\n".encode("latin-1")
    (tmp_path / "old.py").write_bytes(declared)
    assert run("run", "old.py", "--set", "M=3,N=40", "--rep", "1").status == 0


def test_an_unknown_encoding(run: Run, tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text("# coding: klingon\n")
    done = run("run", "odd.py")
    assert (done.status, "error[TL106]" in done.err) == (1, True)


def test_a_very_long_file(run: Run, tmp_path: Path) -> None:
    filler = "".join(f"def helper_{i}(x):\n    return x + {i}\n\n\n" for i in range(1250))
    (tmp_path / "long.py").write_text(filler + EAGER)
    assert run("run", "long.py", "--set", "M=3,N=40", "--rep", "1").status == 0


def test_errors_in_the_kernel_are_shown_with_their_source(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(EAGER.replace("T.Parallel(block)", "T.Parallell(block)"))
    done = run("run", "bad.py", "--set", "M=3,N=40")
    assert done.status == 1
    assert "error[TL111]" in done.err
    assert "for i in T.Parallell(block):" in done.err
    assert "did you mean" in done.err


def test_deep_nesting_is_no_crash(run: Run, tmp_path: Path) -> None:
    (tmp_path / "deep.py").write_text("x = " + "(" * 5000 + ")" * 5000 + "\n")
    done = run("run", "deep.py")
    assert (done.status, "error[TL101]" in done.err) == (1, True)


def test_the_file_is_not_main_and_finds_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "neighbour_for_test.py").write_text("VALUE = 5\n")
    (tmp_path / "program.py").write_text(
        "import sys\nfrom neighbour_for_test import VALUE\n"
        "assert __name__ != '__main__'\nassert sys.argv == [__file__], sys.argv\n" + EAGER
    )
    file = load(tmp_path / "program.py")
    assert file.module.VALUE == 5
    assert list(file.kernels()) == ["scale"]


def test_a_file_named_like_a_module(tmp_path: Path) -> None:
    path = tmp_path / "random.py"
    path.write_text(EAGER)
    assert choose(str(path)).name == "scale"
    import random

    assert random.random() < 1


def test_kernels_made_by_assignment(tmp_path: Path) -> None:
    path = tmp_path / "assigned.py"
    path.write_text(
        "import tilelang, tilelang.language as T\ndef make(n):\n    @T.prim_func\n"
        '    def main(A: T.Tensor((n,), "float32")):\n        with T.Kernel(1, threads=32):\n'
        "            for i in T.Parallel(n):\n                A[i] = 0.0\n    return main\n"
        "fast = tilelang.jit(make)\n"
    )
    assert list(load(path).kernels()) == ["make", "fast"]


def test_imported_kernels_are_not_the_files_own(tmp_path: Path) -> None:
    (tmp_path / "lib_for_test.py").write_text(EAGER)
    (tmp_path / "user.py").write_text("from lib_for_test import scale\n")
    with pytest.raises(CompileError, match="TL104"):
        choose(str(tmp_path / "user.py"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("trace", "k.py", "--html", "./k.py"),
        ("trace", "k.py::kernel", "--json", "k.py"),
        ("trace", "other.py", "--resume", "k.py", "--source", "k.py"),
        ("compile", "k.py", "--emit", "ir", "-o", "k.py"),
        ("inspect", "k.py", "-o", "k.py"),
    ],
)
def test_no_file_that_is_read_is_written_over(
    run: Run, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "k.py").write_text("not a kernel")
    done = run(*arguments)
    assert done.status == 2 and "would be written over" in done.err
    assert (tmp_path / "k.py").read_text() == "not a kernel"
