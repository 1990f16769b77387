"""How is a finding switched off: on its line, in its file, in its project? As edits.

T.copy(A, B)  # tilelang: ignore[copy-not-vectorised]
# tilelang: ignore-file[copy-not-vectorised]
[tool.tilelang.lint] ignore = ["copy-not-vectorised"]
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from typing import Any

from tilelang.cli.project import parse_toml
from tilelang_diagnostics import Diagnostic, Edit, Span, apply_edits
from tilelang_diagnostics.sources import split_lines
from tilelang_lint.comments import IGNORE, IGNORE_FILE
from tilelang_lint.suppressions import suppressions_in

AHEAD = re.compile(r"#!|#.*coding[:=]")  # lines that only count at the top of a file


def on_the_line(text: str, found: Diagnostic, name: str) -> Edit | None:
    """A comment at the end of the line where a finding ends, or above its statement; None where
    neither would be read as one."""
    span = found.span
    if span is None:
        return None
    lines = split_lines(text)
    line = lines[span.end_line - 1]
    first = lines[span.line - 1]
    indent = first[: len(first) - len(first.lstrip())]
    above = Span(span.file, span.line, 1, span.line, 1)
    tries = (
        _added(IGNORE, line, span.file, span.end_line, name),
        Edit(_end(line, span.file, span.end_line), f"  # tilelang: ignore[{name}]"),
        Edit(above, f"{indent}# tilelang: ignore[{name}]\n"),
    )
    for edit in tries:
        if edit is not None:
            after = apply_edits(text, (edit,))
            moved = edit.text.count("\n")
            if suppressions_in(after).covers(_moved(found, moved), span.file):
                return edit
    return None


def in_the_file(text: str, path: str, name: str) -> Edit:
    """A comment at the top of a file, below what has to stand there."""
    lines = split_lines(text)
    for number, line in enumerate(lines, 1):
        there = _added(IGNORE_FILE, line, path, number, name)
        if there is not None:
            return there
    row = 1
    while row <= len(lines) and row <= 2 and AHEAD.match(lines[row - 1]):
        row += 1
    return Edit(Span(path, row, 1, row, 1), f"# tilelang: ignore-file[{name}]\n")


def in_the_project(text: str, file: str, name: str) -> Edit | None:
    """An entry of `ignore` in a pyproject.toml; None where its form is not a plain one."""
    lines = split_lines(text)
    heads = [n for n, line in enumerate(lines, 1) if re.match(r"\s*\[", line)]
    head = next((n for n in heads if re.match(r"\s*\[tool\.tilelang\.lint\]", lines[n - 1])), None)
    if head is None:
        gap = "" if not text or text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
        end = Span(file, len(lines), len(lines[-1]) + 1, len(lines), len(lines[-1]) + 1)
        edit = Edit(end, f'{gap}[tool.tilelang.lint]\nignore = ["{name}"]\n')
    else:
        last = next((n for n in heads if n > head), len(lines) + 1)
        edit = _ignored_below(lines, head, last, file, name)
    wanted = _ignores(text)
    if wanted is None or name in wanted:
        return None
    return edit if _ignores(apply_edits(text, (edit,))) == [*wanted, name] else None


def _ignored_below(lines: tuple[str, ...], head: int, last: int, file: str, name: str) -> Edit:
    for number in range(head + 1, last):
        match = re.match(r"(\s*ignore\s*=\s*\[)(.*?)(,?\s*)\]", lines[number - 1])
        if match is not None:
            start, end = match.end(2) + 1, match.end(3) + 1
            joint = ", " if match[2].strip() else ""
            return Edit(Span(file, number, start, number, end), f'{joint}"{name}"')
    place = Span(file, head, len(lines[head - 1]) + 1, head, len(lines[head - 1]) + 1)
    return Edit(place, f'\nignore = ["{name}"]')


def _ignores(text: str) -> list[Any] | None:
    """What a pyproject.toml ignores; None for one that cannot be read."""
    try:
        found: Any = parse_toml(text)
        for key in ("tool", "tilelang", "lint"):
            found = found.get(key, {})
        said = found.get("ignore", [])
    except (tomllib.TOMLDecodeError, AttributeError):
        return None
    return said if isinstance(said, list) else None


def _added(pattern: re.Pattern[str], line: str, path: str, number: int, name: str) -> Edit | None:
    """A name more in a comment that is there already."""
    match = pattern.search(line)
    if match is None:
        return None
    place = match.end("selectors") + 1
    joint = ", " if match["selectors"].strip() else ""
    return Edit(Span(path, number, place, number, place), f"{joint}{name}")


def _end(line: str, path: str, number: int) -> Span:
    return Span(path, number, len(line.rstrip()) + 1, number, len(line) + 1)


def _moved(found: Diagnostic, lines: int) -> Diagnostic:
    assert found.span is not None
    span = replace(found.span, line=found.span.line + lines, end_line=found.span.end_line + lines)
    return replace(found, span=span)
