"""Versions, edits and analyses that arrive late; a stand-in analyses when it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.lsp.asking import in_launch
from tests.support.markers import kernel_text
from tilelang_diagnostics import Span
from tilelang_lsp import analysis
from tilelang_lsp.assembly import Reading
from tilelang_lsp.documents import Document, Documents
from tilelang_lsp.options import Options
from tilelang_lsp.worker import WorkerFailed, WorkerStopped

URI, PATH = "file:///kernel.py", "/kernel.py"
TEXT = kernel_text(in_launch("s = T.alloc_shared((4,), 'int8')\nT.copy(missing, C)"))
LINE = TEXT[: TEXT.index("s = ")].count("\n") + 1


class Analyser:
    """Analyses for real, but only once `go` is set; counts, and fails when told to."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.go = asyncio.Event()
        self.go.set()
        self.started = asyncio.Event()
        self.fails: WorkerFailed | None = None

    async def analyse(self, text: str, path: str, options: Options) -> Reading:
        self.texts.append(text)
        self.started.set()
        await self.go.wait()
        if self.fails is not None:
            raise self.fails
        return analysis.Analyser().analyse(text, path, options)


class Editor:
    """What an editor was told."""

    def __init__(self) -> None:
        self.analyser = Analyser()
        self.published: list[tuple[int, tuple[str, ...]]] = []
        self.refreshes = 0
        self.documents = Documents(self.analyser, self._publish, self._refresh)

    def _publish(self, document: Document) -> None:
        codes = tuple(d.code for d in document.shown)
        if (document.version, codes) not in self.published:
            self.published.append((document.version, codes))

    def _refresh(self) -> None:
        self.refreshes += 1

    def hint_lines(self) -> list[int]:
        return [hint.line for hint in self.documents.open_files[URI].hints]


def run(story: Callable[[Editor], Awaitable[None]]) -> Editor:
    async def main() -> Editor:
        editor = Editor()
        await asyncio.wait_for(story(editor), 30)
        return editor

    return asyncio.run(main())


async def opened(editor: Editor, text: str = TEXT) -> None:
    editor.documents.open(URI, PATH, 1, text)
    await told(editor)


async def told(editor: Editor) -> None:
    """Until all is said of the text as it is now."""
    document = await editor.documents.current(URI)
    assert document is not None
    await document.looked.wait()


def test_opening_publishes_findings_and_hints() -> None:
    editor = run(opened)
    assert editor.published == [(1, ("TL110",))]
    assert editor.hint_lines() == [LINE]
    assert editor.refreshes == 1


def test_hints_move_at_once_with_an_edit() -> None:
    async def story(editor: Editor) -> None:
        await opened(editor)
        editor.analyser.go.clear()
        editor.documents.change(URI, 2, "\n" + TEXT)
        assert editor.hint_lines() == [LINE + 1]

    run(story)


def test_an_analysis_of_an_older_text_gives_hints_but_publishes_nothing() -> None:
    async def story(editor: Editor) -> None:
        await opened(editor)
        editor.analyser.go.clear()
        editor.analyser.started.clear()
        longer = TEXT.replace("T.copy", "t = T.alloc_shared((8,), 'int8')\n        T.copy")
        editor.documents.change(URI, 2, longer)
        await editor.analyser.started.wait()
        editor.documents.change(URI, 3, "\n" + longer)
        editor.analyser.go.set()
        await told(editor)

    editor = run(story)
    assert [version for version, _ in editor.published] == [1, 3]
    assert editor.hint_lines() == [LINE + 1, LINE + 2]
    assert len(editor.analyser.texts) == 3


def test_who_waits_is_answered_before_findings_are_sent() -> None:
    order: list[str] = []

    async def asks(waiting: Awaitable[Document | None]) -> None:
        await waiting
        order.append("answered")

    async def story(editor: Editor) -> None:
        await opened(editor)
        editor.documents.publish = lambda document: order.append("published")
        editor.documents.change(URI, 2, TEXT + "#")
        waiting = (editor.documents.within(URI, 30), editor.documents.current(URI))
        await asyncio.gather(*map(asks, waiting))
        await told(editor)

    run(story)
    assert order == ["answered", "answered", "published"]


def test_an_edit_while_answers_go_out_is_analysed_before_anything_is_published() -> None:
    async def story(editor: Editor) -> None:
        await opened(editor)
        editor.documents.change(URI, 2, TEXT + "#")
        await editor.documents.current(URI)
        editor.documents.change(URI, 3, TEXT + "##")
        await told(editor)

    editor = run(story)
    assert [version for version, _ in editor.published] == [1, 3]
    assert editor.analyser.texts[1:] == [TEXT + "#", TEXT + "##"]


def test_keystrokes_in_a_row_are_analysed_once() -> None:
    async def story(editor: Editor) -> None:
        await opened(editor)
        for version in range(2, 12):
            editor.documents.change(URI, version, TEXT + "#" * version)
        await told(editor)

    editor = run(story)
    assert editor.analyser.texts == [TEXT, TEXT + "#" * 11]


def test_an_unreadable_text_keeps_hints_and_findings() -> None:
    async def story(editor: Editor) -> None:
        await opened(editor)
        editor.documents.change(URI, 2, "\n" + TEXT.replace("import tilelang\n", "import (\n"))
        await told(editor)

    editor = run(story)
    assert editor.published[-1] == (2, ("TL101", "TL110"))
    assert editor.hint_lines() == [LINE + 1]


def test_nothing_is_refreshed_when_hints_moved_as_foreseen() -> None:
    async def story(editor: Editor) -> None:
        await opened(editor)
        editor.documents.change(URI, 2, "\n" + TEXT)
        await told(editor)

    assert run(story).refreshes == 1


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (WorkerFailed("killed", 20.0), "this file took longer than 20 s to analyse"),
        (WorkerFailed("ended"), "the process that analyses this file ended without an answer"),
    ],
)
def test_a_text_that_is_not_analysed_says_so_until_one_is(
    error: WorkerFailed, message: str
) -> None:
    async def story(editor: Editor) -> None:
        await opened(editor)
        editor.analyser.fails = error
        for version in (2, 3):
            editor.documents.change(URI, version, TEXT + "#" * version)
            await told(editor)
            assert editor.hint_lines() == [LINE]
        said = editor.documents.open_files[URI].shown[0]
        assert (said.message, said.span) == (message, Span(PATH, 1, 1, 1, 1))
        editor.analyser.fails = None
        broken = TEXT.replace("import tilelang\n", "import (\n")
        for version, text in ((4, f"{broken}###"), (5, TEXT)):
            editor.documents.change(URI, version, text)
            await told(editor)

    assert run(story).published == [
        (1, ("TL110",)), (2, ("TL819", "TL110")), (3, ("TL819", "TL110")), (4, ("TL101", "TL110")),
        (5, ("TL110",)),
    ]  # fmt: skip


def test_a_text_that_is_no_kernels_file_never_says_so() -> None:
    async def story(editor: Editor) -> None:
        editor.analyser.fails = WorkerFailed("killed", 20.0)
        await opened(editor, "print(1)\n")

    assert run(story).published == []


def test_a_server_that_shuts_down_says_nothing_more() -> None:
    async def story(editor: Editor) -> None:
        editor.analyser.fails = WorkerStopped()
        await opened(editor)

    assert run(story).published == []


def test_a_closed_document_is_forgotten() -> None:
    async def story(editor: Editor) -> None:
        await opened(editor)
        editor.documents.close(URI)
        editor.documents.change(URI, 2, TEXT)
        assert await editor.documents.current(URI) is None

    assert len(run(story).published) == 1


def test_new_settings_read_everything_again() -> None:
    async def story(editor: Editor) -> None:
        await opened(editor)
        editor.documents.reanalyse()
        await told(editor)

    assert len(run(story).analyser.texts) == 2
