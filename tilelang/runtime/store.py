"""How are small sets of files kept on disk so that many processes can read and write them at once?

Each entry is a directory, written aside and renamed into place, so that a reader sees all of it or
nothing. A digest of every file is kept with it: a truncated or damaged entry is told apart from a
good one before anything of it is loaded. Readers mark an entry as used; the least recently used
ones go first when the store grows beyond its limit.

Nothing here raises for what a disk can do: `read` returns None, `write` returns the error.
(`diskcache` was considered: it keeps values in one SQLite file, which network file systems corrupt,
and a shared library has to be a file of its own.)
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_INDEX: Final = "entry.json"
_ATTEMPTS: Final = 5
_STALE_SECONDS: Final = 24 * 3600.0


class Damaged(Exception):
    """An entry that is there but not as it was written; `str` says what is wrong."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One complete entry: its metadata and where its files are."""

    path: Path
    meta: Mapping[str, Any]
    files: tuple[str, ...]

    def read(self, name: str) -> bytes:
        """The contents of one of its files; raises OSError."""
        return (self.path / name).read_bytes()


@dataclass(frozen=True, slots=True)
class Store:
    """The entries below one directory."""

    root: Path

    def path(self, key: str) -> Path:
        """Where the entry `key` is, or would be. Spread over folders, for slow file systems."""
        return self.root / key[:2] / key

    def read(self, key: str) -> Entry | None:
        """The entry `key`, None if there is none; raises Damaged if it is not whole."""
        path = self.path(key)
        try:
            text = (path / _INDEX).read_text(encoding="utf-8")
        except FileNotFoundError:
            if path.is_dir():
                raise Damaged("its index is missing") from None
            return None
        except NotADirectoryError:
            if path.exists():
                raise Damaged("it is a file") from None
            return None  # so is a folder above it: there is no store here
        except (OSError, UnicodeDecodeError) as error:
            raise Damaged(str(error)) from error
        return _check(path, text)

    def has(self, key: str) -> bool:
        """Whether there is an entry `key`, whole or not."""
        return (self.path(key) / _INDEX).exists()

    def touch(self, key: str) -> None:
        """Mark `key` as used now."""
        try:
            os.utime(self.path(key))
        except OSError:
            # Read-only caches are fine; they age by when they were written.
            return

    def write(self, key: str, files: Mapping[str, bytes | Path], meta: Mapping[str, Any]) -> None:
        """Write the entry `key` at once; an entry that is there already stays. Raises OSError."""
        target = self.path(key)
        if (target / _INDEX).exists():
            return
        temporary = self.root / "tmp" / f"{os.getpid()}-{secrets.token_hex(6)}"
        temporary.mkdir(parents=True)
        try:
            digests = {name: _put(temporary / name, data) for name, data in files.items()}
            index = json.dumps({"meta": dict(meta), "files": digests}, indent=1)
            (temporary / _INDEX).write_text(index, encoding="utf-8")
            target.parent.mkdir(parents=True, exist_ok=True)
            _place(temporary, target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def remove(self, key: str) -> None:
        """Drop the entry `key`, if it can be."""
        _remove(self.path(key))

    def entries(self) -> Iterator[tuple[Path, int, float]]:
        """Every entry: path, size in bytes, time of last use."""
        for shard in _listed(self.root):
            if len(shard.name) == 2:
                for path in _listed(shard):
                    try:
                        yield path, _size(path), path.stat().st_mtime
                    except OSError:
                        continue

    def shrink(self, limit: int) -> int:
        """Drop the least recently used entries until `limit` bytes are kept; returns how many."""
        self._sweep()
        entries = sorted(self.entries(), key=lambda e: e[2])
        total = sum(size for _, size, _ in entries)
        dropped = 0
        for path, size, _ in entries:
            if total <= limit:
                break
            _remove(path)
            total -= size
            dropped += 1
        return dropped

    def clear(self) -> int:
        """Drop everything; returns how many entries there were."""
        paths = [path for path, _, _ in self.entries()]
        for path in paths:
            _remove(path)
        shutil.rmtree(self.root / "tmp", ignore_errors=True)
        return len(paths)

    def _sweep(self) -> None:
        """Remove what a process left behind that died while writing."""
        for path in _listed(self.root / "tmp"):
            try:
                if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                    shutil.rmtree(path, ignore_errors=True)
            except OSError:
                continue


def _check(path: Path, text: str) -> Entry:
    try:
        index = json.loads(text)
        meta, files = dict(index["meta"]), dict(index["files"])
    except (ValueError, KeyError, TypeError) as error:
        raise Damaged(f"its index cannot be read ({type(error).__name__})") from error
    for name, digest in files.items():
        try:
            data = (path / name).read_bytes()
        except OSError as error:
            raise Damaged(f"{name} is missing") from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise Damaged(f"{name} is not what was written")
    return Entry(path, meta, tuple(files))


def _place(temporary: Path, target: Path) -> None:
    """Rename `temporary` to `target`, unless a whole entry is there: writers write the same."""
    for _ in range(_ATTEMPTS):
        try:
            temporary.rename(target)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
            if (target / _INDEX).exists():
                return
            # Half an entry, or one that another process has just removed.
            _remove(target)
        else:
            return


def _put(path: Path, data: bytes | Path) -> str:
    contents = data.read_bytes() if isinstance(data, Path) else data
    # The data has to be on disk before the rename is: a crash must not leave a whole-looking entry.
    with path.open("wb") as file:
        file.write(contents)
        file.flush()
        os.fsync(file.fileno())
    return hashlib.sha256(contents).hexdigest()


def _remove(path: Path) -> None:
    # Renamed first, so that no reader finds half of it.
    aside = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        path.rename(aside)
    except OSError:
        aside = path
    if aside.is_dir() and not aside.is_symlink():
        shutil.rmtree(aside, ignore_errors=True)
    else:
        try:
            aside.unlink(missing_ok=True)
        except OSError:
            return


def _listed(path: Path) -> list[Path]:
    try:
        return [p for p in path.iterdir() if not p.name.startswith(".")]
    except OSError:
        return []


def _size(path: Path) -> int:
    if not path.is_dir():
        return path.stat().st_size
    return sum(f.stat().st_size for f in path.iterdir())
