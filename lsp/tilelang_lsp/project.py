"""What does the project of a file say about it: `[tool.tilelang]` of the nearest pyproject.toml?

Read again whenever the file on the disk has another time or size, so that an edit of it holds for
the very next analysis.
"""

from __future__ import annotations

import logging
import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tilelang.cli.project import NAME, nearest, table_of

log = logging.getLogger(__name__)
_Stamp = tuple[int, int]


class Projects:
    """The tables of all projects that open files belong to; `read` is told of each that is read."""

    def __init__(self, read: Callable[[str, str], None] = lambda file, text: None) -> None:
        self._told = read
        self._read: dict[Path, tuple[_Stamp, Mapping[str, Any]]] = {}

    def table(self, path: str) -> Mapping[str, Any]:
        """`[tool.tilelang]` for a file; empty where there is none, or none that can be read."""
        found = _nearest(path)
        if found is None:
            return {}
        file, stamp = found
        known = self._read.get(file)
        if known is None or known[0] != stamp:
            self._read[file] = known = (stamp, _table(file))
            self._told(str(file), text_of(file))
        return known[1]

    def text(self, path: str) -> tuple[str, str] | None:
        """The pyproject.toml of a file, and what it says; None where there is none to read."""
        found = _nearest(path)
        if found is None:
            return None
        try:
            return str(found[0]), found[0].read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def stamps(self, paths: list[str]) -> tuple[tuple[Path, _Stamp] | None, ...]:
        """Changes when what `table` says of any of the files may."""
        return tuple(_nearest(path) for path in paths)


def _nearest(path: str) -> tuple[Path, _Stamp] | None:
    if not Path(path).is_absolute():
        return None  # an untitled document
    file = nearest(path)
    try:
        stat = None if file is None else file.stat()
    except OSError:  # it is gone since
        return None
    return None if file is None or stat is None else (file, (stat.st_mtime_ns, stat.st_size))


def is_project(path: str) -> bool:
    """Whether a file is a project's, which an editor may open as well."""
    return os.path.basename(path) == NAME


def text_of(file: Path) -> str:
    """What a file says; nothing where it cannot be read."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _table(file: Path) -> Mapping[str, Any]:
    try:
        table = table_of(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        log.warning("%s cannot be read: %s", file, error)
        return {}
    return table if isinstance(table, Mapping) else {}
