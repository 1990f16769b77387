"""How is a command run for a kernel: with progress, until it ends or is ended, and then shown?

The command runs in a process of its own (`clicked.py`). What it finds wrong becomes findings of the
document, which stay until its kernel is edited or run again; all else is said in one message.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import logging
import os
import shutil
import signal
import sys
import tempfile
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp
from pygls import uris

from tilelang_diagnostics import Diagnostic
from tilelang_diagnostics.json_format import from_json
from tilelang_lsp.clicked import Asked, Outcome
from tilelang_lsp.documents import Document
from tilelang_lsp.edits import change_between, move_diagnostics
from tilelang_lsp.insights import Key

if TYPE_CHECKING:
    from tilelang_lsp.server import TilelangServer

log = logging.getLogger(__name__)
LONGEST_RUN_SECONDS = 300.0
LONGEST_LINE = 1 << 26  # bytes of an outcome
_WORDS = {"compile": "compiled", "emulate": "ran on the emulator", "trace": "traced"}


@dataclass(slots=True)
class Runs:
    """The commands that run, by kernel, and the folder of what they show."""

    running: dict[tuple[str, Key], asyncio.Task[Any]] = field(default_factory=dict)
    _folder: str | None = None

    @property
    def folder(self) -> Path:
        """Where files to show are written; gone when the server ends."""
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="tilelang-lsp-")
        return Path(self._folder)

    def stop(self) -> None:
        """End what runs, and remove what was written."""
        for task in self.running.values():
            task.cancel()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


async def run(
    server: TilelangServer, document: Document, key: Key, asked: Asked
) -> dict[str, Any] | None:
    """Run a command, show what came of it, and return it; None where it was ended."""
    place, runs = (document.uri, key), server.runs
    before = runs.running.get(place)
    if before is not None:
        before.cancel()  # the newest click counts
    text, digest = document.text, document.digest.get(key, "")
    task = asyncio.get_running_loop().create_task(_watched(server, asked))
    runs.running[place] = task
    try:
        outcome = await task
    except asyncio.CancelledError:
        task.cancel()
        if not task.cancelled() and (current := asyncio.current_task()) and current.cancelling():
            raise  # the request itself was cancelled
        return None
    finally:
        if runs.running.get(place) is task:
            del runs.running[place]
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
    current = document.digest.get(key)
    if found.diagnostics and found.digest and current == found.digest:
        change = change_between(found.text, document.text)
        moved = found.diagnostics
        if change is not None:
            moved = move_diagnostics(moved, change)
        document.ran[key] = (found.digest, moved)
    server.publish(document)
    workspace = server.client_capabilities.workspace
    if server.pulls and workspace and workspace.diagnostics:
        if workspace.diagnostics.refresh_support:
            server.workspace_diagnostic_refresh(None)


async def _watched(server: TilelangServer, asked: Asked) -> Outcome | None:
    """Run a command with progress, if the editor shows any; None where it took too long."""
    async with _Progress(server, f"{asked.command} {asked.kernel}") as progress:
        try:
            async with asyncio.timeout(LONGEST_RUN_SECONDS):
                return await _in_a_process(server, asked, progress.report)
        except TimeoutError:
            text = f"{asked.command} {asked.kernel}: ended after {LONGEST_RUN_SECONDS:.0f} s"
            say(server, text, lsp.MessageType.Warning)
            return None


async def _in_a_process(
    server: TilelangServer, asked: Asked, report: Callable[[str], None]
) -> Outcome:
    request = json.dumps(dataclasses.asdict(asked))
    code = f"import sys; sys.path[:] = {sys.path!r}; from tilelang_lsp.clicked import main; main()"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, request, stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        cwd=Path(asked.file).parent, start_new_session=True, limit=LONGEST_LINE,
    )  # fmt: skip
    said = asyncio.ensure_future(_log(server, process))
    outcome = None
    try:
        assert process.stdout is not None
        async for line in process.stdout:
            message = json.loads(line)
            if "now" in message:
                report(message["now"])
            else:
                fields = {k: tuple(v) if isinstance(v, list) else v for k, v in message.items()}
                outcome = Outcome(**fields)
        await process.wait()
    finally:
        _kill(process)
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
        progress.begin(self.token, lsp.WorkDoneProgressBegin(f"tilelang: {self.title}", True))
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
            end = lsp.WorkDoneProgressEnd("cancelled" if kind is asyncio.CancelledError else None)
            self.server.work_done_progress.end(self.token, end)
            self.server.work_done_progress.tokens.pop(self.token, None)


async def _show(
    server: TilelangServer, asked: Asked, outcome: Outcome, found: tuple[Diagnostic, ...]
) -> None:
    """One message about it all, and the file there is to see."""
    wrong = [d for d in found if d.severity.value == "error"]
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
    window = server.client_capabilities.window
    if not (window and window.show_document and window.show_document.support):
        return False
    uri = uris.from_fs_path(str(path)) or path.as_uri()
    shown = lsp.ShowDocumentParams(uri, external=path.suffix == ".html", take_focus=True)
    try:
        return (await server.window_show_document_async(shown)).success
    except Exception:
        log.exception("the editor does not show %s", path)
        return False


def say(server: TilelangServer, text: str, kind: lsp.MessageType) -> None:
    """One message."""
    server.window_show_message(lsp.ShowMessageParams(kind, text))
