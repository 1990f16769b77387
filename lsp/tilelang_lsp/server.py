"""The language server: which message leads to what. No message waits for the compiler here.

Every request handler is a coroutine, so that a cancelled one ends; each has one `try`, because an
error in an answer is a popup in the editor. Whatever fails gives the empty answer and a log line.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from tilelang_diagnostics import Diagnostic, SourceMap
from tilelang_lsp import convert
from tilelang_lsp.documents import Document, Documents
from tilelang_lsp.features import FEATURES, Feature, Request
from tilelang_lsp.features.diagnostics import editor_diagnostic
from tilelang_lsp.model import Catalogue
from tilelang_lsp.worker import Worker, WorkerFailed

log = logging.getLogger(__name__)


class TilelangServer(LanguageServer):
    """The server of one editor."""

    def __init__(self, worker: Worker, version: str) -> None:
        super().__init__(
            "tilelang", version, text_document_sync_kind=lsp.TextDocumentSyncKind.Incremental
        )
        self.worker = worker
        self.documents = Documents(worker, self.publish, self.refresh_hints)
        self.hints_enabled = True
        self._catalogue: Catalogue | None = None

    async def answer(self, feature: Feature, params: Any) -> Any:
        """The LSP answer of one feature; the empty one if anything fails."""
        try:
            document = await self._document(feature, params.text_document.uri)
            if document is None:
                return convert.empty_answer(feature.method)
            converter = self.converter(document)
            request = await self._request(document, converter, params)
            return converter.answer(feature.method, feature.answer(request))
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("%s failed", feature.method)
            return convert.empty_answer(feature.method)

    async def _document(self, feature: Feature, uri: str) -> Document | None:
        if feature.method == lsp.TEXT_DOCUMENT_INLAY_HINT and not self.hints_enabled:
            return None
        if feature.waits == "current":
            return await self.documents.current(uri)
        return self.documents.open_files.get(uri)

    async def _request(
        self, document: Document, converter: convert.Converter, params: Any
    ) -> Request:
        asked = convert.asked_range(params)
        line, column = converter.position(asked.start)
        end_line, end_column = converter.position(asked.end)
        return Request(
            document.text, document.analysis, await self.catalogue(), line, column, end_line,
            end_column, document.hints, convert.include_declaration(params),
        )  # fmt: skip

    async def catalogue(self) -> Catalogue:
        """The names of the language, asked for once."""
        if self._catalogue is None:
            try:
                self._catalogue = await self.worker.catalogue()
            except WorkerFailed as error:
                log.error("the catalogue cannot be read: %s", error)
                return Catalogue()
        return self._catalogue

    def converter(self, document: Document) -> convert.Converter:
        """Converts positions of `document` and of the files it points into."""
        sources = SourceMap({document.path: document.text})
        return convert.Converter(
            document.uri, document.path, document.version, sources.lines,
            self.workspace.position_encoding or "utf-16",
        )  # fmt: skip

    def publish(self, document: Document, found: Sequence[Diagnostic]) -> None:
        """Send the findings in a document."""
        converter = self.converter(document)
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(
                uri=document.uri,
                version=document.version,
                diagnostics=[
                    converter.diagnostic(editor_diagnostic(d, document.path)) for d in found
                ],
            )
        )

    def refresh_hints(self) -> None:
        """Tell the editor to ask for hints again."""
        workspace = self.client_capabilities.workspace
        if workspace and workspace.inlay_hint and workspace.inlay_hint.refresh_support:
            self.workspace_inlay_hint_refresh(None)

    def configure(self, settings: object) -> None:
        """Take `{"values": {…}, "target": …, "inlayHints": {"enable": …}}` from the client."""
        if not isinstance(settings, Mapping):
            return
        values = settings.get("values")
        self.documents.values = dict(values) if isinstance(values, Mapping) else {}
        target = settings.get("target")
        self.documents.target = target if isinstance(target, str) and target else None
        hints = settings.get("inlayHints")
        self.hints_enabled = not (isinstance(hints, Mapping) and hints.get("enable") is False)


def make_server(worker: Worker, version: str) -> TilelangServer:
    """A server with every feature registered, not yet started."""
    server = TilelangServer(worker, version)
    for feature in FEATURES:
        _register(server, feature)
    _register_lifecycle(server)
    return server


def _register(server: TilelangServer, feature: Feature) -> None:
    @server.feature(feature.method, convert.OPTIONS.get(feature.method))
    async def handle(params: Any) -> Any:
        return await server.answer(feature, params)


def _register_lifecycle(server: TilelangServer) -> None:
    documents = server.documents

    @server.feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        server.configure(params.initialization_options)

    @server.feature(lsp.INITIALIZED)
    async def initialized(params: lsp.InitializedParams) -> None:
        await server.catalogue()

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: lsp.DidOpenTextDocumentParams) -> None:
        opened = params.text_document
        document = _text_document(server, opened.uri)
        documents.open(opened.uri, document.path or opened.uri, opened.version, opened.text)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: lsp.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        documents.change(uri, params.text_document.version, _text_document(server, uri).source)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: lsp.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        documents.close(uri)
        server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    @server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def did_change_configuration(params: lsp.DidChangeConfigurationParams) -> None:
        settings = params.settings
        server.configure(settings.get("tilelang") if isinstance(settings, Mapping) else None)
        documents.reanalyse()
        server.refresh_hints()

    @server.feature(lsp.SHUTDOWN)
    def shutdown(params: None) -> None:
        server.worker.stop()


def _text_document(server: TilelangServer, uri: str) -> TextDocument:
    return server.workspace.get_text_document(uri)
