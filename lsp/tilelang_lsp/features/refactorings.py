"""Which rewrites fit the place? Offered without a finding: asynchronous copies, `T.clear`, padding,
and a macro out of the selected statements.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tilelang_diagnostics import Edit, Span
from tilelang_diagnostics.sources import split_lines
from tilelang_lint.padding import PAD, padding
from tilelang_lint.text_fixes import span_of
from tilelang_lsp.definitions import first_line
from tilelang_lsp.features.base import Request
from tilelang_lsp.features.code_actions import Action
from tilelang_lsp.features.functions import functions_around
from tilelang_lsp.features.more_fixes import tile_of, written_of
from tilelang_lsp.features.wanted_buffers import scope_of
from tilelang_lsp.model import MODULE
from tilelang_lsp.recovery import recover

REWRITE, EXTRACT = "refactor.rewrite", "refactor.extract"


def refactorings(request: Request) -> Iterator[Action]:
    """All that fit, most specific first."""
    place = _place(request)
    if place is not None:
        yield from _asynchronous(place)
        yield from _pipelined(place)
        yield from _cleared(place)
    yield from _padded(request)
    yield from _macro(request)


@dataclass(frozen=True, slots=True)
class _Place:
    """The innermost statement on a line, and the loops around it; `alias` is the language."""

    request: Request
    lines: tuple[str, ...]
    statement: ast.stmt
    loops: tuple[ast.For, ...]
    alias: str

    def called(self, node: ast.expr | None) -> str:
        """The function of the language that is called; empty for anything else."""
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=root), attr=name)):
                return name if root in self.request.analysis.aliases else ""
            case _:
                return ""

    def replaced(self, node: ast.expr, text: str) -> Edit:
        """An expression written otherwise."""
        return Edit(span_of(node, self.lines, self.request.analysis.path), text)

    def below(self, text: str) -> Edit:
        """A line more below the statement."""
        last = self.statement.end_lineno or self.statement.lineno
        first = self.lines[self.statement.lineno - 1]
        lead = first[: len(first) - len(first.lstrip())]
        end = len(self.lines[last - 1]) + 1
        return Edit(Span(self.request.analysis.path, last, end, last, end), f"\n{lead}{text}")


def _place(request: Request) -> _Place | None:
    readable = recover(request.text)
    if readable is None or request.line in readable.broken:
        return None
    found: list[ast.stmt] = [
        n for n in ast.walk(readable.tree)
        if isinstance(n, ast.stmt) and n.lineno <= request.line <= _last_of(n)
    ]  # fmt: skip
    if not found:
        return None
    statement = max(found, key=lambda n: (n.lineno, n.col_offset))
    loops = tuple(
        n
        for n in ast.walk(readable.tree)
        if isinstance(n, ast.For) and n.lineno < statement.lineno <= (n.end_lineno or 0)
    )
    alias = min(request.analysis.aliases, key=len, default="T")
    return _Place(request, split_lines(request.text), statement, loops, alias)


def _last_of(node: ast.stmt) -> int:
    """The last line of a statement, of one that holds others the last of its header."""
    body: list[ast.stmt] = getattr(node, "body", [])
    return max(node.lineno, first_line(body[0]) - 1) if body else node.end_lineno or node.lineno


def _asynchronous(place: _Place) -> Iterator[Action]:
    """`T.copy` from a tensor into a shared tile, as one that does not wait, and the wait. Copies
    of a pipeline wait for themselves."""
    match place.statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute() as func, args=[source, into],
                                     keywords=[]) as call) if (
            place.called(call) == "copy"
        ):  # fmt: skip
            scopes = [_scope(place.request, node) for node in (source, into)]
            if scopes != ["global", "shared"] or any(
                place.called(loop.iter) == "Pipelined" for loop in place.loops
            ):
                return
            root = ast.unparse(func.value)
            edits = (
                place.replaced(func, f"{root}.async_copy"),
                place.below(f"{root}.ptx_wait_group(0)"),
            )
            title = "make this copy asynchronous, and wait for it here"
            yield Action(title, edits, False, None, REWRITE)
        case _:
            pass


def _pipelined(place: _Place) -> Iterator[Action]:
    """`T.serial` around copies as a pipeline."""
    match place.statement:
        case ast.For(iter=ast.Call(func=func, args=[*args], keywords=[]) as call, body=body) if (
            place.called(call) == "serial" or ast.unparse(func) == "range"
        ) and 0 < len(args) <= 2 and any(
            place.called(n) == "copy" for s in body for n in ast.walk(s) if isinstance(n, ast.Call)
        ):  # fmt: skip
            end = span_of(args[-1], place.lines, place.request.analysis.path)
            after = Span(end.file, end.end_line, end.end_column, end.end_line, end.end_column)
            edits = (
                place.replaced(func, f"{place.alias}.Pipelined"), Edit(after, ", num_stages=2"),
            )  # fmt: skip
            title = "copy ahead: make this loop a pipeline of 2 stages"
            yield Action(title, edits, False, None, REWRITE)
        case _:
            pass


def _cleared(place: _Place) -> Iterator[Action]:
    """`T.clear` right after the allocation of a fragment that sums are made in."""
    match place.statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if (
            place.called(value) == "alloc_fragment"
        ):
            alias = place.alias
            if not re.search(rf"\b{alias}\.(clear|fill)\(\s*{name}\b", place.request.text):
                edit = place.below(f"{alias}.clear({name})")
                yield Action(f"add {alias}.clear({name})", (edit,), False, None, REWRITE)
        case _:
            pass


def _padded(request: Request) -> Iterator[Action]:
    """The rows of a shared tile further apart where its banks collide."""
    for symbol in request.analysis.symbols:
        if symbol.span.line != request.line or symbol.span.file != request.analysis.path:
            continue
        collides = any(
            f.kind == "layouts" and f.span == symbol.span and "-way conflicts" in f.label
            for f in request.insights.facts
        )
        written = written_of(request) if collides else None
        edit = None if written is None else padding(written, tile_of(symbol))
        if edit is not None:
            yield Action(PAD, (edit,), False, None, REWRITE)


def _macro(request: Request) -> Iterator[Action]:
    """The selected whole statements as a macro above the definition."""
    if request.end_line < request.line or (request.line, request.column) == (
        request.end_line, request.end_column
    ):  # fmt: skip
        return
    readable = recover(request.text)
    alias = min(request.analysis.aliases, key=len, default=None)
    if readable is None or readable.broken or alias is None:
        return
    found = _selected(readable.tree, request)
    if found is None:
        return
    top, statements = found
    lines = split_lines(request.text)
    first, last = statements[0].lineno, statements[-1].end_lineno or statements[-1].lineno
    indent = lines[first - 1][: len(lines[first - 1]) - len(lines[first - 1].lstrip())]
    used = _names_from_outside(statements, request, first, last)
    if used is None:
        return
    body = "\n".join(
        f"    {line[len(indent) :]}" if line.strip() else "" for line in lines[first - 1 : last]
    )
    head = first_line(top)
    name = _free_name("extracted", request.text)
    macro = f"@{alias}.macro\ndef {name}({', '.join(used)}):\n{body}\n\n\n"
    where = Span(request.analysis.path, head, 1, head, 1)
    old = Span(request.analysis.path, first, 1, last, len(lines[last - 1]) + 1)
    edits = (Edit(where, macro), Edit(old, f"{indent}{name}({', '.join(used)})"))
    yield Action("extract a macro", edits, False, None, EXTRACT)


def _free_name(wanted: str, text: str) -> str:
    """`wanted`, or with the first number behind it that makes it a name the text does not have."""
    taken = set(re.findall(r"\w+", text))
    names = (wanted, *(f"{wanted}_{n}" for n in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


def _selected(tree: ast.Module, request: Request) -> tuple[ast.stmt, list[ast.stmt]] | None:
    """Statements of one block that the selection covers line by line, and what is around at top."""
    for top in tree.body:
        for node in ast.walk(top):
            for name in ("body", "orelse"):
                block = getattr(node, name, None)
                if not isinstance(block, list):
                    continue
                inside = [
                    s for s in block if isinstance(s, ast.stmt)
                    and request.line <= s.lineno and (s.end_lineno or 0) <= request.end_line
                ]  # fmt: skip
                if inside and _is_plain(inside):
                    return top, inside
    return None


def _is_plain(statements: list[ast.stmt]) -> bool:
    refused = (ast.Return, ast.Break, ast.Continue, ast.FunctionDef, ast.With)
    return not any(isinstance(n, refused) for s in statements for n in ast.walk(s))


def _names_from_outside(
    statements: list[ast.stmt], request: Request, first: int, last: int
) -> list[str] | None:
    """What the statements use of the function around; None if they bind what is used below."""
    found: dict[str, None] = {}
    for symbol in request.analysis.symbols:
        inside = [u for u in symbol.uses if first <= u.line <= last]
        if first <= symbol.span.line <= last:
            if any(u.line > last for u in symbol.uses):
                return None
        elif inside and symbol.function != MODULE and symbol.kind != "function":
            found[symbol.name] = None
    return list(found)


def _scope(request: Request, node: ast.expr) -> str:
    """The memory of a tile, or of one that elements are taken of; empty for anything else."""
    root = node.value if isinstance(node, ast.Subscript) else node
    if not isinstance(root, ast.Name):
        return ""
    around = functions_around(request)
    named = [s for s in request.analysis.symbols if s.name == root.id and s.function in around]
    return scope_of(named[-1]) if named else ""
