"""`tilelang lsp`: start the language server on standard input and output."""

from __future__ import annotations

import argparse
import gc
import logging
import sys
from collections.abc import Sequence

from tilelang_lsp.ending import leave_at_once, on_signals

_TURN_SECONDS = 0.0005
# Objects until garbage is looked for: an answer makes some thousands that are not.
_UNTIL_COLLECTION = 20_000
_DESCRIPTION = """\
Language server for kernels: diagnostics, hints, hover, completion, signatures, definitions.
It speaks the Language Server Protocol on standard input and output; editors start it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until the editor says exit, and end the process; the result of bad arguments."""
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit as stop:  # argparse has printed why
        return int(stop.code or 0)
    on_signals(leave_at_once)
    from tilelang_lsp.worker import LONGEST_LOOK_SECONDS, Worker

    level = getattr(logging, arguments.log_level.upper())
    logging.basicConfig(
        filename=arguments.log_file, level=level, format="%(asctime)s %(levelname)s %(message)s"
    )
    # pygls logs the whole text of every message at INFO, and answered cancellations as warnings.
    quiet = logging.WARNING if level <= logging.DEBUG else logging.ERROR
    logging.getLogger("pygls").setLevel(quiet)
    worker, looker = Worker(), Worker(LONGEST_LOOK_SECONDS)
    # lsprotocol takes most of a second to import: the worker imports the compiler meanwhile.
    worker.start()
    try:
        from tilelang.version import VERSION
        from tilelang_lsp.server import make_server
        from tilelang_lsp.transport import serve

        # Threads that read messages and answers do not wait the usual 5 ms for their turn.
        sys.setswitchinterval(_TURN_SECONDS)
        server = make_server(worker, VERSION, looker)
        # What is there now stays: looking through it would hold up an answer now and then.
        gc.collect()
        gc.freeze()
        gc.set_threshold(_UNTIL_COLLECTION)
        serve(server)
    finally:
        worker.stop()
        looker.stop()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tilelang lsp",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--stdio", action="store_true", help="the default and only way; accepted for editors"
    )
    parser.add_argument("--log-file", help="write the log there instead of to standard error")
    parser.add_argument(
        "--log-level", default="warning", choices=("debug", "info", "warning", "error")
    )
    return parser
