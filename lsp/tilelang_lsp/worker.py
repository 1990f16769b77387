"""Who analyses? Processes of their own, so that the server answers while a file is being read.

One reads texts, within milliseconds; another looks into kernels, which takes layout inference and
lowering. The server never waits for the compiler on its own thread. What runs too long is ended by
killing its process, and so is what is of no more use, unless it ends soon. Requests and answers are
pickles with a length before them, on the worker's standard input and output.
"""

from __future__ import annotations

import asyncio
import contextlib
import copyreg
import dataclasses
import gc
import logging
import os
import pickle
import select
import struct
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from operator import attrgetter
from typing import IO, Any

from tilelang_diagnostics import Span
from tilelang_lsp.assembly import Memory, Reading
from tilelang_lsp.model import Catalogue, Fact, Insight, Outline, Part, Symbol
from tilelang_lsp.moves import Placed
from tilelang_lsp.options import Options

TIMEOUT_SECONDS = 20.0
# Looking into one kernel; what takes longer is not asked again for that text.
LONGEST_LOOK_SECONDS = 8.0
LONGEST_START_SECONDS = 60.0
# What nobody waits for any more may take this long to end; a new process takes longer to start.
GRACE_SECONDS = 2.0
# After as long without a request, garbage of the last ones is collected: whoever passes the answer
# on comes first where processors are few. After longer, all garbage.
REST_SECONDS = 0.02
IDLE_SECONDS = 0.5
# Somebody who asks without a rest waits for that after as many requests.
COLLECT_EVERY = 4
# What survived one collection is looked at again after as many requests.
COLLECT_MORE_EVERY = 32
log = logging.getLogger(__name__)
_WARM = ("warm",)
_LENGTH = struct.Struct("<Q")
_UNINTERRUPTED = "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN)"
_SERVE = "from tilelang_lsp.worker import serve; serve()"


class WorkerFailed(Exception):
    """The worker process ended without an answer; `after` so many seconds, if it was ended."""

    def __init__(self, reason: str, after: float | None = None) -> None:
        super().__init__(reason)
        self.after = after


class _Died(WorkerFailed):
    """The process ended, and nobody here had ended it."""


class WorkerStopped(WorkerFailed):
    """Nobody asks any more: the server is shutting down."""

    def __init__(self) -> None:
        super().__init__("the server is shutting down")


class Worker:
    """The server's end. One request at a time, in order; a dead process is started again."""

    def __init__(self, timeout: float = TIMEOUT_SECONDS) -> None:
        self._timeout = timeout
        # One thread, so that requests do not overtake each other. Not the server's own pool:
        # its input is read there.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tilelang-worker")
        # Started on the worker's thread, ended on the server's: both hold the lock to do so.
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._stopped = False
        self._alarm: _Alarm | None = None
        self._is_new = False
        self._memory = Memory()
        self._warms = False
        self.killed = 0

    def start(self) -> None:
        """Start the process ahead of the first request."""
        self._running()

    async def warm(self) -> None:
        """Import all that looking into a kernel needs, ahead of the first request.

        So does each process that comes after one that was ended.
        """
        self._warms = True
        try:
            await self._ask(_WARM)
        except WorkerStopped:
            pass
        except WorkerFailed as error:
            log.error("warming up: %s", error)

    def abandon(self, grace: float = GRACE_SECONDS) -> None:
        """Nobody waits for the request under way: it ends soon, or with its process."""
        if self._alarm is not None:
            self._alarm.hurry(grace)

    async def catalogue(self) -> Catalogue:
        """The names of the language."""
        answer = await self._ask(("catalogue",))
        assert isinstance(answer, Catalogue)
        return answer

    async def analyse(self, text: str, path: str, options: Options) -> Reading:
        """What `analysis.analyse` reads of a text."""
        answer = await self._ask(("analyse", text, path, options))
        assert isinstance(answer, Reading)
        return answer

    def _whole(self, request: tuple[Any, ...], answer: tuple[str, Any]) -> tuple[str, Any]:
        """An answer with what its process knows to be here already."""
        match request, answer:
            case ("analyse", text, path, _), ("answer", message):
                return "answer", self._memory.unpack(path, text, message)
            case _:
                return answer

    async def look(
        self, text: str, path: str, kernel: str, line: int, options: Options, lower: bool
    ) -> Insight:
        """`insight.insight` of a kernel."""
        answer = await self._ask(("look", text, path, kernel, line, options, lower))
        assert isinstance(answer, Insight)
        return answer

    def stop(self) -> None:
        """End the process for good; requests in flight, and later ones, fail."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                _end(self._process)
        self._thread.shutdown(wait=False, cancel_futures=True)

    def kill(self) -> None:
        """The same at once, whatever another thread is doing to the process."""
        self._stopped = True
        if self._process is not None:
            self._process.kill()

    async def _ask(self, request: tuple[Any, ...]) -> Any:
        if self._stopped:
            raise WorkerStopped
        loop = asyncio.get_running_loop()
        answer = loop.run_in_executor(self._thread, self._exchange, request)
        try:
            # Shielded: a cancelled request must not leave its answer in the pipe for the next one.
            kind, value = await asyncio.shield(answer)
        except asyncio.CancelledError:
            if self._stopped and answer.cancelled():
                raise WorkerStopped from None
            answer.cancel()  # unless its turn has come already
            raise
        if kind == "failed":
            raise value if isinstance(value, WorkerFailed) else WorkerFailed(value)
        return value

    def _exchange(self, request: tuple[Any, ...]) -> tuple[str, Any]:
        """Send one request and wait for its answer, on the worker's thread.

        Of a process that died another one is asked: what ended it may have come from outside.
        """
        answer = self._exchange_once(request)
        match answer:
            case ("failed", _Died()):
                answer = self._exchange_once(request)
        match answer:
            case ("failed", WorkerFailed()) if self._warms and request != _WARM:
                with contextlib.suppress(RuntimeError):  # it was stopped
                    self._thread.submit(self._exchange, _WARM)
        return answer

    def _exchange_once(self, request: tuple[Any, ...]) -> tuple[str, Any]:
        process = self._running()
        if process is None:
            return "failed", WorkerStopped()
        assert process.stdin is not None and process.stdout is not None
        # A new process imports everything first, which takes as long as the machine is busy.
        is_new, self._is_new = self._is_new, False
        seconds = self._timeout + (LONGEST_START_SECONDS if is_new else 0)
        alarm = _Alarm(seconds, process.kill)
        # Ending a process that is still importing would only make the next one import again.
        if request[0] == "look" and not is_new:
            self._alarm = alarm
        try:
            send(process.stdin, request)
            return self._whole(request, receive(process.stdout))
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            with self._lock:
                _end(process)
                self._process = None
            self.killed += alarm.rang
            if self._stopped:
                return "failed", WorkerStopped()
            if alarm.rang:
                return "failed", WorkerFailed("the analysis took too long", self._timeout)
            return "failed", _Died(f"the analysis ended ({type(error).__name__})")
        finally:
            self._alarm = None
            alarm.cancel()

    def _running(self) -> subprocess.Popen[bytes] | None:
        """The process, started if there is none; None once it was stopped."""
        with self._lock:
            if self._stopped:
                return None
            if self._process is None or self._process.poll() is not None:
                self._process = subprocess.Popen(
                    # The server's own search path: the folder it was started in adds nothing.
                    # An interrupt in a terminal is for the server, which ends this one.
                    [
                        sys.executable,
                        "-c",
                        f"{_UNINTERRUPTED}; sys.path[:] = {sys.path!r}; {_SERVE}",
                    ],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
                self._is_new = True
                self._memory = Memory()
            return self._process


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()  # leaves no zombie


class _Alarm:
    """Calls `action` unless cancelled in time."""

    def __init__(self, seconds: float, action: Callable[[], None]) -> None:
        self.rang = False
        self._action = action
        self._timer = self._start(seconds)
        self._lock = threading.Lock()
        self._over = False

    def hurry(self, seconds: float) -> None:
        """Ring in `seconds` at the latest; asked again, the first time counts."""
        with self._lock:
            if not self._over and self._timer.interval > seconds:
                self._timer.cancel()
                self._timer = self._start(seconds)

    def cancel(self) -> None:
        with self._lock:
            self._over = True
            self._timer.cancel()

    def _start(self, seconds: float) -> threading.Timer:
        timer = threading.Timer(seconds, self._ring)
        timer.daemon = True
        timer.start()
        return timer

    def _ring(self) -> None:
        self.rang = True
        self._action()


def serve() -> None:
    """The worker's end: answer requests until the server closes the pipe."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Whatever prints must not end up between two answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    threading.Thread(target=_end_with_the_server, args=(requests.fileno(),), daemon=True).start()
    from tilelang_lsp.analysis import Analyser
    from tilelang_lsp.catalogue import read_catalogue

    # Garbage is collected between requests, not in the middle of one: a tenth of the time.
    analyser, memory = Analyser(), Memory()
    gc.freeze()
    gc.disable()
    for number in count(1):
        if _is_idle(requests, IDLE_SECONDS):
            gc.collect()
        try:
            request = receive(requests)
        except EOFError:
            return
        try:
            match request:
                case ("catalogue",):
                    answer: Any = read_catalogue()
                case ("analyse", text, path, options):
                    answer = memory.pack(path, *analyser.read(text, path, options))
                case ("look", text, path, kernel, line, options, lower):
                    from tilelang_lsp.insight import insight

                    answer = insight(text, path, kernel, line, options, lower)
                case ("warm",):
                    _warm()
                    answer = None
                case _:
                    raise ValueError(f"not a request: {request!r}")
            payload = ("answer", answer)
        except Exception:
            answer, payload = None, ("failed", traceback.format_exc())
        try:
            send(answers, payload)
        except BrokenPipeError:
            os._exit(0)  # nobody waits for it, nor for what the buffer still holds
        del request, answer, payload
        # Each reading leaves behind what refers to itself, and who types is never idle for long.
        if _is_idle(requests, REST_SECONDS) or number % COLLECT_EVERY == 0:
            gc.collect(1 if number % COLLECT_MORE_EVERY == 0 else 0)


def _end_with_the_server(requests: int) -> None:
    """End this process when nobody can ask it any more, also in the middle of an answer."""
    if not hasattr(select, "poll"):
        return  # then it ends with the answer
    poll = select.poll()
    poll.register(requests, 0)  # nothing but that the other end is closed
    poll.poll()
    os._exit(0)


def _is_idle(requests: IO[bytes], seconds: float) -> bool:
    """Whether nothing comes for so long; where that cannot be asked, always."""
    if sys.platform == "win32":
        return True
    return not select.select([requests], [], [], seconds)[0]


_WARMING = """
import tilelang.language as T

@T.prim_func
def warm(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
    with T.Kernel(1, threads=128) as bx:
        s = T.alloc_shared((64, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.copy(A, s)
        T.clear(c)
        T.gemm(s, s, c)
        T.copy(c, B)
"""


def _warm() -> None:
    """Look into a kernel, so that all modules are there and compiled."""
    from tilelang_lsp.insight import insight

    insight(_WARMING, "warm.py", "warm", 5, Options())


def _pickle_by_fields(*classes: type) -> None:
    """Pickle frozen values as calls of their class: the way dataclasses do it takes thrice as
    long, and most of an answer is spans."""
    for cls in classes:
        fields = attrgetter(*(f.name for f in dataclasses.fields(cls)))
        copyreg.pickle(cls, lambda value, c=cls, f=fields: (c, f(value)))  # type: ignore[misc]


_pickle_by_fields(Span, Symbol, Fact, Outline, Part, Placed)


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
