"""What do `--set M=256,N=512` and a comment `# tilelang: set M=256` say?

A comment inside a function of the file, or right above it, is for that function; any other is for
every kernel of the file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tilelang_diagnostics import CompileError, failure
from tilelang_diagnostics.model import Diagnostic, Span

_COMMENT: Final = re.compile(r"#\s*tilelang:\s*set\b(?P<settings>.*)$")
_MENTION: Final = re.compile(r"#\s*tilelang:\s*set\b")
_WORD: Final = "tilelang:"


def parse_settings(settings: Sequence[str], span: Span | None = None) -> dict[str, Any]:
    """`M=256,N=512` and its like, as a dict; TL725 for what is no NAME=VALUE."""
    found: dict[str, Any] = {}
    for setting in settings:
        for part in _split(setting):
            name, equals, text = part.partition("=")
            if not equals or not name.strip().isidentifier() or not text.strip():
                shown = f"`{part}`" if part.strip() else f"an empty part of `{setting}`"
                lead = "# tilelang: set" if span else "--set"
                raise failure(
                    "TL725",
                    f"{shown} is not NAME=VALUE",
                    span=span,
                    help=f"write {lead} M=256,N=512; quote a value that holds a comma",
                )
            found[name.strip()] = _literal(text.strip())
    return found


@dataclass(frozen=True, slots=True)
class Commented:
    """The settings of a file's comments: for the whole file, and for functions by name."""

    everywhere: Mapping[str, Any] = field(default_factory=dict)
    of_function: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    spans: Mapping[str, Span] = field(default_factory=dict)  # of each name, the last time
    problems: tuple[Diagnostic, ...] = ()

    def of(self, kernel: str) -> dict[str, Any]:
        """What they say for one kernel."""
        return {**self.everywhere, **self.of_function.get(kernel, {})}


def comment_settings(text: str, tree: ast.Module, path: str) -> Commented:
    """What the comments of a file set."""
    everywhere: dict[str, Any] = {}
    of_function: dict[str, dict[str, Any]] = {}
    spans: dict[str, Span] = {}
    problems: list[Diagnostic] = []
    if _WORD not in text:
        return Commented()
    ranges = _function_lines(text, tree)
    for line, column, comment in _comments(text, tree):
        match = _COMMENT.match(comment)
        if match is None:
            continue
        span = Span(path, line, column, line, column + len(comment))
        try:
            found = parse_settings([match["settings"].strip()], span)
        except CompileError as error:
            problems += error.diagnostics
            continue
        owner = next((n for n, first, last in ranges if first <= line <= last), None)
        (everywhere if owner is None else of_function.setdefault(owner, {})).update(found)
        spans.update(dict.fromkeys(found, span))
    return Commented(everywhere, of_function, spans, tuple(problems))


def _comments(text: str, tree: ast.Module) -> Iterator[tuple[int, int, str]]:
    """Line, column and text of every comment that sets something.

    Found by lines: an editor asks after every keystroke, and reading all tokens takes longer than
    all the rest. Only a statement that holds such a line is searched for strings.
    """
    for number, row in enumerate(text.split("\n"), 1):
        match = _MENTION.search(row) if _WORD in row else None
        if match is not None and not _in_string(tree, number, len(row[: match.start()].encode())):
            yield number, match.start() + 1, row[match.start() :].rstrip("\r")


def _in_string(tree: ast.Module, line: int, offset: int) -> bool:
    """Whether a place is inside of a string of the file."""
    for node in tree.body:
        decorators = getattr(node, "decorator_list", ())
        first = min([node.lineno, *(d.lineno for d in decorators)])
        if first <= line <= (node.end_lineno or node.lineno):
            return any(
                (n.lineno, n.col_offset) <= (line, offset) < (n.end_lineno or 0, n.end_col_offset)
                for n in ast.walk(node)
                if isinstance(n, ast.Constant | ast.JoinedStr) and n.end_col_offset is not None
            )
    return False


def _function_lines(text: str, tree: ast.Module) -> list[tuple[str, int, int]]:
    """The first and last line of each function of the file, comments right above it included."""
    lines = text.split("\n")
    found = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            while first > 1 and lines[first - 2].lstrip().startswith("#"):
                first -= 1
            found.append((node.name, first, node.end_lineno or node.lineno))
    return found


def _split(setting: str) -> Iterator[str]:
    """The parts between commas that are not inside brackets or quotes."""
    part, depth, quote = "", 0, ""
    for character in setting:
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


def _literal(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
