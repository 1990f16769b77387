"""Which files are meant, and what do they say? The only part of lint that reads the disk."""

from __future__ import annotations

import io
import os
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tilelang.cli.files import never_ends, not_python
from tilelang.cli.files import read as read_file
from tilelang.cli.whole_files import write_whole
from tilelang_diagnostics import CompileError, Diagnostic, diagnose, failure
from tilelang_lint.folders import is_skipped


@dataclass(frozen=True, slots=True)
class Reading:
    """A file's text, or what says why there is none."""

    text: str | None
    problems: tuple[Diagnostic, ...] = ()


def python_files(paths: Iterable[str]) -> Iterator[str]:
    """The files to check: those named, and the `*.py` below directories; each once, in order."""
    seen: set[str] = set()
    for path in paths:
        for found in _below(path) if path and os.path.isdir(path) else (path,):
            key = os.path.realpath(found)
            if key not in seen:
                seen.add(key)
                yield found


def read(path: str) -> Reading:
    """The text of one file in its declared encoding. Never raises."""
    if not path:
        return Reading(None, (diagnose("TL103", "cannot read ``: the name is empty"),))
    try:
        text = read_file(Path(path)).removeprefix("\ufeff")
        other = not_python(Path(path))
        return Reading(text) if other is None else Reading(None, (other,))
    except CompileError as error:
        return Reading(None, error.diagnostics)
    except ValueError as error:  # a null byte in the name
        return Reading(None, (diagnose("TL103", f"cannot read {path!r}: {error}"),))


def write(path: str, text: str) -> None:
    """Put a text in the place of a file, in the encoding and with the line ends that this has."""
    try:
        old = Path(path).read_bytes()
        encoding, _ = tokenize.detect_encoding(io.BytesIO(old).readline)
        if b"\r\n" in old:
            text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        write_whole(path, text.encode(encoding))
    except (OSError, UnicodeEncodeError) as error:
        raise failure("TL103", f"cannot write `{path}`: {error}") from error


def _below(directory: str) -> Iterator[str]:
    for root, directories, files in os.walk(directory):
        directories[:] = sorted(d for d in directories if not is_skipped(d))
        for name in sorted(files):
            path = os.path.join(root, name)
            if name.endswith(".py") and not never_ends(Path(path)):
                yield path
