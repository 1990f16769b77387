"""What did the emulator see, in the user's Python? Its reports, read and made diagnostics.

A report names a line of the generated source, or an address in the kernel's library, which the
library's debug information leads to a line. The source map leads on to Python.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tilelang.codegen.device_source import DeviceSource
from tilelang.codegen.source_map import Line, shared_tiles
from tilelang.emulator.advice import flight_help, race_help
from tilelang.emulator.source import local_arrays
from tilelang.emulator.toolchain import symbolizer
from tilelang.runtime.foreign_errors import author_span
from tilelang.runtime.programs import output_of
from tilelang_diagnostics import counted, diagnose, with_article
from tilelang_diagnostics.model import Diagnostic, Label, Span

Report = Mapping[str, Any]

# Of generated code that a label shows.
_LONGEST: Final = 80
# How an author declares an array in CUDA.
_ARRAY: Final = re.compile(
    r"^\s*(?:extern\s+)?(?P<shared>(?:static\s+)?__shared__\s+)?(?!return\b|else\b|case\b)"
    r"[A-Za-z_][\w:<>, ]*\s(?P<name>\w+)\s*\[[^;=]*\]\s*(?:;|,|=\s*\{)"
)
_SIGNALS: Final = {4: "an illegal instruction", 6: "an abort", 7: "a bus error",
                   8: "a division by zero", 11: "a segmentation fault"}  # fmt: skip


def read_reports(path: Path) -> tuple[Report, ...]:
    """The reports of a run, in the order in which they came."""
    if not path.exists():
        return ()
    text = path.read_text(encoding="utf-8", errors="replace")
    return tuple(json.loads(line) for line in text.splitlines() if line.endswith("}"))


def findings(
    reports: Sequence[Report], device: DeviceSource, lines: Mapping[int, int]
) -> tuple[Diagnostic, ...]:
    """One diagnostic per place and mistake; `lines` are those of addresses."""
    explain = _Explain(device, lines)
    found: dict[tuple[object, ...], Diagnostic] = {}
    for report in reports:
        made = explain.report(report)
        others = tuple(label.span for label in made.labels)
        found.setdefault((made.code, made.message, made.span, others), made)
    return tuple(found.values())


def code_lines(reports: Sequence[Report], device: DeviceSource, library: Path) -> Mapping[int, int]:
    """Lines of the generated source, by addresses in the library."""
    addresses = sorted({int(r[key]) for r in reports for key in ("code", "other_code") if key in r})
    program = symbolizer()
    if not addresses or program is None:
        return {}
    # What is known is where a call returns to.
    wanted = [f"{address - 1:#x}" for address in addresses]
    text = output_of([program, "-e", str(library), "-i", "-a", *wanted]) or ""
    found: dict[int, int] = {}
    address = None
    for row in text.splitlines():
        if row.startswith("0x"):
            address = int(row, 16) + 1
            continue
        place, _, number = row.split(" ")[0].rpartition(":")
        # Inner frames come first: the last one in the kernel's file is the kernel.
        if address is not None and number.isdigit() and Path(place).name == f"{device.name}.cpp":
            found[address] = int(number)
    return found


class _Explain:
    """What the reports of one run are about."""

    def __init__(self, device: DeviceSource, lines: Mapping[int, int]) -> None:
        self.device, self.lines = device, lines
        self.name = f"`{device.name}`"
        self.tiles = shared_tiles(device.source.lines)
        self.locals = local_arrays(device)
        self.kinds: dict[str, Callable[[Report], Diagnostic]] = {
            "race": self.race, "inflight": self.inflight, "uninitialised": self.uninitialised,
            "outside": self.outside, "misaligned": self.misaligned, "fault": self.fault,
            "deadlock": self.deadlock, "divergence": self.divergence, "barrier": self.barrier,
            "assertion": self.assertion, "trap": self.trap, "refused": self.refused,
            "between": self.between, "unfenced": self.unfenced, "busy": self.busy,
            "held": self.held, "unwaited": self.unwaited, "overrun": self.overrun,
            "index": self.index, "illegal": self.illegal, "absent": self.absent,
        }  # fmt: skip

    def report(self, report: Report) -> Diagnostic:
        return self.kinds[str(report["kind"])](report)

    def race(self, r: Report) -> Diagnostic:
        first, second = r["access"], r["other_access"]
        return self.made(
            "TL731",
            f"{with_article(first)} and {with_article(second)} of {self.tile(r)} by different "
            f"threads of {self.name}, with "
            "nothing that orders them",
            r, f"the {first}", f"the {second}",
            help=race_help(self.line(r, ""), self.line(r, "other_")),
        )  # fmt: skip

    def inflight(self, r: Report) -> Diagnostic:
        return self.made(
            "TL734",
            f"a {r['access']} of {self.tile(r)} in {self.name} where an asynchronous copy has not "
            "been waited for",
            r, f"the {r['access']}", "the copy",
            help=flight_help(self.line(r, "other_")),
        )  # fmt: skip

    def between(self, r: Report) -> Diagnostic:
        first, second = r["access"], r["other_access"]
        return self.made(
            "TL735",
            f"{with_article(first)} and {with_article(second)} of `{r['buffer']}` by different "
            f"blocks of {self.name}, with "
            "nothing that orders them",
            r, f"the {first}", f"the {second}",
            help="let each block write elements of its own, use T.atomic_add, or order the blocks: "
            "T.sync_grid(), or a counter with a release and an acquire",
        )  # fmt: skip

    def unfenced(self, r: Report) -> Diagnostic:
        what = r.get("what", self.tile(r))
        if what == "registers":
            return self.made(
                "TL736",
                f"a matrix instruction of {self.name} uses registers that were written after the "
                "last wgmma fence", r, "the instruction",
                help="T.warpgroup_arrive() between the writes and the instruction",
            )  # fmt: skip
        return self.made(
            "TL736",
            f"an asynchronous engine uses {what} of {self.name}, written by a thread with no proxy "
            "fence between",
            r, "the engine starts", "the write",
            help="T.fence_proxy_async() in the threads that write, before the barrier that lets "
            "the engine start",
        )  # fmt: skip

    def busy(self, r: Report) -> Diagnostic:
        return self.made(
            "TL734",
            f"a {r['access']} of {self.tile(r)} in {self.name} while an asynchronous operation has "
            "yet to read it",
            r, f"the {r['access']}", "what reads it",
            help="wait for the operation first: T.wait_wgmma(0), or T.tma_store_wait()",
        )  # fmt: skip

    def held(self, r: Report) -> Diagnostic:
        what = f"`{r['array']}`" if "array" in r else "registers"
        return self.made(
            "TL734",
            f"a {r['access']} of {what} in {self.name} while a matrix instruction that uses them "
            "has not been waited for",
            r, f"the {r['access']}", "the instruction",
            help="T.wait_wgmma(0) before the result is used",
        )  # fmt: skip

    def unwaited(self, r: Report) -> Diagnostic:
        return self.made(
            "TL734", f"a block of {self.name} ends while {r['text']} has yet to read its memory", r,
            "the store", help="wait for it: T.tma_store_arrive() and T.tma_store_wait()",
        )  # fmt: skip

    def overrun(self, r: Report) -> Diagnostic:
        return self.made(
            "TL730",
            f"a {r['access']} of {counted(int(r['bytes']), 'byte')} past the end of `{r['array']}` "
            f"in {self.name}: byte {r['offset']} of {r['size']}",
            r, f"the {r['access']}",
            help="compare the index with the size of the buffer before the access",
        )  # fmt: skip

    def index(self, r: Report) -> Diagnostic:
        line = self.line(r, "")
        names = [n for n in self.locals if line is not None and _names(line, n)]
        shape = str(r["type"]).strip("'")
        if len(names) == 1:
            text = f"`{names[0]}` in {self.name}, which each thread holds as {shape}"
        else:  # of the author's own source, that may declare it in either memory
            text = f"{self.foreign_array(line)} in {self.name}, which is {shape}"
        return self.made(
            "TL730", f"index {r['index']} of {text}", r, "the access",
            help="compare the index with the size of the buffer before the access",
        )  # fmt: skip

    def foreign_array(self, line: Line | None) -> str:
        """What the one array is that a line indexes, if there is just one."""
        indexed = [] if line is None else re.findall(r"\b([A-Za-z_]\w*)\s*\[", line.text)
        declared = {
            found["name"]: found["shared"] is not None
            for other in self.device.source.lines
            if (found := _ARRAY.match(other.text)) is not None and found["name"] in indexed
        }
        if len(declared) != 1:
            return "a shared or private array"
        ((name, is_shared),) = declared.items()
        return f"the {'shared' if is_shared else 'private'} array `{name}`"

    def absent(self, r: Report) -> Diagnostic:
        lane, source = r["lane"], r["source"]
        why = {
            "mask": f"the mask leaves lane {source} out",
            "block": "the block has no such thread",
            "path": f"lane {source} went another way, or has ended",
        }[str(r["why"])]
        return self.made(
            "TL510",
            f"lane {lane} reads lane {source}, which does not take part in this shuffle of "
            f"{self.name}: {why}",
            r, "the shuffle",
            help="what it gets is undefined: let all lanes take the same path to the shuffle, with "
            "a mask of all that do, and read only from those",
        )  # fmt: skip

    def uninitialised(self, r: Report) -> Diagnostic:
        if "array" in r:
            text = f"`{r['array']}` of {self.name} is read where the thread has not written it"
        elif "buffer" in r:
            text = (f"memory is read that nothing has written, in {self.tile(r)} of {self.name}: "
                    f"byte {r['offset']}")  # fmt: skip
        else:
            where = f"in {self.tile(r)} of {self.name}"
            text = f"shared memory is read that nothing has written, {where}"
        return self.made("TL732", text, r, "the read",
                         help="write every element first (T.clear, T.fill)")  # fmt: skip

    def outside(self, r: Report) -> Diagnostic:
        target = f"a {r['access']} of {counted(int(r['bytes']), 'byte')}"
        return self.made("TL730", f"{target} {self.whereabouts(r)} in {self.name}", r,
                         f"the {r['access']}",
                         help="compare the index with the size of the buffer before the "
                         "access")  # fmt: skip

    def misaligned(self, r: Report) -> Diagnostic:
        return self.made(
            "TL730",
            f"a {r['access']} of {counted(int(r['bytes']), 'byte')} in {self.name} at an address "
            f"that is no multiple of {r['alignment']}",
            r, f"the {r['access']}",
            help="make the offset a multiple of the vector, or index with smaller elements",
        )  # fmt: skip

    def fault(self, r: Report) -> Diagnostic:
        if "stack" in r:
            return self.made(
                "TL730", f"a thread of {self.name} needs more than {r['stack']} KB for its own "
                "arrays and calls", r, "here",
                help="a thread of a GPU has at most 512 KB: keep large arrays in shared memory or "
                "in a tensor, and let no function call itself without end",
            )  # fmt: skip
        what = _SIGNALS.get(int(r["signal"]), f"signal {r['signal']}")
        where = f": an access {self.whereabouts(r)}" if "shared" in r else ""
        advice = "run it in checked mode (--check), which sees an access before it happens"
        return self.made(
            "TL730", f"{self.name} stopped with {what}{where}", r, "here",
            help=advice if where else None,
        )  # fmt: skip

    def deadlock(self, r: Report) -> Diagnostic:
        return self.made(
            "TL733", f"the threads of {self.name} wait for each other for ever: {r['text']}", r,
            "some wait here", "others wait here",
            help="let every thread that a barrier counts reach it, in the same order",
        )  # fmt: skip

    def divergence(self, r: Report) -> Diagnostic:
        return self.made(
            "TL510",
            f"threads of {self.name} meet at different places: {r['text']}", r, "some are here",
            "others are here",
            help="move what threads do together out of the branch that parts them",
        )  # fmt: skip

    def barrier(self, r: Report) -> Diagnostic:
        return self.made("TL511", f"{r['text']}, in {self.name}", r, "at this barrier",
                         help="use barriers 0 to 15 with a multiple of 32 threads that the block "
                         "has")  # fmt: skip

    def assertion(self, r: Report) -> Diagnostic:
        place = Span(r["file"], int(r["at"]), 1, int(r["at"]), 1) if r["file"] else None
        return diagnose(
            "TL722", f"an assertion failed in {self.name}: {r['text']}", span=place,
            notes=self.who(r),
            help="look at the values the condition is about, or pass other arguments",
        )  # fmt: skip

    def trap(self, r: Report) -> Diagnostic:
        return self.made("TL722", f"{self.name} stopped itself with a trap", r, "here", help=None)

    def illegal(self, r: Report) -> Diagnostic:
        return self.made(
            "TL730", f"{r['text']}, in {self.name}: a GPU stops with an illegal instruction", r,
            "this", help="start copies by tensor map at multiples of 16 bytes along the innermost "
            "dimension, and stores inside of the tensor",
        )  # fmt: skip

    def refused(self, r: Report) -> Diagnostic:
        return self.made("TL401", f"{r['text']} is not emulated", r, "this",
                         help="run this kernel on a GPU")  # fmt: skip

    # Where things are.

    def made(
        self, code: str, message: str, r: Report, label: str, other_label: str = "",
        *, help: str | None,
    ) -> Diagnostic:  # fmt: skip
        line, other = self.line(r, ""), self.line(r, "other_")
        here, there = self.place(r, "", line), self.place(r, "other_", other)
        labels: tuple[Label, ...] = ()
        if other is not None and there is not None and there != here:
            labels = (Label(there, f"{other_label}: became {_code(other)}"),)
        became = "" if line is None else f"{label}: became {_code(line)}"
        return diagnose(
            code, message, span=here, label=became, labels=labels,
            notes=(*self.who(r), *self.unknown(r, line)), help=help,
            calls=() if line is None else line.calls,
        )  # fmt: skip

    def line(self, r: Report, prefix: str) -> Line | None:
        number = self.number(r, prefix)
        found = None if number is None else self.device.source.at(number)
        return found if found is not None and found.span is not None else None

    def number(self, r: Report, prefix: str) -> int | None:
        number = r.get(f"{prefix}line")
        if number is None and f"{prefix}code" in r:
            number = self.lines.get(int(r[f"{prefix}code"]))
        return int(number) if number else None

    def place(self, r: Report, prefix: str, line: Line | None) -> Span | None:
        """Where a line comes from; of the author's CUDA in a string, its own line of that."""
        number = self.number(r, prefix)
        if line is None or number is None or not line.foreign:
            return None if line is None else line.span
        return author_span(self.device.source, number)

    def unknown(self, r: Report, line: Line | None) -> tuple[str, ...]:
        if line is not None or "code" not in r or symbolizer() is not None:
            return ()
        return ("install binutils to see the line: addr2line reads it from debug information",)

    def who(self, r: Report) -> tuple[str, ...]:
        if "thread" not in r or "block" not in r:
            return ()
        other = f" and thread {_triple(r['other_thread'])}" if "other_thread" in r else ""
        if "other_block" in r:
            place, there = _triple(r["block"]), _triple(r["other_block"])
            return (f"thread {_triple(r['thread'])} of block {place}{other} of block {there}",)
        return (f"thread {_triple(r['thread'])}{other} of block {_triple(r['block'])}",)

    def tile(self, r: Report) -> str:
        """The tensor, or the tile that both lines are about, if there is just one."""
        if "buffer" in r:
            return f"`{r['buffer']}`"
        lines = [line for line in (self.line(r, ""), self.line(r, "other_")) if line is not None]
        for chosen in (lines, lines[:1]):
            names = [t for t in self.tiles if chosen and all(_names(x, t) for x in chosen)]
            if len(names) == 1:
                return f"`{names[0]}`"
        return "shared memory"

    def whereabouts(self, r: Report) -> str:
        """Which memory an access missed: what its line names, or else what is nearest."""
        line = self.line(r, "")
        offset, size = (int(n) for n in r["shared"])
        tensors = {name: (int(at), int(n)) for name, (at, n) in r.get("tensors", {}).items()}
        named = {name: t for name, t in tensors.items() if line is not None and _names(line, name)}
        tiles = [t for t in self.tiles if line is not None and _names(line, t)]
        candidates = named or ({} if tiles else tensors)
        name = min(candidates, key=lambda n: _distance(*candidates[n]), default=None)
        # Code that names neither may miss either; around shared memory nothing else lies.
        near_shared = (bool(tiles) or not named) and (
            name is None or _distance(offset, size) < _distance(*candidates[name])
        )
        if name is None or near_shared:
            missed = f"`{self.tiles[0]}`" if len(self.tiles) == 1 else self.tile(r)
            return f"outside of {missed}: byte {offset} of {size}"
        at, size = candidates[name]
        side = "before the start" if at < 0 else "past the end"
        return f"{side} of `{name}`: byte {at} of {size}"


def _distance(at: int, size: int) -> int:
    return -at if at < 0 else max(0, at - size)


def _names(line: Line, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", line.text) is not None


def _code(line: Line) -> str:
    text = line.text.strip()
    return f"`{text}`" if len(text) <= _LONGEST else f"`{text[:_LONGEST]}…`"


def _triple(index: Sequence[int]) -> str:
    return f"({index[0]}, {index[1]}, {index[2]})"
