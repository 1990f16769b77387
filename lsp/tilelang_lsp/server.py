"""The language server: which message leads to what. No message waits for the compiler here.

Every request handler is a coroutine, so that a cancelled one ends; each has one `try`, because an
error in an answer is a popup in the editor. Whatever fails gives the empty answer and a log line.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from tilelang_diagnostics import Diagnostic, SourceMap
from tilelang_lsp import answers, convert
from tilelang_lsp.addresses import path_of, uri_of
from tilelang_lsp.assembly import Reading
from tilelang_lsp.client import Client
from tilelang_lsp.closed_files import ClosedFiles
from tilelang_lsp.documents import Document, Documents
from tilelang_lsp.features import FEATURES, Feature, Request, semantic_tokens
from tilelang_lsp.features.diagnostics import editor_diagnostic
from tilelang_lsp.features.rename import Renaming
from tilelang_lsp.linked import Linked
from tilelang_lsp.model import Catalogue
from tilelang_lsp.notebooks import Notebooks
from tilelang_lsp.options import Options, options_from
from tilelang_lsp.project import Projects
from tilelang_lsp.protocol import Protocol
from tilelang_lsp.runs import Runs
from tilelang_lsp.settings_check import client_problems, comment_findings, project_findings
from tilelang_lsp.token_changes import KeptTokens
from tilelang_lsp.worker import Worker, WorkerFailed, WorkerStopped

log = logging.getLogger(__name__)

# What a hint waits for the analysis of a keystroke, before the moved ones are given.
FRESH_SECONDS = 0.045
CHANGED = "the text changed while it was read"
NOTEBOOKS = lsp.NotebookDocumentSyncOptions(
    [
        lsp.NotebookDocumentFilterWithCells(
            cells=[lsp.NotebookCellLanguage("python")], notebook="jupyter-notebook"
        )
    ]
)


class TilelangServer(LanguageServer):
    """The server of one editor."""

    protocol: Protocol

    def __init__(self, worker: Worker, version: str, looker: Worker | None = None) -> None:
        super().__init__(
            "tilelang", version, text_document_sync_kind=lsp.TextDocumentSyncKind.Incremental,
            notebook_document_sync=NOTEBOOKS, protocol_cls=Protocol,
        )  # fmt: skip
        self.worker, self.looker = worker, looker
        self.documents = Documents(
            worker, self.publish, self.refresh_hints, looker, self.options_of, self.told
        )
        self.client: Mapping[str, Any] = {}
        self.trusted = True
        self.projects = Projects(self.project_read)
        self.linked = Linked(self.documents, self.folder_paths)
        self.closed_files = ClosedFiles(self)
        self.tokens = KeptTokens()
        self.runs = Runs()
        self.notebooks = Notebooks(self.documents)
        self.pulls = False
        self.editor = Client()
        self.tells = False
        self._wrong: set[str] = set()  # project files that something was wrong with
        self._pushed: dict[str, dict[str, list[lsp.Diagnostic]]] = {}  # of documents, by cell
        self._said: set[str] = set()  # what was said about the settings
        self._catalogue: Catalogue | None = None
        self._later: set[asyncio.Task[Any]] = set()

    async def answer(self, feature: Feature, params: Any) -> Any:
        """The LSP answer of one feature; the empty one if anything fails."""
        versions = {u: d.version for u, d in self.workspace.text_documents.items()}
        try:
            uri = params.text_document.uri
            document = await self._document(feature, self.notebooks.whole(uri))
            if document is None or not self.notebooks.has_text(uri):
                return answers.empty_answer(feature.method)
            converter = self.converter(document, uri)
            if converter.cells is not None and uri not in converter.cells.uris:
                # The cell was deleted meanwhile.
                raise JsonRpcException(CHANGED, lsp.LSPErrorCodes.ContentModified.value)
            request = await self._request(document, converter, params)
            if feature.settings:
                request = self._with_settings(request, document)
            if feature.apart:
                found = await asyncio.to_thread(feature.answer, request)
            else:
                found = feature.answer(request)
            if isinstance(found, Renaming) and found.refused:
                # Editors say why beside the name that was typed.
                raise JsonRpcException(found.refused, lsp.LSPErrorCodes.RequestFailed.value)
            answer = answers.answer(
                converter, feature.method, found, eager=not self.editor.resolves_hints
            )
            if isinstance(answer, lsp.WorkspaceEdit):
                if any(self.version_of(uri) != known for uri, known in versions.items()):
                    raise JsonRpcException(CHANGED, lsp.LSPErrorCodes.ContentModified.value)
            if feature is semantic_tokens.FEATURE:
                return self.tokens.keep(uri, answer)
            return self.editor.adapt(feature.method, answer, self.version_of)
        except (asyncio.CancelledError, JsonRpcException):
            raise
        except Exception:
            log.exception("%s failed", feature.method)
            return answers.empty_answer(feature.method)

    def version_of(self, uri: str) -> int | None:
        """The version of an open document; None for a file on the disk."""
        return self.workspace.get_text_document(uri).version

    async def _document(self, feature: Feature, uri: str) -> Document | None:
        match feature.waits:
            case "current":
                return await self.documents.current(uri)
            case "fresh":
                return await self.documents.within(uri, FRESH_SECONDS)
            case _:
                return self.documents.open_files.get(uri)

    async def _request(
        self, document: Document, converter: convert.Converter, params: Any
    ) -> Request:
        asked = convert.asked_range(params)
        line, column = converter.position(asked.start)
        end_line, end_column = converter.position(asked.end)
        places = getattr(params, "positions", None) or ()
        return Request(
            document.text, document.reading, await self.catalogue(), line, column, end_line,
            end_column, document.hints, convert.include_declaration(params), document.insights,
            new_name=getattr(params, "new_name", ""), uri=converter.uri,
            positions=tuple(converter.position(place) for place in places),
            workspace=self.linked.workspace, only=convert.kinds_asked_for(params),
        )  # fmt: skip

    def _with_settings(self, request: Request, document: Document) -> Request:
        said = comment_findings(document.text, document.path)
        return replace(
            request, options=self.options_of(document.path, document.text),
            findings=(*said, *document.shown), project=self.projects.text(document.path),
        )  # fmt: skip

    async def catalogue(self) -> Catalogue:
        """The names of the language, asked for once."""
        if self._catalogue is None:
            try:
                self._catalogue = await self.worker.catalogue()
            except WorkerStopped:
                return Catalogue()
            except WorkerFailed as error:
                log.error("the catalogue cannot be read: %s", error)
                return Catalogue()
        return self._catalogue

    def converter(self, document: Document, uri: str | None = None) -> convert.Converter:
        """Converts positions of `document` and of the files it points into."""
        opened = self.documents.open_files.values()
        sources = SourceMap({d.path: d.text for d in (*opened, document)})
        return convert.Converter(
            uri or document.uri, document.path, document.version, sources.lines,
            self.workspace.position_encoding or "utf-16", self.notebooks.cells(document.uri),
            {d.path: (d.uri, self.notebooks.cells(d.uri)) for d in opened},
        )  # fmt: skip

    def files_converter(self, uri: str = "") -> convert.Converter:
        """Converts positions of any file, open or not."""
        whole = self.notebooks.whole(uri)
        document = self.documents.open_files.get(whole)
        path = path_of(uri) if document is None else document.path
        known = document or Document(uri, path, 0, "", Reading(path, ""))
        converter = self.converter(known, uri)
        if document is None:  # its text is on the disk
            opened = {d.path: d.text for d in self.documents.open_files.values()}
            converter = replace(converter, lines_of=SourceMap(opened).lines)
        return converter

    def options_of(self, path: str, text: str) -> Options:
        """How a file is read and shown, as settings, the file and its project say now."""
        options = options_from(self.client, self.projects.table(path), text)
        return replace(options, imports=self.linked.imports(path, text))

    def diagnostics_of(self, document: Document) -> dict[str, list[lsp.Diagnostic]]:
        """The findings in a document, for each of its cells where it is a notebook.

        What comes later is pushed to an editor that would not ask again.
        """
        said = comment_findings(document.text, document.path)
        all_of_them = not self.pulls or self.asks_again
        shown = document.shown if all_of_them else document.findings
        return self._by_cell(document, (*said, *shown))

    def _by_cell(
        self, document: Document, diagnostics: Iterable[Diagnostic]
    ) -> dict[str, list[lsp.Diagnostic]]:
        converter = self.converter(document)
        cells = converter.cells
        found: dict[str, list[lsp.Diagnostic]] = {
            uri: [] for uri in ((document.uri,) if cells is None else cells.uris)
        }
        for d in diagnostics:
            shown = editor_diagnostic(d, document.path)
            one = self.editor.adapt_diagnostic(answers.diagnostic(converter, shown))
            found[converter.uri_of(shown.span)].append(one)
        return found

    def project_read(self, file: str, text: str) -> None:
        """A pyproject.toml was read: what is wrong in it is shown there."""
        try:
            self._show_project(file, text)
        except Exception:  # the files of the project are read all the same
            log.exception("%s cannot be checked", file)

    def _show_project(self, file: str, text: str) -> None:
        uri = uri_of(file)
        sources = SourceMap({file: text})
        encoding = self.workspace.position_encoding or "utf-16"
        converter = convert.Converter(uri, file, 0, sources.lines, encoding)
        found = [
            self.editor.adapt_diagnostic(answers.diagnostic(converter, editor_diagnostic(d, file)))
            for d in project_findings(text, file)
        ]
        if found or file in self._wrong:
            self._wrong.add(file)
            self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, found))

    def publish(self, document: Document) -> None:
        """Send the findings in a document, to an editor that does not ask for them.

        Of a notebook, those of the cells where they are other than before; and to one that asks,
        but not again, what came later, in the same way.
        """
        if self.asks_again:
            return
        before = self._pushed.get(document.uri, {})
        if self.pulls:
            now = self._by_cell(document, document.later)
        else:
            now = self.diagnostics_of(document)
        gone: dict[str, list[lsp.Diagnostic]] = {uri: [] for uri in before if uri not in now}
        for uri, found in (gone | now).items():
            whole = uri == document.uri and not self.pulls
            if whole or before.get(uri, []) != found:
                version = document.version if uri == document.uri else None
                self.text_document_publish_diagnostics(
                    lsp.PublishDiagnosticsParams(uri=uri, version=version, diagnostics=found)
                )
        self._pushed[document.uri] = now

    def take_away(self, uri: str) -> None:
        """A document was closed: nothing is shown of it any more."""
        self.tokens.forget(uri)
        shown = self._pushed.pop(uri, {})
        for one in shown if self.pulls else {uri: [], **shown}:
            self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(one, []))

    def report_server_error(self, error: Exception, source: Any) -> None:
        """What goes wrong in a notification is logged; pygls would open a message box."""
        log.error("%s: %s", getattr(source, "__name__", source), error, exc_info=error)

    def refresh_hints(self) -> None:
        """Tell the editor to ask for hints again."""
        workspace = self.client_capabilities.workspace
        if workspace and workspace.inlay_hint and workspace.inlay_hint.refresh_support:
            self.workspace_inlay_hint_refresh(None)

    @property
    def asks_again(self) -> bool:
        """Whether the editor asks for findings, and again when it is told that there are others."""
        return self.pulls and bool(self.editor.has("workspace.diagnostics.refresh_support"))

    def refresh_diagnostics(self) -> None:
        """Tell the editor to ask for findings again."""
        if self.asks_again:
            self.workspace_diagnostic_refresh(None)

    def told(self, document: Document, what: str) -> None:
        """A version was analysed, or looked into: what hangs on that is asked for again."""
        if what == "static" and len(self.documents.open_files) > 1:
            self.linked.edited()
        workspace = self.client_capabilities.workspace
        if what == "deep" and workspace is not None:
            if workspace.code_lens and workspace.code_lens.refresh_support:
                self.workspace_code_lens_refresh(None)
            self.refresh_diagnostics()
        if self.tells:
            said = {"uri": document.uri, "version": document.version, "what": what,
                    "analysed": document.analysed}  # fmt: skip
            self.protocol.notify("tilelang/status", said)

    def configure(self, settings: object) -> None:
        """Take the client's settings; what is malformed counts as not set."""
        for problem in client_problems(settings):
            if problem not in self._said:
                log.warning("%s", problem)
                self._said.add(problem)
                self.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Warning, problem))
        if isinstance(settings, Mapping):
            self.client = settings
            # Once taken, trust comes back with a new server: settings of the folder come here, too.
            self.trusted = self.trusted and settings.get("trusted", True) is True
            self.tells = self.tells or settings.get("status") is True

    def later(self, work: Any) -> None:
        """Run a coroutine beside; it is not waited for."""
        task = asyncio.get_running_loop().create_task(work)
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def end(self) -> None:
        """Nobody waits for anything any more: all that works on it ends."""
        self.closed_files.stop()
        self.linked.stop()
        for task in self._later:
            task.cancel()
        for uri in list(self.documents.open_files):
            self.documents.close(uri)
        await self.runs.stop()
        self.worker.stop()
        if self.looker is not None:
            self.looker.stop()

    def folder_paths(self) -> list[str]:
        """The folders that are open."""
        found = [f.uri for f in (self.workspace.folders or {}).values()]
        return [path_of(uri) for uri in (*found, self.workspace.root_uri) if uri]


def make_server(worker: Worker, version: str, looker: Worker | None = None) -> TilelangServer:
    """A server with every feature registered, not yet started."""
    from tilelang_lsp import commands, lifecycle, other_requests

    server = TilelangServer(worker, version, looker)
    for feature in FEATURES:
        _register(server, feature)
    other_requests.register(server)
    commands.register(server)
    lifecycle.register(server)
    return server


def _register(server: TilelangServer, feature: Feature) -> None:
    @server.feature(feature.method, answers.OPTIONS.get(feature.method))
    async def handle(params: Any) -> Any:
        return await server.answer(feature, params)
