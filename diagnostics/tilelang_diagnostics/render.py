"""How does a diagnostic look on a terminal?

    error[TL204]: `A_shared` has K = 64 but `B_shared` has K = 32
      --> gemm.py:12:5
       |
    12 |     T.gemm(A_shared, B_shared, C_local)
       |     ^^^^^^ --------  -------- K = 32 here
       |            |
       |            K = 64 here
       = help: make the second dim of `A_shared` equal the first of `B_shared`

`render_text` is pure: same values, same text. Colour is added at the edge (`render_rich`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import groupby
from typing import TYPE_CHECKING, Final

from tilelang_diagnostics.excerpt import (
    GUTTER,
    PRIMARY,
    SECONDARY,
    SOURCE,
    Mark,
    Piece,
    Row,
    excerpt,
)
from tilelang_diagnostics.fixes import OverlappingEdits, apply_edits
from tilelang_diagnostics.model import Applicability, Diagnostic, Edit, Fix, Severity
from tilelang_diagnostics.sources import SourceMap, split_lines
from tilelang_diagnostics.text_cells import clip, display, wrap

if TYPE_CHECKING:
    from rich.text import Text

NARROWEST = 30
_SHOWN_CALLS = 6

STYLES: Final[dict[str, str]] = {
    "error": "bold red",
    "warning": "bold yellow",
    "remark": "bold cyan",
    "hint": "bold green",
    "message": "bold",
    SECONDARY: "blue",
    GUTTER: "blue",
    SOURCE: "",
    "help": "bold",
    "removed": "red",
    "added": "green",
    "": "",
}


def render_text(
    diagnostics: Iterable[Diagnostic],
    sources: SourceMap,
    width: int = 80,
    *,
    summary: bool = True,
) -> str:
    """Plain text for `diagnostics`, with source excerpts; empty when there are none."""
    rows = _rows(tuple(diagnostics), sources, width, summary)
    return "".join("".join(text for text, _ in row).rstrip() + "\n" for row in rows)


def render_rich(
    diagnostics: Iterable[Diagnostic],
    sources: SourceMap,
    width: int = 80,
    *,
    summary: bool = True,
) -> Text:
    """The same drawing as a rich `Text`, coloured."""
    from rich.text import Text

    text = Text(no_wrap=True, overflow="ignore", end="")
    for row in _rows(tuple(diagnostics), sources, width, summary):
        for piece, style in row:
            text.append(piece, STYLES[style])
        text.append("\n")
    return text


def render_ansi(
    diagnostics: Iterable[Diagnostic],
    sources: SourceMap,
    width: int = 80,
    *,
    summary: bool = True,
) -> str:
    """The same drawing as a string with ANSI colours."""
    from io import StringIO

    from rich.console import Console

    out = StringIO()
    # The drawing already fits; a console narrower than a long path would break it again.
    console = Console(
        file=out, force_terminal=True, color_system="standard", width=10_000, legacy_windows=False
    )
    console.print(render_rich(diagnostics, sources, width, summary=summary), end="")
    return out.getvalue()


def summary_line(diagnostics: Iterable[Diagnostic]) -> str:
    """`found 2 errors, 1 warning`."""
    counts = Counter(d.severity for d in diagnostics)
    parts = [
        f"{counts[severity]} {severity.value}{'s' if counts[severity] > 1 else ''}"
        for severity in Severity
        if counts[severity]
    ]
    return f"found {', '.join(parts) or 'no problems'}"


def _rows(
    diagnostics: Sequence[Diagnostic], sources: SourceMap, width: int, summary: bool
) -> Iterator[Row]:
    width = max(width, NARROWEST)
    for diagnostic in diagnostics:
        yield from _diagnostic_rows(diagnostic, sources, width)
        yield ()
    if diagnostics and summary:
        yield ((summary_line(diagnostics), "message"),)


def _diagnostic_rows(diagnostic: Diagnostic, sources: SourceMap, width: int) -> Iterator[Row]:
    severity = diagnostic.severity.value
    yield (
        (f"{severity}[{diagnostic.code}]", severity),
        (f": {diagnostic.message}", "message"),
    )
    marks, elided = _marks(diagnostic)
    numbers = [n for m in marks for n in (m.span.line, m.span.end_line)]
    numbers += [e.span.end_line for f in diagnostic.fixes for e in f.edits]
    margin = len(str(max(numbers, default=0)))
    for index, (file, group) in enumerate(_by_file(marks)):
        arrow = "-->" if index == 0 else ":::"
        yield from _file_rows(file, group, arrow, sources, margin, width, severity)
    if elided:
        yield from _remark_rows("note", f"{elided} more calls are not shown", margin, width)
    for note in diagnostic.notes:
        yield from _remark_rows("note", note, margin, width)
    if diagnostic.help is not None:
        yield from _remark_rows("help", diagnostic.help, margin, width)
    for fix in diagnostic.fixes:
        yield from _fix_rows(fix, sources, margin, width)


def _marks(diagnostic: Diagnostic) -> tuple[list[Mark], int]:
    """The primary span, the labels and the call sites; and how many calls were left out."""
    marks: list[Mark] = []
    if diagnostic.span is not None:
        marks.append(Mark(diagnostic.span, diagnostic.label, primary=True))
    marks += (Mark(label.span, label.text, primary=False) for label in diagnostic.labels)
    inward = tuple(dict.fromkeys(diagnostic.calls))
    # Of a long chain the ends tell most: where the kernel calls, and what called last.
    half = _SHOWN_CALLS // 2
    shown = inward if len(inward) <= _SHOWN_CALLS else inward[:half] + inward[-half:]
    marks += (
        Mark(frame.span, f"in `{frame.function}`, called here", primary=False)
        for frame in reversed(shown)
    )
    return list(dict.fromkeys(marks)), len(inward) - len(shown)


def _by_file(marks: Sequence[Mark]) -> Iterator[tuple[str, list[Mark]]]:
    """Marks grouped by file, the primary span's file first."""
    order = {file: i for i, file in enumerate(dict.fromkeys(m.span.file for m in marks))}
    for file, group in groupby(
        sorted(marks, key=lambda m: order[m.span.file]), key=lambda m: m.span.file
    ):
        yield file, list(group)


def _file_rows(
    file: str,
    marks: list[Mark],
    arrow: str,
    sources: SourceMap,
    margin: int,
    width: int,
    severity: str,
) -> Iterator[Row]:
    lines = sources.lines(file)
    yield ((f"{' ' * margin}{arrow} ", GUTTER), (str(marks[0].span), ""))
    drawn = [_inside(mark, lines) for mark in marks if mark.span.line <= len(lines)]
    for row in excerpt(drawn, lines, margin, width) if drawn else ():
        # The primary mark takes the colour of the severity.
        yield tuple((text, severity if style == PRIMARY else style) for text, style in row)
    for mark in marks:
        if mark.span.line > len(lines) and mark.text:
            where = "" if mark.primary else f"{mark.span}: "
            yield from _remark_rows("here", where + mark.text, margin, width)


def _inside(mark: Mark, lines: Sequence[str]) -> Mark:
    """The mark, ending at the end of the file at the latest (the file may have changed)."""
    if mark.span.end_line <= len(lines):
        return mark
    end = max((len(lines), len(lines[-1]) + 1), (mark.span.line, mark.span.column))
    return replace(mark, span=replace(mark.span, end_line=end[0], end_column=end[1]))


def _remark_rows(kind: str, text: str, margin: int, width: int) -> Iterator[Row]:
    """`= note: text`, wrapped with a hanging indent."""
    lead = f"{' ' * margin} = "
    hang = " " * (len(lead) + len(kind) + 2)
    for index, line in enumerate(wrap(text, max(width - len(hang), 16))):
        if index == 0:
            yield ((lead, GUTTER), (f"{kind}: ", "help"), (line, ""))
        else:
            yield ((hang, ""), (line, ""))


def _fix_rows(fix: Fix, sources: SourceMap, margin: int, width: int) -> Iterator[Row]:
    """The title and, where the source is at hand, the changed lines before and after."""
    title = fix.title if fix.applicability is Applicability.SAFE else f"{fix.title} (a suggestion)"
    yield from _remark_rows("fix", title, margin, width)
    by_file: dict[str, list[Edit]] = {}
    for edit in fix.edits:
        by_file.setdefault(edit.span.file, []).append(edit)
    for file, edits in by_file.items():
        for block in _touching(edits):
            yield from _change_rows(file, block, sources, margin, width)


def _touching(edits: list[Edit]) -> list[list[Edit]]:
    """Edits grouped so that edits on the same or neighbouring lines are shown as one change."""
    blocks: list[list[Edit]] = []
    for edit in sorted(edits, key=lambda e: e.span):
        if blocks and edit.span.line <= max(e.span.end_line for e in blocks[-1]) + 1:
            blocks[-1].append(edit)
        else:
            blocks.append([edit])
    return blocks


def _change_rows(
    file: str, edits: list[Edit], sources: SourceMap, margin: int, width: int
) -> Iterator[Row]:
    text = sources.text(file)
    first = edits[0].span.line
    last = max(e.span.end_line for e in edits)
    before = sources.lines(file)[first - 1 : last]
    if text is None or not before:
        return
    try:
        changed = split_lines(apply_edits(text, edits))
    except OverlappingEdits:
        return
    after = changed[first - 1 : len(changed) - (len(sources.lines(file)) - last)]
    inner = max(width - margin - 3, 16)
    yield ((f"{' ' * margin} |", GUTTER),)
    for kind, i, i_end, j, j_end in SequenceMatcher(None, before, after).get_opcodes():
        if kind != "equal":
            for n in range(i, i_end):
                yield _change_row(first + n, "-", "removed", before[n], margin, inner)
            for n in range(j, j_end):
                yield _change_row(first + n, "+", "added", after[n], margin, inner)


def _change_row(
    number: int, sign: str, style: str, line: str, margin: int, inner: int
) -> tuple[Piece, ...]:
    shown = clip(display(line.rstrip()).text, 0, inner)
    return ((f"{number:>{margin}} ", GUTTER), (f"{sign} {shown}", style))
