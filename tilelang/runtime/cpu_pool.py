"""How do several cores work on one launch?

Every worker calls the compiled function once; the function itself draws blocks from a shared
counter until none is left. Calls into compiled code release the GIL, so plain Python threads run
on all cores. The calling thread takes part and never waits for a helper that has not started.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable


class Job:
    """Work that any number of threads may take part in until the caller is done with it."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._open = True
        self._active = 0
        self._idle = threading.Condition()
        self._error: BaseException | None = None

    def help(self) -> None:
        """Take part, unless the job is over already."""
        with self._idle:
            if not self._open:
                return
            self._active += 1
        self._attempt()
        with self._idle:
            self._active -= 1
            if self._active == 0:
                self._idle.notify_all()

    def finish(self) -> None:
        """Take part, then wait for helpers still at work; raises what any of them raised.

        An interrupt does not end the wait: running helpers use the caller's memory.
        """
        self._attempt()
        with self._idle:
            self._open = False
            while self._active:
                try:
                    self._idle.wait()
                except BaseException as raised:
                    self._error = self._error or raised
        if self._error is not None:
            raise self._error

    def _attempt(self) -> None:
        try:
            self._work()
        except BaseException as raised:
            self._error = self._error or raised


class Pool:
    """Threads that help with jobs. Made on first use and again after a fork."""

    def __init__(self) -> None:
        self._size: int | None = None
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._helpers = 0
        self._lock = threading.Lock()

    def workers(self) -> int:
        """How many threads run blocks, the caller included."""
        return self._size or available_cores()

    def resize(self, workers: int | None) -> None:
        """Use `workers` threads; None for one per core this process may use."""
        if workers is not None and workers < 1:
            raise ValueError(f"need at least one worker, got {workers}")
        self._size = workers

    def run(self, workers: int, work: Callable[[], None]) -> None:
        """Call `work` on this thread and on up to `workers - 1` others at the same time."""
        if workers <= 1:
            work()
            return
        self._grow(workers - 1)
        job = Job(work)
        for _ in range(workers - 1):
            self._jobs.put(job)
        job.finish()

    def _grow(self, helpers: int) -> None:
        with self._lock:
            while self._helpers < helpers:
                self._helpers += 1
                name = f"tilelang-cpu-{self._helpers}"
                threading.Thread(target=self._help, name=name, daemon=True).start()

    def _help(self) -> None:
        jobs = self._jobs
        while (job := jobs.get()) is not None:
            job.help()

    def forget_threads(self) -> None:
        """After a fork the child has none of the parent's threads."""
        self._jobs = queue.SimpleQueue()
        self._helpers = 0
        self._lock = threading.Lock()


def available_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


POOL = Pool()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL.forget_threads)
