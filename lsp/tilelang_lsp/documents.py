"""Which files are open, what do they say now, and what is known about them?

Every text has a version. An analysis belongs to the version it read; when it arrives, hints are
moved along the edits made since, and findings are published only if the text is still the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from tilelang_diagnostics import Diagnostic
from tilelang_lsp.edits import Change, change_between, move_diagnostics, move_hints
from tilelang_lsp.features.inlay_hints import hints
from tilelang_lsp.model import Analysis, Hint
from tilelang_lsp.worker import WorkerFailed

log = logging.getLogger(__name__)

DEBOUNCE_SECONDS = 0.015
# Somebody who never pauses still gets an analysis now and then.
LONGEST_WAIT_SECONDS = 0.25
SYNTAX_ERROR = "TL101"


class Analyser(Protocol):
    """What analyses texts: `worker.Worker`, or a stand-in in tests."""

    async def analyse(
        self, text: str, path: str, values: Mapping[str, Any], target: str | None
    ) -> Analysis:
        """The analysis of one text."""


@dataclass(slots=True, eq=False)
class Document:
    """One open file. `analysis` is the newest that could read its text.

    `hints` and `findings` are those of that analysis, moved to where `text` has them.
    `settled` is set while nothing is left to analyse.
    """

    uri: str
    path: str
    version: int
    text: str
    analysis: Analysis
    hints: tuple[Hint, ...] = ()
    findings: tuple[Diagnostic, ...] = ()
    dirty: bool = True
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    changes: list[Change] = field(default_factory=list)  # since the text being analysed


@dataclass(slots=True, eq=False)
class Documents:
    """All open files.

    `publish` is called with the findings in a current text, `refresh` when hints became other
    than what editors were told.
    """

    analyser: Analyser
    publish: Callable[[Document, tuple[Diagnostic, ...]], None]
    refresh: Callable[[], None]
    values: Mapping[str, Any] = field(default_factory=dict)
    target: str | None = None
    debounce: float = DEBOUNCE_SECONDS
    open_files: dict[str, Document] = field(default_factory=dict)

    def open(self, uri: str, path: str, version: int, text: str) -> Document:
        """A file was opened; its first analysis starts at once."""
        document = Document(uri, path, version, text, Analysis(path, text))
        self.open_files[uri] = document
        self._start(document, wait=False)
        return document

    def change(self, uri: str, version: int, text: str) -> None:
        """A file now says `text`."""
        document = self.open_files.get(uri)
        if document is None:
            return
        change = change_between(document.text, text)
        document.version, document.text = version, text
        if change is not None:
            document.hints = move_hints(document.hints, change)
            document.findings = move_diagnostics(document.findings, change)
            document.changes.append(change)
        self._start(document, wait=True)

    def close(self, uri: str) -> None:
        """A file was closed."""
        document = self.open_files.pop(uri, None)
        if document is not None and document.task is not None:
            document.task.cancel()

    def reanalyse(self) -> None:
        """Settings changed: everything open is read again."""
        for document in self.open_files.values():
            self._start(document, wait=False)

    async def current(self, uri: str) -> Document | None:
        """The document once its text as of now, or a later one, has been analysed."""
        document = self.open_files.get(uri)
        if document is not None:
            await document.settled.wait()
        return document

    def _start(self, document: Document, wait: bool) -> None:
        document.dirty = True
        document.settled.clear()
        if document.task is None or document.task.done():
            document.task = asyncio.get_running_loop().create_task(self._analyse(document, wait))

    async def _analyse(self, document: Document, wait: bool) -> None:
        """Analyse until the text that was analysed is the text there is."""
        while document.dirty:
            if wait:
                await self._pause(document)
            wait = True
            document.dirty = False
            document.changes.clear()
            try:
                analysis = await self.analyser.analyse(
                    document.text, document.path, self.values, self.target
                )
            except WorkerFailed as error:
                log.error("%s: %s", document.path, error)
            else:
                self._accept(document, analysis)
        document.settled.set()

    async def _pause(self, document: Document) -> None:
        """Wait for a moment without keystrokes."""
        waited = 0.0
        version = None
        while version != document.version and waited < LONGEST_WAIT_SECONDS:
            version = document.version
            await asyncio.sleep(self.debounce)
            waited += self.debounce

    def _accept(self, document: Document, analysis: Analysis) -> None:
        found = analysis.diagnostics
        if analysis.complete:
            moved = hints(analysis)
            for change in document.changes:
                moved = move_hints(moved, change)
                found = move_diagnostics(found, change)
            document.analysis, document.findings = analysis, found
            if moved != document.hints:
                document.hints = moved
                self.refresh()
        else:
            # What was found before still holds, wherever the text is still there.
            found = (*found, *(d for d in document.findings if d.code != SYNTAX_ERROR))
        if not document.dirty:
            self.publish(document, found)
