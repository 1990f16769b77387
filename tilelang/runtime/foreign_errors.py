"""A device compiler rejects source the author brought: where in the author's file is the mistake?

Source from a file has its places in the source map. Source from a string is looked for in the
Python file of its statement: a literal that stands there as it is gives the exact line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tilelang.codegen.source_map import Line, SourceMap
from tilelang_diagnostics import SourceMap as Texts
from tilelang_diagnostics import diagnose
from tilelang_diagnostics.model import Diagnostic, Label, Span

_SHOWN = 5
# As nvcc, g++ and clang say it.
_UNDEFINED = re.compile(
    r"identifier \"(\w+)\" is undefined|[‘'](\w+)[’'] was not declared|"
    r"undeclared identifier [‘'](\w+)[’']"
)
_CALL_ROWS = 6  # lines over which a call of a statement may be spread
_C_LINKAGE = 'extern "C" '  # put in front of a kernel that lacks it


def authors_errors(
    source: SourceMap, said: Sequence[tuple[str, int | None]], compiler: str, arch: str
) -> Diagnostic | None:
    """TL816 at the first of the errors (text, generated line) that are in foreign source.

    None if there is one in code of ours, which may be the cause of the others.
    """
    undefined = _undefined(source, *said[0]) if said else None
    if undefined is not None:
        return undefined
    numbers = [number for _, number in said]
    lines = [None if n is None else source.at(n) for n in numbers]
    if not lines or any(line is None or not line.foreign for line in lines):
        return None
    places = [author_span(source, n) for n in numbers if n is not None]
    (text, _), *others = said
    labels: list[Label] = []
    for (other, _), place in zip(others, places[1:], strict=True):
        if place is not None and place != places[0] and len(labels) < _SHOWN:
            labels.append(Label(place, other))
    first = lines[0]
    return diagnose(
        "TL816",
        f"the CUDA source does not compile for {arch}: {text}",
        places[0],
        labels=tuple(labels),
        notes=(f"said by {compiler}, of `{first.text.strip()}`",) if first is not None else (),
        help="it is compiled as it stands, after the prelude and what T.import_source brings",
        calls=first.calls if first is not None else (),
    )


def _undefined(source: SourceMap, text: str, number: int | None) -> Diagnostic | None:
    """TL816 for a function that the author calls by a name which no source defines."""
    match = _UNDEFINED.search(text)
    line = None if number is None else source.at(number)
    if match is None or line is None or line.foreign or line.span is None:
        return None
    written = (Texts().text(line.span.file) or "").splitlines()
    name = next(group for group in match.groups() if group)
    rows = written[line.span.line - 1 : max(line.span.end_line, line.span.line + _CALL_ROWS)]
    if not any(f"{quote}{name}{quote}" in row for row in rows for quote in "'\""):
        return None
    return diagnose(
        "TL816",
        f"no CUDA source defines `{name}`, which is called here",
        line.span,
        label=f"became `{line.text.strip()}`",
        help="T.import_source brings its definition; the name is spelled as in C",
        calls=line.calls,
    )


def author_span(source: SourceMap, number: int) -> Span | None:
    """The place in the author's file of line `number` of the generated one."""
    line = source.at(number)
    if line is None or line.span is None:
        return None
    first = number
    while first > 1 and _same_text(source.lines[first - 2], line):
        first -= 1
    last = number
    while last < len(source.lines) and _same_text(source.lines[last], line):
        last += 1
    if first == last:
        return line.span
    text = "\n".join(x.text for x in source.lines[first - 1 : last])
    whole = Texts().text(line.span.file) or ""
    written = line.text.replace(_C_LINKAGE, "", 1)
    start = _found(text, whole)
    # With escapes the text is another than the literal's, and most of its lines are not.
    row = _only_line(written, whole) if start is None else start + number - first
    if row is None:
        return line.span
    begin = len(written) - len(written.lstrip()) + 1
    return Span(line.span.file, row, begin, row, max(begin + 1, len(written.rstrip()) + 1))


def _same_text(other: Line, line: Line) -> bool:
    """Whether both are of one string: each of its lines has the place of its statement."""
    return other.foreign and other.spans == line.spans


def _only_line(text: str, whole: str) -> int | None:
    """The number of the one line that reads `text`."""
    found = [n for n, line in enumerate(whole.splitlines(), 1) if line.rstrip() == text.rstrip()]
    return found[0] if len(found) == 1 and text.strip() else None


def _found(text: str, whole: str) -> int | None:
    """The line of a file on which `text` begins."""
    for wanted in (text, text.replace(_C_LINKAGE, "", 1), text.strip("\n")):
        at = whole.find(wanted)
        if at >= 0:
            return whole.count("\n", 0, at) + 1
    return None
