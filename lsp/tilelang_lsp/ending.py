"""How does the server end? Within two seconds, and with it all that it started.

The editor says exit, its end of the pipe is closed, or a signal comes. Commands that were clicked
are ended and what they wrote is removed, then the processes that analyse end. A thread that waits
for input or walks through folders is not waited for.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from tilelang_lsp.server import TilelangServer

log = logging.getLogger(__name__)
# What an orderly end may take before the process ends all the same.
LONGEST_END_SECONDS = 1.5
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def on_signals(end: Callable[[int], None]) -> None:
    """Have `end` called with the exit status when somebody wants the process to end."""

    def handle(number: int, _: FrameType | None) -> None:
        end(128 + number)

    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            signal.signal(number, handle)


def leave_at_once(status: int) -> None:
    """Before there is a server: whoever started something ends it."""
    raise SystemExit(status)


def bounded(server: TilelangServer, status: int) -> None:
    """Begin the end: after a while the process ends, whatever it still does."""

    def over() -> None:
        log.warning("the server ends in the middle of something")
        server.runs.kill()
        server.worker.kill()
        if server.looker is not None:
            server.looker.kill()
        leave(status)

    timer = threading.Timer(LONGEST_END_SECONDS, over)
    timer.daemon = True
    timer.start()


def leave(status: int) -> NoReturn:
    """End this process now, whatever its threads wait for."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)
