"""What does the project of a file say? The table `[tool.tilelang]` of the nearest pyproject.toml.

    [tool.tilelang.set]
    M = 1024
    dtype = "float16"

Values set there are for every kernel of the project that has a parameter or dimension of that name.
What else the table holds is for `tilelang lint` and editors (`tilelang_lint/settings.py`).
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilelang_diagnostics import failure
from tilelang_diagnostics.model import Span

NAME = "pyproject.toml"
_HELP = "write NAME = VALUE below [tool.tilelang.set]; values are numbers, strings, bools or arrays"


def nearest(file: str | Path) -> Path | None:
    """The pyproject.toml in the folder of a file, or in the nearest one above that has any."""
    try:
        folders = Path(os.path.abspath(file)).parents
        return next((p / NAME for p in folders if os.path.isfile(p / NAME)), None)
    except ValueError:  # a null byte in the name
        return None


def table_of(text: str) -> object:
    """`[tool.tilelang]` of a pyproject.toml, whatever stands there; TOMLDecodeError for no TOML."""
    tool = parse_toml(text).get("tool", {})
    return tool.get("tilelang", {}) if isinstance(tool, Mapping) else {}


def parse_toml(text: str) -> dict[str, Any]:
    """What TOML says. All that it cannot is a TOMLDecodeError which names a line.

    `tomllib` lets errors of Python's out: of `int` for a number of more than 4,300 digits, of the
    interpreter for brackets in brackets.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:
        place = _longest_number(text)
        message = "a number has too many digits"
    except RecursionError:
        place = _deepest_bracket(text)
        message = "brackets nest too deeply"
    line = text.count("\n", 0, place) + 1
    column = place - text.rfind("\n", 0, place)
    raise tomllib.TOMLDecodeError(f"{message} (at line {line}, column {column})")


def _longest_number(text: str) -> int:
    """Where the digits begin that `int` refuses: nothing else in TOML comes near as many."""
    numbers = re.finditer(r"[0-9][0-9_]*", text)
    return max(numbers, key=lambda found: found.end() - found.start()).start()


def _deepest_bracket(text: str) -> int:
    """Where the brackets open that hold the deepest one."""
    depth, deepest, opened, found = 0, 0, 0, 0
    for match in re.finditer(r"[\[{\]}]", text):
        if match[0] in "[{":
            opened = match.start() if depth == 0 else opened
            depth += 1
            if depth > deepest:
                deepest, found = depth, opened
        else:
            depth = max(0, depth - 1)
    return found


def project_values(file: Path) -> dict[str, Any]:
    """What the nearest pyproject.toml at or above `file` sets; TL725 for what it cannot."""
    found = nearest(file)
    if found is None:
        return {}
    try:
        table = table_of(found.read_text(encoding="utf-8"))
    except OSError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        where = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line, column = (int(where[1]), int(where[2])) if where else (1, 1)
        raise failure("TL725", f"`{found}` is not valid TOML: {error}", help=_HELP,
                      span=Span(str(found), line, column, line, column + 1)) from None  # fmt: skip
    if not isinstance(table, Mapping):
        raise failure("TL725", f"`[tool.tilelang]` in `{found}` is no table", help=_HELP)
    values = table.get("set", {})
    if not isinstance(values, Mapping):
        raise failure("TL725", f"`set` of [tool.tilelang] in `{found}` is no table", help=_HELP)
    for name, value in values.items():
        if not is_value(name, value):
            raise failure("TL725", f"`{name}` of [tool.tilelang.set] in `{found}` is no value",
                          help=_HELP)  # fmt: skip
    return values_of(values)


def values_of(table: object) -> dict[str, Any]:
    """What `[tool.tilelang.set]` sets, without what it cannot."""
    if not isinstance(table, Mapping):
        return {}
    known = {n: value for n, value in table.items() if is_value(n, value)}
    return {n: tuple(v) if isinstance(v, list) else v for n, v in known.items()}


def is_value(name: str, value: object) -> bool:
    """Whether `name = value` can be set."""
    return name.isidentifier() and isinstance(value, bool | int | float | str | list)
