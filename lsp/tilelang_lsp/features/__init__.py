"""Which requests does the server answer? One line each."""

from __future__ import annotations

from tilelang_lsp.features import (
    call_hierarchy,
    code_actions,
    code_lenses,
    completion,
    document_links,
    document_symbols,
    folding,
    hover,
    inlay_hints,
    navigation,
    rename,
    selection_ranges,
    semantic_tokens,
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
    rename.PREPARE,
    rename.RENAME,
    document_symbols.FEATURE,
    code_actions.FEATURE,
    code_lenses.FEATURE,
    semantic_tokens.FEATURE,
    semantic_tokens.OF_LINES,
    folding.FEATURE,
    selection_ranges.FEATURE,
    document_links.FEATURE,
    call_hierarchy.PREPARE,
)

__all__ = ["FEATURES", "Feature", "Request"]
