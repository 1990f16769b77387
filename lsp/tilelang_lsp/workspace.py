"""What do the files of the workspace say: the texts that are open, and those on the disk?

    workspace = Workspace(["/project/project"])
    workspace.open("/project/project/gemm.py", text)    what is open wins over what is saved
    workspace.names("/project/project/ops.py")          read and parsed when asked for, then kept
    workspace.holding({"double"})                    files in which the word occurs

Of every file the words it holds are kept, so that a name is looked for in few of them. The names of
the files used last are kept, too. No user code runs.
"""

from __future__ import annotations

import logging
import math
import os
import re
import threading
import time
from array import array
from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tilelang_diagnostics import SourceMap, Span
from tilelang_lint.folders import is_skipped
from tilelang_lint.module_files import ModuleFiles
from tilelang_lsp.lexical import names_of, parse
from tilelang_lsp.names import Names
from tilelang_lsp.recovery import recover

log = logging.getLogger(__name__)
MOST_FILES = 5_000
MOST_NAMES = 400  # files whose names are kept: about 90 KB for 100 lines
LARGEST_FILE = 2_000_000  # that is parsed; larger ones are only searched for words
MOST_FOLDERS = 20_000
LONGEST_WALK_SECONDS = 10.0
SYMBOL_SECONDS = 1.5  # for the symbols of the workspace: what was not read by then is left out
LANGUAGE = "tilelang"
_WORD = re.compile(r"[^\W\d]\w*")
_Stamp = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Defined:
    """A definition somewhere in the workspace."""

    name: str
    kind: str
    span: Span
    container: str


@dataclass(slots=True)
class _Known:
    """What is kept of a text: the hashes of its words, and what it defines if that was asked."""

    stamp: object
    words: array[int]
    mentions: bool
    defined: tuple[Defined, ...] | None = None


class Workspace:
    """The files below some folders, and those that are open.

    Args:
        rest: seconds in which the disk is not looked at again. Where the editor tells of every
            change (`changed`), that may be for ever.
    """

    def __init__(self, folders: Sequence[str] = (), rest: float = 0.0) -> None:
        self.rest = rest
        self.parsed = 0  # texts so far
        self.complete = True  # whether `files` are all that there are
        self._open: dict[str, str] = {}
        self._known: dict[str, _Known] = {}
        self._names: OrderedDict[str, tuple[object, Names | None]] = OrderedDict()
        self._files: tuple[str, ...] | None = None
        self._stamps: dict[str, _Stamp | None] = {}
        self._looked = 0.0
        self.looks = 0  # grows whenever the disk may be other than it was
        self._lock = threading.RLock()  # requests over many files run on a thread of their own
        self._stopped = False
        self._said = False  # that there are too many
        self._told: set[str] = set()  # what a search for symbols could not do in time
        self.modules = ModuleFiles(folders, self.exists)

    def stop(self) -> None:
        """Nobody waits for an answer any more: what looks through files ends at the next one."""
        self._stopped = True

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders that are open."""
        return self.modules.folders

    def set_folders(self, folders: Sequence[str]) -> None:
        """Other folders are open now."""
        if tuple(dict.fromkeys(map(os.path.normpath, folders))) != self.folders:
            self.modules = ModuleFiles(folders, self.exists)
            self.changed()

    def open(self, path: str, text: str) -> None:
        """A file is open and says `text`, whatever is on the disk."""
        if path not in self._open:
            self.changed()
        self._open[path] = text

    def close(self, path: str) -> None:
        """A file is no longer open."""
        if self._open.pop(path, None) is not None:
            self.changed()

    def changed(self) -> None:
        """Something on the disk changed."""
        self._files, self._stamps = None, {}
        self.looks += 1

    def look_again(self) -> None:
        """Forget what the disk was like, if that is longer ago than it may be."""
        now = time.monotonic()
        if now - self._looked >= self.rest:
            self._looked = now
            self.changed()

    def open_texts(self) -> tuple[tuple[str, str], ...]:
        """The open files and what they say."""
        return tuple(self._open.items())

    def is_open(self, path: str) -> bool:
        """Whether the editor holds a file."""
        return path in self._open

    def exists(self, path: str) -> bool:
        """Whether there is such a file, be it on the disk or only in the editor."""
        return path in self._open or self.stamp(path) is not None

    def holds(self, path: str) -> bool:
        """Whether a file belongs to the workspace: it lies in a folder, and in none left out.

        Where no folder is open, the open files are the workspace.
        """
        folder = self.modules.folder_of(path)
        if folder is None:
            return not self.folders and self.is_open(path)
        parts = os.path.relpath(path, folder).split(os.sep)[:-1]
        return not any(is_skipped(p) for p in parts)

    def stamp(self, path: str) -> _Stamp | None:
        """Time and size of a file on the disk; None where there is none."""
        stamps = self._stamps
        if path not in stamps:
            found: _Stamp | None = None
            try:
                stat = os.stat(path)
                if os.path.isfile(path):
                    found = (stat.st_mtime_ns, stat.st_size)
            except (OSError, ValueError):
                pass
            stamps[path] = found
        return stamps[path]

    def text(self, path: str) -> str | None:
        """What a file says, None when it cannot be read."""
        stamp = self.stamp(path)
        if path not in self._open and (stamp is None or stamp[1] > LARGEST_FILE):
            return None
        return self._text(path)

    def version(self, path: str) -> object:
        """What changes whenever a file says something else."""
        text = self._open.get(path)
        return self.stamp(path) if text is None else text

    def names(self, path: str) -> Names | None:
        """The names of a file; None for what cannot be read at all."""
        with self._lock:
            version = self.version(path)
            known = self._names.get(path)
            if known is not None and known[0] == version:
                self._names.move_to_end(path)
                return known[1]
        text = self.text(path)
        found = None if text is None else self._parse(path, text)
        with self._lock:
            self._names[path] = (version, found)
            self._names.move_to_end(path)
            while len(self._names) > MOST_NAMES:
                self._names.popitem(last=False)
        return found

    def files(self) -> tuple[str, ...]:
        """The Python files of the workspace, at most some thousand, and the open ones."""
        files = self._files
        if files is None:
            found, self.complete = self._walked()
            if not (self.complete or self._stopped or self._said):
                self._said = True
                log.warning("too many files: %d of them are looked through", len(found))
            self._files = files = tuple(found)
            for gone in [p for p in list(self._known) if p not in found and p not in self._open]:
                self._known.pop(gone, None)
        return tuple(dict.fromkeys((*files, *list(self._open))))

    def _walked(self, until: float = math.inf) -> tuple[dict[str, None], bool]:
        """The Python files in all folders, and whether these are all of them."""
        found: dict[str, None] = {}
        complete = True
        for folder in self.folders:
            for path in self._python_files(folder, until):
                if path is None or len(found) == MOST_FILES:
                    complete = False
                    break
                found[path] = None
        return found, complete

    def holding(self, words: Collection[str]) -> list[str]:
        """The files in which one of the words occurs."""
        wanted = {hash(w) for w in words}
        return [p for p, k in self._all_known() if not wanted.isdisjoint(k.words)]

    def with_language(self) -> Iterator[str]:
        """The files that mention the language."""
        return (p for p, k in self._all_known() if k.mentions)

    def symbols(self, query: str) -> tuple[Defined, ...]:
        """Definitions whose name holds the letters of `query` in order, the closest first.

        Somebody types and waits, so that it ends in time: what was read is kept, and the next
        request comes further with it.
        """
        wanted, end = query.lower(), time.monotonic() + SYMBOL_SECONDS
        word = _with_letters(query)
        files = self._files_until(end)
        found: list[Defined] = []
        for number, path in enumerate(files):
            if number and time.monotonic() > end:
                self._warn_once("%d of %d files were looked through in time", number, len(files))
                break
            known = None if self._stopped else self._read(path)
            if known is None or not known.mentions:
                continue
            # Texts without such a word are not parsed.
            if known.defined is not None or word.search(self._text(path) or ""):
                defined = self._definitions(path)
                found += (d for d in defined if _matches(wanted, d.name.lower()))
        return tuple(sorted(found, key=lambda d: (len(d.name), d.name, d.span)))

    def _files_until(self, end: float) -> tuple[str, ...]:
        """`files`, those that are found in half of the time where nobody has looked yet."""
        if self._files is not None:
            return self.files()
        start = time.monotonic()
        found, complete = self._walked(start + (end - start) / 2)
        if complete:
            self._files, self.complete = tuple(found), True
            return self.files()
        self._warn_once("%d files were found in time", len(found))
        return tuple(dict.fromkeys((*list(self._open), *found)))

    def _warn_once(self, what: str, *numbers: int) -> None:
        """Say in the log that not all symbols of the workspace are found."""
        if what not in self._told and not self._stopped:
            self._told.add(what)
            log.warning(f"symbols of the workspace: {what}", *numbers)

    def _all_known(self) -> Iterator[tuple[str, _Known]]:
        for path in self.files():
            known = None if self._stopped else self._read(path)
            if known is not None:
                yield path, known

    def _python_files(self, folder: str, until: float) -> Iterator[str | None]:
        """The Python files below a folder; None where it ends before all were seen."""
        end = min(time.monotonic() + LONGEST_WALK_SECONDS, until)
        for number, (root, folders, files) in enumerate(os.walk(folder)):
            if self._stopped or number == MOST_FOLDERS or time.monotonic() > end:
                yield None
                return
            folders[:] = sorted(f for f in folders if not is_skipped(f))
            yield from (os.path.join(root, name) for name in sorted(files) if name.endswith(".py"))

    def _text(self, path: str) -> str | None:
        found = self._open.get(path)
        return SourceMap().text(path) if found is None else found

    def _parse(self, path: str, text: str) -> Names | None:
        self.parsed += 1
        return read_names(path, text)

    def _read(self, path: str) -> _Known | None:
        version = self.version(path)
        known = self._known.get(path)
        if known is None or known.stamp != version:
            text = None if version is None else self._text(path)
            if text is None:
                self._known.pop(path, None)
                return None
            words = array("q", {hash(w) for w in _WORD.findall(text)})
            known = self._known[path] = _Known(version, words, mentions_language(text))
        return known

    def _definitions(self, path: str) -> tuple[Defined, ...]:
        known = self._read(path)
        if known is None:
            return ()
        if known.defined is None:
            names = self.names(path)
            known.defined = () if names is None else tuple(definitions(names))
        return known.defined


def mentions_language(text: str) -> bool:
    """Whether a text may hold a kernel; the front end asks the same first."""
    return LANGUAGE in text


def read_names(path: str, text: str) -> Names | None:
    """The names of a text, however broken; None when nothing can be made of it."""
    tree = parse(text)
    broken: tuple[int, ...] = ()
    if tree is None:
        readable = recover(text)
        if readable is None:
            return None
        tree, broken, text = readable.tree, readable.broken, readable.text
    try:
        found = names_of(path, text, tree)
    except RecursionError:
        return None
    found.broken = broken
    return found


def definitions(names: Names) -> Iterator[Defined]:
    """The functions, classes and constants of a file."""
    for scope in names.scopes:
        for binding in scope.bindings.values():
            if binding.whole is not None or binding.kind == "constant":
                container = "" if scope.kind == "module" else scope.name
                yield Defined(binding.name, binding.kind, binding.bound[0], container)


def _with_letters(query: str) -> re.Pattern[str]:
    """Finds a word that holds the letters in order. It starts where words do, and takes what is not
    the letter up to each, so that it never tries two ways to the same place."""
    steps = "".join(rf"[^\W{re.escape(c)}]*{re.escape(c)}" for c in query)
    return re.compile(rf"\b{steps}", re.I)


def _matches(wanted: str, name: str) -> bool:
    position = 0
    for letter in wanted:
        position = name.find(letter, position) + 1
        if position == 0:
            return False
    return True
