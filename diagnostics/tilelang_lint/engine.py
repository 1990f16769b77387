"""What is wrong in this text? Parse once, run the rules, drop what is suppressed or not wanted.

Nothing here touches the disk and nothing raises for what a user wrote. A failure of our own
becomes a TL900 for the kernel at hand; the other kernels and files are still checked.
"""

from __future__ import annotations

import ast
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tilelang.checks import ON_REQUEST, TARGET_ON_REQUEST
from tilelang.language.frontend import Parsed, StaticResult, parse_static
from tilelang.language.imported_modules import ImportedModules
from tilelang.language.source import SourceFile
from tilelang.language.unparsable import PARSE_ERRORS, refused_by_python
from tilelang_diagnostics import Diagnostic, Span, diagnose
from tilelang_lint.imports import own_findings
from tilelang_lint.offered import with_text_fixes
from tilelang_lint.open_sizes import open_names
from tilelang_lint.rules import RULES, Rule, Subject
from tilelang_lint.selection import Selection
from tilelang_lint.suppressions import suppressions_in
from tilelang_lint.unneeded import unneeded

INTERNAL = "TL900"


@dataclass(frozen=True, slots=True)
class Settings:
    """What to look for, and the values kernels are specialised with.

    `values` come before all others, `project` after what a file says in a comment.
    """

    selection: Selection = field(default_factory=Selection)
    values: Mapping[str, Any] = field(default_factory=dict)
    target: str | None = None
    project: Mapping[str, Any] = field(default_factory=dict)


def lint_text(
    text: str, path: str, settings: Settings | None = None, rules: Sequence[Rule] = RULES,
    modules: ImportedModules | None = None, named: bool = False,
) -> tuple[Diagnostic, ...]:  # fmt: skip
    """The findings in one file, in source order; `modules`: what it imports of other files.

    One that was `named` has to be Python even if it says nothing of tilelang.
    """
    settings = settings or Settings()
    if not mentions_tilelang(text):
        refused = refused_by_python(path, text) if named else None
        return () if refused is None else settings.selection.keep((refused,))
    asked = asked_for(settings.selection)
    subject = read_kernels(
        text, path, settings.values, settings.target, asked, settings.project, modules=modules
    )
    found = check(subject, rules)
    found = _with_refused(subject, found)
    if modules is not None:
        found = list(own_findings(found, path, modules.text))
    found = with_text_fixes(found, subject)
    return shown(found, text, path, settings.selection, _closed(subject))


def shown(
    found: Sequence[Diagnostic], text: str, path: str, selection: Selection,
    kernels: Iterable[tuple[int, int]],
) -> tuple[Diagnostic, ...]:  # fmt: skip
    """What is wanted of all that was found in a text, and the comments that hide nothing of it.

    `kernels` are the lines of definitions that hold kernels of which every size is known.
    """
    more = unneeded(text, path, found, kernels, selection)
    return selection.keep(without_suppressed((*found, *more), text, path))


def _closed(subject: Subject) -> Iterator[tuple[int, int]]:
    """The lines of the definitions whose kernels have no open sizes."""
    try:
        body = ast.parse(subject.text).body
    except PARSE_ERRORS:
        return
    for node in body:
        first, last = node.lineno, node.end_lineno or node.lineno
        held = [p for p in subject.kernels if first <= p.definition.span.line <= last]
        if held and not any(open_names(parsed) for parsed in held):
            yield min((d.lineno for d in getattr(node, "decorator_list", ())), default=first), last


def _with_refused(subject: Subject, found: list[Diagnostic]) -> list[Diagnostic]:
    """`found`, and what Python's compiler says of a text that parses.

    Not where something better is said of the line; what is too deep for Python is so for us.
    """
    if any(d.code == "TL101" for d in found):
        return found
    refused = refused_by_python(subject.path, subject.text)
    if refused is None or refused.span is None:
        return found
    lines = {d.span.line for d in found if d.is_error and d.span is not None}
    kept = [d for d in found if d.code != "TL180"]
    return found if refused.span.line in lines else [*kept, refused]


def asked_for(selection: Selection) -> tuple[str, ...]:
    """The codes that are looked for because they are selected."""
    return tuple(c for c in (*ON_REQUEST, *TARGET_ON_REQUEST) if selection.asks_for(c))


def mentions_tilelang(text: str) -> bool:
    """Whether a file can hold a kernel at all; the others are skipped without parsing."""
    return "tilelang" in text


def read_kernels(
    text: str,
    path: str,
    values: Mapping[str, Any] | None = None,
    target: str | None = None,
    select: Sequence[str] = (),
    project: Mapping[str, Any] | None = None,
    with_layouts: bool = True,
    kernel: str | Sequence[str] | None = None,
    source: SourceFile | None = None,
    modules: ImportedModules | None = None,
) -> Subject:
    """The kernels of a file. Where reading one fails, that is a finding and the rest are read."""
    read = partial(
        parse_static, text, path, values=values, target=target, select=select, project=project,
        with_layouts=with_layouts, source=source, modules=modules,
    )  # fmt: skip
    try:
        return Subject(path, text, read(kernel=kernel))
    except Exception as error:
        whole = internal_error(path, error)
    parsed: list[Parsed] = []
    outside: list[Diagnostic] = []
    failures: list[Diagnostic] = []
    for name, line in _top_level_functions(text):
        try:
            result = read(kernel=name)
        except Exception as error:
            failures.append(internal_error(path, error, line))
        else:
            parsed += result
            outside += result.diagnostics
    result = StaticResult(tuple(parsed), tuple(dict.fromkeys(outside)))
    return Subject(path, text, result, tuple(failures) or (whole,))


def check(subject: Subject, rules: Sequence[Rule] = RULES) -> list[Diagnostic]:
    """What the rules find, and what could not be read; a rule that fails is a finding too."""
    found = list(subject.failures)
    for rule in rules:
        try:
            found += rule(subject)
        except Exception as error:
            found.append(internal_error(subject.path, error))
    return found


def without_suppressed(found: Sequence[Diagnostic], text: str, path: str) -> tuple[Diagnostic, ...]:
    """`found` in source order, each once, without what comments of the file suppress."""
    suppressed = suppressions_in(text)
    kept = dict.fromkeys(d for d in found if not suppressed.covers(d, path))
    return tuple(sorted(kept, key=_place))


def _top_level_functions(text: str) -> list[tuple[str, int]]:
    try:
        body = ast.parse(text).body
    except PARSE_ERRORS:
        return []
    return [(node.name, node.lineno) for node in body if isinstance(node, ast.FunctionDef)]


def _place(diagnostic: Diagnostic) -> tuple[int, int]:
    span = diagnostic.span
    return (0, 0) if span is None else (span.line, span.column)


def internal_error(path: str, error: Exception, line: int = 1) -> Diagnostic:
    """The finding that says we failed, at a line of the file that made us fail."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return diagnose(
        INTERNAL,
        f"the check failed with {type(error).__name__}: {error}",
        Span(path, line, 1, line, 1),
        notes=(f"raised in {last.name}, {last.filename}:{last.lineno}",),
        help="please report this together with the file",
    )
