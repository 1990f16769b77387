"""What does a command say while code that is not its own takes long?"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

_PATIENCE: Final = 2.0  # seconds


@contextmanager
def told_if_slow(what: str) -> Iterator[None]:
    """`what …` on standard error after two seconds, where that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return

    def tell(*_: Any) -> None:
        print(f"{what} …", file=sys.stderr, flush=True)

    if not _has_free_alarm():
        timer = threading.Timer(_PATIENCE, tell)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
        return
    # An alarm comes through where one operation of Python's takes all the time, such as a power of
    # large numbers, and a thread does not.
    usual = signal.signal(signal.SIGALRM, tell)
    signal.setitimer(signal.ITIMER_REAL, _PATIENCE)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGALRM) is tell:  # else the code has its own use for it
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, usual)


def _has_free_alarm() -> bool:
    return (
        hasattr(signal, "setitimer")
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
        and signal.getitimer(signal.ITIMER_REAL)[0] == 0
    )
