"""Which `/` made the float that stands where an integer should?

    half = N / 2              # 64.0
    C[half] = A[0]            # TL234: `64.0` is not an index of `C`

A value does not say where it is from. The text does: from the place of the finding through the
names in it to the lines that bind them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tilelang.language.source import SourceFile
from tilelang.program.expr import Expr
from tilelang_diagnostics.model import Applicability, Diagnostic, Edit, Fix, Label, Span

if TYPE_CHECKING:
    from tilelang.language.frame import Frame

# An index, an extent, a grid, the bound of a loop, an argument that counts something.
_CODES: Final = frozenset({"TL116", "TL117", "TL164", "TL165", "TL183", "TL215", "TL234"})
_FAR: Final = 8  # bindings from one name to the next
_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module


def explained(frame: Frame, found: Diagnostic) -> Diagnostic:
    """`found` with the division that it comes from, if it is about the float of one."""
    source = frame.source
    if found.code not in _CODES or found.span is None or found.span.file != source.path:
        return found
    if found.code == "TL183" and "'float' object" not in found.message:
        return found
    node = _node_at(source, found.span)
    division = None if node is None else _division(frame, node, _FAR)
    if division is None:
        return found
    span = source.span(division)
    label = Label(span, "`/` gives a float")
    operator = _operator(source, division)
    whole = not any(_is_float(frame, side) for side in (division.left, division.right))
    if operator is None or not whole:
        return replace(found, labels=(*found.labels, label))
    written = Edit(operator, "//")
    return replace(
        found,
        labels=(*found.labels, label),
        help=f"write `//`, which gives an integer: `{_with_floor(division)}`",
        fixes=(*found.fixes, Fix("write `//`", (written,), Applicability.MAYBE)),
    )


def _node_at(source: SourceFile, span: Span) -> ast.expr | None:
    """The expression that stands exactly there, or what a statement there assigns."""
    for node in ast.walk(source.tree):
        if not isinstance(node, (ast.expr, ast.Assign, ast.AnnAssign)):
            continue
        if node.lineno == span.line and source.span(node) == span:
            return node if isinstance(node, ast.expr) else node.value
    return None


def _division(frame: Frame, node: ast.expr, far: int) -> ast.BinOp | None:
    """The first `/` among what the value of `node` is computed from."""
    match node:
        case ast.BinOp(op=ast.Div()):
            inner = _first(frame, (node.left, node.right), far)
            return inner or node
        case ast.BinOp():
            return _first(frame, (node.left, node.right), far)
        case ast.UnaryOp():
            return _division(frame, node.operand, far)
        case ast.IfExp():
            return _first(frame, (node.body, node.orelse), far)
        case ast.Tuple() | ast.List():
            return _first(frame, tuple(node.elts), far)
        case ast.Subscript():
            return _division(frame, node.slice, far)
        case ast.Call():
            given = (*node.args, *(k.value for k in node.keywords))
            return None if _converts(node) else _first(frame, given, far)
        case ast.Name() if far and _is_float(frame, node):
            bound = _bound(frame, node)
            return None if bound is None else _division(frame, bound, far - 1)
    return None


def _first(frame: Frame, nodes: tuple[ast.expr, ...], far: int) -> ast.BinOp | None:
    return next((d for n in nodes if (d := _division(frame, n, far)) is not None), None)


def _converts(call: ast.Call) -> bool:
    return ast.unparse(call.func).rsplit(".", 1)[-1] in ("int", "cast", "round", "ceil", "floor")


def _is_float(frame: Frame, node: ast.expr) -> bool:
    """Whether a name or constant has a value with a fraction."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float)
    value: Any = frame.lookup(node.id, None) if isinstance(node, ast.Name) else None
    return isinstance(value, float) or (isinstance(value, Expr) and value.dtype.is_float)


def _bound(frame: Frame, name: ast.Name) -> ast.expr | None:
    """What the nearest line above binds a name to, in its function or one around that."""
    scopes = [s for s in ast.walk(frame.source.tree) if isinstance(s, _Scope) and _holds(s, name)]
    for scope in reversed(scopes):  # the walk goes from the outside in
        found = [value for target, value in _bindings(scope)
                 if target.id == name.id and target.lineno <= name.lineno]  # fmt: skip
        if found:
            return found[-1]
    return None


def _holds(scope: _Scope, node: ast.expr) -> bool:
    if isinstance(scope, ast.Module):
        return True
    return scope.lineno <= node.lineno <= (scope.end_lineno or scope.lineno)


def _bindings(scope: _Scope) -> Iterator[tuple[ast.Name, ast.expr]]:
    """Names and what is assigned to them, in the order of the text, inner functions left out."""
    pending: list[ast.AST] = list(reversed(scope.body))
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _pairs(target, node.value)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            yield from _pairs(node.target, node.value)
        pending.extend(reversed(list(ast.iter_child_nodes(node))))


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.Name, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target, value
    elif isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
        for one, given in zip(target.elts, value.elts, strict=False):
            yield from _pairs(one, given)


def _operator(source: SourceFile, division: ast.BinOp) -> Span | None:
    """The place of the `/` itself."""
    left, right = source.span(division.left), source.span(division.right)
    for line in range(left.end_line, right.line + 1):
        text = source.lines[line - 1]
        start = left.end_column - 1 if line == left.end_line else 0
        end = right.column - 1 if line == right.line else len(text)
        at = text[start:end].partition("#")[0].find("/")
        if at >= 0:
            return Span(source.path, line, start + at + 1, line, start + at + 2)
    return None


def _with_floor(division: ast.BinOp) -> str:
    return ast.unparse(ast.BinOp(division.left, ast.FloorDiv(), division.right))
