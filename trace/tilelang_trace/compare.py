"""Where do two traces part, and what did that cost?

Passes are matched by name, in order. Places in files and numbers that only count do not matter:
the texts after each pass are compared as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from rich.text import Text

from tilelang_trace.diff import Difference, difference
from tilelang_trace.model import Resources, Step, Trace
from tilelang_trace.plain import plain
from tilelang_trace.structure import structure
from tilelang_trace.terminal import STYLES, duration

_LOADS: Final = "ld.global"  # which counts are given of by kind as well


@dataclass(frozen=True, slots=True)
class Compared:
    """One pass in both traces; one is None where the other has no such pass."""

    name: str
    first: Step | None
    second: Step | None

    @property
    def same(self) -> bool:
        """Whether the program is the same after it."""
        if self.first is None or self.second is None:
            return False
        return self.first.text == self.second.text


@dataclass(frozen=True, slots=True)
class Cost:
    """A figure of both traces."""

    what: str
    first: float
    second: float
    is_time: bool = False  # seconds, each measured once


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two traces beside each other."""

    passes: tuple[Compared, ...]
    costs: tuple[Cost, ...]

    @property
    def parted(self) -> Compared | None:
        """The first pass after which the programs differ; None if they never do."""
        return next((p for p in self.passes if not p.same), None)


def compare(first: Trace, second: Trace) -> Comparison:
    """Match the passes and the figures of two traces."""
    a, b = [s.name for s in first.steps], [s.name for s in second.steps]
    out: list[Compared] = []
    for kind, i, i_end, j, j_end in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if kind == "equal":
            out += [
                Compared(x.name, x, y)
                for x, y in zip(first.steps[i:i_end], second.steps[j:j_end], strict=True)
            ]
        else:
            out += [Compared(x.name, x, None) for x in _changing(first, i, i_end)]
            out += [Compared(y.name, None, y) for y in _changing(second, j, j_end)]
    return Comparison(tuple(out), tuple(_costs(first, second)))


def _changing(trace: Trace, start: int, end: int) -> Iterator[Step]:
    """Passes of a part of a trace that the other does not have, and that have changed something."""
    for number in range(start, end):
        step, before = trace.steps[number], trace.steps[number - 1] if number else None
        if before is None or [x.text for x in step.lines] != [x.text for x in before.lines]:
            yield step


def _costs(first: Trace, second: Trace) -> Iterator[Cost]:
    yield Cost("time of all passes", first.seconds, second.seconds, is_time=True)
    theirs = list(second.resources)
    for number, used in enumerate(first.resources):
        other = next((x for x in theirs if x.kernel == used.kernel),
                     theirs[number] if number < len(theirs) else None)  # fmt: skip
        if other is not None:
            yield from _resource_costs(used, other, len(first.resources) > 1)


def _resource_costs(a: Resources, b: Resources, named: bool) -> Iterator[Cost]:
    start = f"{a.kernel}: " if named else ""
    yield Cost(f"{start}registers a thread", a.registers, b.registers)
    yield Cost(f"{start}bytes spilled", a.spills, b.spills)
    yield Cost(f"{start}bytes of shared memory", a.shared, b.shared)
    if a.blocks is not None and b.blocks is not None:
        yield Cost(f"{start}blocks at once", a.blocks, b.blocks)
    counts, others = dict(a.counts), dict(b.counts)
    for name in dict.fromkeys((*counts, *others)):
        both = counts.get(name, 0), others.get(name, 0)
        whole = _LOADS if name.startswith(f"{_LOADS}.") else ""
        if ".b" not in name and (not whole or both != (counts.get(whole, 0), others.get(whole, 0))):
            yield Cost(f"{start}{name}", *both)


def comparison_text(
    first: Trace, second: Trace, context: int = 3, source: bool = False,
    called: tuple[str, str] = ("", ""), timed: bool = False,
) -> Iterator[Text]:  # fmt: skip
    """Which pass first differs, how, and what it cost. `source`: how generated source differs is
    shown too where the programs do. `called` says which trace is which. `timed`: with the time of
    all passes, which differs from one run of the same compilation to the next."""
    found = compare(first, second)
    for number, trace, name in zip((1, 2), (first, second), called, strict=True):
        yield Text(f"{number}: {_title(trace)}{plain(name and f', {name}')}", "bold")
    if first.kernel != second.kernel:
        yield Text(plain(f"   these are different kernels: {first.kernel}, {second.kernel}"),
                   "yellow")  # fmt: skip
    yield from _values(first, second)
    yield Text()
    parted = found.parted
    if parted is None:
        yield Text("the same program after every pass", "bold green")
    elif parted.first is None or parted.second is None:
        which = "2" if parted.first is None else "1"
        yield Text(f"they part at {parted.name}, which only {which} has", "bold yellow")
    else:
        where = "from the start" if parted.name == "emit" else f"in {parted.name}"
        told = structure(parted.first, parted.second).summary()
        yield Text(f"they first differ {where}: {plain(told)}", "bold yellow")
        yield from _changes(difference(parted.first, parted.second, context, by_structure=True))
    if source or parted is None:
        yield from _source_changes(first, second, context)
    yield Text()
    costs = [c for c in found.costs if timed or not c.is_time]
    width = max((len(c.what) for c in costs), default=0)
    if costs:
        yield Text(f"{'':{width}}  {'1':>12} {'2':>12}", "dim")
    for cost in costs:
        yield _cost(cost, width)
    if any(used.counts for used in (*first.resources, *second.resources)):
        yield Text("instructions as they stand in the machine code, however often a loop runs them",
                   "dim")  # fmt: skip


def _source_changes(first: Trace, second: Trace, context: int) -> Iterator[Text]:
    a, b = first.code("source"), second.code("source")
    if a is None or b is None or a.text == b.text:
        return
    yield Text("the generated source differs", "bold yellow")
    yield from _changes(
        difference(Step("", a.lines), Step("", b.lines), context, by_structure=True)
    )


def _values(first: Trace, second: Trace) -> Iterator[Text]:
    a, b = dict(first.values), dict(second.values)
    a |= {f"option {k}": v for k, v in first.options}
    b |= {f"option {k}": v for k, v in second.options}
    for name in dict.fromkeys((*a, *b)):
        if a.get(name) != b.get(name):
            yield Text(plain(f"   {name}: {a.get(name, '—')} → {b.get(name, '—')}"))


def _changes(changes: Difference) -> Iterator[Text]:
    for hunk in changes.hunks[:12]:
        yield Text(hunk.header, "cyan")
        for row in hunk.rows:
            yield Text(plain(f"{row.sign} {row.line.text}"), STYLES[row.sign])
    if len(changes.hunks) > 12:
        yield Text(f"… and {len(changes.hunks) - 12} more places")


def _cost(cost: Cost, width: int) -> Text:
    if cost.is_time:
        a, b = duration(cost.first), duration(cost.second)
        return Text(f"{plain(cost.what):{width}}  {a:>12} {b:>12}  one measurement each")
    a, b = f"{cost.first:,.0f}", f"{cost.second:,.0f}"
    change = ""
    if cost.first != cost.second and cost.first:
        change = f"{100 * (cost.second - cost.first) / cost.first:+.0f}%"
    style = "" if cost.first == cost.second else "bold"
    return Text(f"{plain(cost.what):{width}}  {a:>12} {b:>12}  {change}", style)


def _title(trace: Trace) -> str:
    return plain(f"{trace.kernel} for {trace.target}")
