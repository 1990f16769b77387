"""Which Python each line of generated code leads to: counted, and a drop fails."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

import tilelang
import tilelang_trace
from tests.inspect import kernels
from tests.trace.mapping import coverage, heads_of
from tests.trace.recorded import trace_of
from tilelang.codegen import cpu
from tilelang.inspection.counts import of_sass
from tilelang.options import CompileOptions
from tilelang.target import parse_target
from tilelang_trace.columns import opcode_of
from tilelang_trace.html.page import page_of
from tilelang_trace.model import Line, Trace
from tilelang_trace.recorder import Recorder, recorded

# Kernel, architecture; then by first words of the IR's own statement how many asynchronous copies
# and matrix instructions the machine code has for it.
EXPECTED = [
    ("gemm", "sm_80", {"T.copy(A": 6, "T.copy(B": 6}, {"T.gemm(A_s": 16}),
    ("gemm", "sm_90a", {"T.copy(A": 6, "T.copy(B": 6}, {"T.gemm(A_s": 2}),
    ("attention", "sm_80", {"T.copy(K": 8, "T.copy(V": 8},
     {"T.gemm(Q_shared": 32, "T.gemm(acc_s_cast": 32}),
    ("attention", "sm_90a", {"T.copy(K": 4, "T.copy(V": 4},
     {"T.gemm(Q_shared": 4, "T.gemm(acc_s_cast": 4}),
    ("hopper_gemm", "sm_90a", {"T.tma_copy(A": 4, "T.tma_copy(B": 8, "T.tma_copy(C_shared": 2},
     {"T.gemm(A_shared": 8}),
    ("mla_decode", "sm_80", {"T.copy(KV": 8, "T.copy(K_pe": 4},
     {"T.gemm(Q_shared": 32, "T.gemm(Q_pe": 16, "T.gemm(S_shared": 32}),
    ("mla_decode", "sm_90a", {"T.copy(KV": 16, "T.copy(K_pe": 8},
     {"T.gemm(Q_shared": 8, "T.gemm(Q_pe": 4, "T.gemm(S_shared": 4}),
]  # fmt: skip
# What a loop itself does: counting, comparing, jumping, and moving what it counts with.
CONTROL = re.compile(
    r"(?:U?IADD3|VIADD|IADD|U?IMAD(?:\.MOV|\.IADD|\.SHL|\.X|\.WIDE)?|U?LEA|U?ISETP|U?MOV|PLOP3|"
    r"BRA|CALL|R2UR|NOP|WARPSYNC|BSSY|BSYNC|UP2UR|LOP3|SEL|S2R|S2UR)\b"
)


def statements(trace: Trace, names: tuple[str, ...]) -> Counter[str]:
    """How many instructions counted under one of `names` lead to each statement of the IR."""
    of_span = {line.span: line.text.strip() for line in trace.steps[0].lines if line.span}
    found: Counter[str] = Counter()
    for line, opcode in instructions(trace):
        if set(of_sass(opcode)) & set(names):
            assert line.span is not None, f"{line.text} leads nowhere"
            found[of_span.get(line.span, f"?? {line.span}")] += 1
    return found


def instructions(trace: Trace) -> list[tuple[Line, str]]:
    sass = trace.code("sass")
    assert sass is not None
    return [(x, opcode) for x in sass.lines if (opcode := opcode_of(x.text)) is not None]


def grouped(found: Counter[str], starts: dict[str, int]) -> dict[str, int]:
    out: Counter[str] = Counter()
    for text, number in found.items():
        start = next((s for s in starts if text.startswith((f"{s}[", f"{s},", f"{s}_", s))), text)
        out[start] += number
    return dict(out)


@pytest.mark.parametrize(("kernel", "arch", "copies", "products"), EXPECTED)
def test_copies_and_products_lead_to_their_statements(
    kernel: str, arch: str, copies: dict[str, int], products: dict[str, int]
) -> None:
    trace = trace_of(kernel, arch)
    assert grouped(statements(trace, ("mma",)), products) == products
    assert grouped(statements(trace, ("cp.async", "tma")), copies) == copies


@pytest.mark.parametrize(("kernel", "arch"), [row[:2] for row in EXPECTED])
def test_nearly_every_line_leads_to_python(kernel: str, arch: str) -> None:
    found = {c.kind: c for c in coverage(trace_of(kernel, arch))}
    assert set(found) == {"source", "ptx", "sass"}
    assert found["source"].percent == 100
    assert found["ptx"].percent >= 99
    # What a kernel begins with, a frame and a bank of constants, is nobody's.
    assert found["sass"].lines - found["sass"].mapped <= 2
    assert all(c.lines >= 70 for c in found.values())


@pytest.mark.parametrize(("kernel", "arch"), [row[:2] for row in EXPECTED])
def test_nothing_but_the_loop_itself_leads_to_the_head_of_a_loop(kernel: str, arch: str) -> None:
    trace = trace_of(kernel, arch)
    heads = heads_of(trace)
    loop = main_loop(trace)
    assert len(loop) > 70
    on_heads = [(x, opcode) for x, opcode in loop if x.origin in heads]
    assert len(on_heads) <= 20
    wrong = [x.text for x, opcode in on_heads if not CONTROL.match(opcode)]
    assert not wrong
    # The bank of constants that accesses of global memory need is nobody's.
    lost = [x.text for x, _ in loop if x.span is None and "c[0x0][0x208]" not in x.text]
    assert not lost


def main_loop(trace: Trace) -> list[tuple[Line, str]]:
    """The instructions from the label that the last jump back past all matrix instructions goes to
    up to that jump."""
    sass = trace.code("sass")
    assert sass is not None
    lines = list(sass.lines)
    labels = {x.text[:-1]: n for n, x in enumerate(lines) if x.text.endswith(":")}
    best: tuple[int, int] = (0, 0)
    for n, line in enumerate(lines):
        jump = re.search(r"\bBRA\S* .*`\((\.L\w+)\)", line.text)
        if jump is None or jump[1] not in labels or labels[jump[1]] > n:
            continue
        held = range(labels[jump[1]], n + 1)
        products = sum("mma" in of_sass(opcode_of(lines[m].text) or "") for m in held)
        if products and len(held) > best[1] - best[0]:
            best = held.start, held.stop
    return [(x, opcode) for x in lines[slice(*best)] if (opcode := opcode_of(x.text)) is not None]


def test_inlined_code_leads_to_its_own_line_and_to_the_call() -> None:
    trace = trace_of("macro_attention", "sm_80")
    source = trace.code("source")
    assert source is not None
    inside = [x for x in source.lines if x.calls]
    assert inside
    assert {frame.function for x in inside for frame in x.calls} == {"rescale"}
    texts = dict(trace.sources)
    for line in inside:
        assert line.span is not None
        text = texts[line.span.file].split("\n")[line.span.line - 1]
        assert "in a macro" in text or "T.Parallel(rows" in text
        called = line.calls[0].span
        assert "rescale(out" in texts[called.file].split("\n")[called.line - 1]


def test_llvm_ir_leads_to_python() -> None:
    with tilelang_trace.record() as t:
        tilelang.compile(kernels.matmul, target="cpu")
    (found,) = coverage(t.trace)
    assert found.lines > 100 and found.percent == 100
    source = t.trace.code("source")
    assert source is not None and source.language == "llvm"
    products = {x.span.line for x in source.lines if "fmul" in x.text and x.span is not None}
    assert products == {kernels.line_of("gemm")}


def test_the_page_of_flash_attention_is_small() -> None:
    page = page_of(trace_of("attention", "sm_90a"))
    assert len(page.encode()) < 5_000_000


def test_llvm_ir_is_printed_once_with_the_place_of_each_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    printed: list[Any] = []
    once = cpu.print_cpu
    monkeypatch.setattr(cpu, "print_cpu", lambda *a: printed.append(once(*a)) or printed[-1])
    function, target = kernels.matmul.function, parse_target("cpu")
    recorder = Recorder(function, target, CompileOptions())
    assert recorded(recorder, function, target, CompileOptions(), code=True) is None
    assert len(printed) == 1
    (code,) = recorder.trace.codes
    assert [line.span for line in code.lines] == printed[0].spans
    assert sum(line.span is not None for line in code.lines) > len(code.lines) / 2
