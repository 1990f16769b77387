"""The other subcommands, help, completion, and exit statuses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tests.cli.conftest import Run
from tilelang.cli import dispatch
from tilelang.cli.commands import COMMANDS

ROOT = Path(__file__).parents[2]


def test_help_lists_every_command(run: Run) -> None:
    done = run("--help")
    assert done.status == 0
    for row in COMMANDS:
        assert f"  {row.name}" in done.out
    assert "Exit status: 0 fine, 1 diagnostics, 2 usage, 3 compiler failure" in done.out


@pytest.mark.parametrize("row", [r for r in COMMANDS if not r.is_tool], ids=lambda r: r.name)
def test_every_command_has_help(run: Run, row: object) -> None:
    done = run(row.name, "--help")  # type: ignore[attr-defined]
    assert done.status == 0 and done.out.startswith("Usage: tilelang ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rum",), "there is no command 'rum'; did you mean `run`?"),
        (("run",), "Missing argument 'FILE[::KERNEL]'"),
        (("run", "a.py", "--frobnicate"), "No such option '--frobnicate'"),
        (("compile", "a.py", "--emit", "soup"), "'soup' is not one of"),
        (("explain", "TL2044"), "no diagnostic is called 'TL2044'; did you mean `TL204`"),
        (("cache", "burn"), "No such command 'burn'"),
        (("--nonsense",), "No such option '--nonsense'"),
    ],
)
def test_wrong_usage_is_status_2(run: Run, arguments: tuple[str, ...], message: str) -> None:
    done = run(*arguments)
    assert done.status == 2
    assert message in done.err


def test_no_arguments_show_the_help(run: Run) -> None:
    done = run()
    assert done.status == 2 and "Commands:" in done.out + done.err


def test_version(run: Run) -> None:
    assert run("--version").out == "tilelang 0.1.0\n"


def test_explain(run: Run) -> None:
    assert "# TL204 gemm-k-mismatch" in run("explain", "TL204").out
    assert run("explain", "gemm-k-mismatch").out == run("explain", "tl204").out
    everything = run("explain")
    assert "TL900  internal-error: " in everything.out and everything.status == 0


def test_compile_emits(run: Run, eager: Path, tmp_path: Path) -> None:
    sizes = ("--set", "M=3,N=100", "--target", "cpu")
    assert (
        "def scale(A: T.Tensor((3, 100)"
        in run("compile", "eager.py", *sizes, "--emit", "program").out
    )
    assert "with T.Kernel(" in run("compile", "eager.py", *sizes, "--emit", "ir").out
    assert "define" in run("compile", "eager.py", *sizes, "--emit", "source").out
    layouts = run("compile", "eager.py", *sizes, "--emit", "layouts").out
    assert layouts.startswith("scale: a CPU needs no thread layouts; these are those of cuda:sm_80")
    assert "launch of 32 threads" in layouts and "loop " in layouts
    plain = run("compile", "eager.py", *sizes)
    assert plain.status == 0 and "kernel  scale" in plain.out
    done = run("compile", "eager.py", *sizes, "-o", "out/kernel.ll")
    assert done.status == 0 and "define" in (tmp_path / "out" / "kernel.ll").read_text()


def test_compile_cannot_write(run: Run, eager: Path, tmp_path: Path) -> None:
    done = run("compile", "eager.py", "--set", "M=3,N=100", "-o", str(tmp_path))
    assert (done.status, "error[TL810]" in done.err) == (1, True)


def test_cache(run: Run, eager: Path, tmp_path: Path) -> None:
    run("compile", "eager.py", "--set", "M=3,N=100")
    info = run("cache", "info")
    assert f"  folder    {tmp_path / 'cache'}\n  kernels   1\n" in info.out
    assert run("cache", "clear").out == f"  dropped  1 kernel from {tmp_path / 'cache'}\n"
    assert "  kernels   0\n" in run("cache", "info").out


def test_a_bad_environment_is_a_diagnostic(
    run: Run, eager: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILELANG_DISABLE_CACHE", "maybe")
    done = run("run", "eager.py", "--set", "M=3,N=100")
    assert (done.status, "error[TL811]" in done.err) == (1, True)


def test_doctor(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run("doctor")
    assert done.status == 0, done.out
    for part in ("✓ apache-tvm", "✓ LLVM", "target auto", "✓ folder", "cores usable"):
        assert part in done.out
    monkeypatch.setenv("TILELANG_CACHE_LIMIT", "lots")
    done = run("doctor")
    assert done.status != 0 or "TILELANG_CACHE_LIMIT" in done.out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(run: Run, shell: str) -> None:
    done = run("completion", shell)
    assert done.status == 0 and "_TILELANG_COMPLETE" in done.out


def complete(words: str, cwd: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "tilelang"], capture_output=True, text=True, check=True, cwd=cwd,
        env={"PYTHONPATH": str(ROOT), "PATH": os.defpath, "_TILELANG_COMPLETE": "bash_complete",
             "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)},
    )  # fmt: skip
    return [line.split(",", 1)[1] for line in done.stdout.splitlines()]


def test_completion(eager: Path, tmp_path: Path) -> None:
    assert complete("tilelang co", tmp_path) == ["compile", "completion"]
    assert complete("tilelang run eager.py::", tmp_path) == ["eager.py::scale"]
    assert complete("tilelang explain TL20", tmp_path)[:2] == ["TL201", "TL202"]
    assert complete("tilelang compile --emit so", tmp_path) == ["source", "so"]


def test_tools_get_their_arguments_and_give_their_status(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []

    class Tool:
        @staticmethod
        def main(argv: list[str]) -> int:
            seen.append(argv)
            return 1

    monkeypatch.setattr(dispatch.importlib, "import_module", lambda name: Tool)
    assert run("lint", "--help", "--format=json", "a.py", "--", "-x").status == 1
    assert seen == [["--help", "--format=json", "a.py", "--", "-x"]]


def test_third_parties_can_add_commands(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def found(name: str) -> click.Command | None:
        return dispatch._passing_on(name, "", lambda: lambda argv: len(argv))

    monkeypatch.setattr(dispatch, "_entry_point", found)
    assert run("profile", "a", "b").status == 2


def test_a_closed_pipe_is_no_failure(tmp_path: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m tilelang explain | head -1", shell=True, capture_output=True,
        text=True, check=True, env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert done.stderr == ""


def test_interrupts(run: Run, eager: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilelang.cli import run_kernel

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run_kernel, "choose", interrupted)
    done = run("run", "eager.py")
    assert (done.status, done.err.strip()) == (130, "interrupted")
