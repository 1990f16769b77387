"""Which files are meant, and what do they say? The only part of lint that reads the disk."""

from __future__ import annotations

import io
import os
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tilelang_diagnostics import Diagnostic, Span, diagnose

# Directories that hold no one's own kernels.
SKIPPED_DIRECTORIES = frozenset(
    {"__pycache__", "node_modules", "venv", "build", "dist", "site-packages"}
)


@dataclass(frozen=True, slots=True)
class Reading:
    """A file's text, or the diagnostic that says why there is none."""

    path: str
    text: str | None
    problem: Diagnostic | None = None


def python_files(paths: Iterable[str]) -> Iterator[str]:
    """The files to check: those named, and the `*.py` below directories; each once, in order."""
    seen: set[str] = set()
    for path in paths:
        for found in _below(path) if Path(path).is_dir() else (path,):
            key = os.path.realpath(found)
            if key not in seen:
                seen.add(key)
                yield found


def read(path: str) -> Reading:
    """The text of one file in its declared encoding. Never raises."""
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return Reading(path, None, diagnose("TL103", f"{path} cannot be read: {reason}"))
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return Reading(path, data.decode(encoding).removeprefix("\ufeff"))
    except (SyntaxError, LookupError) as error:
        return Reading(path, None, _undecodable(path, 1, str(error)))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return Reading(path, None, _undecodable(path, line, f"is not {error.encoding} text"))


def _undecodable(path: str, line: int, reason: str) -> Diagnostic:
    return diagnose(
        "TL106",
        f"{path} {reason}" if reason.startswith("is ") else f"{path}: {reason}",
        Span(path, line, 1, line, 1),
        help="save the file as UTF-8, or name its encoding in the first line: # coding: latin-1",
    )


def _below(directory: str) -> Iterator[str]:
    for root, directories, files in os.walk(directory):
        directories[:] = sorted(
            d for d in directories if d not in SKIPPED_DIRECTORIES and not d.startswith(".")
        )
        for name in sorted(files):
            if name.endswith(".py"):
                yield os.path.join(root, name)
