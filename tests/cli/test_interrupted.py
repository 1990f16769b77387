"""A file whose import never ends: the command says so on a terminal, and Ctrl-C ends it cleanly."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tilelang.options import child_environment

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there are no such terminals")

# Python does the power in one operation, in which no other thread runs.
ENDLESS = {"N = 10**10**8": "trace", "while True: pass": "compile"}


@pytest.mark.parametrize("line", ENDLESS)
def test_an_endless_import_is_told_of_and_can_be_interrupted(tmp_path: Path, line: str) -> None:
    file = tmp_path / "endless.py"
    file.write_text(f"import tilelang.language as T\n\n{line}\n")
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tilelang", ENDLESS[line], str(file)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs, env=child_environment(),
    )  # fmt: skip
    os.close(theirs)
    giving_up = threading.Timer(120, process.kill)
    giving_up.start()
    try:
        with os.fdopen(ours, encoding="utf-8") as terminal:
            assert terminal.readline().strip() == f"importing {file} …"
            process.send_signal(signal.SIGINT)
            rest = _until_closed(terminal.fileno())
        out, _ = process.communicate()
    finally:
        giving_up.cancel()
        process.kill()
    assert rest.strip() == f"interrupted while importing {file}, in line 3"
    assert (process.returncode, out) == (130, b"")


def _until_closed(terminal: int) -> str:
    """What is written until nobody has the terminal open, which Linux tells by an error."""
    found = b""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:
            part = b""
        if not part:
            return found.decode()
        found += part
