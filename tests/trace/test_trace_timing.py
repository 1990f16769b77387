"""Times and memory: a table, and the format of Perfetto."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trace.recorded import trace_of
from tilelang.cli import main
from tilelang.pipeline import PIPELINE
from tilelang_trace.model import Inner, Line, Part, Step, Trace
from tilelang_trace.ndjson import dump
from tilelang_trace.phases import PHASES, phase_of
from tilelang_trace.timing import entries, perfetto, timing_text

A, B = (Line("a"),), (Line("b"),)
TRACE = Trace(
    "f", "k.py", "cpu",
    (Step("emit", A, 0.010, phase="front end"), Step("tidy", A, 0.020, phase="loops"),
     Step("insert_sync", B, 0.040, phase="memory and order", resident=3 << 20)),
    parts=(Part("check", 0.005, "front end", 0), Part("emit", 0.010, "front end", 0),
           Part("generate", 0.100, "code", 3)),
)  # fmt: skip


def test_parts_and_passes_in_order_end_to_end() -> None:
    assert [(e.name, round(e.start, 6), e.changed) for e in entries(TRACE)] == [
        ("check", 0, False), ("emit", 0.005, False), ("tidy", 0.015, False),
        ("insert_sync", 0.035, True), ("generate", 0.075, False),
    ]  # fmt: skip


def test_the_table() -> None:
    lines = [text.plain.rstrip() for text in timing_text(TRACE)]
    assert lines[0] == "f for cpu: 175 ms"
    assert [x for x in lines if not x.startswith(" ")][1:] == [
        "front end  15 ms", "loops  20 ms", "memory and order  40 ms", "code  100 ms",
    ]  # fmt: skip
    row = next(x for x in lines if "insert_sync" in x)
    assert row.split() == ["●", "insert_sync", "40", "ms", "22.9%", "3", "MB", "█" * 12]


def test_every_pass_has_a_phase() -> None:
    assert [p.name for p in PIPELINE if phase_of(p.name) == "other"] == []
    names = [name for names in PHASES.values() for name in names]
    assert len(names) == len(set(names))


def test_perfetto_reads_complete_events_in_microseconds() -> None:
    found = json.loads(json.dumps(perfetto(TRACE)))
    events = [e for e in found["traceEvents"] if e.get("cat") == "pass"]
    assert [e["name"] for e in events] == ["check", "emit", "tidy", "insert_sync", "generate"]
    for before, after in pairwise(events):
        assert before["ts"] + before["dur"] == pytest.approx(after["ts"])
    assert events[-1]["dur"] == pytest.approx(100_000)
    assert {e["ph"] for e in found["traceEvents"]} == {"M", "X", "C"}


def test_a_real_trace_has_all_of_it() -> None:
    trace = trace_of("gemm", "sm_80")
    names = [e.name for e in entries(trace)]
    assert names[:3] == ["infer_layouts", "check", "load_tvm"]
    assert names[-2:] == ["generate", "disassemble"]
    assert names.count("emit") == 1
    assert len(names) == len(trace.steps) + len(trace.parts) - 1


INNER = st.recursive(
    st.builds(Inner, st.sampled_from(["a", "b"]), st.floats(0, 1), st.floats(0, 2)),
    lambda deeper: st.builds(
        lambda one, inner: replace(one, inner=tuple(inner)),
        st.builds(Inner, st.just("c"), st.floats(0, 1), st.floats(0, 2)),
        st.lists(deeper, max_size=3),
    ),
    max_leaves=8,
)
STEPS = st.builds(
    lambda name, seconds, inner: Step(
        name, A, seconds, phase=phase_of(name), inner=tuple(inner)
    ),
    st.sampled_from(["tidy", "insert_sync", "guard_bounds", "plan_shared"]), st.floats(0, 1),
    st.lists(INNER, max_size=3),
)  # fmt: skip


def assert_nested(trace: Trace) -> int:
    """Each event of the one thread is inside of an earlier one that has not ended, or behind all
    of them, as viewers of the format take them; how deep they get."""
    events = [e for e in perfetto(trace)["traceEvents"] if e["ph"] == "X"]
    assert {(e["pid"], e["tid"]) for e in events} <= {(1, 1)}
    around: list[tuple[float, str]] = []  # ends, from the outside
    deepest, slack = 0, 1e-3
    kinds = ["phase", "pass", "inner"]
    for event in events:
        start, end = event["ts"], event["ts"] + event["dur"]
        depth = kinds.index(event["cat"])
        while around and (around[-1][0] <= start + slack and kinds.index(around[-1][1]) >= depth):
            around.pop()
        if depth:
            assert around and end <= around[-1][0] + slack, event
        else:
            assert not around, event
        around.append((end, event["cat"]))
        deepest = max(deepest, len(around))
    return deepest


@given(st.lists(STEPS, max_size=6))
def test_what_ran_inside_is_inside_in_perfetto(steps: list[Step]) -> None:
    assert_nested(Trace("f", "k.py", "cpu", tuple(steps)))


@pytest.mark.parametrize(("kernel", "arch"), [("gemm", "sm_80"), ("attention", "sm_90a")])
def test_real_traces_are_nested_in_perfetto(kernel: str, arch: str) -> None:
    trace = trace_of(kernel, arch)
    assert assert_nested(trace) >= 3
    inner = [e for e in perfetto(trace)["traceEvents"] if e.get("cat") == "inner"]
    names = {e["name"] for e in inner}
    assert {"print", "nvdisasm", "find_hazards", "PTX Translation"} <= names


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved, out = tmp_path / "t.ndjson", tmp_path / "t.json"
    saved.write_text("".join(dump(TRACE)))
    assert main(["trace", str(saved), "--time", "--perfetto", str(out)]) == 0
    assert capsys.readouterr().out.startswith("f for cpu: 175 ms\n")
    assert json.loads(out.read_text())["traceEvents"]
