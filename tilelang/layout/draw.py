"""What a layout looks like: a grid as text for terminals and hovers, or as SVG for documents.

A cell of a `Layout` shows the element's offset, one of a `Fragment` its `thread:slot` (of the
first copy). Tall and wide tiles are clipped, and the last line says how. More than two dimensions
show the first slice. The same layout always gives the same text.

    >>> print(draw_text(Fragment((2, 4), lambda i, j: (i * 2 + j // 2, j % 2))))
          0    1    2    3
     0  0:0  0:1  1:0  1:1
     1  2:0  2:1  3:0  3:1
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any, TypeAlias, TypeVar

from tilelang.layout.constraints import AnyLayout
from tilelang.layout.fragment import Fragment
from tilelang.layout.layout import Layout

_T = TypeVar("_T")
# Background colours of an ANSI terminal that black text is readable on.
_ANSI = (42, 43, 44, 45, 46, 47, 102, 103, 104, 105, 106, 107)
_CELL_HEIGHT = 18
_CHARACTER = 6.2  # width of one at 10 px in the monospace fonts browsers fall back to


@dataclass(frozen=True, slots=True)
class _Grid:
    """The visible part of a layout: cell texts, colour groups, and what was left out."""

    cells: tuple[tuple[str, ...], ...]
    groups: tuple[tuple[int, ...], ...]
    more_rows: bool
    more_columns: bool
    notes: tuple[str, ...]


def draw_text(
    layout: AnyLayout, *, color: bool = False, max_rows: int = 16, max_columns: int = 16
) -> str:
    """`layout` as a grid of text; `color` adds ANSI colours by thread or by vector."""
    grid = _grid(layout, max_rows, max_columns)
    columns = [str(c) for c in range(len(grid.cells[0]))] + ["…"] * grid.more_columns
    width = max(len(text) for row in (*grid.cells, columns) for text in row)
    gutter = max(2, len(str(len(grid.cells) - 1)))
    lines = [" " * gutter + "".join(f"  {text:>{width}}" for text in columns)]
    for number, (row, groups) in enumerate(zip(grid.cells, grid.groups, strict=True)):
        painted = [
            f"  {_paint(f'{text:>{width}}', group) if color else f'{text:>{width}}'}"
            for text, group in zip(row, groups, strict=True)
        ]
        tail = f"  {'…':>{width}}" if grid.more_columns else ""
        lines.append(f"{number:>{gutter}}{''.join(painted)}{tail}")
    if grid.more_rows:
        lines.append(f"{'…':>{gutter}}")
    return "\n".join([*lines, *grid.notes])


def draw_svg(
    layout: AnyLayout, *, title: str = "", max_rows: int = 32, max_columns: int = 32
) -> str:
    """`layout` as a self-contained SVG image."""
    grid = _grid(layout, max_rows, max_columns)
    cell = round(max(len(text) for row in grid.cells for text in row) * _CHARACTER + 8)
    rows, columns = len(grid.cells), len(grid.cells[0])
    left, top = 30, 40 if title else 20
    width = left + columns * cell + 20
    height = top + rows * _CELL_HEIGHT + 10 + 14 * len(grid.notes)
    rects, texts = [], []
    for c in range(columns):
        texts.append(f'<text x="{left + c * cell + cell // 2}" y="{top - 6}">{c}</text>')
    for r, (row, groups) in enumerate(zip(grid.cells, grid.groups, strict=True)):
        y = top + r * _CELL_HEIGHT
        texts.append(f'<text x="{left // 2}" y="{y + 13}">{r}</text>')
        for c, (text, group) in enumerate(zip(row, groups, strict=True)):
            x = left + c * cell
            fill = f"hsl({group * 47 % 360},70%,84%)"
            size = f'width="{cell}" height="{_CELL_HEIGHT}"'
            rects.append(f'<rect x="{x}" y="{y}" {size} fill="{fill}"/>')
            texts.append(f'<text x="{x + cell // 2}" y="{y + 13}">{text}</text>')
    size = f'width="{width}" height="{height}"'
    namespace = "http://www.w3.org/2000/svg"
    out = [f'<svg xmlns="{namespace}" viewBox="0 0 {width} {height}" {size}>']
    out.append(f'<rect {size} fill="#fff"/>')
    out.append('<g stroke="#999" stroke-width=".5">' + "".join(rects) + "</g>")
    out.append('<g font-family="monospace" font-size="10">')
    out.append('<g text-anchor="middle">' + "".join(texts) + "</g>")
    if title:
        out.append(f'<text x="{left}" y="14" font-size="12">{escape(title)}</text>')
    for k, note in enumerate(grid.notes):
        y = top + rows * _CELL_HEIGHT + 18 + 14 * k
        out.append(f'<text x="{left}" y="{y}" fill="#555">{escape(note)}</text>')
    return "\n".join([*out, "</g></svg>", ""])


def _grid(layout: AnyLayout, max_rows: int, max_columns: int) -> _Grid:
    shape = layout.shape
    rows, columns = (shape[-2] if len(shape) > 1 else 1), shape[-1]
    shown_rows, shown_columns = min(rows, max_rows), min(columns, max_columns)
    leading = (0,) * (len(shape) - 2)
    row = slice(shown_rows) if len(shape) > 1 else None
    cells, groups = _cells(layout, (*leading, row, slice(shown_columns)))
    notes = []
    if leading:
        notes.append(f"slice [{', '.join(['0'] * len(leading))}] of {shape}")
    if (shown_rows, shown_columns) != (rows, columns):
        notes.append(f"{shown_rows} of {rows} rows, {shown_columns} of {columns} columns")
    if isinstance(layout, Fragment) and layout.replicas > 1:
        notes.append(f"each element in {layout.replicas} threads, the first is shown")
    more_rows, more_columns = rows > shown_rows, columns > shown_columns
    return _Grid(cells, groups, more_rows, more_columns, tuple(notes))


_Rows: TypeAlias = tuple[tuple[_T, ...], ...]


def _cells(layout: AnyLayout, shown: tuple[Any, ...]) -> tuple[_Rows[str], _Rows[int]]:
    """Texts and colour groups of the elements in sight, which `shown` cuts out, row by row."""
    vector = layout.vector_width()
    if isinstance(layout, Layout):
        offsets = layout.offsets()[shown].tolist()
        return (
            tuple(tuple(map(str, row)) for row in offsets),
            tuple(tuple(offset // vector for offset in row) for row in offsets),
        )
    threads, slots = (table[(*shown, 0)].tolist() for table in layout.map.table)
    texts = (
        tuple(f"{t}:{n}" for t, n in zip(*row, strict=True))
        for row in zip(threads, slots, strict=True)
    )
    return tuple(texts), tuple(map(tuple, threads))


def _paint(text: str, group: int) -> str:
    return f"\x1b[30;{_ANSI[group % len(_ANSI)]}m{text}\x1b[0m"
