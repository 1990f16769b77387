"""Who analyses? A process of its own, so that the server answers while a file is being read.

The server never waits for the compiler on its own thread, and an analysis that runs too long is
ended by killing the process. Requests and answers are pickles with a length before them, on the
worker's standard input and output.
"""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import struct
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

from tilelang_lsp.model import Analysis, Catalogue

TIMEOUT_SECONDS = 20.0
_LENGTH = struct.Struct("<Q")
_SERVE = "from tilelang_lsp.worker import serve; serve()"


class WorkerFailed(Exception):
    """The worker process ended, or was ended, without an answer."""


class Worker:
    """The server's end. One request at a time, in order; a dead process is started again."""

    def __init__(self, timeout: float = TIMEOUT_SECONDS) -> None:
        self._timeout = timeout
        # One thread, so that requests do not overtake each other. Not the server's own pool:
        # its input is read there.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tilelang-worker")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process ahead of the first request."""
        self._running()

    async def catalogue(self) -> Catalogue:
        """The names of the language."""
        answer = await self._ask(("catalogue",))
        assert isinstance(answer, Catalogue)
        return answer

    async def analyse(
        self, text: str, path: str, values: Mapping[str, Any], target: str | None
    ) -> Analysis:
        """`analysis.analyse` of a text."""
        answer = await self._ask(("analyse", text, path, dict(values), target))
        assert isinstance(answer, Analysis)
        return answer

    def stop(self) -> None:
        """End the process; requests in flight fail."""
        if self._process is not None:
            self._process.kill()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _ask(self, request: tuple[Any, ...]) -> Any:
        loop = asyncio.get_running_loop()
        answer = loop.run_in_executor(self._thread, self._exchange, request)
        # Shielded: a cancelled request must not leave its answer in the pipe for the next one.
        kind, value = await asyncio.shield(answer)
        if kind == "failed":
            raise WorkerFailed(value)
        return value

    def _exchange(self, request: tuple[Any, ...]) -> tuple[str, Any]:
        """Send one request and wait for its answer, on the worker's thread."""
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        alarm = _Alarm(self._timeout, process.kill)
        try:
            send(process.stdin, request)
            answer: tuple[str, Any] = receive(process.stdout)
            return answer
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            process.kill()
            process.wait()
            self._process = None
            reason = "took too long" if alarm.rang else f"ended ({type(error).__name__})"
            return "failed", f"the analysis {reason}"
        finally:
            alarm.cancel()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                # The server's own search path, so that the folder it was started in adds nothing.
                [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {_SERVE}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        return self._process


class _Alarm:
    """Calls `action` unless cancelled in time."""

    def __init__(self, seconds: float, action: Callable[[], None]) -> None:
        self.rang = False
        self._action = action
        self._timer = threading.Timer(seconds, self._ring)
        self._timer.daemon = True
        self._timer.start()

    def _ring(self) -> None:
        self.rang = True
        self._action()

    def cancel(self) -> None:
        self._timer.cancel()


def serve() -> None:
    """The worker's end: answer requests until the server closes the pipe."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Whatever prints must not end up between two answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    from tilelang_lsp.analysis import analyse
    from tilelang_lsp.catalogue import read_catalogue

    # Garbage is collected between requests, not in the middle of one: a tenth of the time.
    gc.freeze()
    gc.disable()
    while True:
        gc.collect()
        try:
            request = receive(requests)
        except EOFError:
            return
        try:
            match request:
                case ("catalogue",):
                    answer: Any = read_catalogue()
                case ("analyse", text, path, values, target):
                    answer = analyse(text, path, values, target, _project(path))
                case _:
                    raise ValueError(f"not a request: {request!r}")
            payload = ("answer", answer)
        except Exception:
            payload = ("failed", traceback.format_exc())
        send(answers, payload)


def _project(path: str) -> dict[str, Any]:
    """What the project of a file sets; nothing where its pyproject.toml cannot be read."""
    from tilelang.cli.project import project_values
    from tilelang_diagnostics import CompileError

    try:
        return project_values(Path(path))
    except CompileError as error:
        print(error, file=sys.stderr)
        return {}


def send(stream: IO[bytes], message: object) -> None:
    """Write one message."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Read one message; EOFError when the other end is gone."""
    header = stream.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(header)
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return pickle.loads(data)
