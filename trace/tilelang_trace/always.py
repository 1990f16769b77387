"""What TILELANG_TRACE=FOLDER loads: every compilation of the program leaves its trace there.

It is imported by name when the first kernel is compiled (`tilelang.watching`), and registers itself
once. A folder that cannot be written to is one warning: the program is not at fault.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tilelang import options, watching
from tilelang_trace.session import Recording


def problem_of(folder: str) -> str:
    """Why no trace can be left in a folder; "" where they can, made if it was not there."""
    if not folder.strip():
        return "it names no folder"
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        return "it is no folder"
    except OSError as error:
        return (error.strerror or str(error)).lower()
    except ValueError as error:
        return str(error)
    return "" if os.access(folder, os.W_OK | os.X_OK) else "permission denied"


def watch_all() -> None:
    """Record what this process compiles from now on."""
    folder = options.TRACE.get()
    problem = problem_of(folder)
    if problem:
        print(f"tilelang: nothing is recorded: TILELANG_TRACE={folder!r}: {problem}",
              file=sys.stderr)  # fmt: skip
        return
    recording = Recording(Path(folder))
    watching.WATCHERS.append(recording.start)
    watching.INHERITED.append(recording.start)
    if options.VERBOSE.get():
        print(f"tilelang: traces go to {folder}", file=sys.stderr)


watch_all()
