"""Did my pipeline take effect? One screen, from real kernels and from made-up traces."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from tests.ir.test_read_back import CASES, function_of
from tests.trace.recorded import trace_of
from tilelang.cli import main
from tilelang.compiler import effective_options
from tilelang.options import CompileOptions
from tilelang.program.stmt import Function
from tilelang.runtime.nvrtc import find_nvrtc
from tilelang.target import parse_target
from tilelang_diagnostics import Diagnostic, Severity, Span
from tilelang_trace.executed import executed
from tilelang_trace.model import Line, Step, Trace
from tilelang_trace.pipelines import pipeline_text, pipelines
from tilelang_trace.recorder import Recorder, recorded

needs_nvrtc = pytest.mark.skipif(find_nvrtc() is None, reason="NVRTC is not installed")


def shown(trace: Trace) -> list[str]:
    return [line for text in pipeline_text(trace) for line in text.plain.split("\n")]


def test_a_pipeline_that_takes_effect() -> None:
    (found,) = pipelines(trace_of("gemm", "sm_80"))
    assert (found.verdict, found.asked, found.stages) == ("yes", 3, 3)
    assert found.versions == (("A_s", 3), ("B_s", 3))
    assert [(s.kind, dict(s.found)) for s in found.statements] == [
        ("copy", {"cp.async": 6}), ("copy", {"cp.async": 6}), ("gemm", {"mma": 16}),
    ]  # fmt: skip
    # 128 iterations, of which each thread copies twice and each warp multiplies 16 times.
    assert [dict(s.executed) for s in found.statements] == [
        {"cp.async": 256}, {"cp.async": 256}, {"mma": 2048},
    ]  # fmt: skip
    assert any(
        line.endswith("→ 6 × cp.async, 256 per thread") for line in shown(trace_of("gemm", "sm_80"))
    )


# A program after the last pass, and how many copies a thread executes; None for what is unknown.
RUNS = [
    ("for k in T.serial(8):\n    for r in T.unroll(2):\n        T.cp_async(A)", 16),
    ("for k in T.Pipelined(8, num_stages=3):\n    if k + 2 < 8:\n        T.cp_async(A)", 6),
    ("if 0 < 8:\n    T.cp_async(A)\nfor k in T.serial(2, 5):\n    T.cp_async(A)", 4),
    ("for k in T.serial(4):\n    for j in T.serial(k):\n        T.cp_async(A)", 6),
    ("for k in T.serial(4):\n    at = k % 2\n    if at == 0:\n        T.cp_async(A)", 2),
    ("for k in T.serial(4):\n    if k == 1:\n        pass\n    else:\n        T.cp_async(A)", 3),
    # Of the threads that get there.
    ("x = T.get_thread_binding(0)\nfor k in T.serial(4):\n    if x < 9:\n        T.cp_async(A)", 4),
    ("for k in T.serial(n):\n    T.cp_async(A)", None),
    ("for k in T.serial(4):\n    if k < n:\n        T.cp_async(A)", None),
    ("while n < 4:\n    T.cp_async(A)", None),
    ("for k in T.serial(4):\n    T.cp_async(A)\n    break", None),
    ("T.cp_async(A)\nif n < 4:\n    T.cp_async(A)", None),
    ("for k in T.serial(1000000):\n    if k < 9:\n        T.cp_async(A)", None),  # takes too long
    ("for k in T.serial(1000000):\n    T.cp_async(A)", 1_000_000),
    ("for k in T.serial(4:", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), RUNS)
def test_how_often_a_thread_executes_a_copy(text: str, expected: int | None) -> None:
    place = Span("k.py", 1, 1, 1, 9)
    step = Step("last", tuple(Line(row, place) for row in text.split("\n")))
    found = executed(step, lambda line: ["copy"] if "cp_async" in line else [])
    assert found.get(place, {}).get("copy") == expected


def test_buffers_are_kept_at_every_stage() -> None:
    trace = trace_of("gemm", "sm_80", code=False)
    first = {s.name: s for s in trace.steps[0].symbols}
    assert list(first) == ["A", "B", "C", "A_s", "B_s", "C_l"]
    assert (first["A_s"].scope, first["A_s"].shape) == ("shared.dyn", ("64", "32"))
    later = {s.name: dict(s.said) for s in trace.step("plan_shared").symbols}
    assert later["A_s"]["versions"] == "3"
    assert later["B_s"]["shared_offset"] == "12288"
    laid = {s.name: dict(s.said) for s in trace.step("apply_layouts").symbols}
    assert laid["A_s"]["layout"] == next(x.short for x in trace.layouts if x.name == "A_s")


def test_decisions_say_why() -> None:
    trace = trace_of("gemm", "sm_80", code=False)
    found = {(s.name, d.kind): d for s in trace.steps for d in s.decisions if d.span is not None}
    assert found["insert_sync", "barrier"].text.startswith("the threads of the block wait before")
    assert "another thread" in found["insert_sync", "barrier"].why
    assert found["lower_gpu_ops", "gemm"].text == "mma.sync m16n8k16, 16 a warp, by 2x2 warps"
    copies = {d.text: d for s in trace.steps for d in s.decisions if d.kind == "copy"}
    assert copies["`A` → `A_s` by cp.async, 16 bytes at a time"].why == "as wide as it gets"
    result = copies["`C_l` → `C`, 8 bytes at a time"]
    assert ("16 bytes at a time", "a thread has 2 elements of a row") in result.rejected


def test_it_fits_a_screen() -> None:
    lines = shown(trace_of("attention", "sm_90a"))
    assert len(lines) <= 24 and max(map(len, lines)) <= 140
    assert lines[2].endswith("takes effect  (instructions as they stand in the machine code)")


def test_without_machine_code_the_ir_is_counted() -> None:
    (found,) = pipelines(trace_of("gemm", "sm_80", code=False))
    assert found.seen_in == "the IR"
    assert found.verdict == "yes"
    assert all(s.holds for s in found.statements)


ODD = """
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((256, 1001), "float16"), B: T.Tensor((1001, 64), "float16"),
         C: T.Tensor((256, 64), "float32")):
    with T.Kernel(4, threads=128) as bx:
        A_s = T.alloc_shared((64, 32), "float16")
        B_s = T.alloc_shared((32, 64), "float16")
        acc = T.alloc_fragment((64, 64), "float32")
        T.clear(acc)
        for k in T.Pipelined(32, num_stages=2):
            T.copy(A[bx * 64, k * 32], A_s)
            T.copy(B[k * 32, 0], B_s)
            T.gemm(A_s, B_s, acc)
        T.copy(acc, C[bx * 64, 0])
"""


@needs_nvrtc
def test_the_line_that_fell_back_is_named_with_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "odd.py"
    file.write_text(textwrap.dedent(ODD))
    assert main(["trace", str(file), "--target", "cuda:sm_80", "--pipeline"]) == 0
    printed = capsys.readouterr().out.split("\n")
    assert "takes effect in part" in printed[2]
    assert any(
        line.strip() == "✗ async copies: expected of 2 lines, found of 1" for line in printed
    )
    fell = next(n for n, line in enumerate(printed) if "odd.py:14" in line)
    assert "ld.global" in printed[fell] and "cp.async" not in printed[fell]
    assert "a thread moves 2 bytes at a time, not 4, 8 or 16" in printed[fell + 1]


@needs_nvrtc
def test_a_copy_written_as_a_loop_counts_on_its_own_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "loop.py"
    loop = "for i, j in T.Parallel(32, 64):\n                B_s[i, j] = B[k * 32 + i, j]"
    file.write_text(textwrap.dedent(ODD).replace("T.copy(B[k * 32, 0], B_s)", loop))
    assert main(["trace", str(file), "--target", "cuda:sm_80", "--pipeline"]) == 0
    line = next(x for x in capsys.readouterr().out.split("\n") if "loop.py:16" in x)
    assert line.strip().startswith("loop.py:16  B_s[i, j] = B[") and line.endswith(
        "× cp.async, 64 per thread"
    )


def made(body: str, remarks: tuple[Diagnostic, ...] = ()) -> Trace:
    head = ["@T.prim_func", "def f(A: T.Tensor((64,), 'float16')):",
            "    with T.Kernel(1, threads=32) as bx:",
            "        S = T.alloc_shared((64,), 'float16')"]  # fmt: skip
    lines = [*head, *textwrap.indent(textwrap.dedent(body).strip(), " " * 8).split("\n")]
    spans = [Span("k.py", n, 1, n, 9) for n in range(1, len(lines) + 1)]
    step = Step("emit", tuple(Line(t, s) for t, s in zip(lines, spans, strict=True)))
    return Trace("f", "k.py", "cuda:sm_80", (step,), remarks=remarks)


def test_a_kernel_without_pipelines() -> None:
    assert shown(made("T.copy(A, S)"))[-1].startswith("no loop of this kernel is T.Pipelined")


def test_a_loop_with_nothing_to_copy() -> None:
    reason = Diagnostic("TL507", Severity.REMARK, "nothing to prefetch", Span("k.py", 5, 1, 5, 9))
    lines = shown(made("for k in T.Pipelined(4, num_stages=2):\n    S[k] = 0.0", (reason,)))
    assert "has no effect" in lines[2]
    assert "no line copies from a tensor to shared memory" in lines[4]
    assert lines[5].strip() == "nothing to prefetch"


def test_a_cpu_has_none() -> None:
    trace = replace(made("for k in T.Pipelined(4, num_stages=2):\n    S[k] = 0.0"), target="cpu")
    assert len(shown(trace)) == 2 and "ordinary loops" in shown(trace)[1]


def test_a_trace_without_steps() -> None:
    assert pipelines(Trace("f", "k.py", "cpu", ())) == ()


# What was asked for, and whether each copy and product is what it should be: on Ampere, on HIP and
# on Metal. Capitals became asynchronous copies or matrix instructions.
TEN = {
    "jit_gemm_tn": (2, "CcG", "ccG", "ccG"),
    "pipeline_one_ahead": (2, "CCG", "ccG", "ccG"),
    "pipeline_product_first": (2, "CCG", "ccG", "ccG"),
    "pipeline_no_overlap": (1, "ccG", "ccG", "ccG"),
    "pipeline_block_sparse": (2, "ccG", "ccG", "ccG"),
    "parallel_in_pipelined": (2, "C", "c", "c"),
    "pipelined_in_serial": (2, "C", "c", "c"),
    "gqa_fwd_full": (2, "CGCG", "cGcG", "cGcG"),
    "mha_inference_full": (2, "CGCG", "cGcG", "cGcG"),
    "gemm_w4a8": (1, "ccG", "ccG", "ccg"),
}
VERDICTS = {"CcG": "partly", "ccG": "no", "ccg": "no", "c": "no", "cGcG": "no"}


@pytest.mark.needs_torch
@pytest.mark.parametrize("column", [0, 1, 2], ids=["cuda", "hip", "metal"])
@pytest.mark.parametrize("name", TEN)
def test_pipelines_of_the_registry(name: str, column: int, full: bool) -> None:
    if column and name not in ("jit_gemm_tn", "gqa_fwd_full", "gemm_w4a8") and not full:
        pytest.skip("runs with --full")
    asked, *expected = TEN[name]
    target = ("cuda:sm_80", "hip:gfx942", "metal:apple9")[column]
    trace = lowered(function_of(next(case for case in CASES if case.name == name)), target)
    first = pipelines(trace)[0]
    marks = "".join(s.kind[0].upper() if s.holds else s.kind[0] for s in first.statements)
    assert (first.asked, marks) == (asked, expected[column])
    assert first.verdict == ("unasked" if asked == 1 else VERDICTS.get(marks, "yes"))
    text = "\n".join(shown(trace))
    assert "gave no reason" not in text
    if "c" in marks:
        found = [first.reason, *(s.reason for s in first.statements if not s.holds)]
        assert any(reason in " ".join(found) for reason in (
            "one stage was asked for", "has no asynchronous copies", "a thread moves 2 bytes",
            "a condition decides",
        )), found  # fmt: skip


def lowered(function: Function, target: str) -> Trace:
    options = effective_options(function, CompileOptions())
    recorder = Recorder(function, parse_target(target), options, code=False)
    assert recorded(recorder, function, parse_target(target), options, code=False) is None
    return recorder.trace


@pytest.mark.parametrize(
    ("loop", "asked"),
    [("4", 1), ("4, num_stages=0", 1), ("4, num_stages=3", 3), ("4, num_stages='auto'", 0),
     ("4, num_stages=0, order=(0, 1), stage=(0, 1)", 2), ("4, stage=(0,)", 1), ("4, stage=n", 1),
     ("4, order=(1, 2, 0), stage=(0, 0, 2)", 2)],
)  # fmt: skip
def test_how_many_stages_are_asked_for(loop: str, asked: int) -> None:
    (found,) = pipelines(made(f"for k in T.Pipelined({loop}):\n    T.copy(A, S)"))
    assert found.asked == asked


@pytest.mark.parametrize(
    ("statement", "marks"),
    [("T.copy(A, S)", "c"), ("T.copy(A[0:8], S[0:8])", "c"), ("T.tma_copy(A, S)", "c"),
     ("T.copy(S, A)", ""), ("T.copy(T.region(A[0:8]), T.region(S[0:8]))", "c"),
     ("S[k] = T.cast(A[k], 'float32')", "c"), ("S[k] = 2.0", ""), ("A[k] = S[k]", ""),
     ("T.gemm(S, S, S)", "g"), ("T.wgmma_gemm(S, S, S)", "g"), ("T.clear(S)", ""),
     ("if k > 0:\n        T.copy(A, S)\n    else:\n        T.clear(S)", "c"),
     ("for i in T.Parallel(8):\n        S[i] = A[i]", "c")],
)  # fmt: skip
def test_what_a_loop_holds_is_read_as_python(statement: str, marks: str) -> None:
    (found,) = pipelines(made(f"for k in T.Pipelined(4, num_stages=2):\n    {statement}"))
    assert "".join(s.kind[0] for s in found.statements) == marks


def test_text_that_is_no_python_has_no_pipelines() -> None:
    assert pipelines(made("for k in T.Pipelined(4, num_stages=2:\n    pass")) == ()


def test_reasons_of_layouts_name_files_as_seen_from_the_traced_one() -> None:
    for kernel in ("gemm", "macro_attention"):
        trace = trace_of(kernel, "sm_80", code=False)
        said = [shot.why for shot in trace.layouts if " at kernels.py:" in shot.why]
        folder = str(Path(trace.file).parent)
        assert said and not any(folder in shot.why for shot in trace.layouts)
