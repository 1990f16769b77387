"""Which external programs are here, and what do they print?"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence

from tilelang import options

_SECONDS = 10.0


def find_program(*names: str) -> str | None:
    """The path of the first of `names` that is installed."""
    path = options.SEARCH_PATH.get()
    return next((found for name in names if (found := shutil.which(name, path=path))), None)


def command_of(text: str) -> tuple[str, ...]:
    """The words of a command in a variable such as CC: `ccache gcc`, or one path with spaces."""
    if os.path.exists(text):
        return (text,)
    try:
        return tuple(shlex.split(text))
    except ValueError:  # a quote that is not closed
        return (text,)


def output_of(command: Sequence[str]) -> str | None:
    """What `command` prints, stripped; None when it fails, is missing, or hangs."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=True, errors="replace"
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
