"""Which `# tilelang: ignore[…]` hide nothing: there is no such code, or nothing of it is found?

    T.copy(A, B)  # tilelang: ignore[no-such-name]        TL725
    T.copy(A, B)  # tilelang: ignore[never-read]          TL737, if everything is read

What depends on layouts, a target or a compilation is found by some who read a file and not by
others: only codes that every reading finds are told of here, where a kernel was read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from tilelang_diagnostics import (
    CATALOGUE,
    Applicability,
    Diagnostic,
    Edit,
    Fix,
    Severity,
    Span,
    diagnose,
    find_code,
    suggest,
)
from tilelang_diagnostics.sources import split_lines
from tilelang_lint.comments import IGNORE, IGNORE_FILE
from tilelang_lint.selection import Selection, selector_problem
from tilelang_lint.suppressions import Selector, Suppressions, suppressions_in

UNKNOWN: Final = "TL725"
UNNEEDED: Final = "TL737"
# Found by reading a text, whatever the target; of the others, only some.
_FOUND_BY_ALL: Final = ("TL1", "TL2")
_ON_REQUEST: Final = frozenset({"TL222"})


def unknown_selectors(text: str, path: str) -> Iterator[Diagnostic]:
    """What comments switch off that nobody has heard of."""
    lines = split_lines(text)
    for selector in _all(suppressions_in(text)):
        problem = selector_problem(selector.text)
        if problem is not None:
            names = [name for row in CATALOGUE for name in (row.code, row.name)]
            meant = tuple(
                Fix(f"write `{name}`", (Edit(_span(selector, path), name),))
                for name in suggest(selector.text, names)
            )
            gone = _removal(lines, selector, path)
            yield diagnose(UNKNOWN, problem, _span(selector, path), fixes=(*meant, gone),
                           severity=Severity.WARNING)  # fmt: skip


def unneeded(
    text: str, path: str, found: Sequence[Diagnostic], kernels: Iterable[tuple[int, int]],
    selection: Selection,
) -> Iterator[Diagnostic]:  # fmt: skip
    """What comments switch off that is not there. `found` is everything that was found, `kernels`
    are the lines of the definitions at the top of the file that hold some."""
    if not IGNORE.search(text) and not IGNORE_FILE.search(text):
        return
    suppressed = suppressions_in(text)
    if any(d.is_error and next(suppressed.covering(d, path), None) is None for d in found):
        return  # what follows from an error is silent
    used = {s for d in found for s in suppressed.covering(d, path)}
    ranges = tuple(kernels)
    lines = split_lines(text)
    for selector in _judged(suppressed, ranges, text):
        code = _code(selector, selection)
        if code is not None and selector not in used:
            row = find_code(code)
            name = selector.text if row is None else row.name
            yield diagnose(
                UNNEEDED,
                f"there is no {name} here that this comment could switch off",
                _span(selector, path),
                help="remove it",
                fixes=(_removal(lines, selector, path),),
            )


def _judged(
    suppressed: Suppressions, kernels: Collection[tuple[int, int]], text: str
) -> Iterator[Selector]:  # fmt: skip
    """The selectors of which all is known. A macro is only read where a kernel calls it."""
    for entry in suppressed.entries:
        if entry.is_of_file:
            known = bool(kernels) and "macro" not in text
        else:
            known = any(first <= entry.first <= last for first, last in kernels)
        yield from entry.selectors if known else ()


def _code(selector: Selector, selection: Selection) -> str | None:
    """The one code that a selector means, if every reading finds it and it is looked for."""
    row = find_code(selector.text)
    if row is None or row.code in _ON_REQUEST or not row.code.startswith(_FOUND_BY_ALL):
        return None
    return row.code if selection.wants(row.code) else None


def _all(suppressed: Suppressions) -> Iterator[Selector]:
    yield from dict.fromkeys(s for entry in suppressed.entries for s in entry.selectors)


def _span(selector: Selector, path: str) -> Span:
    end = selector.column + len(selector.text)
    return Span(path, selector.line, selector.column, selector.line, end)


def _removal(lines: Sequence[str], selector: Selector, path: str) -> Fix:
    """Never on its own: what is found may hang on values that somebody else gives."""
    edit, rest = _without(lines, selector, path)
    title = f"remove `{selector.text}` from the comment" if rest else "remove the comment"
    return Fix(title, (edit,), Applicability.MAYBE)


def _without(lines: Sequence[str], selector: Selector, path: str) -> tuple[Edit, bool]:
    """The comment without a selector, or the line without the comment; and whether one is left."""
    row, line = lines[selector.line - 1], selector.line
    match = next(
        m for pattern in (IGNORE, IGNORE_FILE) for m in pattern.finditer(row)
        if m.start("selectors") < selector.column <= m.end("selectors")
    )  # fmt: skip
    words = [w for w in match["selectors"].split(",") if w.strip()]
    if len(words) > 1:
        start, end = selector.column - 1, selector.column - 1 + len(selector.text)
        after = re.match(r"\s*,\s*", row[end:])
        before = re.search(r"\s*,\s*$", row[:start])
        if after is not None:
            end += after.end()
        elif before is not None:
            start = before.start()
        return Edit(Span(path, line, start + 1, line, end + 1), ""), True
    head = row[: match.start()].rstrip()
    rest = row.find("#", match.end())
    end = len(row) if rest < 0 else rest
    if not head and rest < 0 and line < len(lines):
        return Edit(Span(path, line, 1, line + 1, 1), ""), False
    start = len(head) if rest < 0 else match.start()
    return Edit(Span(path, line, start + 1, line, end + 1), ""), False
