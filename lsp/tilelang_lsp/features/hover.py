"""textDocument/hover: what a name is, and what the language says about its own names."""

from __future__ import annotations

from dataclasses import dataclass

from tilelang_diagnostics import Span
from tilelang_lsp.cursor import dotted_at
from tilelang_lsp.features.base import Feature, Request
from tilelang_lsp.markdown import code, entry_markdown
from tilelang_lsp.model import Kernel, Symbol


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
        return Hover(entry_markdown(entry, dotted.name), span)
    for kernel in analysis.kernels:
        if kernel.span.line == request.line and kernel.name == dotted.name:
            return Hover(_kernel(kernel), kernel.span)
    symbol = analysis.symbol_at(request.line, request.column)
    if symbol is not None and (symbol.detail or symbol.notes):
        return Hover(_symbol(symbol), symbol.at(request.line, request.column) or span)
    return None


FEATURE = Feature("textDocument/hover", hover, "current")


def _symbol(symbol: Symbol) -> str:
    if symbol.detail.startswith("= "):
        first = f"{symbol.name} {symbol.detail}"
    else:
        first = f"{symbol.name}: {symbol.detail}" if symbol.detail else symbol.name
    return "\n\n".join((code(first), *symbol.notes))


def _kernel(kernel: Kernel) -> str:
    lines = [code(f"kernel {kernel.name}")]
    for launch in kernel.launches:
        lines.append(f"grid ({', '.join(launch.grid)}), threads ({', '.join(launch.threads)})")
    if kernel.values:
        values = ", ".join(f"`{name} = {value}`" for name, value in kernel.values)
        lines.append(f"assumed: {values}")
    return "\n\n".join(lines)
