"""What does the project of a file say? The table `[tool.tilelang]` of the nearest pyproject.toml.

    [tool.tilelang.set]
    M = 1024
    dtype = "float16"

Values set there are for every kernel of the project that has a parameter or dimension of that name.
What else the table holds is for `tilelang lint` and editors (`tilelang_lint/settings.py`).
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilelang_diagnostics import failure

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
    tool = tomllib.loads(text).get("tool", {})
    return tool.get("tilelang", {}) if isinstance(tool, Mapping) else {}


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
        raise failure("TL725", f"`{found}` is not valid TOML: {error}", help=_HELP) from None
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
