"""What is found in the files of the workspace that are not open?

They are read again when they, or what they are read with, say something else. An editor that does
not ask is sent what changed, once nothing has changed for a while; one that asks is told to.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp

from tilelang_diagnostics import Diagnostic, SourceMap
from tilelang_lsp import answers
from tilelang_lsp.addresses import path_of, uri_of
from tilelang_lsp.convert import Converter
from tilelang_lsp.features.diagnostics import editor_diagnostic
from tilelang_lsp.options import Options
from tilelang_lsp.settings_check import comment_findings
from tilelang_lsp.unanswered import not_analysed
from tilelang_lsp.worker import WorkerFailed, WorkerStopped

if TYPE_CHECKING:
    from tilelang_lsp.server import TilelangServer

log = logging.getLogger(__name__)
# How long nothing may have changed before the files are looked at again.
SETTLE_SECONDS = 1.0
_Found = list[lsp.Diagnostic]


class ClosedFiles:
    """The findings of files that are not open, if the editor wants those at all."""

    def __init__(self, server: TilelangServer) -> None:
        self._server = server
        self._known: dict[str, tuple[object, Options, _Found]] = {}
        self._shown: dict[str, _Found] = {}
        self._task: asyncio.Task[None] | None = None

    async def findings(self) -> dict[str, _Found]:
        """The findings of each file, by its address."""
        if self._server.client.get("diagnosticMode") != "workspace":
            return {}
        workspace = self._server.linked.workspace
        workspace.look_again()
        all_of_them = await asyncio.to_thread(lambda: list(workspace.with_language()))
        paths = [p for p in all_of_them if not workspace.is_open(p)]
        self._known = {p: self._known[p] for p in paths if p in self._known}
        found: dict[str, _Found] = {}
        for path in paths:
            text, version = workspace.text(path), workspace.version(path)
            if text is None:
                continue
            options = self._server.options_of(path, text)
            known = self._known.get(path)
            if known is None or known[:2] != (version, options):
                try:
                    known = (version, options, await self._read(path, text, options))
                except WorkerStopped:
                    raise
                except WorkerFailed as error:
                    log.warning("%s: %s", path, error)
                    known = (version, options, self._said(path, text, [not_analysed(path, error)]))
                    if error.after is None:  # another process may do it
                        found[uri_of(path)] = known[2]
                        continue
                self._known[path] = known
            found[uri_of(path)] = known[2]
        return found

    async def report(self, previous: list[lsp.PreviousResultId]) -> lsp.WorkspaceDiagnosticReport:
        """The findings for an editor that asks; of files that are gone, that there are none."""
        known = {p.uri: p.value for p in previous}
        found = await self.findings()
        workspace = self._server.linked.workspace
        gone: dict[str, _Found] = {
            uri: [] for uri in known
            if uri not in found and not workspace.is_open(path_of(uri))
        }  # fmt: skip
        reports: list[Any] = []
        for uri, said in (gone | found).items():
            result = result_of(said)
            if result == known.get(uri):
                reports.append(lsp.WorkspaceUnchangedDocumentDiagnosticReport(uri, result))
            else:
                full = lsp.WorkspaceFullDocumentDiagnosticReport(uri, said, result_id=result)
                reports.append(full)
        return lsp.WorkspaceDiagnosticReport(reports)

    def soon(self, wait: float = SETTLE_SECONDS) -> None:
        """Look at all of them once nothing has changed for a while; a look under way ends."""
        if self._server.pulls:
            self._server.refresh_diagnostics()
            return
        self.stop()
        self._task = asyncio.get_running_loop().create_task(self._publish(wait))

    def closed(self, uri: str) -> None:
        """A file was closed, and what is shown of it was taken away."""
        self._shown.pop(uri, None)
        if not self._server.pulls:
            self.soon()

    def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()

    async def _read(self, path: str, text: str, options: Options) -> _Found:
        reading = await self._server.worker.analyse(text, path, options)
        return self._said(path, text, [*comment_findings(text, path), *reading.head.diagnostics])

    def _said(self, path: str, text: str, found: list[Diagnostic]) -> _Found:
        sources = SourceMap({path: text})
        encoding = self._server.workspace.position_encoding or "utf-16"
        converter = Converter(uri_of(path), path, 0, sources.lines, encoding)
        return [
            self._server.editor.adapt_diagnostic(
                answers.diagnostic(converter, editor_diagnostic(d, path))
            )
            for d in found
        ]

    async def _publish(self, wait: float) -> None:
        await asyncio.sleep(wait)
        try:
            found = await self.findings()
        except WorkerStopped:
            return
        except Exception:
            log.exception("the workspace's diagnostics failed")
            return
        is_open = self._server.linked.workspace.is_open
        gone: dict[str, _Found] = {uri: [] for uri in self._shown if uri not in found}
        for uri, said in (gone | found).items():
            if not is_open(path_of(uri)) and self._shown.get(uri) != said:
                self._server.text_document_publish_diagnostics(
                    lsp.PublishDiagnosticsParams(uri, said)
                )
        self._shown = found


def result_of(found: _Found) -> str:
    """What changes whenever findings do."""
    return hashlib.blake2b(repr(found).encode(errors="replace"), digest_size=8).hexdigest()
