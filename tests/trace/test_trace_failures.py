"""A pass that fails on purpose: the trace names it, keeps what it was given, and can replay it."""

from __future__ import annotations

import runpy
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.trace.mapping import coverage
from tilelang import pipeline
from tilelang.cli import main
from tilelang.options import child_environment
from tilelang_diagnostics import failure
from tilelang_trace.ndjson import load
from tilelang_trace.replay import digest, input_of, write_reproducer

ROOT = Path(__file__).resolve().parents[2]
KERNEL = """
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((100, 64), "float16"), C: T.Tensor((100, 64), "float32")):
    with T.Kernel(T.ceildiv(100, 32), threads=128) as bx:
        s = T.alloc_shared((32, 64), "float16")
        T.copy(A[bx * 32, 0], s)
        T.copy(s, C[bx * 32, 0])
"""
BROKEN = "guard_bounds"


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TILELANG_CRASH_DIR", str(tmp_path / "crashes"))
    file = tmp_path / "kernel.py"
    file.write_text(textwrap.dedent(KERNEL))
    return file


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    run = pipeline.run_pipeline

    def fail(func: Any, context: Any) -> Any:
        raise KeyError("broken on purpose")

    fail.__name__ = BROKEN

    def broken(
        func: Any, context: Any, observers: Any = (), passes: Any = pipeline.PIPELINE
    ) -> Any:
        with_fault = tuple(replace(p, run=fail) if p.name == BROKEN else p for p in passes)
        return run(func, context, observers, with_fault)

    monkeypatch.setattr(pipeline, "run_pipeline", broken)


@pytest.mark.usefixtures("broken")
def test_the_trace_names_the_pass_and_keeps_its_input(
    kernel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "t.ndjson"
    assert main(["trace", str(kernel), "--target", "cpu", "--json", str(saved)]) == 3
    shown = capsys.readouterr()
    assert f"── {BROKEN} did not finish: KeyError: 'broken on purpose'" in shown.out
    assert "TL900" in shown.err
    with saved.open() as file:
        trace = load(file)
    ended = trace.failure
    assert ended is not None
    assert (ended.step, ended.code) == (BROKEN, "TL900")
    assert "KeyError: 'broken on purpose'" in ended.exception
    assert trace.steps[-1].name == "lower_tile_ops"
    assert input_of(trace, BROKEN) == trace.steps[-1].text


@pytest.mark.usefixtures("broken")
def test_the_reproducer_is_saved_and_reproduces(
    kernel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", str(kernel), "--target", "cpu"]) == 3
    said = capsys.readouterr().err
    (path,) = (tmp_path / "crashes").glob("replay-*.py")
    assert str(path) in said
    kernel.unlink()  # it needs nothing but itself
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    assert ended.value.code == 3
    shown = capsys.readouterr()
    assert shown.out.startswith(f"{BROKEN} is given what it was given then\n")
    assert "did not finish" in shown.out and "KeyError" in shown.err


def test_without_the_fault_the_reproducer_is_fine(
    kernel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "replay.py"
    command = ["trace", str(kernel), "--target", "cpu", "--reproducer", str(out), "--from", BROKEN]
    assert main(command) == 0
    capsys.readouterr()
    path = ":".join(str(ROOT / part) for part in (".", "diagnostics", "trace", "lsp"))
    done = subprocess.run(
        [sys.executable, str(out)], capture_output=True, text=True, check=False,
        env=child_environment(PYTHONPATH=path), cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("\n")
    assert lines[0] == f"{BROKEN} is given what it was given then"
    headers = [line.split(" · ")[0] for line in lines if line.startswith("── ")]
    assert headers[0] == f"── {BROKEN}" and "── lower_tile_ops" not in headers


def test_a_reproducer_is_edited(
    kernel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = write_reproducer(_trace(kernel, tmp_path), BROKEN)
    file = tmp_path / "replay.py"

    def status(new: str) -> object:
        file.write_text(new)
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(file), run_name="__main__")
        return ended.value.code

    row = next(x for x in text.splitlines() if " = T.cast(s[" in x)
    added = row.split("#@")[0].rstrip()
    assert status(text.replace(row, f"{row}\n{added} + 1.0")) == 0
    assert "+ 1.0" in capsys.readouterr().out
    assert status(text.replace(row, f"{row}\n{added} + nobody")) == 1
    number = text.splitlines().index(row) + 2
    assert f"replay.py:{number}:{len(added) + 4}" in capsys.readouterr().err


def test_another_program_is_told(kernel: Path, tmp_path: Path) -> None:
    trace = _trace(kernel, tmp_path)
    text = write_reproducer(trace, BROKEN)
    other = text.replace(digest(input_of(trace, BROKEN)), "0" * 16)
    assert other != text
    file = tmp_path / "other.py"
    file.write_text(other)
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(file), run_name="__main__")
    assert ended.value.code == 0


@pytest.mark.parametrize(("name", "reason"), [("none", "no pass is called"), ("emit", "no pass")])
def test_a_pass_that_is_not_there(kernel: Path, tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        write_reproducer(_trace(kernel, tmp_path), name)


def test_a_trace_without_its_program(kernel: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no program"):
        write_reproducer(replace(_trace(kernel, tmp_path), program=""), BROKEN)


def _trace(kernel: Path, tmp_path: Path) -> Any:
    saved = tmp_path / "t.ndjson"
    assert main(["trace", str(kernel), "--target", "cpu", "--json", str(saved)]) == 0
    with saved.open() as file:
        return load(file)


STREAMED = """
import os, sys
from tilelang import pipeline
from tilelang.cli import main
from dataclasses import replace
run = pipeline.run_pipeline
def die(func, context):
    os._exit(41)
die.__name__ = "guard_bounds"
passes = tuple(replace(p, run=die) if p.name == "guard_bounds" else p for p in pipeline.PIPELINE)
pipeline.run_pipeline = lambda f, c, observers=(): run(f, c, observers, passes)
main(sys.argv[1:])
"""


def test_a_process_that_dies_leaves_all_up_to_the_pass(kernel: Path, tmp_path: Path) -> None:
    saved, program = tmp_path / "t.ndjson", tmp_path / "die.py"
    program.write_text(STREAMED)
    path = ":".join(str(ROOT / part) for part in (".", "diagnostics", "trace", "lsp"))
    done = subprocess.run(
        [sys.executable, str(program), "trace", str(kernel), "--target", "cpu", "--json",
         str(saved)], env=child_environment(PYTHONPATH=path), capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 41
    with saved.open() as file:
        trace = load(file)
    assert trace.failure is not None and trace.failure.step == BROKEN
    assert "cut off" in trace.failure.message
    assert trace.steps[-1].name == "lower_tile_ops"
    assert "def main(A" in write_reproducer(trace, BROKEN)


FAILING = """
# what it is about is one line
import tilelang.language as T

TILE = 32


def scale(n):
    return n * 1


@T.prim_func
def other(A: T.Tensor((32,), "float16")):
    with T.Kernel(1, threads=32) as bx:
        for i in T.Parallel(32):
            A[i] = A[i] + 1


@T.prim_func
def main(A: T.Tensor((100, 64), "float16"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(T.ceildiv(100, TILE), threads=128) as bx:
        s = T.alloc_shared((TILE, 64), "float16")
        t = T.alloc_shared((TILE, 48), "float16")
        acc = T.alloc_fragment((64, 64), "float32")
        T.clear(acc)
        T.copy(A[bx * TILE, 0], s)
        for k in T.serial(2):
            T.clear(t)
            T.gemm(s, t, acc)
        T.copy(acc, C)
"""


def test_a_failing_kernel_is_made_small(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "f.py", tmp_path / "small.py"
    file.write_text(textwrap.dedent(FAILING))
    wanted = _code(file, capsys)
    assert main(["trace", f"{file}::main", "--target", "cpu", "--reduce", str(out)]) == 0
    said = capsys.readouterr().err
    assert "statements are left" in said and f", with {wanted}: " in said
    text = out.read_text()
    assert "T.gemm(s, t, acc)" in text
    gone = ("scale", "other", "T.clear", "for k", "T.copy")
    assert [word for word in gone if word in text] == []
    assert _code(out, capsys) == wanted


def test_what_compiles_is_not_reduced(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", str(kernel), "--target", "cpu", "--reduce", "x.py"]) == 2
    assert "there is nothing to reduce" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "more", "status", "told"),
    [
        ("x = (", (), 1, "TL101"),
        ("# \xff", (), 1, "TL106"),
        ("import no_such_module\n" + KERNEL, (), 1, "TL107"),
        (KERNEL, ("--target", "zz"), 1, "error[TL"),
        (KERNEL, ("--set", "M"), 1, "TL725"),
        (KERNEL, ("--set", "M=5"), 1, "TL720"),
        ("# coding: latin-1\n# \xff\n" + KERNEL, (), 2, "there is nothing to reduce"),
    ],
)
def test_what_is_no_fault_of_the_kernel_is_not_reduced(
    text: str, more: tuple[str, ...], status: int, told: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    file, out = tmp_path / "f.py", tmp_path / "small.py"
    file.write_bytes(text.encode("latin-1"))
    command = ["trace", str(file), "--reduce", str(out), *(more or ("--target", "cpu"))]
    assert main(command) == status
    assert told in capsys.readouterr().err
    assert not out.exists()


def test_a_file_in_another_encoding_is_reduced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "f.py", tmp_path / "small.py"
    text = "# coding: latin-1\n" + KERNEL.replace("T.copy(s, C", "\xe9 = s\n        T.copy(nö, C")
    file.write_bytes(text.encode("latin-1"))
    assert main(["trace", str(file), "--target", "cpu", "--reduce", str(out)]) == 0
    assert "with TL110: " in capsys.readouterr().err
    assert "nö" in out.read_text(encoding="utf-8")


def _code(file: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["compile", f"{file}::main", "--target", "cpu", "--emit", "ir"]) == 1
    said = capsys.readouterr().err
    return next(
        word for word in said.replace("[", " ").replace("]", " ").split() if word[:2] == "TL"
    )


def test_reducing_alone() -> None:
    from tilelang_trace.reduce import reduce_text

    text = "a = 1\nif a:\n    b = 2\n    c = 3\n\ndef f():\n    d = 4\n    e = 5\n"
    needs: Callable[[str], bool] = lambda smaller: "c = 3" in smaller  # noqa: E731
    found = reduce_text(text, needs)
    assert (found.text, found.statements) == ("c = 3\n", 1)
    assert found.attempts < 20
    with pytest.raises(ValueError, match="does not fail"):
        reduce_text("a = 1", needs)


REDUCED = """
import math
import numpy as np

SIZE = 64


def inputs(a, b, scale=np.pi):
    # tilelang: set N=4
    rng = np.random.default_rng(SIZE)
    math.log(scale)
    return rng.random(a)
"""


def test_what_is_left_has_what_it_needs() -> None:
    from tilelang_trace.reduce import reduce_text

    found = reduce_text(REDUCED, lambda text: "rng = " in text and "# tilelang: set N=4" in text)
    assert found.text == (
        "# tilelang: set N=4\nimport numpy as np\nSIZE = 64\n\ndef inputs():\n"
        "    rng = np.random.default_rng(SIZE)\n"
    )


def test_large_pieces_go_first() -> None:
    from tilelang_trace.reduce import reduce_text

    many = "".join(f"def f{n}(x):\n    y = x\n    return y\n" for n in range(200))
    found = reduce_text(f"{many}a = 1\n{many}", lambda x: "a = 1" in x)
    assert (found.text, found.attempts < 40) == ("a = 1\n", True)


def test_nothing_is_said_of_the_copies(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = "import sys\nprint(__file__, file=sys.stderr)\n"
    wrong = KERNEL.replace("T.copy(s, C", "T.copy(nothing, C")
    kernel.write_text(said + wrong)
    out = kernel.with_name("small.py")
    assert main(["trace", str(kernel), "--target", "cpu", "--reduce", str(out)]) == 0
    told = capsys.readouterr().err
    assert str(kernel) in told and "tilelang-reduce" not in told


def test_without_a_compiler_the_source_is_the_last_column(
    kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def missing(*_: object, **__: object) -> None:
        raise failure("TL807", "no compiler is installed")

    monkeypatch.setattr("tilelang.runtime.cuda_build.compile_cuda", missing)
    saved = tmp_path / "t.ndjson"
    assert main(["trace", str(kernel), "--target", "cuda:sm_80", "--json", str(saved)]) == 0
    assert "warning[TL807]" in capsys.readouterr().err
    with saved.open() as file:
        trace = load(file)
    (source,) = trace.codes
    assert trace.failure is None
    assert (source.kind, source.note) == ("source", "no compiler is installed")
    (found,) = coverage(trace)
    assert found.percent == 100


def test_source_the_compiler_refuses_is_kept(
    kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise failure("TL806", "it does not like line 3")

    monkeypatch.setattr("tilelang.runtime.cuda_build.compile_cuda", refused)
    saved = tmp_path / "t.ndjson"
    assert main(["trace", str(kernel), "--target", "cuda:sm_80", "--json", str(saved)]) == 1
    with saved.open() as file:
        trace = load(file)
    assert trace.failure is not None and trace.failure.step == "generate"
    source = trace.code("source")
    assert source is not None and "__global__" in source.text
