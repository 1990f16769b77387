"""Which fixes of a finding can be read off the text? Beside those that come with it.

TL185 `acc` is read before anything is written to it     add T.clear(acc)
TL232 `/` between two integers                           write `//`
TL234 index 0 of `A` is float32, not an integer          convert it with T.cast
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from tilelang_diagnostics import Applicability, Diagnostic, Edit, Fix, Span
from tilelang_lint.functions import function_around
from tilelang_lint.padding import PAD, padding
from tilelang_lint.unused_tiles import without_tile
from tilelang_lint.written import Written


def has_text_fixes(found: Diagnostic, path: str) -> bool:
    """Whether the text of a file may say how to mend a finding."""
    return found.code in _MAKERS and found.span is not None and found.span.file == path


def text_fixes(written: Written, found: Diagnostic) -> tuple[Fix, ...]:
    """The fixes for a finding in a file, the most likely first."""
    if not has_text_fixes(found, written.path):
        return ()
    assert found.span is not None
    place = _Place(written.lines, written.tree, found, found.span, written.alias, written)
    return tuple(_MAKERS[found.code](place))


@dataclass(frozen=True, slots=True)
class _Place:
    """A finding in its text."""

    lines: tuple[str, ...]
    tree: ast.Module
    found: Diagnostic
    span: Span
    alias: str
    written: Written

    def text(self, span: Span) -> str:
        """What stands at a span of one line."""
        return self.lines[span.line - 1][span.column - 1 : span.end_column - 1]

    def source(self, node: ast.expr) -> str | None:
        """The text of an expression."""
        return ast.get_source_segment("\n".join(self.lines), node)

    def named(self) -> str:
        """The first name that the message puts into backticks."""
        match = re.search(r"`(\w+)`", self.found.message)
        return match[1] if match else ""

    def statement(self, line: int) -> ast.stmt | None:
        """The innermost statement whose first line this is, or that holds it."""
        held = [
            s for s in ast.walk(self.tree)
            if isinstance(s, ast.stmt) and s.lineno <= line <= (s.end_lineno or s.lineno)
        ]  # fmt: skip
        return max(held, key=lambda s: (s.lineno, -(s.end_lineno or 0)), default=None)

    def binding(self, name: str) -> ast.Assign | None:
        """The last assignment to a name above the finding, alone on its lines."""
        found = [
            s for s in ast.walk(self.tree)
            if isinstance(s, ast.Assign) and s.lineno <= self.span.line
            and isinstance(s.targets[0], ast.Name) and s.targets[0].id == name
        ]  # fmt: skip
        return max(found, key=lambda s: s.lineno, default=None)

    def at(self, line: int, start: int, end: int) -> Span:
        """Columns of a line."""
        return Span(self.span.file, line, start, line, end)

    def below(self, line: int, like: int, *added: str) -> Edit:
        """New lines below a line, indented like another."""
        text = self.lines[like - 1]
        indent = text[: len(text) - len(text.lstrip())]
        end = len(self.lines[line - 1]) + 1
        return Edit(self.at(line, end, end), "".join(f"\n{indent}{row}" for row in added))

    def replaced(self, line: int, old: str, new: str) -> Edit | None:
        """The first `old` of a line written `new`."""
        match = re.search(old, self.lines[line - 1])
        return match and Edit(self.at(line, match.start() + 1, match.end() + 1), new)


def _fix(title: str, *edits: Edit | None) -> Iterator[Fix]:
    whole = tuple(e for e in edits if e is not None)
    if whole and len(whole) == len(edits):
        yield Fix(title, whole, Applicability.MAYBE)


def _removed(place: _Place) -> Iterator[Fix]:
    """The statement goes; a block that would be empty gets `pass`."""
    statement = place.statement(place.span.line)
    if statement is None or statement.lineno != place.span.line:
        return
    last = statement.end_lineno or statement.lineno
    alone = any(
        block == [statement]
        for node in ast.walk(place.tree) for block in (getattr(node, "body", None),
                                                       getattr(node, "orelse", None))
    )  # fmt: skip
    first = place.lines[statement.lineno - 1]
    indent = first[: len(first) - len(first.lstrip())]
    if ";" in first or first.strip() == "" or last >= len(place.lines):
        return
    span = Span(place.span.file, statement.lineno, 1, last + 1, 1)
    yield from _fix("remove this statement", Edit(span, f"{indent}pass\n" if alone else ""))


def _compared(place: _Place) -> Iterator[Fix]:
    """A comparison on a line of its own was meant as an assignment, or can go."""
    statement = place.statement(place.span.line)
    match statement:
        case ast.Expr(value=ast.Compare(left=ast.Subscript() | ast.Name(), ops=[ast.Eq()])):
            yield from _fix("write `=`", place.replaced(place.span.line, "==", "="))
        case _:
            pass
    yield from _removed(place)


def _unused(place: _Place) -> Iterator[Fix]:
    """A tile that is only written goes, with what writes it. Never on its own: who has written the
    allocation may be about to write the rest."""
    name = place.named()
    bound = place.binding(name)
    if bound is None:
        return
    edits = without_tile(place.tree, place.lines, bound, name, place.span.file)
    more = " and what writes it" if len(edits) > 1 else ""
    yield from _fix(f"remove `{name}`{more}", *edits)


def _cleared(place: _Place) -> Iterator[Fix]:
    name = place.named()
    bound = place.binding(name)
    if bound is not None:
        last = bound.end_lineno or bound.lineno
        call = f"{place.alias}.clear({name})"
        yield from _fix(f"add {call}", place.below(last, bound.lineno, call))


def _divided(place: _Place) -> Iterator[Fix]:
    for node in ast.walk(place.tree):
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)):
            continue
        left, right = place.source(node.left), place.source(node.right)
        whole = span_of(node, place.lines, place.span.file)
        if whole != place.span or left is None or right is None:
            continue
        yield from _fix("write `//`", _operator(place, node))
        call = f"{place.alias}.truncdiv({left}, {right})"
        yield from _fix(f"write {call}", Edit(whole, call))


def _operator(place: _Place, node: ast.BinOp) -> Edit | None:
    """The `/` between two operands, which may stand in brackets, doubled."""
    line = node.left.end_lineno or node.left.lineno
    if line != node.right.lineno:
        return None
    row = place.lines[line - 1]
    start = _column(place.lines, line, node.left.end_col_offset or 0)
    end = _column(place.lines, line, node.right.col_offset)
    found = row.find("/", start - 1, end - 1)
    return None if found < 0 else Edit(place.at(line, found + 1, found + 2), "//")


def span_of(node: ast.expr, lines: tuple[str, ...], file: str) -> Span:
    """Where an expression stands."""
    last = node.end_lineno or node.lineno
    return Span(
        file, node.lineno, _column(lines, node.lineno, node.col_offset),
        last, _column(lines, last, node.end_col_offset or 0),
    )  # fmt: skip


def _column(lines: tuple[str, ...], line: int, offset: int) -> int:
    """1-based code points of an offset in UTF-8 bytes."""
    return len(lines[line - 1].encode()[:offset].decode(errors="ignore")) + 1


def _cast(place: _Place) -> Iterator[Fix]:
    """The expression of the finding converted to the dtype that the help names."""
    if place.span.line != place.span.end_line:
        return
    dtype = re.search(r"T\.cast\(…, '(\w+)'\)", place.found.help or "")
    if dtype is not None:
        text = place.text(place.span)
        call = f'{place.alias}.cast({text}, "{dtype[1]}")'
        yield from _fix(f"write {call}", Edit(place.span, call))


def _fragment(place: _Place) -> Iterator[Fix]:
    bound = place.binding(place.named() or "")
    name = re.search(r"local buffer `(\w+)`", place.found.message)
    bound = place.binding(name[1]) if name is not None else bound
    if bound is not None:
        edit = place.replaced(bound.lineno, r"\balloc_local\b", "alloc_fragment")
        yield from _fix("allocate it with `T.alloc_fragment`", edit)


def _serial(place: _Place) -> Iterator[Fix]:
    """`T.Pipelined(n, num_stages=2)` as `T.serial(n)`."""
    for node in ast.walk(place.tree):
        match node:
            case ast.For(iter=ast.Call(func=ast.Attribute(attr="Pipelined")) as call) if (
                call.lineno == place.span.line
            ):
                texts = [place.source(a) for a in call.args]
                if texts and all(t is not None for t in texts):
                    new = f"{place.alias}.serial({', '.join(t for t in texts if t)})"
                    yield from _fix(
                        "make it `T.serial`", Edit(span_of(call, place.lines, place.span.file), new)
                    )
            case _:
                pass


def _waited(place: _Place) -> Iterator[Fix]:
    statement = place.statement(place.span.line)
    edit = place.replaced(place.span.line, r"\basync_copy\b", "copy")
    yield from _fix("write `T.copy`, which waits", edit)
    if statement is not None:
        rows = (f"{place.alias}.ptx_wait_group(0)", f"{place.alias}.sync_threads()")
        last = statement.end_lineno or statement.lineno
        yield from _fix("wait for it here", place.below(last, statement.lineno, *rows))


def _elementwise(place: _Place) -> Iterator[Fix]:
    edit = place.replaced(place.span.line, r"\.parallel\b", ".Parallel")
    yield from _fix("write `T.Parallel`", edit)


def _apart(place: _Place) -> Iterator[Fix]:
    around = function_around(place.tree, place.span.line)
    tiles = [
        t for t in place.written.tiles
        if t.name == place.named() and function_around(place.tree, t.line) is around
    ]  # fmt: skip
    yield from _fix(PAD, *(padding(place.written, tile) for tile in tiles[-1:]))


def _annotated(place: _Place) -> Iterator[Fix]:
    """`x: T.float16 = v` as `x = T.cast(v, T.float16)`."""
    match place.statement(place.span.line):
        case (
            ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value) as node
        ) if value is not None and node.lineno == node.end_lineno:
            dtype, text = place.source(annotation), place.source(value)
            span = place.at(node.lineno, node.col_offset + 1, len(place.lines[node.lineno - 1]) + 1)
            call = f"{name} = {place.alias}.cast({text}, {dtype})"
            yield from _fix(f"write `{call}`", Edit(span, call))
        case _:
            pass


_MAKERS: Final[dict[str, Callable[[_Place], Iterator[Fix]]]] = {
    "TL119": _elementwise, "TL146": _removed, "TL149": _compared,
    "TL155": _annotated, "TL306": _apart, "TL185": _cleared, "TL186": _unused,
    "TL232": _divided, "TL234": _cast, "TL244": _fragment,
    "TL507": _serial, "TL512": _waited,
}  # fmt: skip
