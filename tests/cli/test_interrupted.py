"""A file whose import never ends: the command says so on a terminal, and Ctrl-C ends it cleanly."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tilelang.cli import main
from tilelang.options import child_environment

pytestmark = pytest.mark.skipif(
    os.name == "nt" or signal.getsignal(signal.SIGINT) is signal.SIG_IGN,
    reason="there are no such terminals, or Ctrl-C is ignored by whoever started the tests",
)

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


INTERRUPT = "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(9)"
ATEXIT = f"""
import atexit, sys
from tilelang.cli import main
atexit.register(lambda: exec({INTERRUPT!r}))
sys.argv = ["tilelang", "--version"]
sys.exit(main())
"""


@pytest.mark.parametrize("when", ["loading", "ended"])
def test_it_can_be_interrupted_while_python_loads_it_and_after_its_end(
    tmp_path: Path, when: str
) -> None:
    (tmp_path / "click.py").write_text(INTERRUPT)
    code = ATEXIT if when == "ended" else "from tilelang.cli import main; main()"
    more = str(tmp_path) if when == "loading" else ""
    path = os.pathsep.join([more, *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, env=child_environment() | {"PYTHONPATH": path}, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_the_handler_of_a_caller_stays() -> None:
    before = signal.getsignal(signal.SIGINT)
    assert main(["--version"]) == 0
    assert signal.getsignal(signal.SIGINT) is before
    ours = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert main(["--version"]) == 0
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, ours)


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
