"""How do messages come and go? On standard input and output, each with its length before it."""

from __future__ import annotations

import asyncio
import logging
import re
import sys
import threading
from collections.abc import Callable
from typing import IO, NoReturn

from tilelang_lsp import ending
from tilelang_lsp.server import TilelangServer

log = logging.getLogger(__name__)
_LENGTH = re.compile(rb"content-length:\s*(\d+)\s*$", re.I)


class _Writer:
    """Standard output; `gone` is called when nobody reads it any more."""

    def __init__(self, stream: IO[bytes], gone: Callable[[], None]) -> None:
        self._stream, self._gone = stream, gone

    def write(self, data: bytes) -> None:
        try:
            self._stream.write(data)
            self._stream.flush()
        except (BrokenPipeError, ValueError):
            self._gone()

    def close(self) -> None:
        self._stream.close()


def serve(server: TilelangServer) -> NoReturn:
    """Answer until the editor says exit, or is gone, or a signal comes; then the process ends."""
    loop = asyncio.new_event_loop()
    status = loop.run_until_complete(_serve(server, sys.stdin.buffer))
    # The loop stays open: closing it waits for threads, and complains of what is under way.
    ending.leave(status)


async def _serve(server: TilelangServer, requests: IO[bytes]) -> int:
    loop, over, protocol = asyncio.get_running_loop(), asyncio.Event(), server.protocol

    def end(status: int) -> None:
        if protocol.status is None:
            protocol.status = status
        ending.bounded(server, protocol.status)
        loop.call_soon_threadsafe(over.set)

    def take(body: bytes | None, taken: threading.Event) -> None:
        if body is not None and protocol.status is None:
            protocol.receive(body)
        if body is None or protocol.status is not None:
            over.set()
        taken.set()

    protocol.set_writer(_Writer(sys.stdout.buffer, over.set))
    ending.on_signals(end)
    reader = threading.Thread(target=_read, args=(requests, loop, take), daemon=True)
    reader.start()
    await over.wait()
    status = protocol.status or 0
    ending.bounded(server, status)
    loop.set_exception_handler(_quiet)
    await server.end()
    return status


def _quiet(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    log.debug("at the end: %s", context.get("message"))


def _read(
    requests: IO[bytes],
    loop: asyncio.AbstractEventLoop,
    take: Callable[[bytes | None, threading.Event], None],
) -> None:
    """Hand over messages, the next one when that is taken; None when there are no more."""
    body: bytes | None = b""
    while body is not None:
        try:
            body = read_message(requests)
        except (OSError, ValueError):
            body = None
        taken = threading.Event()
        loop.call_soon_threadsafe(take, body, taken)
        taken.wait()


def read_message(stream: IO[bytes]) -> bytes | None:
    """The body of the next message, None where there is none; what is no header is skipped."""
    length: int | None = None
    while True:
        line = stream.readline()
        if not line:
            return None
        found = _LENGTH.search(line)
        if found is not None:
            length = int(found[1])
        elif not line.strip() and length is not None:
            body = stream.read(length)
            return body if len(body) == length else None
