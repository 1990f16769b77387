"""How do the rows of a shared tile come to lie further apart, so that its banks collide less?

    s = T.alloc_shared((64, 64), "float32")
    T.annotate_layout({s: T.Layout((64, 64), lambda i, j: i * 65 + j)})

By a layout: the tile has the extents that its users expect.
"""

from __future__ import annotations

import ast
import re

from tilelang_diagnostics import Edit, Span
from tilelang_diagnostics.sources import split_lines
from tilelang_lint.functions import first_line, function_around
from tilelang_lint.written import Tile, Written

PAD = "pad the rows to avoid bank conflicts"
_WORD, _VECTOR = 4, 16  # bytes


def padding(written: Written, tile: Tile) -> Edit | None:
    """The edit for a tile of two dimensions, unless its layout is written down in another form."""
    shape = _shape(written.tree, tile)
    own = _function_of(written, tile)
    pad = _elements(own, tile)
    if shape is None or pad is None:
        return None
    lines, alias = written.lines, written.alias
    statement, rows, columns = shape
    if re.search(rf"[{{,]\s*{tile.name}\s*:", own) is not None:
        return _wider(written, tile, columns, pad, own)
    stride = str(int(columns) + pad) if columns.isdecimal() else f"({columns} + {pad})"
    layout = f"{alias}.Layout(({rows}, {columns}), lambda i, j: i * {stride} + j)"
    first, last = lines[statement.lineno - 1], statement.end_lineno or statement.lineno
    lead = first[: len(first) - len(first.lstrip())]
    end = len(lines[last - 1]) + 1
    place = Span(written.path, last, end, last, end)
    return Edit(place, f"\n{lead}{alias}.annotate_layout({{{tile.name}: {layout}}})")


def _shape(tree: ast.Module, tile: Tile) -> tuple[ast.stmt, str, str] | None:
    """The allocation of a tile, and its two extents as they are written."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(
                    func=ast.Attribute(attr="alloc_shared"),
                    args=[ast.Tuple(elts=[rows, columns]) | ast.List(elts=[rows, columns]), *_],
                ),
            ) if name == tile.name and node.lineno == tile.line:
                return node, ast.unparse(rows), ast.unparse(columns)
            case _:
                pass
    return None


def _function_of(written: Written, tile: Tile) -> str:
    """The text of the tile's function, with as many lines before it: others may have its name."""
    function, lines = function_around(written.tree, tile.line), written.lines
    if function is None:
        return written.text
    before = first_line(function) - 1
    return "\n".join(("",) * before + lines[before : function.end_lineno])


def _elements(text: str, tile: Tile) -> int | None:
    """How far: matrix instructions read 16 bytes of a row, all else a word."""
    if not tile.bits:
        return None
    wide = re.search(rf"gemm\w*\([^)]*\b{tile.name}\b", text) is not None
    return max(1, (_VECTOR if wide else _WORD) * 8 // tile.bits)


def _wider(written: Written, tile: Tile, columns: str, pad: int, own: str) -> Edit | None:
    """A row-major layout that the author wrote, with a longer row."""
    pattern = re.compile(
        rf"\b{tile.name}\s*:\s*[\w.]+\([^:]*lambda (\w+), (\w+):\s*\1 \* (\d+) \+ \2\b"
    )
    for number, line in enumerate(split_lines(own), 1):
        match = pattern.search(line)
        if match is not None and match[3] == columns:
            span = Span(written.path, number, match.start(3) + 1, number, match.end(3) + 1)
            return Edit(span, str(int(columns) + pad))
    return None
