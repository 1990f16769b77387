"""Where does the time of a compilation go, and its memory? As a table, and for Perfetto.

Perfetto (ui.perfetto.dev) and chrome://tracing read the Trace Event Format: complete events (`X`)
with microseconds. What was recorded are lengths, so events are laid end to end: gaps between them,
which are the recorder's own work, are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from tilelang_trace.model import Trace
from tilelang_trace.terminal import duration, plain

_BAR = 30


@dataclass(frozen=True, slots=True)
class Entry:
    """A pass or part in the order they ran. `changed`: whether the program is another after it."""

    name: str
    phase: str
    seconds: float
    start: float
    resident: int = 0
    changed: bool = False
    attempt: int = 0


def entries(trace: Trace) -> tuple[Entry, ...]:
    """Everything that took time, end to end."""
    out: list[Entry] = []
    clock = 0.0
    parts = list(trace.parts)
    emitted = {p.position for p in parts if p.name == "emit"}
    for number, step in enumerate(trace.steps):
        while parts and parts[0].position <= number:
            part = parts.pop(0)
            out.append(Entry(part.name, part.phase, part.seconds, clock))
            clock += part.seconds
        if step.name == "emit" and number in emitted:
            continue  # the same as the part
        before = trace.steps[number - 1] if number else None
        changed = before is not None and before.text != step.text
        out.append(Entry(step.name, step.phase, step.seconds, clock, step.resident, changed,
                         step.attempt))  # fmt: skip
        clock += step.seconds
    for part in parts:
        out.append(Entry(part.name, part.phase, part.seconds, clock))
        clock += part.seconds
    return tuple(out)


def timing_text(trace: Trace) -> Iterator[Text]:
    """A table: time, share, memory, and a bar."""
    found = entries(trace)
    total = sum(e.seconds for e in found)
    longest = max((e.seconds for e in found), default=0.0)
    width = max((len(plain(e.name)) for e in found), default=4)
    phase = ""
    yield Text(f"{plain(trace.kernel)} for {plain(trace.target)}: {duration(total)}", "bold")
    for entry in found:
        if entry.phase != phase:
            phase = entry.phase
            spent = sum(e.seconds for e in found if e.phase == phase)
            yield Text(f"{plain(phase)}  {duration(spent)}", "bold blue")
        bar = "█" * round(_BAR * entry.seconds / longest) if longest else ""
        share = 100 * entry.seconds / total if total else 0
        memory = f"{entry.resident / 2**20:7.0f} MB" if entry.resident else " " * 10
        mark = "●" if entry.changed else " "
        row = f"  {mark} {plain(entry.name):<{width}} {duration(entry.seconds):>8} {share:5.1f}%"
        yield Text.assemble(row, memory, "  ", (bar, "green"))


def perfetto(trace: Trace) -> dict[str, Any]:
    """The trace in the Trace Event Format."""
    events: list[dict[str, Any]] = [
        _named("process_name", 0, f"tilelang {trace.kernel} for {trace.target}"),
        _named("thread_name", 1, "phases"),
        _named("thread_name", 2, "passes"),
    ]
    phases: dict[str, tuple[float, float]] = {}
    for entry in entries(trace):
        end = entry.start + entry.seconds
        start, _ = phases.get(entry.phase, (entry.start, end))
        phases[entry.phase] = start, end
        events.append(_event(entry.name, 2, entry.start, entry.seconds,
                             {"changed": entry.changed, "attempt": entry.attempt}))  # fmt: skip
        if entry.resident:
            events.append({"name": "memory", "ph": "C", "pid": 1, "ts": end * 1e6,
                           "args": {"bytes": entry.resident}})  # fmt: skip
    for name, (start, end) in phases.items():
        events.append(_event(name, 1, start, end - start, {}))
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _named(name: str, thread: int, value: str) -> dict[str, Any]:
    return {"name": name, "ph": "M", "pid": 1, "tid": thread, "args": {"name": value}}


def _event(
    name: str, thread: int, start: float, length: float, args: dict[str, Any]
) -> dict[str, Any]:
    return {"name": name, "ph": "X", "pid": 1, "tid": thread, "ts": start * 1e6,
            "dur": length * 1e6, "args": args}  # fmt: skip
