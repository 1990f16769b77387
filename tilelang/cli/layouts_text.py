"""The layouts of a kernel as text: what each tile and loop got, why, and a drawing."""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.layouts.layout_map import Entry, LaunchLayouts, LayoutMap


def layouts_text(found: LayoutMap) -> str:
    """Every tile and loop of every launch, in program order."""
    lines = [f"{found.kernel}: {found.note}"]
    for launch in found.launches:
        lines.append("")
        lines += _launch_lines(launch)
    return "\n".join(lines) + "\n"


def _launch_lines(launch: LaunchLayouts) -> Iterator[str]:
    threads = "an unknown number of" if launch.threads is None else str(launch.threads)
    yield f"launch of {threads} threads{f' ({launch.span})' if launch.span else ''}"
    for entry in launch.entries:
        yield ""
        yield from _entry_lines(entry)


def _entry_lines(entry: Entry) -> Iterator[str]:
    shape = f"({', '.join(entry.shape)}{',' if len(entry.shape) == 1 else ''})"
    dtype = f" {entry.dtype}" if entry.dtype else ""
    yield f"{entry.kind} {entry.name} {shape}{dtype}: {entry.short}"
    if entry.because:
        yield f"  because {entry.because}"
    if entry.registers is not None:
        yield f"  {entry.registers} registers a thread"
    if entry.kind == "shared" and entry.bank_uses:
        degree = entry.conflict_degree
        yield f"  bank conflicts: {'none' if degree == 1 else f'{degree}-way'}"
    if entry.layout is not None and entry.kind != "loop":
        yield from (f"    {line}" for line in entry.draw().splitlines())
