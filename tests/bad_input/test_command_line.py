"""`tilelang` with streams, files and values that are no use: a diagnostic or a usage error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import EAGER, Run, eager, run
from tests.support.cuda import needs_cuda_compiler
from tilelang.runtime import devices

__all__ = ["eager", "run"]  # fixtures

ROOT = Path(__file__).parents[2]
SIZES = ("--set", "M=3,N=40", "--target", "cpu")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--seed", "-1"), "-1 is not in the range"),
        (("--rep", "nan"), "nan is not a time"),
        (("--rep", "abc"), "'abc' is not a valid number."),
        (("--rep", "inf"), "inf is not in the range"),
        (("--rep", "-5"), "-5.0 is not in the range"),
    ],
)
def test_numbers_that_are_none(
    run: Run, eager: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = run("run", "eager.py", *SIZES, *arguments)
    assert (done.status, message in done.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("run", ""), 1, "error[TL103]: no file is named"),
        (("run", "::scale"), 1, "error[TL103]: no file is named"),
        (("run", "/dev/zero"), 1, "error[TL103]: cannot read `/dev/zero`: it is no regular file"),
        (("run", "eager.py", "--set", "M=3,"), 1, "error[TL725]: an empty part of `M=3,` is not"),
        (("run", "eager.py"), 1, "error[TL716]: `M` and `N` of `scale` have no value"),
        (("run", "eager"), 1, "no such file\n  = help: did you mean `eager.py`?"),
        (("run", "eager.py", "M=3"), 2, "argument (M=3); values are given with --set NAME=VALUE"),
        (("run", "eager.py", "--set", f"M={10**30},N=4"), 1, f"extent {10**30} does not fit int64"),
        (("run", "eager.py", "--set", f"M={10**12},N=400"), 1, "error[TL414]"),
        (("run", "eager.py", "--set", f"M=4,N={10**13}"), 1, "error[TL414]"),
        (("run", "eager.py", "--set", "M=2000000000,N=100000,block=100000"), 1, "error[TL813]"),
        (("run", "eager.py", "--set", "M=0,N=4", "--rep", "1"), 0, ""),
    ],
)  # fmt: skip
def test_files_and_values(
    run: Run, eager: Path, arguments: tuple[str, ...], status: int, message: str
) -> None:
    done = run(*arguments)
    assert (done.status, message in done.err) == (status, True), done.err


@pytest.mark.parametrize("value", ["abc", "-4", "1e3", "True", "None", "[1]"])
def test_a_size_that_is_none_is_one_mistake(run: Run, eager: Path, value: str) -> None:
    done = run("run", "eager.py", "--set", f"M={value},N=40")
    assert done.status == 1
    assert done.err.count("error[") == 1
    assert "error[TL215]: `M` is given the value " in done.err
    assert "give it an integer that is not negative: M=1024" in done.err


@needs_cuda_compiler
def test_a_gpu_that_is_not_there(run: Run, eager: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilelang.cli.run_kernel.make_inputs", None)  # the device is asked before
    result = run("run", "eager.py", "--set", "M=8,N=64", "--target", "cuda:sm_80")
    assert result.status == 1
    assert "TL805" in result.err and "needs an NVIDIA GPU" in result.err
    assert "--emulate" in result.err


@pytest.mark.parametrize("command", ["run", "compile", "inspect"])
def test_an_empty_target(run: Run, eager: Path, command: str) -> None:
    result = run(command, "eager.py", "--set", "M=8,N=64", "--target", "")
    assert result.status == 1 and "error[TL403]: there is no target ''" in result.err


def test_auto_is_not_said_where_nothing_is_made(
    run: Run, eager: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tilelang.runtime.devices.probes", lambda: ())
    size = ("eager.py", "--set", "M=8,N=64")
    assert run("compile", *size, "--emit", "so", "-o", "a.so").status == 0
    devices._announce.cache_clear()  # said once a process
    for wanted in (("--check", "a.so"), (*size, "--emit", "ptx"), (*size, "--emit", "program")):
        assert "TL415" not in run("compile", *wanted).err
    assert "TL415" in run("compile", *size).err


def test_a_reference_that_returns_nothing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "silent.py").write_text(EAGER.replace("return A * factor", "A * factor"))
    done = run("run", "silent.py", *SIZES)
    assert done.status == 1
    assert "error[TL723]: `reference` returns nothing to compare with" in done.err


DYNAMIC = """\
import tilelang.language as T

M, step = T.dynamic("M, step")


@T.prim_func
def first(A: T.StridedTensor((M, 8), (step, 1), "float32"), B: T.Tensor((M,), "float32")):
    with T.Kernel(M, threads=32) as bx:
        B[bx] = A[bx, 0]
"""


@pytest.mark.parametrize(
    ("sizes", "status", "message"),
    [
        ("M=4,step=9", 0, ""),
        ("M=4.5,step=9", 1, "error[TL726]: M of first is 4.5, not an integer"),
        ("M=4,step=many", 1, "error[TL726]: step of first is 'many', not an integer"),
        ("M=4,step=-9", 1, "error[TL726]: step of A is -9"),
        ("M=4", 1, "error[TL716]: first needs a value for step"),
        (f"M={10**12},step=8", 1, "error[TL813]"),
    ],
)
def test_sizes_of_runtime_dimensions(
    run: Run, tmp_path: Path, sizes: str, status: int, message: str
) -> None:
    (tmp_path / "dynamic.py").write_text(DYNAMIC)
    done = run("run", "dynamic.py", "--set", sizes, "--target", "cpu", "--rep", "1")
    assert (done.status, message in done.err) == (status, True), done.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("async with x:\n    pass\n", "error[TL101]: syntax error: 'async with' outside async"),
        ("raise ValueError('one\\ntwo')\n", "raised ValueError: one\n  --> file.py:"),
        (
            "x = " + " + ".join(["1"] * 20_000),
            "error[TL101]: this expression nests more deeply than Python can read",
        ),
    ],
)
def test_what_python_says_of_a_file(run: Run, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "file.py").write_text(EAGER + "\n\n" + text)
    done = run("run", "file.py", *SIZES)
    assert (done.status, message in done.err) == (1, True), done.err


def test_many_kernels_are_not_all_listed(run: Run, tmp_path: Path) -> None:
    one = EAGER.split("\n\n\n")[1]
    more = [one.replace("def scale", f"def scale_{n}") for n in range(30)]
    (tmp_path / "many.py").write_text("\n\n\n".join([EAGER, *more]))
    done = run("run", "many.py")
    assert "`scale_10`, and 19 more\n" in done.err
    assert "name one:\n            tilelang run many.py::scale\n" in done.err


def test_warnings_are_shown_as_diagnostics(run: Run, tmp_path: Path) -> None:
    (tmp_path / "warned.py").write_text(EAGER.replace("* factor", "* factor * 1e60"))
    done = run("run", "warned.py", *SIZES, "--rep", "1", "--no-check")
    assert done.status == 0
    assert "warning[TL235]: 1e+60 does not fit float32" in done.err
    assert "--> " in done.err and "TileLangWarning" not in done.err


def tilelang(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "eager.py").write_text(EAGER)
    line = f"{sys.executable} -m tilelang {command}"
    given = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "TILELANG_CACHE_DIR": str(folder / "c"),
        **environment,
    }
    return subprocess.run(
        ["/bin/sh", "-c", line], cwd=folder, env=given, capture_output=True, text=True, check=False
    )


def test_an_encoding_without_our_characters(tmp_path: Path) -> None:
    done = tilelang(
        "doctor", tmp_path, PYTHONIOENCODING="ascii", TILELANG_CRASH_DIR=str(tmp_path / "crashes")
    )
    assert "\\u2713 python" in done.stdout
    assert not (tmp_path / "crashes").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_a_full_disk_behind_standard_output(tmp_path: Path) -> None:
    done = tilelang("explain >/dev/full", tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error[TL810]: standard output cannot be written: No space left on device\n\n"
    )


@pytest.mark.parametrize("stream", ["1", "2"])
def test_a_closed_stream(tmp_path: Path, stream: str) -> None:
    done = tilelang(f"explain TL204 {stream}>&-", tmp_path)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr and "TL900" not in done.stderr


def test_doctor_where_packages_are_missing(tmp_path: Path) -> None:
    """The table is most needed where nothing else works."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "for name in ('platformdirs', 'filelock'):\n"
        "    sys.modules[name] = None\n"
    )  # fmt: skip
    environment = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "TILELANG_CACHE_DIR": ""}
    done = tilelang("doctor", tmp_path, **environment)
    assert done.returncode == 1
    assert "✗ folder  the package platformdirs is needed to find it" in done.stdout
    done = tilelang(f"run eager.py {' '.join(SIZES)}", tmp_path, **environment)
    assert done.returncode == 1
    assert done.stderr.startswith("error[TL808]: the package platformdirs is not installed\n")
    assert "Traceback" not in done.stderr


def test_doctor_with_wrong_environment_variables(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_CACHE_LIMIT", "-1")
    monkeypatch.setenv("TILELANG_DEFAULT_TARGET", "gpu")
    done = run("doctor")
    assert done.status == 1
    assert "✗ TILELANG_CACHE_LIMIT" in done.out and "✗ TILELANG_DEFAULT_TARGET" in done.out
    assert "✓ numpy" in done.out
