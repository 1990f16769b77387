"""Times and memory: a table, and the format of Perfetto."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from tests.trace.recorded import trace_of
from tilelang.cli import main
from tilelang.pipeline import PIPELINE
from tilelang_trace.model import Line, Part, Step, Trace
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
    events = [e for e in found["traceEvents"] if e["ph"] == "X" and e["tid"] == 2]
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


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved, out = tmp_path / "t.ndjson", tmp_path / "t.json"
    saved.write_text("".join(dump(TRACE)))
    assert main(["trace", str(saved), "--time", "--perfetto", str(out)]) == 0
    assert capsys.readouterr().out.startswith("f for cpu: 175 ms\n")
    assert json.loads(out.read_text())["traceEvents"]
