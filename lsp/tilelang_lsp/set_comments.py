"""Where do the comments `# tilelang: set M=1024` of a file say what, and for which function?

What they mean is up to the front end; here are their places, so that they can be shown and edited.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tilelang_diagnostics import Span
from tilelang_diagnostics.sources import split_lines
from tilelang_lint.comments import comments
from tilelang_lsp.cursor import in_code

_COMMENT = re.compile(r"#\s*tilelang:\s*set\b(?P<settings>.*)$", re.M)


@dataclass(frozen=True, slots=True)
class Set:
    """One NAME=VALUE of a comment: where the name and where the whole comment stands. `owner` is
    the function at the top of the file it is for; empty: every one."""

    name: str
    value: str
    place: Span
    comment: Span
    owner: str


def sets_of(text: str, tree: ast.Module, path: str) -> Iterator[Set]:
    """All that the comments of a file set."""
    ranges = [*_ranges(text, tree)]
    for match in comments(text, _COMMENT):
        line = text.count("\n", 0, match.start()) + 1
        start = text.rfind("\n", 0, match.start()) + 1
        column, end = match.start() - start + 1, match.end() - start + 1
        if not in_code(text, line, column):
            continue
        owner = next((n for n, first, last in ranges if first <= line <= last), "")
        whole = Span(path, line, column, line, end)
        at = match.start("settings") - start + 1
        for part in split(match["settings"]):
            name, equals, value = part.partition("=")
            lead = len(name) - len(name.lstrip())
            name = name.strip()
            if equals:
                place = Span(path, line, at + lead, line, at + lead + len(name))
                yield Set(name, value.strip(), place, whole, owner)
            at += len(part) + 1


def split(settings: str) -> Iterator[str]:
    """The parts between commas that are in no brackets or quotes."""
    part, depth, quote = "", 0, ""
    for character in settings:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        if character == "," and depth <= 0 and not quote:
            yield part
            part = ""
        else:
            part += character
    yield part


def can_hold(value: str) -> bool:
    """Whether a comment can say a value: in one line, and so that what follows is not of it."""
    return bool(value.strip()) and value.isprintable() and [*split(f"{value},")] == [value, ""]


def _ranges(text: str, tree: ast.Module) -> Iterator[tuple[str, int, int]]:
    """The functions at the top of a file with their lines, comments right above included."""
    lines = split_lines(text)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            while first > 1 and lines[first - 2].lstrip().startswith("#"):
                first -= 1
            yield node.name, first, node.end_lineno or node.lineno
