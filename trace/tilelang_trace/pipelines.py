"""Did my pipeline take effect? For each pipelined loop, what was asked for and what is in the code.

Asked for is what the Python says: copies from a tensor to shared memory, matrix products, stages.
Found is what the machine code holds of each of these lines, or PTX where no machine code can be
shown, or the IR. The line that fell back comes with the compiler's reason.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from rich.text import Text

from tilelang.inspection.counts import of_ptx, of_sass
from tilelang.target import parse_target
from tilelang_diagnostics import CompileError, Diagnostic, Span
from tilelang_trace.columns import opcode_of
from tilelang_trace.executed import executed
from tilelang_trace.loops import Found, Kind, pipelined_loops
from tilelang_trace.model import Step, Trace
from tilelang_trace.plain import plain

_ONE_STAGE: Final = "one stage was asked for: nothing is to be copied ahead"
_UNDER: Final = "a condition decides about it: only statements of the loop itself are copied ahead"
# What each kind should have become; of names that a thing has, the first.
_WANTED: Final[dict[Kind, tuple[str, ...]]] = {
    "copy": ("cp.async", "tma"), "gemm": ("wgmma", "tcgen05.mma", "mma"),
}  # fmt: skip
# The passes that make several of a tile, and how they say of which.
_MULTIPLY: Final = ("split_roles", "pipeline_loops")
_VERSIONS: Final = ("versions", "in_stages")
_REASONS: Final = ("TL508", "TL507", "TL505", "TL506", "TL513", "TL606", "TL401", "TL406")


@dataclass(frozen=True, slots=True)
class Statement:
    """A line of a pipelined loop that should have become asynchronous copies or matrix
    instructions: how many of those stand in the code, how many a thread executes where that is
    known, and what else it became."""

    kind: Kind
    text: str
    span: Span | None
    found: tuple[tuple[str, int], ...] = ()
    executed: tuple[tuple[str, int], ...] = ()
    instead: tuple[tuple[str, int], ...] = ()
    reason: str = ""
    help: str = ""

    @property
    def holds(self) -> bool:
        """Whether it became what was expected."""
        return bool(self.found)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One `T.Pipelined` loop. `asked` is 0 for as many stages as fit."""

    variable: str
    span: Span | None
    asked: int
    stages: int
    versions: tuple[tuple[str, int], ...]
    statements: tuple[Statement, ...]
    reason: str = ""
    seen_in: str = ""  # where the instructions were counted

    @property
    def verdict(self) -> str:
        """`yes`, `partly`, `no`; `unasked` where one stage was asked for."""
        if self.asked == 1:
            return "unasked"
        copies = [s.holds for s in self.statements if s.kind == "copy"]
        deep = self.stages > 1
        whole = deep and self.stages >= self.asked and all(s.holds for s in self.statements)
        if whole and copies:
            return "yes"
        return "partly" if deep and any(copies) else "no"


def pipelines(trace: Trace) -> tuple[Pipeline, ...]:
    """Every pipelined loop of the kernel, in the order of its Python."""
    if not trace.steps:
        return ()
    counts, where = _counted(trace)
    # Of a trace that ended early the last program is on its way.
    runs = executed(trace.steps[-1], _ir_names) if trace.failure is None else {}
    depths = _versions(trace.steps)
    found = []
    for loop in pipelined_loops(trace.steps[0]):
        statements = tuple(_statement_of(x, counts, runs, trace.remarks) for x in loop.statements)
        into = {x.fills for x in loop.statements}
        versions = tuple((name, n) for name, n in depths.items() if name in into)
        stages = min((n for _, n in versions), default=1)
        reason = next((_said(d) for d in trace.remarks if _is_about(d, loop.line.span)), "")
        found.append(Pipeline(
            loop.variable, loop.line.span, loop.asked, stages, versions, statements,
            reason or _plain_reason(trace.target, loop.asked), where,
        ))  # fmt: skip
    return tuple(found)


def _plain_reason(target: str, asked: int) -> str:
    """Why nothing is copied ahead, where nobody needs to look for it."""
    if asked == 1:
        return _ONE_STAGE
    with suppress(CompileError):
        has = parse_target(target).capabilities
        if not (has.has_cp_async or has.has_tma):
            return f"{target} has no asynchronous copies"
    return ""


def _statement_of(
    found: Found, counts: dict[Span, Counter[str]], runs: dict[Span, Counter[str]],
    remarks: Sequence[Diagnostic],
) -> Statement:  # fmt: skip
    span = found.line.span
    became = counts.get(span, Counter()) if span is not None else Counter[str]()
    wanted = [name for name in _WANTED[found.kind] if became[name]]
    if found.kind == "gemm":
        wanted = wanted[:1]  # each of them is an `mma`, too
    around = None if found.around is None else found.around.span
    about = next((d for d in remarks if _is_about(d, span) or _is_about(d, around)), None)
    plain_reason = _UNDER if found.kind == "copy" and found.under else ""
    return Statement(
        found.kind, found.line.text.strip(), span,
        tuple((n, became[n]) for n in wanted),
        tuple((n, many) for n in wanted if (many := _runs_of(runs, span)[n])),
        tuple((n, became[n]) for n in _INSTEAD if became[n]),
        plain_reason if about is None else about.message, (about.help or "") if about else "",
    )  # fmt: skip


def _runs_of(runs: dict[Span, Counter[str]], span: Span | None) -> Counter[str]:
    return Counter() if span is None else runs.get(span, Counter())


_INSTEAD: Final = ("ld.global", "st.shared", "ld.shared")


def _is_about(found: Diagnostic, span: Span | None) -> bool:
    """Whether a remark explains a line: it stands there, or around it on the same lines."""
    if found.code not in _REASONS or span is None or found.span is None:
        return False
    return found.span.file == span.file and found.span.line == span.line


def _said(found: Diagnostic) -> str:
    return found.message + (f"; {found.help}" if found.help else "")


def _versions(steps: Sequence[Step]) -> dict[str, int]:
    """How many copies of each shared tile there are, once loops were pipelined."""
    found: dict[str, int] = {}
    for step in steps:
        if step.name not in _MULTIPLY:
            continue
        # Of the last attempt.
        many = {s.name: int(n) for s in step.symbols for key, n in s.said if key in _VERSIONS}
        found = many or found
    return found


def _counted(trace: Trace) -> tuple[dict[Span, Counter[str]], str]:
    """How often each kind of instruction occurs, by statement of Python, and in what."""
    found: dict[Span, Counter[str]] = {}
    sass, ptx = trace.code("sass"), trace.code("ptx")
    if sass is not None and sass.lines:
        for line in sass.lines:
            opcode = opcode_of(line.text)
            if opcode is not None and line.span is not None:
                found.setdefault(line.span, Counter()).update(of_sass(opcode))
        return found, "the machine code"
    if ptx is not None:
        for line in ptx.lines:
            if line.span is not None:
                found.setdefault(line.span, Counter()).update(_ptx_names(line.text))
        return found, "PTX"
    for line in trace.steps[-1].lines if trace.steps else ():
        if line.span is not None:
            found.setdefault(line.span, Counter()).update(_ir_names(line.text))
    return found, "the IR"


def _ptx_names(text: str) -> Iterable[str]:
    bare = re.sub(r"^\s*(?:@!?%p\d+\s+)?", "", text).rstrip(";")
    opcode, _, operands = bare.partition(" ")
    if not opcode or not opcode[0].islower():
        return ()
    if opcode.startswith(("cp.async.ca", "cp.async.cg")):
        size = operands.split(",")[2].strip() if operands.count(",") > 1 else "16"
        opcode = f"{opcode}, {size}"
    return tuple(of_ptx(opcode))


_OF_WARPS: Final = ("T.mma_", "T.mfma_", "T.wmma_", "T.simdgroup_m")
_OF_GROUPS: Final = ("T.wgmma_ss_", "T.wgmma_rs_")


def _ir_names(text: str) -> Iterator[str]:
    bare = text.strip()
    if bare.startswith("T.cp_async("):
        yield "cp.async"
    elif bare.startswith(("T.tma_load", "T.tma_copy")):
        yield "tma"
    elif bare.startswith(_OF_WARPS):
        yield "mma"
    elif bare.startswith(_OF_GROUPS):
        yield from ("mma", "wgmma")
    elif bare.startswith("T.tcgen05_mma"):
        yield from ("mma", "tcgen05.mma")


def pipeline_text(trace: Trace) -> Iterator[Text]:
    """The answer in one screen."""
    found = pipelines(trace)
    yield Text.assemble((plain(trace.kernel), "bold"), plain(f" for {trace.target}"))
    if trace.target == "cpu":
        yield Text(
            "a CPU has no copies that go on by themselves: pipelines are ordinary loops there"
        )
        return
    if not trace.steps:
        yield Text("the trace ends before there is a program: nothing can be said of its loops",
                   "yellow")  # fmt: skip
        return
    if not found:
        yield Text("no loop of this kernel is T.Pipelined: nothing is copied ahead")
    for one in found:
        yield Text()
        yield from _one(one)
    rest = [d for d in trace.remarks if d.code in _REASONS]
    told = {s.reason for p in found for s in p.statements} | {p.reason for p in found}
    for remark in rest:
        if remark.message not in told and _said(remark) not in told:
            yield Text(f"  {remark.code} {_at(remark.span)}  {plain(_said(remark))}", "yellow")


def _one(found: Pipeline) -> Iterator[Text]:
    style = {"yes": "bold green", "partly": "bold yellow", "no": "bold red", "unasked": "bold"}
    said = {"yes": "takes effect", "partly": "takes effect in part", "no": "has no effect",
            "unasked": "is an ordinary loop"}  # fmt: skip
    yield Text.assemble(
        (f"pipeline over {plain(found.variable)} at {_at(found.span)} ", "bold"),
        (said[found.verdict], style[found.verdict]),
        f"  (instructions as they stand in {found.seen_in})",
    )  # fmt: skip
    asked = str(found.asked) if found.asked else "as many as fit"
    tiles = ", ".join(f"{plain(name)} × {n}" for name, n in found.versions) or "no tile is kept"
    unasked = found.verdict == "unasked"
    good = unasked or (found.stages > 1 and found.stages >= found.asked)
    yield _line(good, "stages", f"asked {asked}, found {found.stages}: {tiles}")
    for kind, word in (("copy", "async copies"), ("gemm", "matrix instructions")):
        of_kind = [s for s in found.statements if s.kind == kind]
        held = sum(s.holds for s in of_kind)
        if kind == "copy" and unasked:
            yield _line(True, word, "none is expected")
        elif of_kind:
            yield _line(held == len(of_kind), word, f"expected of {_lines(len(of_kind))}, found "
                        f"of {held}")  # fmt: skip
        elif kind == "copy":
            yield _line(False, word, "no line copies from a tensor to shared memory")
        yield from (_statement(s, found.reason) for s in of_kind)
    if found.reason:
        yield Text(f"    {plain(found.reason)}", "yellow")


def _statement(found: Statement, of_loop: str) -> Text:
    head = f"      {_at(found.span)}  {plain(found.text)[:60]}"
    if found.holds:
        runs = dict(found.executed)
        became = ", ".join(
            f"{n} × {name}" + (f", {runs[name]:,} per thread" if name in runs else "")
            for name, n in found.found
        )
        return Text.assemble(head, "  → ", (became, "green"))
    instead = ", ".join(f"{n} × {name}" for name, n in found.instead) or "none"
    text = Text.assemble(head, "  → ", (instead, "red" if of_loop != _ONE_STAGE else ""))
    reason = found.reason or ("" if of_loop else "the compiler gave no reason")
    if reason:
        help = f"; {found.help}" if found.help else ""
        text.append(f"\n        {plain(reason + help)}", "yellow")
    return text


def _line(good: bool, what: str, text: str) -> Text:
    mark, style = ("✓", "green") if good else ("✗", "red")
    return Text.assemble("  ", (mark, style), f" {what}: {text}")


def _lines(number: int) -> str:
    return f"{number} line{'s' * (number != 1)}"


def _at(span: Span | None) -> str:
    return "?" if span is None else plain(f"{os.path.basename(span.file)}:{span.line}")
