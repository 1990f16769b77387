"""Which tools does compute-sanitizer have? Apart, since the command line asks before it runs."""

from __future__ import annotations

from typing import Final, Literal, get_args

Tool = Literal["memcheck", "racecheck", "initcheck", "synccheck"]
TOOLS: Final[tuple[Tool, ...]] = get_args(Tool)
