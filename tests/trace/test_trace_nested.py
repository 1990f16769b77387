"""What runs inside of passes: who is told, how it is recorded, and what is left after an error."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trace.recorded import KERNELS, trace_of
from tilelang import nested as module
from tilelang.nested import is_heard, listening, measured, nested
from tilelang.options import CompileOptions
from tilelang.target import parse_target
from tilelang.watching import part
from tilelang_trace.model import Inner, Line, Part, Step, Trace
from tilelang_trace.ndjson import dump, load
from tilelang_trace.recorder import Recorder, recorded


class Heard:
    """A listener that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def began(self, name: str) -> None:
        self.told.append(f"+{name}")

    def ended(self, name: str, seconds: float, result: Any = None) -> None:
        assert seconds >= 0
        self.told.append(f"-{name}" + ("" if result is None else f"={result}"))


def test_listeners_are_told_of_what_is_nested() -> None:
    one, other = Heard(), Heard()
    with nested("before"), listening([one]):
        with nested("a") as made:
            made.append("program")
            with listening([one, other]), nested("b"):
                pass
            assert is_heard()
        measured("phase", 0.1)
    assert one.told == ["+a", "+b", "-b", "-a=program", "+phase", "-phase"]
    assert other.told == ["+b", "-b"]
    assert not is_heard()


def test_nobody_is_told_after_an_error_or_on_another_thread() -> None:
    heard = Heard()
    with pytest.raises(RuntimeError), listening([heard]), nested("broken"):
        raise RuntimeError
    with nested("after"):
        pass
    with listening([heard]):
        thread = threading.Thread(target=lambda: measured("elsewhere", 1.0))
        thread.start()
        thread.join()
    assert heard.told == ["+broken"]


def test_without_listeners_no_clock_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.time, "perf_counter", lambda: pytest.fail("read"))
    with nested("quiet") as made:
        made.append(1)
    measured("phase", 1.0)


def gemm_recorder(sink: Any = None) -> tuple[Recorder, Any, Any]:
    function, target = KERNELS["gemm"](), parse_target("cuda:sm_80")
    return Recorder(function, target, CompileOptions(), sink, code=False), function, target


def test_an_error_says_what_had_not_ended_and_keeps_what_had() -> None:
    written: list[str] = []
    recorder, _, _ = gemm_recorder(written.append)
    recorder.before("tidy", None, None)
    with listening([recorder]):
        with nested("done"), nested("deep"):
            pass
        with pytest.raises(RuntimeError) as raised, nested("outer"), nested("inner"):
            raise RuntimeError("it broke")
    recorder.failed(raised.value)
    found = recorder.trace.failure
    assert found is not None
    assert (found.step, found.within) == ("tidy", "outer/inner")
    assert [(i.name, [j.name for j in i.inner]) for i in found.inner] == [("done", ["deep"])]
    read = load(written).failure
    assert read is not None and (read.step, read.within, read.inner) == (
        "tidy", "outer/inner", found.inner,
    )  # fmt: skip
    *cut, _ = written  # the process died before the end was written
    died = load(cut).failure
    assert died is not None
    assert (died.step, died.within) == ("tidy", "outer/inner")
    assert died.inner == found.inner


def test_parts_hold_what_runs_inside_of_them() -> None:
    recorder, _, _ = gemm_recorder()
    with part("generate", [recorder]), nested("compiler"):
        measured("front", 0.0)
    (found,) = recorder.trace.parts
    assert found.name == "generate"
    assert [(i.name, [j.name for j in i.inner]) for i in found.inner] == [("compiler", ["front"])]


LINES = st.lists(st.builds(Line, st.text(max_size=4)), max_size=2).map(tuple)
INNER = st.recursive(
    st.builds(Inner, st.text(max_size=4), st.floats(0, 1), st.floats(0, 1), st.just(0), LINES),
    lambda deeper: st.builds(
        lambda name, inner: Inner(name, 0.5, inner=tuple(inner)), st.text(max_size=4),
        st.lists(deeper, max_size=3),
    ),
    max_leaves=8,
)  # fmt: skip
TREES = st.lists(INNER, max_size=3).map(tuple)


@given(TREES, TREES)
def test_what_is_nested_is_read_back(in_step: Any, in_part: Any) -> None:
    trace = Trace(
        "f", "k.py", "cpu", (Step("emit", ()), Step("tidy", (), inner=in_step)),
        parts=(Part("generate", 0.1, inner=in_part),),
    )  # fmt: skip
    assert load(dump(trace)) == trace


def test_files_of_1_0_and_1_1_are_read() -> None:
    """They have none of the records and fields that came later."""
    trace = trace_of("gemm", "sm_80", code=False)
    older = []
    for line in dump(trace):
        record = json.loads(line)
        if record.get("record") == "inner":
            continue
        for name in ("depth", "within", "resident"):
            if record.get("record") != "step":
                record.pop(name, None)
        for decision in record.get("decisions", ()):
            del decision["rejected"], decision["places"]
        older.append(json.dumps({**record, "minor": 1} if "minor" in record else record) + "\n")
    found = load(older)
    assert [s.text for s in found.steps] == [s.text for s in trace.steps]
    assert not any(s.inner for s in found.steps)
    assert found.failure is None
    bare = [replace(d, rejected=(), places=()) for s in trace.steps for d in s.decisions]
    assert [d for s in found.steps for d in s.decisions] == bare


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("cuda:sm_80", {"insert_sync/find_hazards", "lower_gpu_ops/T.gemm", "tidy/drop_unused"}),
        ("hip:gfx942", {"lower_gpu_ops/T.copy", "tidy/decide"}),
        ("metal:apple9", {"insert_sync/find_hazards", "lower_gpu_ops/T.copy"}),
    ],
)
def test_passes_tell_what_they_are_made_of(target: str, expected: set[str]) -> None:
    function = KERNELS["gemm"]()
    recorder = Recorder(function, parse_target(target), CompileOptions(), code=False)
    assert recorded(recorder, function, parse_target(target), CompileOptions(), code=False) is None
    trace = recorder.trace
    names = {f"{s.name}/{i.name}" for s in trace.steps for i in s.inner}
    assert expected <= names
    for step in trace.steps:
        assert sum(i.seconds for i in step.inner) <= step.seconds + 1e-3
    pairs = [after.name for _, after in trace.nested]
    assert [n for n in pairs if "/" not in n] == [after.name for _, after in trace.pairs]
    assert any("/" in name for name in pairs)
