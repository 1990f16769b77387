"""How does a position in the user's Python travel through TVM and back?

A statement or expression carries a `tirx.Span`; code inlined from a macro or helper carries a
`SequentialSpan` whose first part is its own place and whose others are the calls that led there,
from the kernel inward. TVM spans have no room for the name of the function called, so a call's
source name reads `FILE::FUNCTION`. Nor do they take bytes of a file name that are no text: these
pass as the last characters of the last plane for private use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from tilelang.ir import tirx
from tilelang_diagnostics.model import Frame, Span

TirSpan: TypeAlias = Any  # tirx.Span | tirx.SequentialSpan | None

_SEPARATOR = "::"
_NO_TEXT = {0xDC00 + byte: 0x10FF00 + byte for byte in range(0x80, 0x100)}
_NO_TEXT_BACK = {passing: escaped for escaped, passing in _NO_TEXT.items()}


def to_tir(span: Span | None, calls: Sequence[Frame] = ()) -> TirSpan:
    """`span`, reached through `calls`, as TVM carries it."""
    if span is None:
        return None
    own = _convert(span, span.file)
    if not calls:
        return own
    frames = [_convert(f.span, f"{f.span.file}{_SEPARATOR}{f.function}") for f in calls]
    return tirx.SequentialSpan([own, *frames])


def from_tir(span: TirSpan) -> Span | None:
    """The user's own place of a node, without the calls."""
    if span is None:
        return None
    if isinstance(span, tirx.SequentialSpan):
        return from_tir(span.spans[0])
    return Span(
        file=_name(span),
        line=int(span.line),
        column=int(span.column),
        end_line=int(span.end_line),
        end_column=int(span.end_column),
    )


def calls_of(span: TirSpan) -> tuple[Frame, ...]:
    """The calls through which inlined code was reached, from the kernel inward."""
    if span is None or not isinstance(span, tirx.SequentialSpan):
        return ()
    frames = []
    for part in list(span.spans)[1:]:
        file, _, function = _name(part).rpartition(_SEPARATOR)
        place = Span(file, part.line, part.column, part.end_line, part.end_column)
        frames.append(Frame(function, place))
    return tuple(frames)


def _name(span: TirSpan) -> str:
    name = str(span.source_name.name)
    return name if name.isascii() else name.translate(_NO_TEXT_BACK)


def _convert(span: Span, name: str) -> TirSpan:
    if not name.isascii():
        name = name.translate(_NO_TEXT)
    return tirx.Span(tirx.SourceName(name), span.line, span.end_line, span.column, span.end_column)
