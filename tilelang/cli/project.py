"""Which values does the project of a file set? The table `[tool.tilelang.set]` of pyproject.toml.

    [tool.tilelang.set]
    M = 1024
    dtype = "float16"

They are for every kernel of the project that has a parameter or dimension of that name.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilelang_diagnostics import failure

_HELP = "write NAME = VALUE below [tool.tilelang.set]; values are numbers, strings, bools or arrays"


def project_values(file: Path) -> dict[str, Any]:
    """What the nearest pyproject.toml at or above `file` sets; TL725 for what it cannot."""
    found = next((p for p in _candidates(file) if p.is_file()), None)
    if found is None:
        return {}
    try:
        data = tomllib.loads(found.read_text(encoding="utf-8"))
    except OSError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise failure("TL725", f"`{found}` is not valid TOML: {error}", help=_HELP) from None
    section = data.get("tool", {})
    section = section.get("tilelang", {}) if isinstance(section, Mapping) else {}
    values = section.get("set", {}) if isinstance(section, Mapping) else section
    if not isinstance(values, Mapping):
        raise failure("TL725", f"`set` of [tool.tilelang] in `{found}` is no table", help=_HELP)
    for name, value in values.items():
        if not name.isidentifier() or not isinstance(value, bool | int | float | str | list):
            raise failure("TL725", f"`{name}` of [tool.tilelang.set] in `{found}` is no value",
                          help=_HELP)  # fmt: skip
    return {n: tuple(v) if isinstance(v, list) else v for n, v in values.items()}


def _candidates(file: Path) -> list[Path]:
    try:
        folder = file.resolve().parent
    except (OSError, RuntimeError, ValueError):
        return []
    return [p / "pyproject.toml" for p in (folder, *folder.parents)]
