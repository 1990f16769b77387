"""A compilation goes on from IR or CUDA that somebody has edited."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang_trace
from tests.support.cuda import needs_nvrtc
from tilelang.cli.files import choose
from tilelang.cli.specialise import specialise
from tilelang.compiler import Start, lower_function
from tilelang.emulator.settings import Emulator
from tilelang.ir.read import read_function
from tilelang.pipeline import passes_after
from tilelang.target import parse_target
from tilelang_diagnostics import Diagnostic
from tilelang_trace.model import Trace
from tilelang_trace.recorder import record
from tilelang_trace.replay import unpack
from tilelang_trace.resumed import Resumed
from tilelang_trace.resuming_ir import resume_ir
from tilelang_trace.stages import saved_after, stages_of

KERNEL = """
import tilelang.language as T


@T.prim_func
def main(
    A: T.Tensor((64, 64), "float16"),
    B: T.Tensor((64, 64), "float16"),
    C: T.Tensor((64, 64), "float32"),
):
    with T.Kernel(1, threads=128) as bx:
        a = T.alloc_shared((64, 32), "float16")
        b = T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.clear(c)
        for k in T.Pipelined(2, num_stages=2):
            T.copy(A[0, k * 32], a)
            T.copy(B[k * 32, 0], b)
            T.gemm(a, b, c)
        for i, j in T.Parallel(64, 64):
            c[i, j] = c[i, j] * 2.0
        T.copy(c, C)
"""
CPU, AMPERE, HOPPER = "cpu", "cuda:sm_80", "cuda:sm_90a"


@cache
def traced(target: str) -> Trace:
    file = Path(_folder().name) / "gemm.py"
    file.write_text(KERNEL)
    trace, error = record(specialise(choose(str(file)), {}), parse_target(target), str(file))
    assert error is None
    return trace


@cache
def _folder() -> Any:
    import tempfile

    return tempfile.TemporaryDirectory()


@cache
def saved(target: str, mark: str) -> str:
    return saved_after(traced(target), mark)


def edited(target: str, mark: str, old: str, new: str) -> str:
    text = saved(target, mark)
    assert old in text, text
    return text.replace(old, new, 1)


def source_of(func: Any, target: str) -> str:
    from tilelang.backends import find_backend
    from tilelang.codegen.cpu import print_cpu
    from tilelang.codegen.device_printer import print_device

    backend = find_backend(parse_target(target).kind)
    assert backend is not None
    return print_cpu(func).text if target == CPU else print_device(func, backend.words()).text


# --- what was not edited ---


@pytest.mark.parametrize(
    ("target", "marks"),
    [
        (CPU, "emit cpu_threads lower_tile_ops simplify unswitch_guards"),
        (AMPERE, "emit apply_layouts stage_stores tidy:1 tidy:2 plan_shared fence_proxies"),
        (HOPPER, "refuse_divergent_ops pipeline_loops lower_gpu_ops vectorize_accesses"),
    ],
)
def test_without_an_edit_the_source_is_the_same_to_the_byte(target: str, marks: str) -> None:
    function, to, options = unpack(traced(target).program)
    stages = dict(stages_of(function, to, options))
    source = source_of(list(stages.values())[-1], target)
    for mark in marks.split():
        start = Start(read_function(saved(target, mark), "k").func, passes_after(mark))
        lowered = lower_function(function, to, options, start=start)
        assert source_of(lowered.func, target) == source, mark


def test_the_steps_before_come_from_the_kernel() -> None:
    made = resume_ir(traced(CPU), saved(CPU, "lower_tile_ops"), "k.py", code=False)
    assert made.error is None
    assert [s.name for s in made.trace.steps] == [s.name for s in traced(CPU).steps]
    assert [s.text for s in made.trace.steps] == [s.text for s in traced(CPU).steps]


# --- what was ---


def result_of(made: Resumed, backend: Any = None) -> Any:
    random = np.random.default_rng(0)
    a, b = (random.integers(-2, 3, (64, 64)).astype(np.float16) for _ in range(2))
    c = np.zeros((64, 64), np.float32)
    made.kernel(backend)(a, b, c)
    return c, a.astype(np.float32) @ b.astype(np.float32)


@pytest.mark.parametrize(
    ("target", "mark", "old", "new"),
    [
        (CPU, "emit", "* 2.0", "* 3.0"),
        (CPU, "simplify", "* 2.0", "* 3.0"),
        (AMPERE, "apply_layouts", "* 2.0", "* 3.0"),
        (HOPPER, "fence_proxies", "* 2.0", "* 3.0"),
    ],
)
def test_an_edited_constant_is_in_the_result(target: str, mark: str, old: str, new: str) -> None:
    text = edited(target, mark, old, new)
    made = resume_ir(traced(target), text, "k.py", code=target == CPU)
    got, product = result_of(made, None if target == CPU else Emulator())
    assert (got == 3 * product).all() and got.any()


def test_layouts_of_a_file_from_after_them_count() -> None:
    was = saved(AMPERE, "apply_layouts")
    row = next(x for x in was.splitlines() if "for i, j in T.Parallel(64, 64, layout=" in x)
    first, rest = row.split("lambda i, j: (", 1)
    threads, slots = rest.split(", ", 1)
    text = was.replace(row, f"{first}lambda i, j: (127 - ({threads}), {slots}")
    made = resume_ir(traced(AMPERE), text, "k.py", code=False)
    assert made.error is None
    assert made.trace.steps[-1].text != traced(AMPERE).steps[-1].text


def test_a_statement_that_was_added_is_in_the_result() -> None:
    text = saved(AMPERE, "lower_gpu_ops")
    row = next(x for x in text.splitlines() if "* 2.0" in x)
    new = row.split("#@")[0].replace("* 2.0", "+ 1.0").rstrip()
    made = resume_ir(traced(AMPERE), text.replace(row, f"{row}\n{new}"), "k.py", code=False)
    got, product = result_of(made, Emulator())
    assert (got == 2 * product + 1).all()


# --- what is wrong ---

# Target, the pass after which it is written, what is replaced by what; then the code, the text at
# the place that is shown, and a part of the message.
WRONG = (
    (CPU, "emit", "* 2.0", "* (2.0", "TL101", "(", "'(' was never closed"),
    (CPU, "emit", "T.copy(c,", "T.copy(d,", "TL110", "d", "`d` is bound nowhere above"),
    (CPU, "emit", "T.clear(c)", "T.cleer(c)", "TL111", "T.cleer", "no operation `T.cleer`"),
    (CPU, "lower_tile_ops", "* 2.0", "* i", "TL236", "c[i, j] * i", "`i` int32"),
    (CPU, "emit", "(32, 64), 'float16')", "(16, 64), 'float16')", "TL191",
     "T.copy(B[k * 32:k * 32 + 32, 0:64], b)", "copies 32 x 64 of `B` to 16 x 64 of `b`"),
    (CPU, "emit", "num_stages=2", "num_stages=-2", "TL191",
     "for k in T.Pipelined(2, num_stages=-2):", "has -2 stages"),
    (HOPPER, "apply_layouts", "num_stages=2", "num_stages=99999999", "TL191", None, "stages"),
    (AMPERE, "fence_proxies", "tx % 4 * 8", "tx % 4 * 99999999999", "TL235", "99999999999",
     "int32 does not hold"),
    (AMPERE, "apply_layouts", "j//8%4)*4)))", "j//8%4)*4000000)))", "TL117", None, "too many for"),
    (CPU, "emit", "T.alloc_shared((64, 32)", "T.alloc_shared((64, 32 * bx)", "TL191", None,
     "no constant"),
    (AMPERE, "apply_layouts", "T.gemm(a, b, c)", "T.gemm(b, a, c)", "TL191", "T.gemm(b, a, c)",
     "T.gemm has M = 32 in `b` and 64 in `c`"),
    (AMPERE, "apply_layouts", "(32, 64), 'float16'", "(32, 128), 'float16'", "TL117", None,
     "the layout of `b`"),
    (AMPERE, "distribute_loops", "T.cp_async_wait(groups=0)", "T.cp_async_wait()", "TL113",
     "T.cp_async_wait()", "needs `groups=`"),
    (AMPERE, "fence_proxies", "bytes=16", "bytes=17", "TL117", "17", "not one of 4, 8, 16"),
    (AMPERE, "fence_proxies", "a_r = T.alloc_local((16,), 'float16')",
     "a_r = T.alloc_local((16,), 'bfloat16')", "TL191", "bfloat16", "not float16"),
    (AMPERE, "tidy:1", "threads=128", "threads=96", "TL192", "96", "`distribute_loops` cannot"),
    (HOPPER, "refuse_divergent_ops", "T.clear(c)",
     "x = T.alloc_shared((512, 512), 'float16')\n        T.clear(x)\n        T.clear(c)", "TL406",
     "x = T.alloc_shared((512, 512), 'float16')", "shared memory"),
    (HOPPER, "emit", "# after emit", "# after emits", "TL190", "emits", "no pass is called"),
    (HOPPER, "emit", "# after emit\n", "", "TL190", None, "does not say after which pass"),
    (HOPPER, "emit", "'cuda:sm_90a'}", "'cuda:sm_80'}", "TL190", "cuda:sm_80", "compiles for"),
    (HOPPER, "emit", "def main", "def other", "TL190", "def other", "that of `other`"),
    (HOPPER, "emit", "tilelang IR 1", "tilelang IR 9", "TL190", "# tilelang IR 9:", "version 9"),
)  # fmt: skip


@pytest.mark.parametrize("row", WRONG, ids=lambda row: f"{row[4]}-{row[3][:20]}")
def test_what_is_wrong_is_told_at_its_place(row: tuple[Any, ...]) -> None:
    target, mark, old, new, code, at, message = row
    text = edited(target, mark, old, new)
    made = resume_ir(traced(target), text, "edited.py", code=False)
    assert made.error is not None
    found = made.error.diagnostics[0]
    assert (found.code, message in found.message) == (code, True), found
    assert found.help
    assert found.span is not None and found.span.file == "edited.py"
    if at is not None:
        assert under(found, text) == at


def under(found: Diagnostic, text: str) -> str:
    """What the place of a diagnostic covers."""
    span = found.span
    assert span is not None and span.line == span.end_line
    return text.splitlines()[span.line - 1][span.column - 1 : span.end_column - 1]


def test_of_several_edits_the_guilty_one_is_shown() -> None:
    text = edited(AMPERE, "tidy:1", "* 2.0", "* 3.0").replace("threads=128", "threads=96")
    made = resume_ir(traced(AMPERE), text, "edited.py", code=False)
    assert made.error is not None
    assert under(made.error.diagnostics[0], text) == "96"


def test_what_fails_without_an_edit_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilelang import pipeline

    def fail(func: Any, context: Any) -> Any:
        raise KeyError("on purpose")

    fail.__name__ = "guard_bounds"
    text = saved(CPU, "lower_tile_ops")
    run = pipeline.run_pipeline

    def broken(func: Any, context: Any, observers: Any = (), passes: Any = ()) -> Any:
        from dataclasses import replace

        return run(func, context, observers, [
            replace(p, run=fail) if p.name == "guard_bounds" else p
            for p in passes or pipeline.PIPELINE
        ])  # fmt: skip

    monkeypatch.setattr(pipeline, "run_pipeline", broken)
    for new in (text, text.replace("* 2.0", "* 3.0")):
        made = resume_ir(traced(CPU), new, "k.py", code=False)
        assert made.error is not None
        assert made.error.diagnostics[0].code == "TL900"


# --- CUDA ---


@needs_nvrtc
@pytest.mark.parametrize(
    ("old", "new", "code", "at"),
    [
        ("*= 2.0f", "*= twice", "TL816", "twice"),
        ("*= 2.0f;", "*= 2.0f + 1", "TL816", None),
        ("main_kernel", "other_kernel", "TL189", None),
    ],
)
def test_wrong_cuda_is_told_at_its_line(
    old: str, new: str, code: str, at: str | None, tmp_path: Path
) -> None:
    function, target, options = unpack(traced(AMPERE).program)
    source = source_of(stages_of(function, target, options)[-1][1], AMPERE)
    text = source.replace(old, new, 1)
    assert text != source
    file = tmp_path / "k.cu"
    file.write_text(text)
    made = tilelang_trace.resume(traced(AMPERE), str(file))
    assert made.error is not None
    found = made.error.diagnostics[0]
    assert (found.code, bool(found.help)) == (code, True)
    assert found.span is not None and found.span.file == str(file)
    rows = text.splitlines()
    line = next(n for n, row in enumerate(rows, 1) if new.rstrip("; 1") in row)
    assert found.span.line in (line, line + 1)
    if at is not None:
        assert under(found, text) == at


# --- files ---


def test_what_came_of_a_file_is_saved_and_edited_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tilelang.cli import main

    monkeypatch.chdir(tmp_path)
    Path("gemm.py").write_text(KERNEL)
    Path("first.py").write_text(edited(CPU, "lower_tile_ops", "* 2.0", "* 3.0"))
    later = ["--ir", "second.py", "--from", "simplify", "--json", "made.ndjson"]
    assert main(["trace", "gemm.py", "--resume", "first.py", *later]) == 0
    text = Path("second.py").read_text()
    assert "* 3.0" in text and "# after cpu_prefetch" in text
    assert "* 3.0" in tilelang_trace.load("made.ndjson").steps[-1].text
    Path("second.py").write_text(text.replace("* 3.0", "* 5.0"))
    capsys.readouterr()
    assert main(["trace", "made.ndjson", "--resume", "second.py"]) == 0
    assert "* 5.0" in capsys.readouterr().out
    assert main(["trace", "gemm.py", "--resume", "third.py"]) == 2
    assert "cannot read third.py" in capsys.readouterr().err
    assert main(["trace", "gemm.py", "--target", "cuda:sm_80", "--resume", "first.py"]) == 1
    assert "the IR was written for cpu, and this compiles for cuda:sm_80" in capsys.readouterr().err


# --- the example of the documentation ---

DOCS = Path(__file__).resolve().parents[2] / "docs" / "trace.md"
SESSION = re.compile(r"```console\n(?P<text>.*?)```", re.DOTALL)


def test_the_example_of_the_documentation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tilelang.cli import main

    section = DOCS.read_text().partition("## Going on from an edited file")[2].partition("\n## ")[0]
    kernel = re.search(r"```py\n(.*?)```", section, re.DOTALL)
    assert kernel is not None
    monkeypatch.chdir(tmp_path)
    Path("scale.py").write_text(kernel[1])
    commands = 0
    for block in SESSION.finditer(section):
        printed = ""
        for line in block["text"].splitlines():
            if not line.startswith("$ "):
                assert line in printed.splitlines(), f"{line}\n--\n{printed}"
                continue
            commands += 1
            _, program, *arguments = line.split()
            if program == "sed":
                printed = _sed(line)
                continue
            main(arguments)
            shown = capsys.readouterr()
            printed = "\n".join(x.rstrip() for x in (shown.out + shown.err).splitlines())
    assert commands >= 6


def _sed(command: str) -> str:
    """`sed -i 's/old/new/' file`, or `sed -n 2,4p file`."""
    if shown := re.fullmatch(r"\$ sed -n (\d+),(\d+)p (\S+)", command):
        rows = Path(shown[3]).read_text().splitlines()
        return "\n".join(rows[int(shown[1]) - 1 : int(shown[2])])
    match = re.fullmatch(r"\$ sed -i 's/(.*?)/(.*?)/' (\S+)", command)
    assert match is not None
    text = Path(match[3]).read_text()
    assert match[1] in text
    Path(match[3]).write_text(text.replace(match[1], match[2]))
    return ""
