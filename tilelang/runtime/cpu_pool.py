"""How are the blocks of a launch spread over the cores?

The calling thread takes part and never waits for a helper that has not started: helpers and
caller draw chunks of blocks from one counter until none is left. Calls into compiled code release
the GIL, so plain Python threads run on all cores.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable

_CHUNKS_PER_WORKER = 4


class Job:
    """Blocks [0, blocks) to be run in chunks by whoever comes; `run(begin, end)` runs a chunk.

    `run` returns nonzero to stop the job; the first such value is kept in `status`.
    """

    def __init__(self, blocks: int, workers: int, run: Callable[[int, int], int]) -> None:
        self._blocks = blocks
        self._chunk = max(1, blocks // (workers * _CHUNKS_PER_WORKER))
        self._run = run
        self._next = 0
        self._active = 0
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self.status = 0
        self.error: BaseException | None = None

    def work(self) -> None:
        """Run chunks until none is left."""
        while (begin := self._take()) is not None:
            status, error = 0, None
            try:
                status = self._run(begin, min(self._blocks, begin + self._chunk))
            except BaseException as raised:
                error = raised
            self._done(status, error)

    def _take(self) -> int | None:
        with self._lock:
            if self._next >= self._blocks or self.status or self.error:
                return None
            begin = self._next
            self._next += self._chunk
            self._active += 1
            return begin

    def _done(self, status: int, error: BaseException | None) -> None:
        with self._lock:
            self.status = self.status or status
            self.error = self.error or error
            self._active -= 1
            if self._active == 0:
                self._idle.notify_all()

    def wait(self) -> int:
        """Block until no chunk is running; the status, or the exception a chunk raised.

        An interrupt stops the job but still waits: running chunks use the caller's memory.
        """
        with self._lock:
            while self._active:
                try:
                    self._idle.wait()
                except BaseException as raised:
                    self.error = self.error or raised
        if self.error is not None:
            raise self.error
        return self.status


class Pool:
    """Threads that help with jobs. Made on first use and again after a fork."""

    def __init__(self) -> None:
        self._size: int | None = None
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._helpers = 0
        self._lock = threading.Lock()

    def workers(self) -> int:
        """How many threads run blocks, the caller included."""
        return self._size or _cores()

    def resize(self, workers: int | None) -> None:
        """Use `workers` threads; None for one per core this process may use."""
        if workers is not None and workers < 1:
            raise ValueError(f"need at least one worker, got {workers}")
        self._size = workers

    def run(self, blocks: int, run: Callable[[int, int], int]) -> int:
        """Run all blocks; returns the first nonzero status."""
        workers = min(self.workers(), blocks)
        if workers <= 1:
            return run(0, blocks)
        self._grow(workers - 1)
        job = Job(blocks, workers, run)
        for _ in range(workers - 1):
            self._jobs.put(job)
        job.work()
        return job.wait()

    def _grow(self, helpers: int) -> None:
        with self._lock:
            while self._helpers < helpers:
                self._helpers += 1
                name = f"tilelang-cpu-{self._helpers}"
                threading.Thread(target=self._help, name=name, daemon=True).start()

    def _help(self) -> None:
        jobs = self._jobs
        while (job := jobs.get()) is not None:
            job.work()

    def forget_threads(self) -> None:
        """After a fork the child has none of the parent's threads."""
        self._jobs = queue.SimpleQueue()
        self._helpers = 0
        self._lock = threading.Lock()


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


POOL = Pool()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL.forget_threads)
