"""The layouts of a kernel as text: what each tile and loop got, why, and what it costs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tilelang.layout.solution import Conversion
from tilelang.layouts.layout_map import Entry, LaunchLayouts, LayoutMap

ROWS, COLUMNS = 4, 8  # of a drawing


def layouts_text(found: LayoutMap) -> str:
    """Every tile and loop of every launch, in program order."""
    lines = [f"{found.kernel}: {found.note}"]
    for launch in found.launches:
        lines.append("")
        lines += _launch_lines(launch)
    return "\n".join(lines) + "\n"


def _launch_lines(launch: LaunchLayouts) -> Iterator[str]:
    threads = "an unknown number of" if launch.threads is None else str(launch.threads)
    yield f"launch of {threads} threads{f', line {launch.span.line}' if launch.span else ''}"
    file = launch.span.file if launch.span else ""
    for entry in launch.entries:
        yield ""
        yield from (f"  {_by_line(line, file)}".rstrip() for line in _entry_lines(entry))
    conversions = tuple({id(c): c for e in launch.entries for c in e.conversions}.values())
    if conversions:
        yield ""
        yield "  conversions"
        for conversion in conversions:
            yield from (f"  {_by_line(line, file)}" for line in _conversion_lines(conversion))


def _entry_lines(entry: Entry) -> Iterator[str]:
    facts = [f"{' x '.join(entry.shape)} {entry.dtype}".rstrip()]
    if entry.registers is not None:
        facts.append(f"{entry.registers} registers a thread")
    if entry.bytes is not None:
        facts.append(f"{entry.bytes} bytes")
    if entry.first_thread:
        facts.append(f"threads from {entry.first_thread} on")
    yield f"{entry.kind} {entry.name}: {', '.join(facts)}"
    yield f"    {entry.short}"
    if entry.because:
        yield f"    {entry.because}"
    for use in entry.bank_uses:
        line = f" at line {use.origin.span.line}" if use.origin.span else ""
        how = f" ({use.what})" if use.what else ""
        said = "no bank conflicts" if use.degree <= 1 else f"{use.degree}-way bank conflicts"
        yield f"      {use.origin.op}{line}{how}: {said}"
    if entry.layout is not None and entry.kind in ("fragment", "shared"):
        drawing = entry.draw(max_rows=ROWS, max_columns=COLUMNS)
        yield from (f"      {line}" for line in drawing.splitlines())


def _conversion_lines(found: Conversion) -> Iterator[str]:
    origin = found.constraint.origin
    yield f"  {found.var.name} through {found.via.value} for {origin}, {found.cost} instructions"
    yield f"      from {found.source}"
    if found.target is not None:
        yield f"      to   {found.target}"


def _by_line(text: str, file: str) -> str:
    """Places of the kernel's own file by their line."""
    return re.sub(rf"\bat {re.escape(file)}:(\d+):\d+", r"at line \1", text) if file else text
