"""Which external programs are here, and what do they print?"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

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


def run_group(
    command: Sequence[str], limit: float | None, cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Run `command`; it and all that it started are ended where it raises, as it does with
    subprocess.TimeoutExpired after `limit` seconds."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
        start_new_session=True, cwd=cwd, env=env,
    ) as process:  # fmt: skip
        try:
            output, errors = process.communicate(timeout=limit)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def output_of(command: Sequence[str]) -> str | None:
    """What `command` prints, stripped; None when it fails, is missing, or hangs."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=True, errors="replace"
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
