"""What do compute-sanitizer's records mean in the user's Python? Diagnostics.

A record names a line of the generated source, whose source map leads to Python; an address is
looked up in the table of what lay where. Threads that do the same at the same line are one
diagnostic.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.codegen.device_source import Slot
from tilelang.codegen.source_map import Line, shared_tiles
from tilelang.dtypes import dtype as dtype_of
from tilelang.emulator.advice import race_help
from tilelang.runtime.cuda_ring import assertions
from tilelang.runtime.sanitizer_report import Place, Record
from tilelang_diagnostics import counted, diagnose
from tilelang_diagnostics.model import Diagnostic, Frame, Label

# Of each tensor, its address and its size in bytes.
Addresses = Mapping[str, tuple[int, int]]


def findings(
    records: Sequence[Record], artifact: CudaArtifact, addresses: Addresses, printed: str = ""
) -> tuple[Diagnostic, ...]:
    """One diagnostic per place and mistake, in the order of their first records.

    `printed` is what the process printed, the driver's lines about assertions among it.
    """
    known = _Known(artifact, addresses, printed)
    groups: dict[tuple[object, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(known.mistake(record), []).append(record)
    return tuple(known.explain(group) for group in groups.values())


@dataclass(frozen=True, slots=True)
class _Buffer:
    """A tensor, and how far before or behind it an address is (0 inside)."""

    slot: Slot
    start: int
    size: int
    address: int

    @property
    def distance(self) -> int:
        if self.address < self.start:
            return self.start - self.address
        return max(0, self.address - (self.start + self.size - 1))

    @property
    def item(self) -> int:
        return dtype_of(self.slot.dtype).scalar.bytes

    @property
    def place(self) -> str:
        """Where the address is, in elements of the tensor."""
        index, count = (self.address - self.start) // self.item, self.size // self.item
        return f"element {index} of {count}"


class _Known:
    """What the records of one run are about."""

    def __init__(self, artifact: CudaArtifact, addresses: Addresses, printed: str) -> None:
        self.artifact, self.addresses, self.printed = artifact, addresses, printed
        self.name = f"`{artifact.name}`"
        lines = artifact.device.source.lines
        self.tiles = shared_tiles(lines)

    def mistake(self, record: Record) -> tuple[object, ...]:
        buffer = self.buffer(record)
        return (record.kind, record.error, record.direction, record.space,
                self.number(record.places), self.number(record.others),
                buffer.slot.name if buffer else None)  # fmt: skip

    def explain(self, group: Sequence[Record]) -> Diagnostic:
        first = group[0]
        match first.kind:
            case "access":
                return self.access(group)
            case "race":
                return self.race(first)
            case "uninitialised":
                return self.uninitialised(group)
            case "barrier":
                return self.barrier(group)
            case "exception":
                return self.exception(group)
            case _:
                assert_never(first.kind)

    def access(self, group: Sequence[Record]) -> Diagnostic:
        first = group[0]
        line = self.line(first.places)
        buffer = self.buffer(first)
        target = f"a {first.direction} of {counted(first.size, 'byte')}"
        if "misaligned" in first.error:
            message = f"{target} at an address that is no multiple of {first.size}"
            help = "make the offset a multiple of the vector, or index with smaller elements"
        elif buffer is not None:
            side = "before the start" if first.address and first.address < buffer.start else (
                "past the end")  # fmt: skip
            message = f"{target} {side} of `{buffer.slot.name}`: {buffer.place}"
            help = ("compare the index with the size of the tensor before the access; accesses "
                    "through T.access_ptr, foreign code and "
                    "`tl.disable_safe_memory_access` are not guarded")  # fmt: skip
        else:
            tile = self.one_tile(line)
            where = f" `{tile}`" if tile else f" {first.space} memory"
            message = f"{target} outside of{where} in {self.name}"
            help = "compare the index with the size of the buffer before the access"
        address = f"address {first.address:#x}" if first.address is not None else "no address"
        return self.diagnostic("TL730", message, line, first.places, group, help, (address,))

    def uninitialised(self, group: Sequence[Record]) -> Diagnostic:
        first = group[0]
        line = self.line(first.places)
        buffer = self.buffer(first)
        where = f"`{buffer.slot.name}`: {buffer.place}" if buffer else f"an address in {self.name}"
        return self.diagnostic(
            "TL732",
            f"memory is read that nothing has written, in {where}",
            line, first.places, group,
            "write every element first (T.clear, T.fill), or pass a tensor that holds values "
            "instead of leaving it to out_idx",
        )  # fmt: skip

    def race(self, record: Record) -> Diagnostic:
        line, other = self.line(record.places), self.line(record.others)
        names = [t for t in self.tiles if all(x is None or _names(x, t) for x in (line, other))]
        subject = f"`{names[0]}`" if len(names) == 1 else "shared memory"
        kinds = f"a {record.direction} and a {record.other_direction}"
        here = None if line is None else line.span
        labels: tuple[Label, ...] = ()
        if other is not None and other.span is not None and other.span != here:
            labels = (Label(other.span, f"the {record.other_direction}: became {_code(other)}"),)
        label = "" if line is None else f"the {record.direction}: became {_code(line)}"
        return diagnose(
            "TL731",
            f"{kinds} of {subject} by different threads of {self.name}, in no order",
            span=here,
            label=label,
            labels=labels,
            notes=(f"{record.count} pairs of accesses meet",
                   *self.generated(record.places, line), *self.generated(record.others, other)),
            help=race_help(line, other),
        )  # fmt: skip

    def barrier(self, group: Sequence[Record]) -> Diagnostic:
        first = group[0]
        why = f" ({first.error[0].lower()}{first.error[1:]})" if first.error else ""
        return self.diagnostic(
            "TL510", f"a barrier of {self.name} that not all of its threads reach{why}",
            self.line(first.places), first.places, group,
            "move the barrier out of the branch or loop that only some threads run",
        )  # fmt: skip

    def exception(self, group: Sequence[Record]) -> Diagnostic:
        first = group[0]
        line = self.line(first.places)
        failed = self.assertion(first)
        if failed is not None:
            text, line = failed
            return self.diagnostic(
                "TL722", f"an assertion failed in {self.name}: {text}", line, first.places,
                group, "look at the values the condition is about, or pass other arguments",
            )  # fmt: skip
        return self.diagnostic(
            "TL730", f"the device stopped {self.name}: {first.text}", line, first.places, group,
            "the place is exact to a few instructions; --sanitize=memcheck and racecheck may "
            "say more",
        )  # fmt: skip

    def diagnostic(
        self, code: str, message: str, line: Line | None, places: Sequence[Place],
        group: Sequence[Record], help: str, notes: Iterable[str] = (),
    ) -> Diagnostic:  # fmt: skip
        first = group[0]
        who: tuple[str, ...] = ()
        if first.thread is not None and first.block is not None:
            more = f", and {len(group) - 1} more" if len(group) > 1 else ""
            who = (f"thread {_text(first.thread)} of block {_text(first.block)}{more}",)
        calls: tuple[Frame, ...] = () if line is None else line.calls
        label = "" if line is None else f"became {_code(line)}"
        return diagnose(
            code, message, span=None if line is None else line.span, label=label,
            notes=(*who, *notes, *self.generated(places, line)), help=help, calls=calls,
        )  # fmt: skip

    def assertion(self, record: Record) -> tuple[str, Line] | None:
        """The assertion that stopped a thread: the one whose text the driver printed."""
        if "assert" not in record.text.lower():
            return None
        every = assertions(self.artifact)
        said = [found for found in every if f"`{found.text}` failed" in self.printed]
        return next(((found.text, found.line) for found in said or every), None)

    # Where things are.

    def number(self, places: Sequence[Place]) -> int | None:
        """The line of the generated file that `places` lead to."""
        ours = f"{self.artifact.name}.cu"
        return next((p.line for p in places if p.file == ours), None)

    def line(self, places: Sequence[Place]) -> Line | None:
        """The generated line, by its number or, where `#line` was asked for, by its Python line."""
        number = self.number(places)
        found = self.artifact.device.source.at(number) if number is not None else None
        if found is not None and found.span is not None:
            return found
        wanted = {(p.file, p.line) for p in places}
        # The last line of a statement does its work, after indices and barriers.
        return next((x for x in reversed(self.artifact.device.source.lines) if x.span is not None
                     and (Path(x.span.file).name, x.span.line) in wanted), None)  # fmt: skip

    def generated(self, places: Sequence[Place], line: Line | None) -> tuple[str, ...]:
        """Where the sanitizer saw it, if that is no line of the user's."""
        if line is not None or not places:
            return ()
        return (f"seen in {places[0].function}, line {places[0].line} of {places[0].file}",)

    def buffer(self, record: Record) -> _Buffer | None:
        """The tensor an address belongs to: of those the line mentions, the nearest."""
        if record.address is None or record.space not in ("", "global"):
            return None
        line = self.line(record.places)
        found = [
            _Buffer(slot, *self.addresses[slot.name], record.address)
            for slot in self.artifact.slots
            if slot.kind == "buffer" and slot.name in self.addresses
        ]
        mentioned = [b for b in found if line is not None and _names(line, b.slot.name)]
        return min(mentioned or found, key=lambda b: b.distance, default=None)

    def one_tile(self, line: Line | None) -> str | None:
        names = [t for t in self.tiles if line is not None and _names(line, t)]
        return names[0] if len(names) == 1 else None


def _names(line: Line, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", line.text) is not None


def _code(line: Line) -> str:
    return f"`{line.text.strip()}`"


def _text(index: tuple[int, int, int]) -> str:
    return f"({index[0]}, {index[1]}, {index[2]})"
