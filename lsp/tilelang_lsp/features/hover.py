"""textDocument/hover: what a name is, what became of a call, what the language says of a name."""

from __future__ import annotations

from dataclasses import dataclass

from tilelang_diagnostics import Span
from tilelang_lsp.cursor import dotted_at
from tilelang_lsp.describe_budget import assumed_page, budget_page
from tilelang_lsp.features.base import Feature, Request
from tilelang_lsp.insights import keys_of
from tilelang_lsp.markdown import code, entry_markdown
from tilelang_lsp.model import Fact, Insight, Kernel, Symbol


@dataclass(frozen=True, slots=True)
class Hover:
    """Markdown about the text of `span`."""

    markdown: str
    span: Span


def hover(request: Request) -> Hover | None:
    """About the name at the position: a symbol of a kernel, a kernel, or a name of the language."""
    analysis = request.analysis
    dotted = dotted_at(request.text, request.line, request.column)
    if dotted is None:
        return None
    span = Span(analysis.path, request.line, dotted.column, request.line, dotted.end_column)
    entry = request.catalogue.find(analysis, dotted.name)
    if entry is not None:
        became = [f.detail for f in _around(request) if f.kind == "instructions"]
        return Hover("\n\n".join((*became, entry_markdown(entry, dotted.name))), span)
    for key, kernel in keys_of(analysis).items():
        if kernel.span.line == request.line and kernel.name == dotted.name:
            return Hover(_kernel(kernel, request.insights.of(key)), kernel.span)
    symbol = analysis.symbol_at(request.line, request.column)
    if symbol is not None and (symbol.detail or symbol.notes):
        here = symbol.at(request.line, request.column) or span
        told = [f.detail for f in request.insights.facts if f.span == symbol.span and f.detail]
        values = [f.detail for f in _around(request) if f.kind == "values"][:1]
        return Hover(_symbol(symbol, (*dict.fromkeys((*told, *values)),)), here)
    return None


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
    return "\n\n".join(lines)
