"""How do messages come and go? On standard input and output, each with its length before it."""

from __future__ import annotations

import asyncio
import logging
import re
import sys
from typing import IO

from pygls.io_ import StdoutWriter

from tilelang_lsp.server import TilelangServer

log = logging.getLogger(__name__)
_LENGTH = re.compile(rb"content-length:\s*(\d+)\s*$", re.I)


def serve(server: TilelangServer) -> int:
    """Answer until the editor says exit, or is gone; the exit status."""
    server.protocol.set_writer(StdoutWriter(sys.stdout.buffer))
    try:
        asyncio.run(_serve(server, sys.stdin.buffer))
    except BrokenPipeError:
        log.error("the editor is gone")
    except KeyboardInterrupt:
        pass
    finally:
        server.thread_pool.shutdown()
    return server.protocol.status or 0


async def _serve(server: TilelangServer, requests: IO[bytes]) -> None:
    loop = asyncio.get_running_loop()
    while server.protocol.status is None:
        body = await loop.run_in_executor(server.thread_pool, read_message, requests)
        if body is None:
            break
        server.protocol.receive(body)


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
