"""What does line 12 of this file say? Source text by file name, read when first asked for.

Never raises: a file that cannot be read has no text, and a renderer shows its position only.
"""

from __future__ import annotations

import io
import linecache
import re
import tokenize
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path


class SourceMap:
    """File name -> text. Texts given at construction win over what is on disk."""

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self._texts: dict[str, str | None] = dict(texts or {})
        self._lines: dict[str, tuple[str, ...]] = {}

    def text(self, file: str) -> str | None:
        """The whole text of `file`, or None when there is none to be had."""
        if file not in self._texts:
            self._texts[file] = _read(file)
        return self._texts[file]

    def lines(self, file: str) -> tuple[str, ...]:
        """The lines of `file` without line ends; empty when it cannot be read."""
        if file not in self._lines:
            text = self.text(file)
            self._lines[file] = () if text is None else split_lines(text)
        return self._lines[file]

    def line(self, file: str, number: int) -> str | None:
        """Line `number` (1-based), or None when the file has no such line."""
        lines = self.lines(file)
        return lines[number - 1] if 1 <= number <= len(lines) else None

    def known(self) -> dict[str, str]:
        """The texts held so far: what has to travel for the excerpts to be drawn elsewhere."""
        return {file: text for file, text in self._texts.items() if text is not None}


@lru_cache(maxsize=16)  # one version of a file is split by many who look at it
def split_lines(text: str) -> tuple[str, ...]:
    """Split where Python's parser does: `str.splitlines` also breaks at form feeds and U+2028."""
    return tuple(text.split("\n") if "\r" not in text else re.split(r"\r\n|\r|\n", text))


def _read(file: str) -> str | None:
    try:
        data = Path(file).read_bytes()
    except OSError:
        # Notebook cells register their text under names like <ipython-input-3>, or under a path
        # in /tmp that is never written.
        return "".join(linecache.getlines(file)) or None
    except ValueError:  # a null byte in the name
        return None
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except (SyntaxError, UnicodeError, LookupError):
        text = data.decode("utf-8", errors="replace")
    return text.removeprefix("\ufeff")
