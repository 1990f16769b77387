"""Which rewrites fit the place? Offered without a finding: asynchronous copies, `T.clear`, padding,
and a macro out of the selected statements.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tilelang_diagnostics import Edit, Span
from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.definitions import first_line
from tilelang_lsp.features.base import Request
from tilelang_lsp.features.code_actions import Action
from tilelang_lsp.model import Symbol
from tilelang_lsp.recovery import recover

REWRITE, EXTRACT = "refactor.rewrite", "refactor.extract"


def refactorings(request: Request) -> Iterator[Action]:
    """All that fit, most specific first."""
    line = _line(request, request.line)
    yield from _asynchronous(request, line)
    yield from _pipelined(request, line)
    yield from _cleared(request, line)
    yield from _padded(request)
    yield from _macro(request)


def _line(request: Request, number: int) -> str:
    lines = split_lines(request.text)
    return lines[number - 1] if number <= len(lines) else ""


def _span(request: Request, line: int, start: int, end: int) -> Span:
    return Span(request.analysis.path, line, start, line, end)


def _asynchronous(request: Request, line: str) -> Iterator[Action]:
    """`T.copy` from a tensor into a shared tile, as one that does not wait, and the wait."""
    match = re.match(r"(\s*)(\w+)\.copy\((.*)\)\s*(#.*)?$", line)
    if match is None or match[2] not in request.analysis.aliases:
        return
    arguments = _arguments(match[3])
    if len(arguments) != 2:
        return
    shared = _symbol(request, arguments[1].partition("[")[0].strip())
    source = _symbol(request, arguments[0].partition("[")[0].strip())
    if shared is None or source is None or not shared.detail.endswith("shared"):
        return
    if not source.detail.endswith("global"):
        return
    start = len(match[1]) + len(match[2]) + 2
    name = _span(request, request.line, start, start + len("copy"))
    after = _span(request, request.line, len(line) + 1, len(line) + 1)
    wait = f"\n{match[1]}{match[2]}.ptx_wait_group(0)"
    yield Action(
        "make this copy asynchronous, and wait for it here",
        (Edit(name, "async_copy"), Edit(after, wait)), False, None, REWRITE,
    )  # fmt: skip


def _pipelined(request: Request, line: str) -> Iterator[Action]:
    """`T.serial` around copies as a pipeline."""
    match = re.match(r"(\s*for\s+\w+\s+in\s+)(\w+\.serial|range)\((.*)\)\s*:", line)
    if match is None:
        return
    body = _below(request, request.line)
    alias = next((a for a in request.analysis.aliases if f"{a}.copy(" in body), None)
    if alias is None or len(_arguments(match[3])) > 2:
        return
    start = len(match[1]) + 1
    end = start + len(match[2]) + len(match[3]) + 2
    text = f"{alias}.Pipelined({match[3]}, num_stages=2)"
    edit = Edit(_span(request, request.line, start, end), text)
    yield Action("copy ahead: make this loop a pipeline of 2 stages", (edit,), False, None, REWRITE)


def _cleared(request: Request, line: str) -> Iterator[Action]:
    """`T.clear` right after the allocation of a fragment that sums are made in."""
    match = re.match(r"(\s*)(\w+)\s*=\s*(\w+)\.alloc_fragment\(", line)
    if match is None or match[3] not in request.analysis.aliases:
        return
    name, alias = match[2], match[3]
    if re.search(rf"\b{alias}\.(clear|fill)\(\s*{name}\b", request.text):
        return
    end = _span(request, request.line, len(line) + 1, len(line) + 1)
    text = f"\n{match[1]}{alias}.clear({name})"
    yield Action(f"add {alias}.clear({name})", (Edit(end, text),), False, None, REWRITE)


def _padded(request: Request) -> Iterator[Action]:
    """A row of a shared tile made longer where its banks collide."""
    found = [
        f for f in request.insights.facts
        if f.kind == "layouts" and f.span.line == request.line and "-way conflicts" in f.label
    ]  # fmt: skip
    line = _line(request, request.line)
    match = re.match(r"(.*\.alloc_shared\(\s*[(\[])(.*?)([)\]].*)$", line)
    if not found or match is None:
        return
    dims = _arguments(match[2])
    if not dims:
        return
    start = len(match[1]) + match[2].rindex(dims[-1].strip()) + 1
    end = start + len(dims[-1].strip())
    edit = Edit(_span(request, request.line, start, end), f"{dims[-1].strip()} + 8")
    yield Action("pad the rows to avoid bank conflicts", (edit,), False, None, REWRITE)


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
        elif inside and symbol.function != "<module>" and symbol.kind != "function":
            found[symbol.name] = None
    return list(found)


def _symbol(request: Request, name: str) -> Symbol | None:
    around = ("<module>", *request.analysis.functions_around(request.line))
    named = [s for s in request.analysis.symbols if s.name == name and s.function in around]
    return named[-1] if named else None


def _arguments(text: str) -> list[str]:
    """The arguments in the brackets of a call, split at its own commas."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [p.strip() for p in parts if p.strip()]


def _below(request: Request, line: int) -> str:
    """The lines further in than a header, up to the next that is not."""
    lines = split_lines(request.text)
    lead = len(lines[line - 1]) - len(lines[line - 1].lstrip())
    found = []
    for row in lines[line:]:
        if row.strip() and len(row) - len(row.lstrip()) <= lead:
            break
        found.append(row)
    return "\n".join(found)
