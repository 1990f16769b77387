"""What was chosen, why, and why nothing faster: for kernels on each kind of target."""

from __future__ import annotations

import re
from functools import cache

import pytest

import tilelang.language as T
from tests.trace.recorded import KERNELS
from tilelang.choices import Choices, Note
from tilelang.compiler import effective_options, lower_function
from tilelang.options import CompileOptions
from tilelang.target import parse_target
from tilelang_diagnostics import Span
from tilelang_trace.recorder import Recorder, recorded

HERE, THERE = Span("k.py", 1, 1, 1, 9), Span("k.py", 2, 1, 2, 9)


def test_the_first_reason_against_a_way_counts_and_ways_keep_their_order() -> None:
    found = Choices()
    found.passed_over("copy", "TMA", "no barrier", HERE)
    found.passed_over("copy", "cp.async", "too narrow", HERE)
    found.passed_over("copy", "TMA", "another reason", HERE)
    found.passed_over("copy", "TMA", "elsewhere", THERE)
    found.passed_over("gemm", "WGMMA", "of another kind", HERE)
    found.chose("copy", "by hand", HERE, "as ever")
    assert found.notes[0].said == "by hand (as ever); not TMA: no barrier; not cp.async: too narrow"


def test_parts_of_a_statement_are_told_what_holds_for_them() -> None:
    found = Choices()
    found.passed_over("copy", "cp.async", "8 rows lie apart", HERE)
    found.passed_over("copy", "16 bytes at a time", "8 rows lie apart", HERE, "A_s")
    found.passed_over("copy", "16 bytes at a time", "neighbours lie apart", HERE, "A_r")
    found.passed_over("copy", "TMA", "no barrier", HERE, "A_r")
    found.chose("copy", "A → A_s, 2 bytes at a time", HERE, of="A_s")
    found.chose("copy", "A → A_r, 2 bytes at a time", HERE, of="A_r", foreign=("cp.async",))
    found.chose("copy", "A → B by cp.async, 16 bytes at a time", HERE, of="A_s")
    assert [note.said for note in found.notes] == [
        "A → A_s, 2 bytes at a time; not cp.async: 8 rows lie apart",  # one reason, once
        "A → A_r, 2 bytes at a time; not 16 bytes at a time: neighbours lie apart; not TMA: "
        "no barrier",
        "A → B by cp.async, 16 bytes at a time",  # what was taken was not passed over
    ]


def test_a_choice_is_told_once() -> None:
    found = Choices()
    for place in (HERE, HERE, THERE):
        found.chose("copy", "16 bytes at a time", place)
    assert [note.span for note in found.notes] == [HERE, THERE]


@cache
def notes_of(kernel: str, target: str) -> tuple[Note, ...]:
    function = KERNELS[kernel]()
    options = effective_options(function, CompileOptions())
    return lower_function(function, parse_target(target), options, thorough=True).notes


ASYNC = "no asynchronous copies"
# By kernel and target: the kind of a choice, what its text has to hold, and its reason or what
# speaks against a faster way.
EXPECTED = (
    ("gemm", "cuda:sm_80", "gemm", "mma.sync m16n8k16", ""),
    ("gemm", "cuda:sm_80", "copy", "`A` → `A_s` by cp.async", "as wide as it gets"),
    ("gemm", "cuda:sm_80", "copy", "`C_l` → `C`, 8 bytes", "a thread has 2 elements of a row"),
    ("gemm", "cuda:sm_80", "operand", "`B_s` by ldmatrix_x4_trans", ""),
    ("gemm", "cuda:sm_80", "pipeline", "copies 2 iterations ahead", "versions: `A_s` x 3"),
    # All that a barrier is for, in the order in which it happens.
    ("gemm", "cuda:sm_80", "barrier", "before `A_s` is read",
     "(another thread writes `A_s` in line 22; also `B_s`: written in line 23, then read in line "
     "24; `A_s`: read in line 24, then written in line 22; `B_s`: read in line 24, then written in "
     "line 23)"),
    ("attention", "cuda:sm_80", "barrier", "before `Q_shared` is read",
     "`O_shared`: `K_shared` read in line 75, then written in line 104)"),
    ("attention", "cuda:sm_80", "barrier", "before `O_shared` is read",
     " (another thread writes `O_shared` in line 104)"),
    ("gemm", "cuda:sm_80", "layout", "`A_s`", "64-byte swizzle: no bank conflicts"),
    ("gemm", "cuda:sm_90a", "gemm", "WGMMA m64n64k16", "A comes from shared memory"),
    ("gemm", "cuda:sm_90a", "copy", "`A` → `A_s` by cp.async", "not TMA: "),
    ("gemm", "cuda:sm_90a", "copy", "`A` → `A_s` by cp.async",
     "not TMA: with a warp more, 7 and not 9 blocks run side by side"),
    ("attention", "cuda:sm_90a", "pipeline", "a warp of its own loads what the loop over `k` ",
     "versions: `K_shared` x 2, `V_shared` x 2"),
    ("attention", "cuda:sm_90a", "copy", "`K` → `K_shared` by TMA, 1 box of ", ""),
    ("gemm", "hip:gfx942", "gemm", "mfma m32n32k8", ""),
    ("gemm", "hip:gfx942", "copy", "`B` → `B_s` through registers", ASYNC),
    ("gemm", "hip:gfx942", "pipeline", "copies nothing ahead", "none of its copies can"),
    ("gemm", "metal:apple9", "gemm", "simdgroup_matrix 8x8x8", "its sums stay in matrices"),
    ("gemm", "metal:apple9", "copy", "`A` → `A_s` through registers", ASYNC),
    ("gemm", "metal:apple9", "memory", "`C_l_shared`", "never needed at the same time"),
    ("attention", "cuda:sm_80", "copy", "`Q` → `Q_shared` through", "in no T.Pipelined loop"),
    ("attention", "cuda:sm_90a", "gemm", "WGMMA m64n64k16", "A comes from registers"),
    ("attention", "hip:gfx942", "copy", "`V` → `V_shared` through registers", ASYNC),
    ("attention", "metal:apple9", "gemm", "simdgroup_matrix 8x8x8", ""),
)  # fmt: skip


@pytest.mark.parametrize(("kernel", "target", "kind", "text", "why"), EXPECTED)
def test_reasons(kernel: str, target: str, kind: str, text: str, why: str) -> None:
    notes = [n for n in notes_of(kernel, target) if n.kind == kind and text in n.text]
    assert notes, [n.said for n in notes_of(kernel, target) if n.kind == kind]
    assert any(why in note.said.removeprefix(note.text) for note in notes), notes[0].said
    assert all(note.span is not None for note in notes)


@pytest.mark.parametrize(("kernel", "target"), sorted({row[:2] for row in EXPECTED}))
def test_no_copy_contradicts_itself(kernel: str, target: str) -> None:
    copies = [n for n in notes_of(kernel, target) if n.kind == "copy"]
    for note in copies:
        ways = [r.way for r in note.rejected]
        assert not any(way in note.text for way in ways), note.said
        assert len({r.why for r in note.rejected}) == len(ways), note.said
        if " by TMA, " in note.text:
            continue
        size = re.search(r"(\d+) bytes? at a time", note.text)
        assert size is not None, note.said
        if int(size[1]) < 16:
            whys = [r.why for r in note.rejected]
            assert "16 bytes at a time" in ways or "not 4, 8 or 16" in str(whys), note.said
        if not re.match("`[A-Z]` →", note.text):  # not from a tensor of these kernels
            assert not {"cp.async", "asynchronous"} & {*ways}, note.said


@T.prim_func
def flagged(A: T.Tensor((100,), "uint32"), I: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            A[I[i]] = A[I[i]] & 0xFFFFFFFF


def test_a_mask_is_no_size_of_a_tile() -> None:
    target, options = parse_target("cuda:sm_80"), CompileOptions()
    found = lower_function(flagged.function, target, options, thorough=True)
    assert any(n.kind == "guard" and n.why == "it could not be proved" for n in found.notes)


def test_every_copy_and_product_of_a_kernel_is_told_of() -> None:
    for kernel, copies, products in (("gemm", 3, 1), ("attention", 5, 2)):
        for target in ("cuda:sm_80", "cuda:sm_90a", "hip:gfx942", "metal:apple9"):
            lines = {
                kind: {n.span.line for n in notes_of(kernel, target) if n.kind == kind and n.span}
                for kind in ("copy", "gemm")
            }
            assert len(lines["copy"]) >= copies and len(lines["gemm"]) == products, (kernel, target)


def test_reasons_in_a_trace_name_files_as_seen_from_the_traced_one() -> None:
    function, target = KERNELS["gemm"](), parse_target("cuda:sm_80")
    recorder = Recorder(function, target, CompileOptions(), code=False)
    assert recorded(recorder, function, target, CompileOptions(), code=False) is None
    whys = [d.why for step in recorder.trace.steps for d in step.decisions]
    assert any(" at kernels.py:" in why for why in whys)
    assert not any("/kernels.py" in why for why in whys)
