"""textDocument/hover: what a name is, what became of a call, what the language says of a name."""

from __future__ import annotations

import ast
import os
import re
from dataclasses import dataclass, replace

from tilelang_diagnostics import Span
from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.crossing import ModuleFile
from tilelang_lsp.cursor import call_at, name_at
from tilelang_lsp.describe_budget import assumed_page, budget_page, stand_in_text
from tilelang_lsp.features.base import Feature, Request
from tilelang_lsp.features.functions import called, declared
from tilelang_lsp.features.navigation import crossing
from tilelang_lsp.insights import keys_of
from tilelang_lsp.markdown import code, doc_markdown, entry_markdown, parameter_doc
from tilelang_lsp.model import MODULES, Analysis, Fact, Insight, Kernel, Symbol
from tilelang_lsp.recovery import recover


@dataclass(frozen=True, slots=True)
class Hover:
    """Markdown about the text of `span`."""

    markdown: str
    span: Span


def hover(request: Request) -> Hover | None:
    """About the name at the position: a symbol of a kernel, a kernel, or a name of the language."""
    analysis = request.analysis
    dotted = name_at(request.text, request.line, request.column)
    if dotted is None:
        return None
    span = Span(analysis.path, request.line, dotted.column, request.line, dotted.end_column)
    entry = request.catalogue.find(analysis, dotted.name)
    if entry is not None:
        became = [f.detail for f in _around(request) if f.kind == "instructions"]
        return Hover("\n\n".join((*became, entry_markdown(entry, dotted.name))), span)
    for key, kernel in keys_of(analysis.kernels).items():
        if kernel.span.line == request.line and kernel.name == dotted.name:
            return Hover(_kernel(kernel, request.insights.of(key)), kernel.span)
    argument = _argument(request, dotted.name)
    if argument:
        return Hover(argument, span)
    symbol = _declared(analysis, analysis.symbol_at(request.line, request.column))
    if symbol is None or symbol.kind == "function" or symbol.detail in MODULES:
        said = _defined(request)
        return Hover(said, span) if said else None
    if symbol.detail or symbol.notes:
        here = symbol.at(request.line, request.column) or span
        facts = (*request.insights.facts, *analysis.facts)
        told = [f.detail for f in facts if f.span == symbol.span and f.detail]
        values = [f.detail for f in _around(request) if f.kind == "values"][:1]
        return Hover(_symbol(symbol, (*dict.fromkeys((*told, *values)),)), here)
    return None


def _argument(request: Request, name: str) -> str:
    """What the documentation says of the keyword `name` in a call around the position."""
    line = split_lines(request.text)[request.line - 1]
    if not re.match(r"\w*\s*=(?!=)", line[request.column - 1 :]):
        return ""
    call = call_at(request.text, request.line, request.column)
    entry = None if call is None else called(request, call.name)
    found = [p for p in (entry.parameters or () if entry else ()) if p.name == name and p.keyword]
    if not found or entry is None:
        return ""
    about = parameter_doc(entry.doc, name) or entry.summary
    return f"{code(f'{found[0].text}  # of {entry.name}')}\n\n{about}"


def _declared(analysis: Analysis, symbol: Symbol | None) -> Symbol | None:
    """A parameter of an eager kernel as its annotation in the body declares it."""
    if symbol is None or symbol.kind not in ("parameter", "dim") or symbol.detail.startswith("("):
        return symbol
    same = (
        s for s in analysis.symbols
        if s.name == symbol.name and s.function == symbol.function and s.detail.startswith("(")
    )  # fmt: skip
    found = next(same, None)
    return symbol if found is None else replace(found, uses=(symbol.span, *symbol.uses))


def _defined(request: Request) -> str:
    """What a function, class, constant or module says of itself, in whichever file it is."""
    across = crossing(request)
    found = across.at(request.line, request.column)
    end = None if found is None else found.end
    if end is None or (not request.workspace.exists(end.path) and end.path != across.path):
        return ""
    if isinstance(end, ModuleFile):
        name = os.path.basename(end.path).removesuffix(".py")
        readable = recover(across.text(end.path))
        doc = None if readable is None else ast.get_docstring(readable.tree)
        return _with_doc(f"module {name}", doc or "")
    said = declared(across, end)
    if said is None or (end.scope.kind != "module" and end.whole is None):
        return ""
    origin = "" if end.path == across.path else f"  # of {os.path.basename(end.path)}"
    return _with_doc(f"{said.header}{origin}", said.entry.doc)


def _with_doc(header: str, doc: str) -> str:
    return "\n\n".join((code(header), *([doc_markdown(doc)] if doc else [])))


FEATURE = Feature("textDocument/hover", hover, "current")


def _around(request: Request) -> list[Fact]:
    """The facts about what holds the position, the smallest span first."""
    place = (request.line, request.column)
    facts = (*request.insights.facts, *request.analysis.facts)
    found = [f for f in facts if f.detail and _holds(f.span, place)]
    return sorted(found, key=lambda f: (f.span.end_line - f.span.line, f.span.end_column))


def _holds(span: Span, place: tuple[int, int]) -> bool:
    return (span.line, span.column) <= place <= (span.end_line, span.end_column)


def _symbol(symbol: Symbol, told: tuple[str, ...] = ()) -> str:
    if symbol.detail.startswith("= "):
        first = f"{symbol.name} {symbol.detail}"
    else:
        first = f"{symbol.name}: {symbol.detail}" if symbol.detail else symbol.name
    return "\n\n".join((code(first), *symbol.notes, *told))


def _kernel(kernel: Kernel, insight: Insight | None) -> str:
    lines = [code(f"kernel {kernel.name}")]
    for launch in kernel.launches:
        lines.append(f"grid ({', '.join(launch.grid)}), threads ({', '.join(launch.threads)})")
    if kernel.values:
        values = ", ".join(f"`{name} = {value}`" for name, value in kernel.values)
        lines.append(f"assumed: {values}")
    if insight is not None:
        lines += [budget_page(budget) for budget in insight.budgets]
        if insight.assumed:
            lines.append(f"looked into with\n\n{assumed_page(insight)}")
        if insight.failure:
            lines.append(f"not lowered: {insight.failure}")
        if insight.nominal:
            lines.append(stand_in_text(insight))
    return "\n\n".join(lines)
