"""textDocument/documentSymbol: kernels with their buffers, and the other definitions."""

from __future__ import annotations

from tilelang_lsp.features.base import Feature, Request
from tilelang_lsp.model import Outline


def document_symbols(request: Request) -> tuple[Outline, ...]:
    """The outline of the file."""
    return request.analysis.outline


FEATURE = Feature("textDocument/documentSymbol", document_symbols, "current")
