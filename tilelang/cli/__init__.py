"""The `tilelang` command: where it begins and ends. `commands` lists its subcommands.

Exit status: 0 fine, 1 diagnostics were reported, 2 the command was written wrongly, 3 the compiler
itself failed (a reproducer is saved), 130 interrupted.

Whoever interrupts it reads one word, also while Python still loads it, or tidies up after it. So
this file imports nothing that takes time; what is loaded then cannot be unwound, and ends at once.
"""

import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: that of the process); returns the exit status."""
    usual = _interrupts(_end)
    try:
        from tilelang.cli.dispatch import run_command

        _interrupts(usual)
        return run_command(list(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    finally:
        # Of a process of its own all that is left is to end; a caller goes on as before.
        _interrupts(_end if argv is None else usual)


def _interrupts(handler: Any) -> Any:
    """Who is told of Ctrl-C from now on; gives who was. Only Python's own handler is replaced: a
    caller with another one knows what it does, and other threads are never told."""
    now = signal.getsignal(signal.SIGINT)
    if now in (signal.default_int_handler, _end):
        try:
            signal.signal(signal.SIGINT, handler)
        except ValueError:  # not the main thread
            return now
    return now


def _end(number: int, frame: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)
