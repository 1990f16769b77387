"""How is a command run for a kernel: with progress, until it ends or is ended, and then shown?

The command runs in a process of its own (`clicked.py`). What it finds wrong becomes findings of the
document, which stay until its kernel is edited or run again; all else is said in one message.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shutil
import signal
import sys
import tempfile
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lsprotocol import types as lsp

from tilelang_diagnostics import Diagnostic, Severity
from tilelang_diagnostics.json_format import from_json
from tilelang_lsp.addresses import uri_of
from tilelang_lsp.clicked import Asked, Outcome
from tilelang_lsp.documents import Document
from tilelang_lsp.edits import change_between, move_diagnostics
from tilelang_lsp.insights import Key, keys_of

if TYPE_CHECKING:
    from tilelang_lsp.server import TilelangServer

log = logging.getLogger(__name__)
LONGEST_RUN_SECONDS = 300.0
LONGEST_STOP_SECONDS = 5.0
SLOW_SECONDS = 10.0  # after which a run on the emulator says how it would take less
LONGEST_LINE = 1 << 26  # bytes of an outcome
T = TypeVar("T")
_WORDS = {"compile": "compiled", "emulate": "ran on the emulator", "trace": "traced"}


@dataclass(slots=True)
class Runs:
    """The commands that are under way, and the folder of what they show."""

    running: dict[tuple[str, Key], asyncio.Task[Any]] = field(default_factory=dict)
    followed: set[asyncio.Task[Any]] = field(default_factory=set)
    processes: set[asyncio.subprocess.Process] = field(default_factory=set)
    _folder: str | None = None

    @property
    def folder(self) -> Path:
        """Where files to show are written; gone when the server ends."""
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="tilelang-lsp-")
        return Path(self._folder)

    async def follow(self, server: TilelangServer, work: Coroutine[Any, Any, T]) -> T | None:
        """The result of a command; None where it was ended.

        pygls cancels the answer to a request for a command, not what works on it.
        """
        task = asyncio.get_running_loop().create_task(work)
        self.followed.add(task)
        task.add_done_callback(self.followed.discard)
        requests = getattr(server.protocol, "_request_futures", {})
        request, loop = requests.get(server.protocol.msg_id), asyncio.get_running_loop()

        def answered(future: Any) -> None:
            if future.cancelled():
                loop.call_soon_threadsafe(task.cancel)

        if request is not None:
            request.add_done_callback(answered)
        try:
            return await task
        except asyncio.CancelledError:
            return None

    async def stop(self) -> None:
        """End what runs, and remove what was written."""
        for task in list(self.followed):
            task.cancel()
        if self.followed:
            await asyncio.wait(self.followed, timeout=LONGEST_STOP_SECONDS)
            for _ in range(10):  # until their requests are answered: pygls forgets those first
                await asyncio.sleep(0)
        self.kill()

    def kill(self) -> None:
        """The same without waiting for who follows them."""
        for process in list(self.processes):
            _kill(process)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


async def run(
    server: TilelangServer, document: Document, key: Key, asked: Asked, slow: str = ""
) -> dict[str, Any] | None:
    """Run a command, show what came of it, and return it; None where it took too long.

    `slow` is said of one that takes long.
    """
    place, running = (document.uri, key), server.runs.running
    if place in running:
        running[place].cancel()  # the newest click counts
    task = asyncio.current_task()
    assert task is not None
    running[place] = task
    text, digest = document.text, document.run_digest.get(key, "")
    try:
        outcome = await _watched(server, asked, slow)
    finally:
        if running.get(place) is task:
            del running[place]
    if outcome is None:
        return None
    found = tuple(map(from_json, outcome.diagnostics))
    _keep(server, document, key, _Found(text, digest, found))
    await _show(server, asked, outcome, found)
    return {
        "failed": outcome.failed, "diagnostics": list(outcome.diagnostics),
        "facts": list(outcome.facts), "shown": outcome.shown,
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Found:
    """Findings in a text."""

    text: str
    digest: str
    diagnostics: tuple[Diagnostic, ...]


def _keep(server: TilelangServer, document: Document, key: Key, found: _Found) -> None:
    """Make findings those of the document, unless its kernel was edited meanwhile."""
    document.ran.pop(key, None)
    kernel, current = keys_of(document.analysis.kernels).get(key), document.run_digest.get(key)
    if found.diagnostics and found.digest and current == found.digest:
        change = change_between(found.text, document.text)
        moved = found.diagnostics
        if change is not None:
            moved = move_diagnostics(moved, change)
        if kernel is not None:  # what has no place of its own is about the kernel
            moved = tuple(replace(d, span=d.span or kernel.span) for d in moved)
        document.ran[key] = (found.digest, moved)
    server.publish(document)
    server.refresh_diagnostics()


async def _watched(server: TilelangServer, asked: Asked, slow: str) -> Outcome | None:
    """Run a command with progress, if the editor shows any; None where it took too long."""
    async with _Progress(server, f"{asked.command} {asked.kernel}") as progress:
        advising = asyncio.ensure_future(_advise(server, asked, slow, progress))
        try:
            async with asyncio.timeout(LONGEST_RUN_SECONDS):
                return await _in_a_process(server, asked, progress.report)
        except TimeoutError:
            text = f"{asked.command} {asked.kernel}: ended after {LONGEST_RUN_SECONDS:.0f} s"
            say(server, f"{text}; {slow}" if slow else text, lsp.MessageType.Warning)
            return None
        finally:
            advising.cancel()


async def _advise(server: TilelangServer, asked: Asked, slow: str, progress: _Progress) -> None:
    """Say of a run that takes long how it would take less, where its progress is shown."""
    if not slow:
        return
    await asyncio.sleep(SLOW_SECONDS)
    if progress.is_shown:
        progress.report(slow)
    else:
        say(server, f"{asked.kernel} still runs on the emulator; {slow}", lsp.MessageType.Info)


async def _in_a_process(
    server: TilelangServer, asked: Asked, report: Callable[[str], None]
) -> Outcome:
    request = json.dumps(asdict(asked))
    code = f"import sys; sys.path[:] = {sys.path!r}; from tilelang_lsp.clicked import main; main()"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, request, stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        cwd=Path(asked.file).parent, start_new_session=True, limit=LONGEST_LINE,
    )  # fmt: skip
    server.runs.processes.add(process)
    said = asyncio.ensure_future(_log(server, process))
    outcome = None
    try:
        assert process.stdout is not None
        async for line in process.stdout:
            message = json.loads(line)
            if "now" in message:
                report(message["now"])
            else:
                outcome = Outcome(
                    tuple(message["diagnostics"]), tuple(message["facts"]), message["shown"],
                    message["failed"],
                )  # fmt: skip
        await process.wait()
    finally:
        _kill(process)
        server.runs.processes.discard(process)
        await asyncio.shield(said)
    return outcome or Outcome(
        facts=(f"its process ended with status {process.returncode}",), failed=True
    )


async def _log(server: TilelangServer, process: asyncio.subprocess.Process) -> None:
    """What a kernel's file and the compiler print belongs into the editor's log."""
    assert process.stderr is not None
    while chunk := await process.stderr.read(1 << 16):
        text = chunk.decode(errors="replace").rstrip()
        if text:
            server.window_log_message(lsp.LogMessageParams(lsp.MessageType.Info, text))


def _kill(process: asyncio.subprocess.Process) -> None:
    """End a process, and all it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        elif process.returncode is None:
            process.kill()


class _Progress:
    """Progress in the editor, from where it can be cancelled; nothing where it shows none."""

    def __init__(self, server: TilelangServer, title: str) -> None:
        self.server, self.title, self.token = server, title, uuid.uuid4().hex
        window = server.client_capabilities.window
        self.is_shown = bool(window and window.work_done_progress)

    async def __aenter__(self) -> _Progress:
        if not self.is_shown:
            return self
        progress, task = self.server.work_done_progress, asyncio.current_task()
        try:
            await progress.create_async(self.token)
        except Exception as error:
            log.warning("no progress is shown: %s", error)
            self.is_shown = False
            return self
        progress.begin(self.token, lsp.WorkDoneProgressBegin(
            title=f"tilelang: {self.title}", cancellable=True))  # fmt: skip
        loop = asyncio.get_running_loop()

        def ended(future: Any) -> None:
            if future.cancelled() and task is not None:
                loop.call_soon_threadsafe(task.cancel)

        progress.tokens[self.token].add_done_callback(ended)
        return self

    def report(self, text: str) -> None:
        """What is being done now."""
        if self.is_shown:
            step = lsp.WorkDoneProgressReport(message=text)
            self.server.work_done_progress.report(self.token, step)

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.is_shown:
            end = lsp.WorkDoneProgressEnd(
                message="cancelled" if kind is asyncio.CancelledError else None
            )
            self.server.work_done_progress.end(self.token, end)
            self.server.work_done_progress.tokens.pop(self.token, None)


async def _show(
    server: TilelangServer, asked: Asked, outcome: Outcome, found: tuple[Diagnostic, ...]
) -> None:
    """One message about it all, and the file there is to see."""
    wrong = [d for d in found if d.severity is Severity.ERROR]
    facts = ", ".join(outcome.facts)
    if outcome.failed:
        more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        text = f"{wrong[0].message}{more}" if wrong else facts
        say(server, f"{asked.kernel}: {text}", lsp.MessageType.Error)
    else:
        text = f"{asked.kernel} {_WORDS[asked.command]}" + (f": {facts}" if facts else "")
        say(server, text, lsp.MessageType.Info)
    if outcome.shown is not None and not await show_file(server, Path(outcome.shown)):
        say(server, f"{asked.command}: see {outcome.shown}", lsp.MessageType.Info)


async def show_file(server: TilelangServer, path: Path) -> bool:
    """Have the editor open a file, pages in a browser; False where it cannot."""
    shown = lsp.ShowDocumentParams(
        uri_of(str(path)), external=path.suffix == ".html", take_focus=True
    )
    return await _shown(server, shown)


async def show_place(server: TilelangServer, place: lsp.Location) -> bool:
    """Have the editor go to a place; False where it cannot."""
    shown = lsp.ShowDocumentParams(place.uri, take_focus=True, selection=place.range)
    return await _shown(server, shown)


async def _shown(server: TilelangServer, shown: lsp.ShowDocumentParams) -> bool:
    window = server.client_capabilities.window
    if not (window and window.show_document and window.show_document.support):
        return False
    try:
        return (await server.window_show_document_async(shown)).success
    except Exception:
        log.exception("the editor does not show %s", shown.uri)
        return False


def say(server: TilelangServer, text: str, kind: lsp.MessageType) -> None:
    """One message."""
    server.window_show_message(lsp.ShowMessageParams(kind, text))
