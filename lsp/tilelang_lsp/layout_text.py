"""How is a layout said in a few words, and how on a page with its drawing?

swizzle 128B     a shared tile whose banks were taken care of
32/thread ×4     a fragment: elements of each thread, and how many threads hold each element
"""

from __future__ import annotations

import re

from tilelang.layout.fragment import Fragment
from tilelang.layout.layout import Layout
from tilelang.layouts.layout_map import Entry

ROWS, COLUMNS = 12, 12  # of a drawing


def short_layout(entry: Entry) -> str:
    """The layout of a tile or loop in a few words; empty where there is nothing to say."""
    layout = entry.layout
    if isinstance(layout, Fragment):
        return f" {_fragment(layout)}"
    if isinstance(layout, Layout):
        degree = entry.conflict_degree
        worst = f", {degree}-way conflicts" if degree > 1 else ""
        return f" {_shared(entry, layout)}{worst}"
    return ""


def shorter_layout(entry: Entry) -> str:
    """The same where a line has little room."""
    layout = entry.layout
    if isinstance(layout, Layout):
        degree = entry.conflict_degree
        return f" {degree}-way conflicts" if degree > 1 else f" {_shared(entry, layout)}"
    return f" {layout.slots}/thread" if isinstance(layout, Fragment) else ""


def entry_text(entry: Entry) -> str:
    """All of it as Markdown: formula, reasons, costs and the drawing."""
    parts = [f"**layout** `{entry.short}`"]
    facts = []
    if isinstance(entry.layout, Fragment):
        held = "element" if entry.layout.slots == 1 else "elements"
        facts.append(f"{entry.layout.slots} {held} in each thread")
        if entry.layout.replicas > 1:
            facts.append(f"each element in {entry.layout.replicas} threads")
    if entry.registers is not None:
        facts.append(f"{entry.registers} registers of a thread")
    if entry.bytes is not None:
        facts.append(f"{entry.bytes} bytes")
    if facts:
        parts.append(", ".join(facts))
    if entry.why:
        parts.append(_without_files(entry.why))
    for use in entry.bank_uses:
        line = f" (line {use.origin.span.line})" if use.origin.span else ""
        how = f" by {use.what}" if use.what else ""
        said = "no bank conflicts" if use.degree <= 1 else f"{use.degree}-way bank conflicts"
        parts.append(f"- `{use.origin.op}`{line}{how}: {said}")
    parts += [
        f"- through {c.via.value} for `{c.constraint.origin.op}`, {c.cost} instructions"
        for c in entry.conversions
    ]
    if entry.kind != "loop":
        parts.append(f"```text\n{entry.draw(max_rows=ROWS, max_columns=COLUMNS)}\n```")
    return "\n\n".join(parts)


def _fragment(layout: Fragment) -> str:
    copies = f" ×{layout.replicas}" if layout.replicas > 1 else ""
    return f"{layout.slots}/thread{copies}"


def _shared(entry: Entry, layout: Layout) -> str:
    swizzled = re.match(r"(\d+)-byte swizzle", entry.reason)
    if swizzled is not None:
        return f"swizzle {swizzled[1]}B"
    name = str(layout).partition(" ")[0]
    if name in ("row-major", "column-major", "padded", "permuted", "overlapping"):
        return name
    return "padded" if layout.storage > layout.size else "permuted"


def _without_files(text: str) -> str:
    """Reasons with lines instead of whole places."""
    return re.sub(r" at \S+?:(\d+):\d+", r" at line \1", text).replace("\n", "  \n")
