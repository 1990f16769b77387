"""Which statements can go with a tile that nothing reads? Its allocation, and those that write it.

scratch = T.alloc_shared((128,), "float32")      goes
T.clear(scratch)                                 goes
for i in T.Parallel(128):                        goes: nothing is left in it
    scratch[i] = A[i]                            goes
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tilelang_diagnostics import Edit, Span
from tilelang_lint.functions import function_around

_WRITERS = {"clear": 0, "fill": 0, "copy": 1}  # which argument is written
_BLOCKS = ("body", "orelse", "finalbody")


def without_tile(
    tree: ast.Module, lines: Sequence[str], allocation: ast.stmt, name: str, path: str
) -> tuple[Edit, ...]:
    """The edits that take a tile and all that writes it out of a text; none where more happens."""
    around = function_around(tree, allocation.lineno) or tree
    mentions = [s for s in _simple(around) if s is not allocation and _mentions(s, name)]
    if not isinstance(allocation, ast.Assign) or len(allocation.targets) > 1:
        return ()
    if not all(_only_writes(s, name) for s in mentions) or _in_headers(around, name):
        return ()
    gone = _emptied(around, {allocation, *mentions})
    edits = [_line_edit(lines, s, path, _pass(around, s, gone)) for s in gone]
    found = tuple(e for e in edits if e is not None)
    return found if len(found) == len(edits) else ()


def _simple(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements that hold no others."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.stmt) and not hasattr(inner, "body"):
            yield inner


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node))


def _in_headers(node: ast.AST, name: str) -> bool:
    """Whether a loop, condition or `with` says a name before its block."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.stmt) and hasattr(inner, "body") and inner is not node:
            head = [v for field, v in ast.iter_fields(inner) if field not in _BLOCKS]
            parts = [n for v in head for n in (v if isinstance(v, list) else [v])]
            if any(isinstance(p, ast.AST) and _mentions(p, name) for p in parts):
                return True
    return False


def _only_writes(statement: ast.stmt, name: str) -> bool:
    """Whether all that a statement does is to give a tile new contents."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=attr), args=args, keywords=keywords)):
            place = _WRITERS.get(attr)
            if place is None or place >= len(args) or not _is_tile(args[place], name):
                return False
            others = [*args[:place], *args[place + 1 :], *(k.value for k in keywords)]
            return not any(_mentions(o, name) or _acts(o) for o in others)
        case ast.Assign(targets=[ast.Subscript() as target], value=value):
            return _is_tile(target, name) and not _mentions(value, name) and not _acts(value)
        case _:
            return False


def _is_tile(node: ast.expr, name: str) -> bool:
    """`name`, or elements of it by indices that have nothing to do with it."""
    match node:
        case ast.Name(id=found):
            return found == name
        case ast.Subscript(value=ast.Name(id=found), slice=index):
            return found == name and not _mentions(index, name) and not _acts(index)
        case _:
            return False


def _acts(node: ast.AST) -> bool:
    """Whether an expression may do more than compute."""
    calls = (n.func for n in ast.walk(node) if isinstance(n, ast.Call))
    names = (f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "") for f in calls)
    return any(n.startswith(("atomic", "call_", "rng_")) for n in names)


def _emptied(node: ast.AST, gone: set[ast.stmt]) -> list[ast.stmt]:
    """The statements to take out, and instead of all that a loop does, the loop."""
    loops = [n for n in ast.walk(node) if isinstance(n, ast.For) and not n.orelse]
    for loop in reversed(loops):  # inner ones come later
        if all(s in gone for s in loop.body):
            gone = {s for s in gone if s not in loop.body} | {loop}
    return sorted(gone, key=lambda s: s.lineno)


def _pass(node: ast.AST, statement: ast.stmt, gone: list[ast.stmt]) -> bool:
    """Whether a statement is the first of a block of which nothing is left."""
    blocks = [getattr(n, field, None) for n in ast.walk(node) for field in _BLOCKS]
    return any(
        isinstance(block, list) and block and block[0] is statement
        and all(s in gone for s in block)
        for block in blocks
    )  # fmt: skip


def _line_edit(
    lines: Sequence[str], statement: ast.stmt, path: str, leaves_pass: bool
) -> Edit | None:  # fmt: skip
    """The lines of a statement gone; None where it shares them."""
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    head = lines[first - 1][: _columns(lines[first - 1], statement.col_offset)]
    rest = lines[last - 1][_columns(lines[last - 1], statement.end_col_offset or 0) :].strip()
    if head.strip() or (rest and not rest.startswith("#")) or last >= len(lines):
        return None
    return Edit(Span(path, first, 1, last + 1, 1), f"{head}pass\n" if leaves_pass else "")


def _columns(line: str, offset: int) -> int:
    """Code points of an offset in UTF-8 bytes."""
    return len(line.encode()[:offset].decode(errors="ignore"))
