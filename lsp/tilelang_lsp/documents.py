"""Which files are open, what do they say now, and what is known about them?

Every text has a version. An analysis belongs to the version it read; when it arrives, hints are
moved along the edits made since, and findings are published only if the text is still the same.
Kernels are looked into once the text rests; what that gives is moved and published the same way.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from tilelang_diagnostics import Diagnostic, Severity
from tilelang_lsp.assembly import Reading
from tilelang_lsp.edits import Change, change_between, move_diagnostics, move_hints
from tilelang_lsp.features.diagnostics import line_here
from tilelang_lsp.following import Imports
from tilelang_lsp.hinting import Hinting
from tilelang_lsp.insights import FileInsights, Insights, Key, digests, keys_of
from tilelang_lsp.model import Analysis, Hint, Insight
from tilelang_lsp.moves import Placed
from tilelang_lsp.options import Options
from tilelang_lsp.texts import readable
from tilelang_lsp.unanswered import not_analysed, of_an_analysis
from tilelang_lsp.worker import WorkerFailed, WorkerStopped
from tilelang_lsp.workspace import mentions_language

log = logging.getLogger(__name__)

# Before kernels are looked into: typing goes on meanwhile more often than not.
LOOK_AFTER_SECONDS = 0.1
# In as many turns of the loop a request that waited for an analysis is answered.
ANSWER_TURNS = 5
SYNTAX_ERROR = "TL101"


class Analyser(Protocol):
    """What analyses texts: `worker.Worker`, or a stand-in in tests."""

    async def analyse(self, text: str, path: str, options: Options) -> Reading:
        """The reading of one text."""


class Looker(Protocol):
    """What looks into kernels."""

    async def look(
        self, text: str, path: str, kernel: str, line: int, options: Options, lower: bool
    ) -> Insight:
        """The insight into one kernel."""

    def abandon(self) -> None:
        """The request under way is of no more use."""


@dataclass(slots=True, eq=False)
class Document:
    """One open file. `reading` is the newest that could read its text.

    `hints` and `findings` are those of that reading, moved to where `text` has them; `insights`
    is what is known beyond it. `settled` is set while nothing is left to analyse, `looked` while
    nothing is left to look into. `analysed` and `seen` are the versions both were done for.
    """

    uri: str
    path: str
    version: int
    text: str
    reading: Reading
    hints: tuple[Hint, ...] = ()
    hinting: Hinting = field(default_factory=Hinting)
    findings: tuple[Diagnostic, ...] = ()
    insights: FileInsights = field(default_factory=FileInsights)
    dirty: bool = True
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    looked: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    looking: asyncio.Task[None] | None = None
    changes: list[Change] = field(default_factory=list)  # since the text being analysed
    moved: list[Change] = field(default_factory=list)  # since the text of `reading`
    failed: set[str] = field(default_factory=set)  # digests not to try again
    digest: dict[Key, str] = field(default_factory=dict)  # of the kernels of `reading`
    run_digest: dict[Key, str] = field(default_factory=dict)  # the same, of what they do
    # What running a kernel found, with the digest that it holds for.
    ran: dict[Key, tuple[str, tuple[Diagnostic, ...]]] = field(default_factory=dict)
    analysed: int = -1
    seen: int = -1
    read_with: Imports = field(default_factory=Imports)  # in the newest analysis

    @property
    def analysis(self) -> Analysis:
        """Everything that the newest reading says."""
        return self.reading.analysis

    @property
    def shown(self) -> tuple[Diagnostic, ...]:
        """All findings, the cause alone where one follows from another.

        What lowering says of a kernel that has an error follows from that.
        """
        wrong = {line_here(d, self.path) for d in self.findings if d.severity is Severity.ERROR}
        ranges = [
            (top.whole.line, top.whole.end_line) for top in self.reading.head.outline
            if any(top.whole.line <= line <= top.whole.end_line for line in wrong)
        ]  # fmt: skip
        said = {(d.code, d.span) for d in self.findings}
        more = (
            d for d in self.insights.diagnostics
            if (d.code, d.span) not in said
            and not any(a <= line_here(d, self.path) <= b for a, b in ranges)
        )  # fmt: skip
        seen = {*said, *((d.code, d.span) for d in self.insights.diagnostics)}
        ran = (d for _, found in self.ran.values() for d in found if (d.code, d.span) not in seen)
        return (*self.findings, *dict.fromkeys(more), *ran)

    @property
    def later(self) -> tuple[Diagnostic, ...]:
        """Of those, what comes after the text was read: from looking into kernels and running."""
        return self.shown[len(self.findings) :]


def _no_options(path: str, text: str) -> Options:
    return Options()


@dataclass(slots=True, eq=False)
class Documents:
    """All open files.

    `publish` is called when the findings in a current text are known, `refresh` when hints became
    other than what editors were told, `told` when a version was analysed ("static") or looked into
    ("deep"). `options` says how a file is read.
    """

    analyser: Analyser
    publish: Callable[[Document], None]
    refresh: Callable[[], None]
    looker: Looker | None = None
    options: Callable[[str, str], Options] = _no_options
    told: Callable[[Document, str], None] = lambda document, what: None
    look_after: float = LOOK_AFTER_SECONDS
    open_files: dict[str, Document] = field(default_factory=dict)
    kept: Insights = field(default_factory=Insights)

    def open(self, uri: str, path: str, version: int, text: str) -> Document:
        """A file was opened; its first analysis starts at once."""
        self.close(uri)
        text = readable(text)
        document = Document(uri, path, version, text, Reading(path, text))
        self.open_files[uri] = document
        self._start(document)
        return document

    def change(self, uri: str, version: int, text: str) -> None:
        """A file now says `text`."""
        document = self.open_files.get(uri)
        if document is None:
            return
        text = readable(text)
        change = change_between(document.text, text)
        document.version, document.text = version, text
        if change is not None:
            change = replace(change, path=document.path)
            document.hints = move_hints(document.hints, change)
            document.findings = move_diagnostics(document.findings, change)
            document.insights.move(change)
            document.ran = {
                k: (digest, move_diagnostics(found, change))
                for k, (digest, found) in document.ran.items()
            }
            document.changes.append(change)
            document.moved.append(change)
        self._start(document)

    def close(self, uri: str) -> None:
        """A file was closed."""
        document = self.open_files.pop(uri, None)
        if document is not None:
            self._stop_looking(document)
            if document.task is not None:
                document.task.cancel()
            # Who still waits is answered with what there is.
            document.settled.set()
            document.looked.set()

    def read_again(self, document: Document) -> None:
        """What a file is read with changed."""
        self._start(document)

    def reanalyse(self) -> None:
        """Settings changed: everything open is read again."""
        for document in self.open_files.values():
            self._start(document)

    async def current(self, uri: str) -> Document | None:
        """The document once its text as of now, or a later one, has been analysed."""
        document = self.open_files.get(uri)
        if document is not None:
            await document.settled.wait()
        return document

    async def within(self, uri: str, seconds: float) -> Document | None:
        """The same, but after `seconds` with whatever there is."""
        document = self.open_files.get(uri)
        if document is not None and not document.settled.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(document.settled.wait(), seconds)
        return document

    def _start(self, document: Document) -> None:
        document.dirty = True
        document.settled.clear()
        document.looked.clear()
        self._stop_looking(document)
        if document.task is None or document.task.done():
            document.task = asyncio.get_running_loop().create_task(self._analyse(document))

    async def _analyse(self, document: Document) -> None:
        """Analyse until the text that was analysed is the text there is."""
        while document.dirty:
            document.dirty = False
            document.changes.clear()
            version, options = document.version, self.options(document.path, document.text)
            document.read_with = options.imports
            try:
                reading = await self.analyser.analyse(document.text, document.path, options)
            except WorkerStopped:
                document.settled.set()
                document.looked.set()
                return
            except WorkerFailed as error:
                log.error("%s: %s", document.path, error)
                has_news = self._miss(document, error)
            else:
                document.analysed, has_news = version, True
                self._accept(document, reading, options)
            if not document.dirty:
                await self._give_out(document, has_news)
        document.looking = asyncio.get_running_loop().create_task(self._look(document))

    async def _give_out(self, document: Document, has_news: bool) -> None:
        """Answers first, hints above all, which a typist waits for; then findings."""
        document.settled.set()
        for _ in range(ANSWER_TURNS):
            await asyncio.sleep(0)
        if has_news and not document.dirty:
            self.publish(document)

    def _miss(self, document: Document, error: WorkerFailed) -> bool:
        """A text was not analysed: that is said until the next one is, if the text is for us."""
        if document.dirty or not mentions_language(document.text):
            return False
        missed = not_analysed(document.path, error)
        document.findings = (missed, *of_an_analysis(document.findings))
        return True

    def _accept(self, document: Document, reading: Reading, options: Options) -> None:
        found = reading.head.diagnostics
        if reading.head.complete:
            document.digest = digest = digests(reading, options)
            document.run_digest = does = digests(reading, options, run=True)
            document.ran = {k: r for k, r in document.ran.items() if does.get(k) == r[0]}
            for change in document.changes:
                found = move_diagnostics(found, change)
            document.reading, document.findings = reading, found
            document.moved = list(document.changes)
            self._know(document, digest, options)
        else:
            # What was found before still holds, wherever the text is still there.
            before = of_an_analysis(d for d in document.findings if d.code != SYNTAX_ERROR)
            document.findings = (*found, *before)
        if not document.dirty:
            self.told(document, "static")

    def _know(self, document: Document, digest: dict[Key, str], options: Options) -> None:
        """Take what is kept about the kernels as the newest reading has them; hints follow.

        The insights of changed kernels have already moved to where the text is now.
        """
        reading = document.reading
        before = dict(document.insights.known.items())
        document.insights.update(reading, digest, self.kept)
        for key, known in document.insights.known.items():
            if before.get(key) is not known:  # its places are those of the reading
                for change in document.moved:
                    known.move(change)
        groups = document.insights.groups(reading.head.tops)
        if document.moved:
            # Facts of unchanged kernels, as the text that was read has them, are drawn with it.
            kept = (self.kept.get(d, reading.head.tops) for d in digest.values())
            groups = (Placed(k.what.facts, k.tops) for k in kept if k is not None)
        moved = document.hinting.hints(reading, groups, options.hints)
        for change in document.moved:
            moved = move_hints(moved, change)
        if moved != document.hints:
            document.hints = moved
            self.refresh()

    def _stop_looking(self, document: Document) -> None:
        if document.looking is not None and not document.looking.done():
            document.looking.cancel()
            if self.looker is not None:
                self.looker.abandon()

    async def _look(self, document: Document) -> None:
        """Look into what has changed, kernel by kernel."""
        digest = document.digest
        is_current = self.looker is not None and document.reading.text == document.text
        todo = document.insights.missing(digest) if is_current else []
        if todo:
            options = self.options(document.path, document.text)
            if self.look_after:
                await asyncio.sleep(self.look_after)
            for key in todo:
                if digest[key] not in document.failed and self._is_sound(document, key):
                    await self._look_into(document, key, digest, options)
            self.publish(document)
        document.seen = document.version
        document.looked.set()
        self.told(document, "deep")

    def _is_sound(self, document: Document, key: Key) -> bool:
        """Whether the definition that holds a kernel has no error."""
        lines = [line_here(d, document.path) for d in document.findings
                 if d.severity is Severity.ERROR]  # fmt: skip
        return not any(
            top.name == key[0] and any(top.whole.line <= n <= top.whole.end_line for n in lines)
            for top in document.reading.head.outline
        )

    async def _look_into(
        self, document: Document, key: Key, digest: dict[Key, str], options: Options
    ) -> None:
        reading = document.reading
        kernel = keys_of(reading.analysis.kernels)[key]
        assert self.looker is not None
        for lower in (True, False):
            try:
                found = await self.looker.look(
                    reading.text, document.path, kernel.name, kernel.span.line, options, lower
                )
            except WorkerStopped:
                document.looked.set()
                return
            except WorkerFailed as error:
                log.warning("%s: %s: %s", document.path, kernel.name, error)
                document.failed.add(digest[key])
                continue
            self.kept.put(digest[key], Placed(found, reading.head.tops))
            self._know(document, digest, options)
            return
