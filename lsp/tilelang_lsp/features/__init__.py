"""Which requests does the server answer? One line each."""

from __future__ import annotations

from tilelang_lsp.features import (
    code_actions,
    completion,
    document_symbols,
    hover,
    inlay_hints,
    navigation,
    signature_help,
)
from tilelang_lsp.features.base import Feature, Request

FEATURES: tuple[Feature, ...] = (
    inlay_hints.FEATURE,
    hover.FEATURE,
    completion.FEATURE,
    signature_help.FEATURE,
    navigation.DEFINITION,
    navigation.REFERENCES,
    navigation.HIGHLIGHT,
    document_symbols.FEATURE,
    code_actions.FEATURE,
)

__all__ = ["FEATURES", "Feature", "Request"]
