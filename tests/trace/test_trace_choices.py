"""What was chosen, why, and why nothing faster: for kernels on each kind of target."""

from __future__ import annotations

from functools import cache

import pytest

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
