"""What is wrong with the settings: in a comment of a file, in `[tool.tilelang]` of its project?

A wrong setting counts as not given; these findings say so, where it stands.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tilelang.cli.project import is_value, table_of
from tilelang_diagnostics import Diagnostic, Severity, Span, did_you_mean
from tilelang_diagnostics.sources import split_lines
from tilelang_lint.comments import DIRECTIVES, comments
from tilelang_lint.selection import selector_problem
from tilelang_lint.settings import COMMENT
from tilelang_lint.unneeded import unknown_selectors

_SETTING, _TARGET = "TL725", "TL403"
_OF_PROJECT = ("target", "targets", "set", "lint", "lsp")
_DIRECTIVE = re.compile(r"^\s*#\s*tilelang:\s*(?P<word>[\w-]*)", re.M)


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with the setting at a path of keys."""

    path: tuple[str, ...]
    message: str
    help: str = ""
    code: str = _SETTING


# What a tool says of settings that are its own.
Check: TypeAlias = Callable[[Any], Iterable[Problem]]


def project_findings(text: str, file: str, editors: Check | None = None) -> tuple[Diagnostic, ...]:
    """Of a pyproject.toml; `editors` checks the table `lsp`, which is left alone without."""
    lines = split_lines(text)
    try:
        table = table_of(text)
    except tomllib.TOMLDecodeError as error:
        where = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line = min(int(where[1]), len(lines)) if where else len(lines)
        span = Span(file, line, 1, line, len(lines[line - 1]) + 1)
        said = re.sub(r" \(at .*\)$", "", str(error))
        message = f"not valid TOML, so that no setting of it holds: {said}"
        return (Diagnostic(_SETTING, Severity.WARNING, message, span),)
    return tuple(
        Diagnostic(p.code, Severity.WARNING, p.message, _toml_place(lines, file, p.path),
                   help=p.help or None)
        for p in _project(table, editors)
    )  # fmt: skip


def comment_findings(text: str, file: str, hints: Check | None = None) -> tuple[Diagnostic, ...]:
    """Of the comments in a kernel file; `set` is checked where its values are read, and `hints` by
    `hints`."""
    if "tilelang:" not in text:
        return ()
    lines = split_lines(text)
    found: list[Diagnostic] = []
    for match in comments(text, _DIRECTIVE):
        problems = list(_directive(match["word"]))
        said = COMMENT.match(text, match.start())
        if said is not None and said["what"] == "target":
            problems += target_problems((), said["rest"])
        elif said is not None and hints is not None:
            problems += hints(said["rest"])
        row = text.count("\n", 0, match.end()) + 1
        line = lines[row - 1]
        span = Span(file, row, len(line) - len(line.lstrip()) + 1, row, len(line) + 1)
        found += [
            Diagnostic(p.code, Severity.WARNING, p.message, span, help=p.help or None)
            for p in problems
        ]
    return (*found, *unknown_selectors(text, file))


def _project(table: object, editors: Check | None) -> Iterator[Problem]:
    if not isinstance(table, Mapping):
        yield Problem((), "`[tool.tilelang]` is no table")
        return
    for key in table:
        if key not in _OF_PROJECT:
            yield unknown((key,), key, _OF_PROJECT)
    for key in ("target", "targets"):
        yield from target_problems((key,), table.get(key, ()))
    values = table.get("set", {})
    yield from table_problems(("set",), values)
    for name, value in values.items() if isinstance(values, Mapping) else ():
        if not is_value(name, value):
            yield Problem(("set", name), f"`{name}` is set to no value",
                          "values are numbers, strings, bools or arrays")  # fmt: skip
    lint = table.get("lint", {})
    yield from table_problems(("lint",), lint)
    if isinstance(lint, Mapping):
        yield from selector_problems(("lint",), lint)
        for key in lint:
            if key not in ("select", "ignore"):
                yield unknown(("lint", key), key, ("select", "ignore"))
    if editors is not None:
        yield from editors(table.get("lsp"))


def unknown(path: tuple[str, ...], key: str, known: Iterable[str]) -> Problem:
    """There is no such key."""
    there = tuple(known)
    message = f"there is no setting `{key}`{did_you_mean(key, there)}"
    return Problem(path, message, f"one of {', '.join(there)}")


def table_problems(path: tuple[str, ...], value: object) -> Iterator[Problem]:
    """Of what has to be a table."""
    if value is not None and not isinstance(value, Mapping):
        yield Problem(path, f"`{path[-1]}` is no table")


def selector_problems(path: tuple[str, ...], table: Mapping[str, Any]) -> Iterator[Problem]:
    """Of `select` and `ignore`."""
    for key in ("select", "ignore"):
        value = table.get(key, ())
        words = value.split(",") if isinstance(value, str) else value
        if not isinstance(words, (list, tuple)):
            yield Problem((*path, key), f"`{key}` is no list of codes, names or groups")
            continue
        for word in words:
            said = selector_problem(word.strip()) if isinstance(word, str) else _no_word(word)
            if said is not None and word != "":
                yield Problem((*path, key), said)


def _no_word(value: object) -> str:
    shown = "null" if value is None else repr(value)
    return f"{shown} is no code, name or group, but each is a text"


def target_problems(path: tuple[str, ...], value: object) -> Iterator[Problem]:
    """Of one target or several."""
    from tilelang.target import is_auto, parse_target
    from tilelang_diagnostics import CompileError

    words = value.split(",") if isinstance(value, str) else value
    for word in words if isinstance(words, (list, tuple)) else (words,):
        if is_auto(word) or (isinstance(word, str) and not word.strip()):
            continue
        try:
            parse_target(word.strip() if isinstance(word, str) else word)
        except (CompileError, ValueError, TypeError) as error:
            found = getattr(error, "diagnostics", ())
            help_line = (found[0].help or "") if found else ""
            message = found[0].message if found else str(error)
            yield Problem(path, message, help_line, _TARGET)


def _directive(word: str) -> Iterator[Problem]:
    if word not in DIRECTIVES:
        message = f"there is no comment `# tilelang: {word}`{did_you_mean(word, DIRECTIVES)}"
        yield Problem((), message, f"one of {', '.join(DIRECTIVES)}")


def _toml_place(lines: tuple[str, ...], file: str, path: tuple[str, ...]) -> Span:
    """The line of a key, or of the nearest table around it."""
    wanted = ("tool", "tilelang", *path)
    section: tuple[str, ...] = ()
    best, depth = 1, -1
    for number, line in enumerate(lines, 1):
        head = re.match(r"\s*\[+([^\]]+)\]", line)
        key = re.match(r"\s*([\w.\"'-]+)\s*=", line)
        if head is not None:
            section = _keys(head[1])
        here = section if head is not None else (*section, *_keys(key[1])) if key else None
        if here is not None and wanted[: len(here)] == here and len(here) > depth:
            best, depth = number, len(here)
    line = lines[best - 1]
    return Span(file, best, len(line) - len(line.lstrip()) + 1, best, len(line.rstrip()) + 1)


def _keys(text: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in text.split("."))
