"""Which fix has a string that is nearly one of those that there are?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tilelang_diagnostics.model import Edit, Fix, Span
from tilelang_diagnostics.suggest import suggest


def string_fixes(place: Span | None, text: str, names: Iterable[str]) -> tuple[Fix, ...]:
    """The string at a place written as what was probably meant; none for what is no literal."""
    if place is None or place.line != place.end_line:
        return ()
    if place.end_column - place.column != len(text) + 2:
        return ()
    inner = replace(place, column=place.column + 1, end_column=place.end_column - 1)
    return tuple(Fix(f"write {name!r}", (Edit(inner, name),)) for name in suggest(text, names))
