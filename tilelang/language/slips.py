"""Which fix has a string that is nearly one of those that there are?"""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from dataclasses import replace

from tilelang.program.context import users_place
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


def literal_in_call(text: str) -> Span | None:
    """Where the call that Python is making says a string, as in a signature that it evaluates;
    None where that is not certain."""
    call = users_place()
    if call is None or call.line != call.end_line:
        return None
    line = linecache.getline(call.file, call.line)
    said = line.encode()[call.column - 1 : call.end_column - 1].decode(errors="replace")
    found = [said.find(f"{quote}{text}{quote}") for quote in "'\""]
    at = max(found)
    if not line.isascii() or at < 0 or min(found) >= 0 or said.count(text) > 1:
        return None
    start = call.column + at
    return replace(call, column=start, end_column=start + len(text) + 2)
