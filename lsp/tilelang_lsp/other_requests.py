"""Requests that are not about a place in one open document.

Resolving a hint, symbols of the workspace, the two questions of a call hierarchy, and diagnostics
for editors that ask for them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp

from tilelang_lsp import answers
from tilelang_lsp.closed_files import result_of
from tilelang_lsp.crossing import Crossing
from tilelang_lsp.features import call_hierarchy, semantic_tokens
from tilelang_lsp.token_changes import changes
from tilelang_lsp.worker import WorkerStopped

if TYPE_CHECKING:
    from tilelang_lsp.server import TilelangServer

log = logging.getLogger(__name__)
MOST_SYMBOLS = 500


def register(server: TilelangServer) -> None:
    """Those that every editor may ask."""

    @server.feature(lsp.INLAY_HINT_RESOLVE)
    async def resolve(hint: lsp.InlayHint) -> lsp.InlayHint:
        try:
            return _resolved(server, hint)
        except Exception:
            log.exception("resolving a hint failed")
            return hint

    @server.feature(lsp.COMPLETION_ITEM_RESOLVE)
    async def resolve_completion(item: lsp.CompletionItem) -> lsp.CompletionItem:
        try:
            data = item.data if isinstance(item.data, Mapping) else {}
            name = str(data.get("entry", ""))
            root, _, short = name.rpartition(".")
            catalogue = await server.catalogue()
            names = catalogue.package if root == "tilelang" else catalogue.entries
            entry = names.get(short)
            if entry is not None:
                item.documentation = answers.documentation(entry)
                server.editor.adapt_completion(item)
        except Exception:
            log.exception("resolving a proposal failed")
        return item

    @server.feature(lsp.WORKSPACE_SYMBOL)
    async def symbols(params: lsp.WorkspaceSymbolParams) -> list[lsp.WorkspaceSymbol]:
        try:
            workspace = server.linked.workspace
            workspace.look_again()
            found = await asyncio.to_thread(workspace.symbols, params.query)
            converter = server.files_converter()
            return [answers.workspace_symbol(converter, s) for s in found[:MOST_SYMBOLS]]
        except Exception:
            log.exception("workspace symbols failed")
            return []

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL_DELTA)
    async def changed_tokens(params: lsp.SemanticTokensDeltaParams) -> Any:
        # `answer` catches what goes wrong; only lists of numbers are compared here.
        before = server.tokens.known(params.text_document.uri, params.previous_result_id)
        now = await server.answer(semantic_tokens.FEATURE, params)
        return now if before is None else changes(before, now)

    @server.feature(lsp.CALL_HIERARCHY_INCOMING_CALLS)
    async def incoming(params: lsp.CallHierarchyIncomingCallsParams) -> Any:
        return await _calls(server, params.item, call_hierarchy.incoming)

    @server.feature(lsp.CALL_HIERARCHY_OUTGOING_CALLS)
    async def outgoing(params: lsp.CallHierarchyOutgoingCallsParams) -> Any:
        return await _calls(server, params.item, call_hierarchy.outgoing)


def _resolved(server: TilelangServer, hint: lsp.InlayHint) -> lsp.InlayHint:
    """A hint with its tooltip, if it is still where it was."""
    data = hint.data if isinstance(hint.data, Mapping) else {}
    uri = str(data.get("uri", ""))
    document = server.documents.open_files.get(server.notebooks.whole(uri))
    if document is None:
        return hint
    converter = server.converter(document, uri)
    for known in document.hints:
        place = converter.numbers(document.path, known.line, known.column)
        if known.kind == data.get("kind") and [*place] == data.get("place"):
            hint.tooltip = answers.tooltip(known)
            break
    return hint


async def _calls(server: TilelangServer, item: lsp.CallHierarchyItem, question: Any) -> Any:
    """The answer for a function of any file, open or not."""
    try:
        await server.documents.current(server.notebooks.whole(item.uri))
        converter = server.files_converter(item.uri)
        line, column = converter.position(item.selection_range.start)
        workspace = server.linked.workspace
        across = Crossing(workspace, converter.path, workspace.text(converter.path) or "")
        found = await asyncio.to_thread(question, across, line, column)
        return [answers.item(converter, c) for c in found]
    except Exception:
        log.exception("the call hierarchy failed")
        return []


def register_pull(server: TilelangServer) -> None:
    """Diagnostics for editors that ask for them."""
    options = lsp.DiagnosticOptions(
        inter_file_dependencies=True, workspace_diagnostics=True, identifier="tilelang"
    )

    @server.feature(lsp.TEXT_DOCUMENT_DIAGNOSTIC, options)
    async def diagnostic(params: lsp.DocumentDiagnosticParams) -> Any:
        try:
            uri = params.text_document.uri
            document = await server.documents.current(server.notebooks.whole(uri))
            found = [] if document is None else server.diagnostics_of(document).get(uri, [])
            return _report(found, params.previous_result_id)
        except Exception:
            log.exception("diagnostics failed")
            return lsp.RelatedFullDocumentDiagnosticReport([])

    @server.feature(lsp.WORKSPACE_DIAGNOSTIC)
    async def workspace(params: lsp.WorkspaceDiagnosticParams) -> lsp.WorkspaceDiagnosticReport:
        try:
            return await server.closed_files.report(list(params.previous_result_ids))
        except WorkerStopped:
            return lsp.WorkspaceDiagnosticReport([])
        except Exception:
            log.exception("the workspace's diagnostics failed")
            return lsp.WorkspaceDiagnosticReport([])


def _report(found: list[lsp.Diagnostic], previous: str | None) -> Any:
    result = result_of(found)
    if result == previous:
        return lsp.RelatedUnchangedDocumentDiagnosticReport(result)
    return lsp.RelatedFullDocumentDiagnosticReport(found, result_id=result)
