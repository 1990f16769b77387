"""Where does the time of a compilation go, and its memory? As a table, and for Perfetto.

What runs inside of a pass or part (printing, compilers and their phases, the disassembler) stands
under it, and is part of its time.

Perfetto (ui.perfetto.dev) and chrome://tracing read the Trace Event Format: complete events (`X`)
with microseconds. What was recorded are lengths, so events are laid end to end: gaps between them,
which are the recorder's own work, are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from rich.text import Text

from tilelang_trace.model import Inner, Part, Step, Trace
from tilelang_trace.plain import plain
from tilelang_trace.terminal import duration

_BAR: Final = 30
_THREAD: Final = 1
_SHOWN: Final = 200  # inside of others, the table leaves out what takes less than this part of all
_GROWN: Final = 1 << 17  # bytes that are worth a column


@dataclass(frozen=True, slots=True)
class Entry:
    """A pass or part in the order they ran. `changed`: whether the program is another after it.

    `grown` is how much memory the process has more than before it. `depth` counts what is around.
    """

    name: str
    phase: str
    seconds: float
    start: float
    resident: int = 0
    changed: bool = False
    attempt: int = 0
    depth: int = 0
    grown: int = 0


def entries(trace: Trace, inner: bool = False) -> tuple[Entry, ...]:
    """Everything that took time, end to end; with `inner`, each before what ran inside of it."""
    out: list[Entry] = []
    clock = 0.0
    resident = 0
    for ran, changed in _in_order(trace):
        attempt = ran.attempt if isinstance(ran, Step) else 0
        grown = ran.resident - resident if resident and ran.resident else 0
        resident = ran.resident or resident
        out.append(Entry(ran.name, ran.phase, ran.seconds, clock, ran.resident, changed, attempt,
                         0, grown))  # fmt: skip
        if inner:
            out += _inside(ran.inner, ran.phase, clock, clock + ran.seconds, 1)
        clock += ran.seconds
    return tuple(out)


def _in_order(trace: Trace) -> Iterator[tuple[Step | Part, bool]]:
    """Steps and parts as they ran, and whether they changed the program."""
    parts = list(trace.parts)
    emitted = {p.position for p in parts if p.name == "emit"}
    for number, step in enumerate(trace.steps):
        while parts and parts[0].position <= number:
            yield parts.pop(0), False
        if step.name == "emit" and number in emitted:
            continue  # the same as the part
        before = trace.steps[number - 1] if number else None
        yield step, before is not None and before.text != step.text
    for part in parts:
        yield part, False


def _inside(
    inner: Sequence[Inner], phase: str, start: float, end: float, depth: int
) -> Iterator[Entry]:
    """What ran inside, one after the other and never past the end of what is around it; what was
    done twice in a row has its own entries."""
    clock = start
    for one in inner:
        clock = min(max(clock, start + one.start), end)
        seconds = min(one.seconds, end - clock)
        yield Entry(one.name, phase, seconds, clock, one.resident, depth=depth)
        yield from _inside(one.inner, phase, clock, clock + seconds, depth + 1)
        clock += seconds


def timing_text(trace: Trace) -> Iterator[Text]:
    """A table: time, share, memory, and a bar."""
    outer = entries(trace)
    total = sum(e.seconds for e in outer)
    longest = max((e.seconds for e in outer), default=0.0)
    found = [e for e in entries(trace, inner=True) if e.depth == 0 or e.seconds * _SHOWN > total]
    width = max((len(plain(e.name)) + 2 * e.depth for e in found), default=4)
    phase = ""
    yield Text(f"{plain(trace.kernel)} for {plain(trace.target)}: {duration(total)}", "bold")
    for entry in found:
        if entry.phase != phase:
            phase = entry.phase
            spent = sum(e.seconds for e in outer if e.phase == phase)
            yield Text(f"{plain(phase)}  {duration(spent)}", "bold blue")
        bar = "█" * round(_BAR * entry.seconds / longest) if longest else ""
        share = 100 * entry.seconds / total if total else 0
        memory = f"{entry.resident / 2**20:7.0f} MB" if entry.resident else " " * 10
        more = f" {entry.grown / 2**20:+5.1f}" if abs(entry.grown) >= _GROWN else " " * 6
        mark = "●" if entry.changed else " "
        name = f"{'  ' * entry.depth}{plain(entry.name)}"
        row = f"  {mark} {name:<{width}} {duration(entry.seconds):>8} {share:5.1f}%"
        style = "dim" if entry.depth else ""
        yield Text.assemble((row + memory + more, style), "  ", (bar, "cyan" * bool(entry.depth)
                            or "green"))  # fmt: skip


def perfetto(trace: Trace) -> dict[str, Any]:
    """The trace in the Trace Event Format: on one thread phases, in them passes, and in these what
    ran inside. A phase that is come back to, by another attempt, is there again."""
    events: list[dict[str, Any]] = [
        _named("process_name", 0, f"tilelang {trace.kernel} for {trace.target}"),
        _named("thread_name", _THREAD, "compilation"),
    ]
    for phase, found in groupby(entries(trace, inner=True), key=lambda entry: entry.phase):
        group = list(found)
        outer = [entry for entry in group if entry.depth == 0]
        events.append(_event(phase, "phase", outer[0].start, sum(e.seconds for e in outer), {}))
        for entry in group:
            args = {"changed": entry.changed, "attempt": entry.attempt}
            kind = "inner" if entry.depth else "pass"
            events.append(_event(entry.name, kind, entry.start, entry.seconds, args))
            if entry.resident and not entry.depth:
                events.append({"name": "memory", "ph": "C", "pid": 1,
                               "ts": (entry.start + entry.seconds) * 1e6,
                               "args": {"bytes": entry.resident}})  # fmt: skip
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _named(name: str, thread: int, value: str) -> dict[str, Any]:
    return {"name": name, "ph": "M", "pid": 1, "tid": thread, "args": {"name": value}}


def _event(
    name: str, kind: str, start: float, length: float, args: dict[str, Any]
) -> dict[str, Any]:
    return {"name": name, "cat": kind, "ph": "X", "pid": 1, "tid": _THREAD, "ts": start * 1e6,
            "dur": length * 1e6, "args": args}  # fmt: skip
