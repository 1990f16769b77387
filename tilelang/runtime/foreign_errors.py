"""A device compiler rejects source the author brought: where in the author's file is the mistake?

Source from a file has its places in the source map. Source from a string is looked for in the
Python file of its statement: a literal that stands there as it is gives the exact line.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilelang.codegen.source_map import Line, SourceMap
from tilelang_diagnostics import SourceMap as Texts
from tilelang_diagnostics import diagnose
from tilelang_diagnostics.model import Diagnostic, Label, Span

_SHOWN = 5
_C_LINKAGE = 'extern "C" '  # put in front of a kernel that lacks it


def authors_errors(
    source: SourceMap, said: Sequence[tuple[str, int | None]], compiler: str, arch: str
) -> Diagnostic | None:
    """TL816 at the first of the errors (text, generated line) that are in foreign source.

    None if there is one in code of ours, which may be the cause of the others.
    """
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
    start = _found(text, line.span.file)
    if start is None:
        return line.span
    written = line.text.replace(_C_LINKAGE, "", 1)
    begin = len(written) - len(written.lstrip()) + 1
    row = start + number - first
    return Span(line.span.file, row, begin, row, max(begin + 1, len(written.rstrip()) + 1))


def _same_text(other: Line, line: Line) -> bool:
    """Whether both are of one string: each of its lines has the place of its statement."""
    return other.foreign and other.spans == line.spans


def _found(text: str, file: str) -> int | None:
    """The line of `file` on which `text` begins."""
    whole = Texts().text(file) or ""
    for wanted in (text, text.replace(_C_LINKAGE, "", 1), text.strip("\n")):
        at = whole.find(wanted)
        if at >= 0:
            return whole.count("\n", 0, at) + 1
    return None
