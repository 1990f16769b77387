"""Which line of the generated source does a line of its PTX come from?

PTX compiled with line information holds `.loc FILE LINE COLUMN` before what a line became; code
inlined from a header says `inlined_at FILE LINE COLUMN`, which leads to the next `.loc` outward or
to the line of the kernel itself.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_FILE: Final = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.MULTILINE)
_LOC: Final = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s+\d+(.*)$")
_INLINED: Final = re.compile(r"inlined_at\s+(\d+)\s+(\d+)")


def source_line(ptx: str, number: int, file_name: str) -> int | None:
    """The line of `file_name` that PTX line `number` (from 1) is from; None if none is known."""
    ours = {index for index, path in _FILE.findall(ptx) if Path(path).name == file_name}
    for text in reversed(ptx.splitlines()[:number]):
        place = _LOC.match(text)
        if place is None:
            continue
        line = _line_of(place, ours)
        if line is not None:
            return line
    return None


def source_lines(ptx: str, file_name: str) -> list[int | None]:
    """For each line of PTX, the line of `file_name` it is from.

    Line 0 is what the compiler says of code that several lines share: it is the first one's that
    comes after it.
    """
    ours = {index for index, path in _FILE.findall(ptx) if Path(path).name == file_name}
    found: list[int | None] = []
    current: int | None = None
    shared: int | None = None  # where code begins that waits for its line
    for text in ptx.splitlines():
        place = _LOC.match(text)
        if place is not None:
            line = _line_of(place, ours)
            if line == 0:
                current, shared = None, len(found) if shared is None else shared
            elif line is not None:
                if shared is not None:
                    found[shared:] = [line] * (len(found) - shared)
                    shared = None
                current = line
        elif text.startswith(".visible") or text.strip() == "}":
            current = shared = None
        found.append(current)
    return found


def _line_of(place: re.Match[str], ours: set[str]) -> int | None:
    for index, line in ((place[1], place[2]), *_INLINED.findall(place[3])):
        if index in ours:
            return int(line)
    return None
