"""How does a file get to its place, or come from there?

What is written at once is written beside its place and renamed: of two that write at the same time
one wins, and the file is whole. What is written as it comes about has to be found where it was
asked for, whatever ends the process: such a file is locked, and refused to whoever comes second.
Names of files may hold bytes that are no text; these are written as `\\udcff`, as JSON does.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

import click

from tilelang.cli.whole_files import write_whole

LARGEST: Final = 1 << 30  # bytes of a file that is read
_ESCAPED: Final = "backslashreplace"


def saved(path: str | Path, text: str) -> None:
    """Write a file at once; raises OSError."""
    write_whole(path, text.encode("utf-8", _ESCAPED))


@contextmanager
def streamed(output: str) -> Iterator[Callable[[str], object]]:
    """Takes lines of a file, each there at once, up to the end; a usage error then says what was
    not written. `-` is standard output."""
    try:
        file = sys.stdout if output == "-" else _locked(output)
    except OSError as error:
        raise click.UsageError(f"cannot write {output}: {error.strerror}") from None
    failed: list[OSError] = []

    def write(line: str) -> None:
        if failed:
            return  # the compilation, which this is called from, is not at fault
        try:
            file.write(line)
            file.flush()
        except OSError as error:
            failed.append(error)

    try:
        yield write
    finally:
        if output != "-":
            with suppress(OSError):
                file.close()
    if failed and output == "-":
        raise failed[0]
    if failed:
        raise click.UsageError(f"cannot write {output}: {failed[0].strerror}")


def _locked(output: str) -> IO[str]:
    """An empty file that nobody else of us writes to until it is closed."""
    file = open(output, "a", encoding="utf-8", errors=_ESCAPED)  # noqa: SIM115
    try:
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            _lock(file, output)
            file.truncate(0)
    except BaseException:
        file.close()
        raise
    return file


def _lock(file: IO[str], output: str) -> None:
    try:
        import fcntl
    except ImportError:  # on Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise click.UsageError(
            f"another process is writing {output}: name another file, or wait for it"
        ) from None
    except OSError:  # a file system without locks
        return


def readable(path: str | Path) -> None:
    """UsageError for a device or a pipe, of which there may be no end, and for what is too large.

    What is not there, or may not be read, is told by reading it.
    """
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "no regular file"
        raise click.UsageError(f"cannot read {path}: it is {kind}")
    if found.st_size > LARGEST:
        raise click.UsageError(f"cannot read {path}: it has more than {LARGEST >> 30} GiB")
