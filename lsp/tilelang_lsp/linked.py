"""How do open files see each other: what each is read with, and what to read again for an edit?

A file whose macro was edited in its own window is not on the disk yet. Whoever imports it is read
again shortly after, if what it sees of that file is other than before.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Protocol

from tilelang_lsp.documents import Documents
from tilelang_lsp.following import Following, Imports
from tilelang_lsp.workspace import Workspace

log = logging.getLogger(__name__)
# After an edit elsewhere, before the files that depend on it are read again.
SETTLE_SECONDS = 0.2
# How long the disk may differ from what is known of it: an editor that watches files tells of it.
REST_SECONDS = 1.0
REST_WATCHED_SECONDS = 15.0


class _Folders(Protocol):
    def __call__(self) -> Iterable[str]:
        """The folders that are open."""


class Linked:
    """The open documents and the files of the workspace as one set of files."""

    def __init__(self, documents: Documents, folders: _Folders) -> None:
        self._documents, self._folders = documents, folders
        self._workspace = Workspace(rest=REST_SECONDS)
        self._following = Following(self._workspace)
        self._timer: asyncio.TimerHandle | None = None

    @property
    def workspace(self) -> Workspace:
        """All files, with the texts that are open now."""
        return self._with_open_texts()

    def _with_open_texts(self) -> Workspace:
        known = self._workspace
        known.set_folders(tuple(self._folders()))
        texts = {d.path: d.text for d in self._documents.open_files.values()}
        for path, _ in known.open_texts():
            if path not in texts:
                known.close(path)
        for path, text in texts.items():
            known.open(path, text)
        return known

    def imports(self, path: str, text: str) -> Imports:
        """The files that a text is read with."""
        try:
            self._with_open_texts()
            return self._following.of(path, text)
        except Exception:  # then it is read alone
            log.exception("%s: its imports cannot be followed", path)
            return Imports()

    def stop(self) -> None:
        """Nobody waits for files any more."""
        self._workspace.stop()
        if self._timer is not None:
            self._timer.cancel()

    def watched(self) -> None:
        """The editor tells when a file changes."""
        self._workspace.rest = REST_WATCHED_SECONDS

    def changed(self) -> None:
        """Files on the disk changed."""
        self._workspace.changed()
        self.edited()

    def edited(self) -> None:
        """Some file says something else: look at those that depend on it, soon."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(SETTLE_SECONDS, self.check)

    def check(self) -> None:
        """Read those files again that are read with something else now."""
        for document in list(self._documents.open_files.values()):
            if not document.dirty:
                found = self.imports(document.path, document.text)
                if found.keys != document.read_with.keys:
                    self._documents.read_again(document)
