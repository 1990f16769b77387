"""How do hosts share entries of the cache through a URL?

Behind a URL that `fsspec` knows (`s3://…`, `gs://…`, `file://…`, `dir::…`) every entry is
one object: an index and the files, under a hash of all of it, so that one that was cut short is
told apart. Objects are written aside and moved into place. A local store in front keeps what was
fetched: kernels are loaded from files, and a second start needs no network.

A URL that cannot be reached is one warning a process, which goes on with the local store alone.
Whoever can write there decides what runs here: a shared cache is as trusted as a shared library.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tilelang.runtime.store import Damaged, Entry, Store

_MAGIC: Final = b"tilelang-entry 1 "
_SUFFIX: Final = ".entry"


class Unreachable(Exception):
    """The URL, or what is behind it, does not work; `str` says why."""


def is_url(place: str) -> bool:
    """Whether a cache is behind `fsspec`, and not a folder here."""
    return "://" in place or "::" in place


class Remote:
    """Objects below a URL, one folder of them per kind of entry. Methods raise Unreachable."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._opened: tuple[Any, str] | None = None

    def read(self, kind: str, key: str) -> bytes | None:
        """The object of `key`, None if there is none."""
        try:
            return bytes(self._ask(lambda fs, at: fs.cat_file(at), kind, key))
        except FileNotFoundError:
            return None

    def has(self, kind: str, key: str) -> bool:
        """Whether there is an object of `key`."""
        return bool(self._ask(lambda fs, at: fs.exists(at), kind, key))

    def write(self, kind: str, key: str, data: bytes) -> None:
        """Write the object of `key` at once: readers see all of it or nothing."""

        def put(fs: Any, at: str) -> None:
            folder = at.rpartition("/")[0]
            aside = f"{folder}/.{os.getpid()}-{secrets.token_hex(6)}"
            fs.makedirs(folder, exist_ok=True)
            try:
                fs.pipe_file(aside, data)
                fs.mv(aside, at)
            except BaseException:
                with suppress(Exception):
                    fs.rm_file(aside)
                raise

        try:
            self._ask(put, kind, key)
        except FileNotFoundError as error:
            raise Unreachable(str(error)) from error

    def remove(self, kind: str, key: str) -> None:
        """Drop the object of `key`."""
        self._ask(lambda fs, at: fs.rm_file(at), kind, key)

    def sweep(self, kind: str) -> None:
        """Remove what writers left aside that came to no end."""

        def swept(fs: Any, at: str) -> None:
            for name in fs.find(at):
                if name.rpartition("/")[2].startswith("."):
                    fs.rm_file(name)

        self._ask(swept, kind)

    def sizes(self, kind: str) -> dict[str, int]:
        """Every key of a kind, and how many bytes its object has."""

        def listed(fs: Any, at: str) -> dict[str, int]:
            try:
                found = fs.find(at, detail=True)
            except FileNotFoundError:
                return {}
            rows = ((name.rpartition("/")[2], facts) for name, facts in found.items())
            return {n.removesuffix(_SUFFIX): int(facts.get("size") or 0) for n, facts in rows
                    if n.endswith(_SUFFIX)}  # fmt: skip

        return dict(self._ask(listed, kind))

    def _ask(self, work: Callable[[Any, str], Any], kind: str, key: str | None = None) -> Any:
        try:
            if self._opened is None:
                import fsspec.core

                self._opened = fsspec.core.url_to_fs(self.url)
            fs, root = self._opened
            name = "" if key is None else f"/{key[:2]}/{key}{_SUFFIX}"
            return work(fs, f"{root.rstrip('/')}/{kind}{name}")
        except FileNotFoundError:
            raise
        # Each file system raises exceptions of its own libraries.
        except Exception as error:
            raise Unreachable(str(error).split("\n")[0] or type(error).__name__) from error


@dataclass(frozen=True, slots=True)
class SharedStore(Store):
    """A local store in front of a kind of entries behind a URL.

    `failed` is told of a URL that does not work; it is not asked again after that.
    """

    remote: Remote
    kind: str
    failed: Callable[[Exception], None]

    def read(self, key: str) -> Entry | None:
        found = Store.read(self, key)
        if found is not None:
            return found
        data = self._ask(lambda: self.remote.read(self.kind, key))
        if data is None:
            return None
        try:
            files, meta = unpacked(data)
        except Damaged:
            self._drop(key)
            raise
        Store.write(self, key, files, meta)
        return Store.read(self, key)

    def has(self, key: str) -> bool:
        there = self._ask(lambda: self.remote.has(self.kind, key))
        return Store.has(self, key) and there is not False

    def write(self, key: str, files: Mapping[str, bytes | Path], meta: Mapping[str, Any]) -> None:
        Store.write(self, key, files, meta)
        if self._ask(lambda: self.remote.has(self.kind, key)) is False:
            data = packed(files, meta)
            self._ask(lambda: self.remote.write(self.kind, key, data))

    def clear(self) -> int:
        """Drop everything here and behind the URL; how many entries there were in all."""
        here = {path.name for path, _, _ in self.entries()}
        there = set(self._ask(lambda: self.remote.sizes(self.kind)) or ())
        for key in there:
            self._drop(key)
        self._ask(lambda: self.remote.sweep(self.kind))
        Store.clear(self)
        return len(here | there)

    def sizes(self) -> Iterator[int]:
        """The size of each entry behind the URL."""
        yield from (self._ask(lambda: self.remote.sizes(self.kind)) or {}).values()

    def _drop(self, key: str) -> None:
        self._ask(lambda: self.remote.remove(self.kind, key))

    def _ask(self, work: Callable[[], Any]) -> Any:
        if self.remote.url in _broken:
            return None
        try:
            return work()
        except FileNotFoundError:
            return None
        except Unreachable as error:
            _broken[self.remote.url] = str(error)
            self.failed(error)
            return None


# URLs that did not work in this process, and why.
_broken: Final[dict[str, str]] = {}


def problem_of(url: str) -> str | None:
    """Why a URL is not asked any more, None if it works as far as is known."""
    return _broken.get(url)


def packed(files: Mapping[str, bytes | Path], meta: Mapping[str, Any]) -> bytes:
    """An entry as one object."""
    contents = {n: d.read_bytes() if isinstance(d, Path) else d for n, d in files.items()}
    index = {"meta": dict(meta), "files": [[n, len(d)] for n, d in contents.items()]}
    body = json.dumps(index).encode() + b"\n" + b"".join(contents.values())
    return _MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def unpacked(data: bytes) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Files and metadata of an object; raises Damaged."""
    head, _, body = data.partition(b"\n")
    if not head.startswith(_MAGIC):
        raise Damaged("it is no cache entry")
    if head.removeprefix(_MAGIC).decode(errors="replace") != hashlib.sha256(body).hexdigest():
        raise Damaged("it was cut short or changed")
    text, _, rest = body.partition(b"\n")
    try:
        index = json.loads(text)
        files, start = {}, 0
        for name, size in index["files"]:
            if Path(name).name != name or name.startswith("."):
                raise Damaged(f"{name!r} is no name of a file")
            files[name] = rest[start : start + size]
            start += size
        return files, dict(index["meta"])
    except (ValueError, KeyError, TypeError) as error:
        raise Damaged(f"its index cannot be read ({type(error).__name__})") from error
