"""What did a kernel's accesses of memory cost? Counted by the emulator's checked mode, by line.

Shared memory serves a request of a warp in passes over its banks (`tilelang.layout.banks` has the
rule), tensors are moved in sectors of 32 bytes. Both are counted exactly, of every request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from tilelang.codegen.device_source import DeviceSource
from tilelang_diagnostics import counted, with_article
from tilelang_diagnostics.json_format import span_to_json
from tilelang_diagnostics.model import Span

Space = Literal["shared", "global"]
# The kind of the reports that say so.
TRAFFIC: Final = "traffic"
# Of those that waste, how many lines a summary shows.
_MOST_LINES: Final = 5
_WORDS: Final[dict[Space, tuple[str, str]]] = {
    "shared": ("shared memory", "pass"), "global": ("tensors", "sector"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Traffic:
    """The accesses that one line of generated source makes in one way.

    `transactions` are passes over the banks of shared memory, or sectors of a tensor; `minimum` is
    how many as many bytes need at least, `worst` the most that one pass over the lanes took.
    """

    line: int  # of the generated source, 0 where it is not known
    text: str
    span: Span | None
    space: Space
    access: str
    bytes: int  # of each lane
    requests: int
    transactions: int
    minimum: int
    worst: int

    @property
    def ratio(self) -> float:
        """How many times as much as is needed; 1 for a conflict-free or coalesced access."""
        return self.transactions / self.minimum if self.minimum else 1.0

    def to_json(self) -> dict[str, Any]:
        """As an object of JSON."""
        return {
            "space": self.space, "access": self.access, "bytes": self.bytes,
            "requests": self.requests, "transactions": self.transactions,
            "minimum": self.minimum, "worst": self.worst, "ratio": round(self.ratio, 3),
            "span": None if self.span is None else span_to_json(self.span),
            "line": self.line, "code": self.text,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class Checked:
    """What a checked call says besides its findings: its traffic, the costliest line first."""

    traffic: tuple[Traffic, ...]

    def of(self, space: Space) -> tuple[Traffic, ...]:
        """The accesses of one memory."""
        return tuple(t for t in self.traffic if t.space == space)

    def total(self, space: Space) -> tuple[int, int]:
        """Transactions of one memory, and how many would do."""
        rows = self.of(space)
        return sum(t.transactions for t in rows), sum(t.minimum for t in rows)

    def __str__(self) -> str:
        """Each memory's total, and the lines that waste most."""
        text: list[str] = []
        for space, (name, unit) in _WORDS.items():
            needed, least = self.total(space)
            if needed == 0:
                continue
            more = f", {needed / least:.2f} times the least" if needed > least else ", the least"
            rows = _by_python(self.of(space))
            wasteful = [_summary(t, unit) for t in rows if t.transactions > t.minimum]
            # A line that says one is left out has room for that one.
            shown = len(wasteful) if len(wasteful) == _MOST_LINES + 1 else _MOST_LINES
            left = len(wasteful) - shown
            rest = [f"{counted(left, 'line')} more"] if left > 0 else []
            text += [f"{name}: {counted(needed, unit)}{more}", *wasteful[:shown], *rest]
        return "\n".join(text)

    def __repr__(self) -> str:
        return f"<Checked, {counted(len(self.traffic), 'line')} of traffic>"


def _by_python(rows: Sequence[Traffic]) -> list[Traffic]:
    """Accesses of one line of Python in one way together, the costliest first: generated code has
    copies of it, such as what a pipeline does before its loop."""
    found: dict[tuple[str, int, str, int], Traffic] = {}
    for t in rows:
        place = ("", t.line) if t.span is None else (t.span.file, t.span.line)
        key = (*place, t.access, t.bytes)
        same = found.get(key)
        found[key] = t if same is None else replace(
            same, requests=same.requests + t.requests, minimum=same.minimum + t.minimum,
            transactions=same.transactions + t.transactions, worst=max(same.worst, t.worst),
        )  # fmt: skip
    return sorted(found.values(), key=lambda t: t.minimum - t.transactions)


def _summary(t: Traffic, unit: str) -> str:
    place = "generated code" if t.span is None else f"{t.span.file}:{t.span.line}"
    each = f"{counted(t.bytes, 'byte')} a lane"
    return (
        f"{t.ratio:.1f}x  {place}: {with_article(t.access)} of {each}, "
        f"{counted(t.transactions, unit)} for {t.minimum}, up to {t.worst} at once"
    )


def traffic_of(
    reports: Sequence[Mapping[str, Any]], device: DeviceSource, lines: Mapping[int, int]
) -> tuple[Traffic, ...]:
    """What the processes of a call counted, together; `lines` are those of addresses."""
    totals: dict[tuple[int, str, str, int], list[int]] = {}
    for r in reports:
        number = int(r["line"]) if "line" in r else lines.get(int(r["code"]), 0)
        key = (number, str(r["space"]), str(r["access"]), int(r["bytes"]))
        found = totals.setdefault(key, [0, 0, 0, 0])
        for n, name in enumerate(("requests", "transactions", "minimum")):
            found[n] += int(r[name])
        found[3] = max(found[3], int(r["worst"]))
    rows = [_row(device, key, numbers) for key, numbers in totals.items()]
    return tuple(sorted(rows, key=lambda t: (t.minimum - t.transactions, t.line, t.space,
                                             t.access, t.bytes)))  # fmt: skip


def _row(
    device: DeviceSource, key: tuple[int, str, str, int], numbers: Sequence[int]
) -> Traffic:  # fmt: skip
    number, space, access, size = key
    line = device.source.at(number)
    return Traffic(
        number, "" if line is None else line.text.strip(), None if line is None else line.span,
        "shared" if space == "shared" else "global", access, size, *numbers,
    )  # fmt: skip
