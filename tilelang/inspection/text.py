"""An inspection for people: the budget first, then what each loop and each line became."""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from tilelang.choices import Note
from tilelang.inspection.counts import Counts
from tilelang.inspection.model import BankConflicts, Inspection, KernelReport
from tilelang_diagnostics import SourceMap
from tilelang_diagnostics.model import Diagnostic, Span

# Of a line or loop; widths are part of the totals only.
_SHOWN = (
    "mma", "ldmatrix", "stmatrix", "cp.async", "tma", "ld.global.nc", "ld.global.plain",
    "st.global", "ld.shared", "st.shared", "ld.local", "st.local", "ld.generic", "st.generic",
    "atomic", "barrier", "mbarrier", "cp.async.wait", "shuffle",
)  # fmt: skip


def print_inspection(found: Inspection, console: Console, sources: SourceMap | None = None) -> None:
    """Write it: coloured on a terminal, plain elsewhere, as narrow as the console."""
    with console.capture() as drawn:
        for part in _parts(found, sources or SourceMap()):
            console.print(part, highlight=False, soft_wrap=False)
    # Tables fill their last column with spaces.
    console.file.write("".join(f"{line.rstrip()}\n" for line in drawn.get().splitlines()))


def _parts(found: Inspection, sources: SourceMap) -> Iterable[RenderableType]:
    for kernel in found.kernels:
        yield Text(_budget(kernel, len(found.kernels) > 1))
    counted = "machine code" if found.source == "sass" else "PTX"
    yield Text(f"{found.name} for {found.target}, {counted} by {found.compiler}")
    if found.note:
        yield Text(f"note: {found.note}")
    for kernel in found.kernels:
        yield Text("")
        yield from _kernel(kernel, found, sources)
    yield from _choices(found.choices)
    yield from _conflicts(found.conflicts)
    yield from _remarks(found.remarks)


def _budget(kernel: KernelReport, named: bool) -> str:
    shared = kernel.shared
    start = f"{kernel.symbol}: " if named else ""
    of = ""
    if shared.limit is not None:
        percent = 100 * shared.total // shared.limit
        of = f" of the {shared.limit} a block may have ({percent}%)"
    return (
        f"{start}shared memory: {shared.static} static + {shared.dynamic} dynamic = "
        f"{shared.total} bytes{of}"
    )


def _kernel(
    kernel: KernelReport, found: Inspection, sources: SourceMap
) -> Iterable[RenderableType]:  # fmt: skip
    yield Text(f"kernel {kernel.symbol}, {kernel.threads} threads", style="bold")
    yield _facts(kernel)
    plain = Counts(tuple(p for p in kernel.counts.pairs if ".b" not in p[0]))
    rows = [(name, str(number), _widths(kernel.counts, name)) for name, number in plain.pairs]
    rows.sort(key=lambda row: row[0] == "instructions")
    yield from _table("instructions", ("name", "number", "widths"), rows, right=(1,))
    if kernel.loops:
        loops = [
            (_place(loop.span), f"{'  ' * loop.depth}for {loop.variable or '…'}",
             _shown(loop.counts))
            for loop in kernel.loops
        ]  # fmt: skip
        yield from _table("a round of each loop in the code", ("line", "loop", "holds"), loops)
    else:
        yield Text("loops: none, or all are unrolled")
    lines = [
        (_place(line.span), _code(line.span, sources), _shown(line.counts))
        for line in kernel.lines
        if _shown(line.counts)
    ]
    total = kernel.counts["instructions"]
    title = f"lines ({kernel.mapped} of {total} instructions have one)"
    yield from _table(title, ("line", "code", "became"), lines)


def _facts(kernel: KernelReport) -> RenderableType:
    rows = []
    if kernel.registers is not None:
        rows.append(f"{kernel.registers} registers a thread, {kernel.spills} bytes spilled")
    if kernel.occupancy is not None:
        o = kernel.occupancy
        what = "block" if o.blocks == 1 else "blocks"
        rows.append(f"{o.blocks} {what} at once: {o.warps} of {o.most_warps} warps "
                    f"({o.percent}%), limited by {' and '.join(o.limited_by)}")  # fmt: skip
    return Group(*(Text(f"  {row}") for row in rows))


def _conflicts(found: Sequence[BankConflicts]) -> Iterable[RenderableType]:
    if not found:
        return
    yield Text("")
    bad = [c for c in found if c.degree > 1]
    if not bad:
        yield Text(f"bank conflicts: none predicted in {len(found)} uses of shared tiles")
        return
    rows = [(_place(c.span), c.buffer, f"{c.operation} {c.access}".strip(), f"{c.degree}-way")
            for c in bad]  # fmt: skip
    title = f"predicted bank conflicts, in {len(bad)} of {len(found)} uses of shared tiles"
    yield from _table(title, ("line", "tile", "use", "conflict"), rows)


def _choices(found: Sequence[Note]) -> Iterable[RenderableType]:
    if not found:
        return
    yield Text("")
    rows = [(_place(note.span) if note.span else "", note.kind, note.said) for note in found]
    yield from _table("choices of the compiler", ("line", "of", "choice"), rows)


def _remarks(found: Sequence[Diagnostic]) -> Iterable[RenderableType]:
    if not found:
        return
    yield Text("")
    rows = [(_place(d.span), d.code, d.message) for d in found]
    yield from _table("remarks of the compiler", ("line", "code", "message"), rows)


def _table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()
) -> Iterable[RenderableType]:
    yield Text(title, style="bold")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for n, column in enumerate(columns):
        table.add_column(
            column, justify="right" if n in right else "left", overflow="fold",
            no_wrap=n == 0 and column in ("line", "name"),
        )  # fmt: skip
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    yield table


def _widths(counts: Counts, name: str) -> str:
    """`24 x 128` bits, of an access."""
    found = [
        (other.rpartition(".b")[2], number) for other, number in counts.pairs
        if other.startswith(f"{name}.b")
    ]  # fmt: skip
    return ", ".join(f"{number} x {width} bits" for width, number in found)


def _shown(counts: Counts) -> str:
    return ", ".join(f"{counts[name]} {name}" for name in _SHOWN if counts[name])


def _place(span: Span | None) -> str:
    return "?" if span is None else f"{os.path.basename(span.file)}:{span.line}"


def _code(span: Span, sources: SourceMap) -> str:
    text = sources.line(span.file, span.line)
    return "" if text is None else text.strip()
