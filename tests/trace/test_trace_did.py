"""What a pass did, in a few words, from what it decided and how the program changed."""

from __future__ import annotations

import pytest

from tests.trace.recorded import trace_of
from tilelang_diagnostics import Span
from tilelang_trace.did import did
from tilelang_trace.model import Decision, Inner, Line, Step
from tilelang_trace.structure import structure

HERE = Span("k.py", 1, 1, 1, 9)


def at(kind: str, *texts: str) -> tuple[Decision, ...]:
    return tuple(Decision(kind, text, "why", HERE) for text in texts)


def whole(kind: str, text: str, why: str = "") -> Decision:
    return Decision(kind, text, why)


COPIES = (
    "`A` → `A_s` by cp.async, 16 bytes at a time", "`B` → `B_s` by cp.async, 16 bytes at a time",
    "`C` → `D`, 4 bytes at a time",
)  # fmt: skip
# What was decided, what ran inside, and what is said of it.
CASES = [
    ((), (), ""),
    (at("pipeline", "the loop over `k` copies nothing ahead"), (),
     "1 pipeline (the loop over k copies nothing ahead)"),
    (at("copy", *COPIES), (), "3 copies (2 by cp.async)"),
    (at("copy", COPIES[0]), (), "1 copy (by cp.async)"),
    (at("gemm", "mma.sync m16n8k16, 32 a warp", "mma.sync m16n8k16, 8 a warp"), (),
     "2 gemms (mma.sync m16n8k16)"),
    (at("layout", "`A_s`: (i*32 + j) ^ 8", "`B_s`: (i*64 + j) ^ 8"), (), "2 layouts"),
    # Of a kind that was told of as a whole, places say nothing more.
    ((*at("barrier", "they wait", "they wait"), whole("barrier", "2 barriers inserted")), (),
     "2 barriers inserted"),
    ((whole("memory", "1 buffer merged with others: 49152 bytes → 32768 bytes"),
      whole("memory", "32768 bytes of shared memory a block")), (),
     "1 buffer merged with others: 49,152 B → 32,768 B"),
    ((whole("guard", "3 guards kept"), whole("pipeline", "1 loop pipelined")), (),
     "3 guards kept; 1 loop pipelined"),
    (at("gemm", "mfma m32n32k8, 4 a wave"), ("T.copy", "T.gemm", "T.copy", "decide"),
     "2 T.copy, 1 T.gemm; 1 gemm (mfma m32n32k8)"),
    (at("copy", "`A` → `B` " + "in a way that takes many words " * 2), (), "1 copy"),
]  # fmt: skip


@pytest.mark.parametrize(("decisions", "inner", "expected"), CASES)
def test_what_was_decided_in_short(
    decisions: tuple[Decision, ...], inner: tuple[str, ...], expected: str
) -> None:
    step = Step("x", (), decisions=decisions, inner=tuple(Inner(name, 0.0) for name in inner))
    assert did(step, None) == expected


def test_a_pass_that_decided_nothing_is_told_by_its_changes() -> None:
    before, after = Step("a", (Line("A[0] = 1"),)), Step("b", (Line("A[0] = 1"), Line("pass")))
    assert did(after, structure(before, after)) == "+1 −0"
    assert did(after, structure(after, after)) == "no change"


REAL = [
    ("insert_sync", "2 barriers inserted"),
    ("lower_async_copies", "5 copies (1 through registers, 2 by cp.async)"),
    ("plan_shared", "1 buffer merged with others: 49,152 B → 40,960 B of shared memory a block"),
    ("pipeline_loops", "1 loop pipelined"),
    ("stage_stores", "no change"),
]


@pytest.mark.parametrize(("name", "expected"), REAL)
def test_of_flash_attention(name: str, expected: str) -> None:
    trace = trace_of("attention", "sm_80", code=False)
    before, after = next(p for p in trace.pairs if p[1].name == name)
    assert did(after, structure(before, after)) == expected
