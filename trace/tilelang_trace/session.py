"""How are all compilations of a program recorded, from Python?

    with tilelang_trace.record() as t:
        kernel = tilelang.compile(matmul, target="cuda:sm_90a")
    t.traces[0].step("insert_sync")
    t.save("traces")            # one file a compilation

While it lasts, kernels are compiled and not taken from a cache; kernels that this process has
compiled before are not compiled again. Threads that record at once each get their own compilations;
threads that record nothing, such as those of a pool, are recorded by whoever does.
"""

from __future__ import annotations

import os
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO, Final

from tilelang.options import CompileOptions
from tilelang.program.stmt import Function
from tilelang.target import Target
from tilelang.watching import watching
from tilelang_trace.columns import with_machine_code
from tilelang_trace.model import Trace
from tilelang_trace.ndjson import dump
from tilelang_trace.recorder import Recorder

_UNSAFE: Final = re.compile(r"[^\w.-]+")
_numbers = count(1)
_lock = threading.Lock()


class Recording:
    """The traces of the compilations since it began; `trace` is the only or last one."""

    def __init__(self, folder: Path | None = None, code: bool = True) -> None:
        self._folder, self._code = folder, code
        self._recorders: list[Recorder] = []
        self._shown: dict[int, Trace] = {}  # by recorder, once somebody has looked
        self.files: list[Path] = []

    @property
    def traces(self) -> tuple[Trace, ...]:
        """One a compilation, in their order."""
        return tuple(map(self._trace_of, self._recorders))

    @property
    def trace(self) -> Trace:
        """The last one; IndexError if nothing was compiled."""
        return self._trace_of(self._recorders[-1])

    def _trace_of(self, recorder: Recorder) -> Trace:
        if not recorder.is_closed:
            return recorder.trace
        if id(recorder) not in self._shown:
            self._shown[id(recorder)] = with_machine_code(recorder.trace)
        return self._shown[id(recorder)]

    def start(self, function: Function, target: Target, options: CompileOptions) -> Recorder:
        """A watcher: called for each compilation."""
        sink: Callable[[str], object] | None = None
        if self._folder is not None:
            path, file = _new_file(self._folder, function.name, str(target))
            self.files.append(path)
            sink = _flushing(file)
        recorder = Recorder(function, target, options, sink, code=self._code, disassembled=False)
        if self._folder is None:
            self._recorders.append(recorder)
        return recorder

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Write a file for each trace; raises OSError."""
        saved = []
        for trace in self.traces:
            path, file = _new_file(Path(folder), trace.kernel, trace.target)
            with file:
                file.writelines(dump(trace))
            saved.append(path)
        return tuple(saved)


@contextmanager
def record(folder: str | Path | None = None, *, code: bool = True) -> Iterator[Recording]:
    """Record every compilation inside.

    With a folder each goes to a file of its own as it happens, and nothing is kept in memory.
    `code`: keep what is below the IR too: generated source, PTX and the binary, of which whoever
    looks at the trace sees the machine code.
    """
    recording = Recording(None if folder is None else Path(folder), code)
    with watching(recording.start):
        yield recording


def _new_file(folder: Path, kernel: str, target: str) -> tuple[Path, IO[str]]:
    """A file that no other compilation writes to; kernels may be called anything."""
    folder.mkdir(parents=True, exist_ok=True)
    name = _UNSAFE.sub("-", f"{kernel}-{target}").strip("-.")[:80] or "kernel"
    while True:
        with _lock:
            number = next(_numbers)
        path = folder / f"{os.getpid()}-{number:04d}-{name}.ndjson"
        try:
            return path, path.open("x", encoding="utf-8", errors="backslashreplace")
        except FileExistsError:
            continue


def _flushing(file: IO[str]) -> Callable[[str], object]:
    """Each record reaches the file at once, and the last one closes it, or one that cannot be
    written: the compilation is not at fault."""

    def write(line: str) -> None:
        if file.closed:
            return
        try:
            file.write(line)
            file.flush()
            if line.startswith('{"record":"end"'):
                file.close()
        except OSError as error:
            warnings.warn(f"a trace was cut off: {file.name}: {error.strerror}", stacklevel=2)
            with suppress(OSError):
                file.close()

    return write
