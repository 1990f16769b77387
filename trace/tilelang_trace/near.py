"""How is a file named in a reason? As seen from the file that is traced."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from tilelang_diagnostics import Span


def near(text: str, places: Iterable[Span | None], traced: str) -> str:
    """A reason with the files of `places` named from the folder of `traced`."""
    if not traced:
        return text
    folder = os.path.dirname(os.path.abspath(traced))
    for file in {p.file for p in places if p is not None and os.path.isabs(p.file)}:
        try:
            short = Path(os.path.relpath(file, folder)).as_posix()
        except ValueError:  # on another drive
            continue
        text = text.replace(f" at {file}:", f" at {short}:")
    return text
