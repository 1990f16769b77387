"""How is one file's source shown with marks under it?

A mark is a span with a text. One source line with three marks becomes

    12 |     T.gemm(A_shared, B_shared, C_local)
       |     ^^^^^^ --------  -------- K = 32 here
       |            |
       |            K = 64 here

and a span over several lines gets a rail on the left. The result is rows of styled pieces, so
that plain text and colour come from the same drawing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tilelang_diagnostics.model import Span
from tilelang_diagnostics.text_cells import Displayed, cell_width, clip, display, wrap

Piece = tuple[str, str]  # text, style name
Row = tuple[Piece, ...]

GUTTER = "gutter"
SOURCE = "source"
PRIMARY = "primary"
SECONDARY = "secondary"

# A span over more lines than this shows its first and last lines only.
_LONGEST_WHOLE_SPAN = 6
_CONTEXT_BEFORE_CLIP = 8


@dataclass(frozen=True, slots=True)
class Mark:
    """A span to underline, with what to say about it."""

    span: Span
    text: str
    primary: bool

    @property
    def style(self) -> str:
        return PRIMARY if self.primary else SECONDARY

    @property
    def glyph(self) -> str:
        return "^" if self.primary else "-"

    @property
    def multiline(self) -> bool:
        return self.span.end_line > self.span.line


def excerpt(
    marks: Sequence[Mark], lines: Sequence[str], number_width: int, width: int
) -> list[Row]:
    """The rows that show `marks`, which all lie within `lines`, the lines of one file."""
    rails = _assign_rails([m for m in marks if m.multiline])
    inner = max(width - number_width - 3 - 2 * len(rails), 16)
    rows: list[Row] = [_gutter("", number_width)]
    previous: int | None = None
    for number in _shown_lines(marks):
        if previous is not None and number > previous + 1:
            rows.append(_skipped(rails, previous, number_width))
        line = _Line.of(number, lines[number - 1], marks, inner)
        rows += _line_rows(line, marks, rails, number_width, inner)
        previous = number
    return rows


def _shown_lines(marks: Iterable[Mark]) -> list[int]:
    """Lines with a mark, short gaps between them filled."""
    wanted: set[int] = set()
    for mark in marks:
        first, last = mark.span.line, mark.span.end_line
        if last - first < _LONGEST_WHOLE_SPAN:
            wanted.update(range(first, last + 1))
        else:
            wanted.update((first, first + 1, last - 1, last))
    wanted.update(n + 1 for n in tuple(wanted) if n + 2 in wanted)
    return sorted(wanted)


@dataclass(frozen=True, slots=True)
class _Line:
    """One source line and the window of it that fits."""

    number: int
    shown: Displayed
    start: int
    width: int

    @staticmethod
    def of(number: int, text: str, marks: Iterable[Mark], inner: int) -> _Line:
        shown = display(text.rstrip())
        return _Line(number, shown, _window_start(shown, number, marks, inner), inner)

    @property
    def text(self) -> str:
        return clip(self.shown.text, self.start, self.width)

    def cell(self, column: int) -> int:
        """The cell of a column inside the window; what is cut off is at the window's edge."""
        return min(max(self.shown.cell(column) - self.start, 0), self.width - 1)


def _window_start(shown: Displayed, number: int, marks: Iterable[Mark], inner: int) -> int:
    """The first cell to show so that the marks of the line are in sight, the primary one first."""
    total = cell_width(shown.text)
    if total <= inner:
        return 0
    ends: list[tuple[bool, int, int]] = []
    for mark in marks:
        if mark.span.line == number:
            start = shown.cell(mark.span.column)
            end = start + 1 if mark.multiline else shown.cell(mark.span.end_column)
            ends.append((mark.primary, start, end))
        elif mark.span.end_line == number:
            end = shown.cell(mark.span.end_column)
            ends.append((mark.primary, max(end - 1, 0), end))
    if not ends or max(end for _, _, end in ends) < inner:
        return 0
    first, last = min(s for _, s, _ in ends), max(e for _, _, e in ends)
    if last - first + _CONTEXT_BEFORE_CLIP + 2 > inner:
        first = next((s for primary, s, _ in ends if primary), first)
    return max(min(first - _CONTEXT_BEFORE_CLIP, total - inner), 0)


def _line_rows(
    line: _Line, marks: Sequence[Mark], rails: dict[Mark, int], number_width: int, inner: int
) -> Iterator[Row]:
    number = line.number
    at_margin = {m for m in rails if m.span.line == number and _starts_line(m, line)}
    rail = _rail_pieces(rails, number, opening=at_margin)
    yield (*_gutter(str(number), number_width), *rail, (line.text, SOURCE))
    open_rail = _rail_pieces(rails, number, opened=at_margin)
    here = [m for m in marks if not m.multiline and m.span.line == number]
    for row in _mark_rows([_Underline.of(m, line) for m in here], inner):
        yield (*_gutter("", number_width), *open_rail, *row)
    opened = set(at_margin)
    for mark in rails:
        if mark.span.line == number and mark not in at_margin:
            before = _rail_pieces(rails, number, opened=opened)
            cell = line.cell(mark.span.column)
            yield (*_gutter("", number_width), *_bridge(before, rails[mark], cell, mark, "", " "))
            opened.add(mark)
    closed: set[Mark] = set()
    for mark in rails:
        if mark.span.end_line == number:
            before = _rail_pieces(rails, number, opened=opened, closed=closed)
            cell = max(line.cell(mark.span.end_column) - 1, 0)
            yield (
                *_gutter("", number_width),
                *_bridge(before, rails[mark], cell, mark, mark.text, "|"),
            )
            closed.add(mark)


# --- marks within one line -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Underline:
    """A single-line mark in cells of the shown line."""

    start: int
    end: int
    text: str
    style: str
    glyph: str

    @staticmethod
    def of(mark: Mark, line: _Line) -> _Underline:
        start = line.cell(mark.span.column)
        beyond = line.shown.cell(mark.span.end_column) - line.start
        end = max(min(beyond, line.width), start + 1)
        return _Underline(start, end, mark.text, mark.style, mark.glyph)


def _mark_rows(marks: list[_Underline], inner: int) -> Iterator[Row]:
    """The underline row, then one row (or a few) per text that did not fit on it."""
    if not marks:
        return
    # Shorter marks lie on top of longer ones, the primary one on top of its equals.
    layers = sorted(marks, key=lambda m: (m.start - m.end, m.style == PRIMARY))
    cells: dict[int, Piece] = {}
    top: dict[int, _Underline] = {}
    for mark in layers:
        for cell in range(mark.start, mark.end):
            cells[cell] = (mark.glyph, mark.style)
            top[cell] = mark
    last = top[max(top)]
    inline = bool(last.text) and max(top) + 2 + cell_width(last.text) <= inner
    yield _flatten(cells, (last.text, last.style) if inline else None)
    hanging = [m for m in marks if m.text and not (inline and m is last)]
    hanging.sort(key=lambda m: (-m.start, m.style != PRIMARY))
    if hanging:
        yield _flatten(_connectors(hanging))
    for index, mark in enumerate(hanging):
        left = [m for m in hanging[index + 1 :] if m.start < mark.start]
        yield from _hanging_text(mark, _connectors(left), inner)


def _hanging_text(mark: _Underline, connectors: dict[int, Piece], inner: int) -> Iterator[Row]:
    """The text of a mark below its underline, moved left where the terminal ends too early."""
    room_left = max(connectors, default=-2) + 2
    start = min(mark.start, max(room_left, inner - cell_width(mark.text)))
    for line in wrap(mark.text, max(inner - start, 16)):
        yield _flatten(connectors, (line, mark.style), start)


def _connectors(marks: Iterable[_Underline]) -> dict[int, Piece]:
    return {m.start: ("|", m.style) for m in marks}


def _flatten(cells: dict[int, Piece], text: Piece | None = None, at: int | None = None) -> Row:
    """Cells and an optional text after them (or at cell `at`) as a row of pieces."""
    row: list[Piece] = []
    position = 0
    for cell in sorted(cells):
        if cell > position:
            row.append((" " * (cell - position), ""))
        glyph, style = cells[cell]
        if row and row[-1][1] == style and cell == position:
            row[-1] = (row[-1][0] + glyph, style)
        else:
            row.append((glyph, style))
        position = cell + 1
    if text is not None:
        target = position + 1 if at is None else at
        row += ((" " * (target - position), ""), text)
    return tuple(row)


# --- spans over several lines ----------------------------------------------------------------


def _assign_rails(marks: Iterable[Mark]) -> dict[Mark, int]:
    """A rail per multi-line mark, the outermost span leftmost."""
    ordered = sorted(marks, key=lambda m: (m.span.line, -m.span.end_line))
    return {mark: rail for rail, mark in enumerate(ordered)}


def _starts_line(mark: Mark, line: _Line) -> bool:
    before = line.shown.text[: line.shown.cell(mark.span.column)]
    return not before.strip()


def _rail_pieces(
    rails: dict[Mark, int],
    number: int,
    opening: Iterable[Mark] = (),
    opened: Iterable[Mark] = (),
    closed: Iterable[Mark] = (),
) -> list[Piece]:
    """The rail column at line `number`: `/` where a span opens, `|` where one runs through."""
    pieces: list[Piece] = []
    for mark in rails:
        runs = mark.span.line < number <= mark.span.end_line
        if mark in opening:
            pieces.append(("/ ", mark.style))
        elif (runs or mark in opened) and mark not in closed:
            pieces.append(("| ", mark.style))
        else:
            pieces.append(("  ", ""))
    return pieces


def _bridge(
    rail: list[Piece], index: int, cell: int, mark: Mark, text: str, head: str
) -> Iterator[Piece]:
    """`|_____^ text`: from the mark's rail to its end cell."""
    yield from rail[:index]
    dashes = "_" * (2 * (len(rail) - index) - 1 + cell)
    yield (head + dashes + mark.glyph, mark.style)
    if text:
        yield (" " + text, mark.style)


def _skipped(rails: dict[Mark, int], previous: int, number_width: int) -> Row:
    """`...` where lines are left out, the rails running on."""
    ended = [mark for mark in rails if mark.span.end_line <= previous]
    running = _rail_pieces(rails, previous + 1, closed=ended)
    return (("..." + " " * number_width, GUTTER), *running)


def _gutter(number: str, number_width: int) -> Row:
    return ((f"{number:>{number_width}} | ", GUTTER),)
