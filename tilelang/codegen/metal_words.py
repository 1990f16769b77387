"""Which words may generated Metal consist of?

A clang that reads Metal against headers of ours knows more of C++ than Metal has. What it lets
pass, and Metal would not, is found here: names of Metal's library and attributes that are not
listed, lambdas, `long long`, static variables, pointers that do not say where they lead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from tilelang.codegen.source_map import Line

ATTRIBUTES: Final = frozenset({
    "kernel", "buffer", "max_total_threads_per_threadgroup", "threadgroup_position_in_grid",
    "thread_position_in_threadgroup",
})  # fmt: skip
LIBRARY: Final = frozenset({"simdgroup_matrix"})
# Written as the language has it, and refused wherever they stand.
_FORBIDDEN: Final = (
    (re.compile(r"\blong\s+long\b|\d(?:u?ll|ULL|LL)\b"), "Metal has no long long"),
    (re.compile(r"[=(,]\s*\[[=&\w, ]*\]\s*\("), "Metal has no lambdas"),
    (re.compile(r"\bstatic\b(?!_)"), "a kernel of Metal has no static variables"),
    (re.compile(r"\bdouble\b"), "Metal has no double"),
    (re.compile(r"\basm\b|__"), "an operation of another device"),
)
_ATTRIBUTE: Final = re.compile(r"\[\[(.*?)\]\]")
_WORD: Final = re.compile(r"[a-z_]\w*")
_POINTER: Final = re.compile(r"^\s*[\w:<>, ]+[*&] \w+(?: \[\[| = )")
_MEMORY: Final = re.compile(r"\b(?:device|constant|threadgroup|thread)\b")
_LIBRARY: Final = re.compile(r"\bmetal::(?:\w+::)*(\w+)")


def unknown_words(lines: Sequence[Line]) -> tuple[tuple[int, str], ...]:
    """Number and complaint for each line that says what Metal does not have."""
    return tuple(
        (number, text) for number, line in enumerate(lines, 1) for text in _complaints(line.text)
    )


def _complaints(text: str) -> list[str]:
    found = [why for pattern, why in _FORBIDDEN if pattern.search(text)]
    for inside in _ATTRIBUTE.findall(text):
        names = _WORD.findall(re.sub(r"\(.*?\)", "", inside))
        found += [f"Metal has no attribute {name}" for name in names if name not in ATTRIBUTES]
    for name in _LIBRARY.findall(text):
        if name not in LIBRARY:
            found.append(f"metal::{name} is not among the words of the printer")
    return [*found, *_without_memory(text)]


def _without_memory(text: str) -> list[str]:
    """Pointers and references that do not say which kind of memory they lead to."""
    head = text.startswith("[[kernel")
    parts = text.partition("(")[2].partition("(")[2].split(", ") if head else [text]
    declared = [part for part in parts if _POINTER.search(part)]
    return [
        "a pointer of Metal leads to device, constant, threadgroup or thread memory"
        for part in declared
        if not _MEMORY.search(part)
    ]
