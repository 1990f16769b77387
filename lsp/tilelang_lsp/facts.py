"""What do the numbers of a kernel say without any target: extents of loops, ranges of indices?

for k in T.Pipelined(T.ceildiv(K, block_K)):    32 iterations
row = bx * block_M                              0…4032, by the grid
T.copy(A[row, k * 32], A_shared)                k * 32 is 0…992
                                                hover: A[0…4095, 0…1023] of (4096, 1024)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tilelang.language.frontend import Parsed
from tilelang.program.arith import constant_value
from tilelang.program.bounds import Interval, interval
from tilelang.program.buffer import Region
from tilelang.program.expr import Binary, Const, Expr, Load, Var, walk
from tilelang.program.stmt import (
    Block,
    For,
    Launch,
    Let,
    Stmt,
    Store,
    TileOp,
    bodies,
    expressions,
)
from tilelang.program.text import expr_text
from tilelang_diagnostics import Span
from tilelang_lsp.model import Fact

Ranges = dict[Var, Interval]
LONGEST = 24  # characters of a symbolic extent


def program_facts(parsed: Parsed, path: str, lines: tuple[str, ...]) -> tuple[Fact, ...]:
    """The facts of a kernel that could be traced, each once."""
    assert parsed.function is not None
    reader = _Reader(path, lines)
    reader.block(parsed.function.body, {})
    counted = (
        _counter(symbol.name, symbol.span, reader.counted[symbol.value])
        for symbol in parsed.symbols.symbols
        if isinstance(symbol.value, Var) and symbol.value in reader.counted
        and symbol.span.file == path
    )  # fmt: skip
    return tuple(dict.fromkeys((*reader.found, *(f for f in counted if f is not None))))


def _counter(name: str, span: Span, found: Interval) -> Fact | None:
    """The range of a loop variable or an index of blocks, for its hover."""
    low, high = found
    if low is None or high is None:
        return None
    said = str(low) if low == high else f"{low}…{high}"
    place = Span(span.file, span.line, span.column, span.line, span.column + len(name))
    return Fact(place, "values", "", f"`{name}` is {said}")


class _Reader:
    """Goes through a program with the ranges of the variables around."""

    def __init__(self, path: str, lines: tuple[str, ...]) -> None:
        self.path, self.lines = path, lines
        self.found: list[Fact] = []
        self.counted: Ranges = {}  # variables of loops and launches

    def block(self, body: Block, around: Mapping[Var, Interval]) -> None:
        """The statements of a block in order; names bound on the way are known below."""
        ranges = dict(around)
        for stmt in body:
            self._statement(stmt, ranges)
            inner = ranges
            match stmt:
                case Launch(blocks=blocks, threads=threads):
                    inner = {**ranges, **_counted((*blocks, *threads))}
                    self.counted.update(_counted((*blocks, *threads)))
                case For(loop_vars=loop_vars):
                    inner = dict(ranges)
                    for v in loop_vars:
                        inner[v.var] = _loop_range(v.start, v.extent, v.step, ranges)
                        self.counted[v.var] = inner[v.var]
                case _:
                    pass
            for nested in bodies(stmt):
                self.block(nested, inner)

    def _statement(self, stmt: Stmt, ranges: Ranges) -> None:
        span = stmt.span
        match stmt:
            case For() if self._is_here(span):
                self._loop(stmt)
            case Let(var=var, value=value):
                ranges[var] = interval(value, ranges)
                if span is not None and self._is_here(span):
                    self._let(span, var, ranges[var], value)
            case _:
                pass
        for region in _regions(stmt):
            if self._is_here(region.span):
                self._region(region, ranges)
        for expr in expressions(stmt):
            for load in walk(expr):
                if isinstance(load, Load) and load.span is not None and self._is_here(load.span):
                    self._access(load.span, load.buffer.name, load.indices, ranges)
        if isinstance(stmt, Store) and span is not None and self._is_here(span):
            place = Span(self.path, span.line, span.column, span.line, span.column)
            self._access(place, stmt.buffer.name, stmt.indices, ranges)

    def _is_here(self, span: Span | None) -> bool:
        return span is not None and span.file == self.path

    def _loop(self, loop: For) -> None:
        assert loop.span is not None
        extents = [expr_text(v.extent) for v in loop.loop_vars]
        known = all(constant_value(v.extent) is not None for v in loop.loop_vars)
        header = self._text(loop.span)
        if all(_is_written(e, header) for e in extents):
            return
        text = " × ".join(extents)
        if not known and len(text) > LONGEST:
            return
        label = f" {text}" if len(extents) > 1 else f" {text} iteration{'' if text == '1' else 's'}"
        self.found.append(Fact(loop.span, "loops", label, f"{text} iterations", f" {text}"))

    def _let(self, span: Span, var: Var, found: Interval, value: Expr) -> None:
        low, high = found
        if low is None or high is None or low == high or not var.dtype.is_integer:
            return
        name = Span(span.file, span.line, span.column, span.line, span.column + len(var.name))
        if self._text(name) != var.name:
            return
        detail = f"`{var.name} = {expr_text(value)}`\n\nfrom {low} to {high}, by the ranges around"
        self.found.append(Fact(name, "values", f" {low}…{high}", detail))

    def _region(self, region: Region, ranges: Ranges) -> None:
        assert region.span is not None
        parts = []
        for r in region.ranges:
            self._index(r.min, ranges)
            low, last = interval(r.min, ranges)
            extent = constant_value(r.extent)
            if extent is None:
                parts.append(f"{expr_text(r.min)} : +{expr_text(r.extent)}")
            else:
                parts.append(_range_text(low, last, extent, r.min))
        shape = ", ".join(str(d) if isinstance(d, int) else expr_text(d)
                          for d in region.buffer.shape)  # fmt: skip
        detail = f"`{region.buffer.name}[{', '.join(parts)}]` of ({shape})"
        self.found.append(Fact(region.span, "values", "", detail))

    def _access(
        self, span: Span, name: str, indices: tuple[Expr, ...], ranges: Ranges
    ) -> None:  # fmt: skip
        if not indices or all(isinstance(i, Const) for i in indices):
            return
        for index in indices:
            self._index(index, ranges)
        parts = [_range_text(*interval(i, ranges), 1, i) for i in indices]
        self.found.append(Fact(span, "values", "", f"`{name}[{', '.join(parts)}]`"))

    def _index(self, index: Expr, ranges: Ranges) -> None:
        """The value of an index that is computed where it is used."""
        low, high = interval(index, ranges)
        span = index.span
        if not isinstance(index, Binary) or low is None or high is None or not self._is_here(span):
            return
        assert span is not None
        label = f" = {low}" if low == high else f" {low}…{high}"
        self.found.append(Fact(span, "values", label, f"`{expr_text(index)}` is{label}"))

    def _text(self, span: Span) -> str:
        rows = self.lines[span.line - 1 : span.end_line]
        if not rows:
            return ""
        if len(rows) == 1:
            return rows[0][span.column - 1 : span.end_column - 1]
        inner = (row for row in rows[1:-1] if not row.lstrip().startswith("#"))
        return "\n".join((rows[0][span.column - 1 :], *inner, rows[-1][: span.end_column - 1]))


def _counted(axes: tuple[tuple[Var, Expr], ...]) -> Ranges:
    found: Ranges = {}
    for var, extent in axes:
        number = constant_value(extent)
        found[var] = (0, None if number is None else max(number - 1, 0))
    return found


def _loop_range(start: Expr, extent: Expr, step: Expr | None, ranges: Ranges) -> Interval:
    low, last = interval(start, ranges)
    count, by = constant_value(extent), 1 if step is None else constant_value(step)
    if low is None or by is None or by < 1:
        return (low, None)
    if last is None or count is None:
        return (low, None)
    return (low, last + max(count - 1, 0) * by)


def _range_text(low: int | None, high: int | None, extent: int, expr: Expr) -> str:
    if low is None or high is None:
        return expr_text(expr) if extent == 1 else f"{expr_text(expr)} : +{extent}"
    last = high + extent - 1
    return str(low) if low == last else f"{low}…{last}"


def _regions(stmt: Stmt) -> Iterator[Region]:
    if isinstance(stmt, TileOp):
        yield from (a for a in stmt.args if isinstance(a, Region))


def _is_written(extent: str, header: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(extent)}(?![\w.])", header) is not None
