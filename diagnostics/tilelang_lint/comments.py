"""Which comments of a file are for us, and what may they say?

# tilelang: target cuda:sm_90a
# tilelang: ignore-file[TL306]
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

DIRECTIVES: Final[dict[str, str]] = {
    "target": "what findings, layouts and budgets are for",
    "hints": "the kinds of hints that are shown",
    "set": "values for parameters and dimensions",
    "ignore": "findings that are not shown for this statement",
    "ignore-file": "findings that are not shown for this file",
}
IGNORE: Final = re.compile(r"#\s*tilelang:\s*ignore\[(?P<selectors>[^\]]*)\]")
# At the margin only.
IGNORE_FILE: Final = re.compile(
    r"^#\s*tilelang:\s*ignore-file\[(?P<selectors>[^\]]*)\]", re.MULTILINE
)
_QUOTES: Final = ('"' * 3, "'" * 3)


@lru_cache(maxsize=64)  # an editor asks several times of each text
def comments(text: str, pattern: re.Pattern[str]) -> tuple[re.Match[str], ...]:
    """Where a pattern of a comment occurs, but in the strings over several lines."""
    return tuple(
        match for first, last in _lines_with(text, "tilelang:")
        for match in pattern.finditer(text, first, last)
        if not any(text.count(quotes, 0, match.start()) % 2 for quotes in _QUOTES)
    )  # fmt: skip


def _lines_with(text: str, word: str) -> Iterator[tuple[int, int]]:
    """Where the lines that hold a word begin and end."""
    at = text.find(word)
    while at >= 0:
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        yield text.rfind("\n", 0, at) + 1, end
        at = text.find(word, end)
