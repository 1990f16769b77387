"""Nothing is recorded while nobody records, and little twice while somebody does: by counting."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import tilelang_trace
from tests.trace.recorded import KERNELS, trace_of
from tilelang.compiler import compile_function, lower_function
from tilelang.options import CompileOptions
from tilelang.runtime import sass
from tilelang.target import parse_target
from tilelang_trace.ndjson import dump, load
from tilelang_trace.recorder import Recorder

GEMM = KERNELS["gemm"]
# What asks whether somebody watches, and hands on what it is given.
ASKING = {"is_watched", "watched", "part", "listening", "nested", "is_heard", "measured"}
RECORDING = ("/tilelang_trace/", "/tilelang/watching.py", "/tilelang/nested.py")


def calls_of(run: Callable[[], object]) -> Counter[str]:
    """The functions of the recording's files, and the printer of the IR, that `run` calls."""
    found: Counter[str] = Counter()

    def seen(frame: FrameType, event: str, arg: object) -> None:
        code = frame.f_code
        if (
            event == "call"
            and code.co_name[0] != "<"
            and (
                any(part in code.co_filename for part in RECORDING)
                or code.co_name in ("print_function", "draw_svg")
            )
        ):
            found[code.co_name] += 1

    sys.setprofile(seen)
    try:
        run()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize("target", ["cuda:sm_80", "cpu"])
def test_nothing_is_called_while_nobody_watches(target: str) -> None:
    function, options = GEMM(), CompileOptions()

    def lower() -> None:
        lower_function(function, parse_target(target), options)

    lower()  # modules are loaded at the first time
    calls = calls_of(lower)
    assert set(calls) <= ASKING - {"is_heard", "measured"}, calls
    assert calls["nested"] > 0 and calls["part"] > 0


def test_what_is_counted_is_called_while_somebody_watches() -> None:
    function, target = GEMM(), parse_target("cuda:sm_80")

    def recorded() -> None:
        recorder = Recorder(function, target, CompileOptions(), code=False)
        lower_function(function, target, CompileOptions(), [recorder])

    recorded()
    calls = calls_of(recorded)
    assert calls["after"] > 10 and calls["print_function"] > 5 and calls["draw_svg"] > 0


def test_a_program_is_printed_once_for_each_change() -> None:
    steps = trace_of("gemm", "sm_80", code=False).steps
    distinct = {id(line): line for step in steps for line in step.lines}
    assert len(distinct) < 0.5 * sum(len(step.lines) for step in steps)


def test_a_drawing_is_written_once() -> None:
    function, target, options = KERNELS["attention"](), parse_target("cuda:sm_80"), CompileOptions()
    written: list[str] = []
    recorder = Recorder(function, target, options, written.append, code=False)
    lower_function(function, target, options, [recorder])
    recorder.close(())
    records = [json.loads(line) for line in written]
    drawings = [r["drawing"] for r in records if r.get("record") == "layout" and r["drawing"]]
    assert 1 < len(drawings) == len(set(drawings)) < 10
    layouts = load(written).layouts
    assert layouts == recorder.trace.layouts
    assert len(layouts) > 20 and all(shot.drawing.startswith("<svg") for shot in layouts)


@pytest.fixture
def disassembled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by each run of the disassembler."""
    runs: list[str] = []
    original = sass.disassemble

    def counted(*given: Any) -> Any:
        runs.append(given[1])
        return original(*given)

    monkeypatch.setattr(sass, "disassemble", counted)
    return runs


def test_machine_code_is_disassembled_when_somebody_looks(
    tmp_path: Path, disassembled: list[str]
) -> None:
    whole = trace_of("gemm", "sm_80")  # skips where there is no compiler
    target = parse_target("cuda:sm_80")
    disassembled.clear()
    with tilelang_trace.record() as t, tilelang_trace.record(tmp_path) as files:
        compile_function(GEMM(), target, CompileOptions())
    assert disassembled == []
    in_memory = t.trace
    (path,) = files.files
    in_file = tilelang_trace.load(str(path))
    assert len(disassembled) == 2
    for found in (in_memory, in_file, t.traces[0]):
        assert found.code("sass") == whole.code("sass")
        assert found.resources == whole.resources and found.resources[0].counts
        assert found.binary is None
    assert len(disassembled) == 2
    saved = tmp_path / "again.ndjson"
    saved.write_text("".join(dump(in_file)), encoding="utf-8")
    with saved.open(encoding="utf-8") as lines:
        assert load(lines) == in_file


def test_a_recording_may_leave_the_code_out() -> None:
    with tilelang_trace.record(code=False) as t:
        compile_function(GEMM(), parse_target("cpu"), CompileOptions())
    assert t.trace.codes == () and t.trace.binary is None and len(t.trace.steps) > 5
