"""How is generated source compiled for the processor, and run once?

The tensors are copied to a file that the emulator's process maps; when all went well, what the
kernel writes is copied back.
"""

from __future__ import annotations

import errno
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tilelang import options
from tilelang.codegen.device_source import DeviceSource
from tilelang.codegen.host_expr import evaluate
from tilelang.emulator.call import Memory, Region, write_call
from tilelang.emulator.reports import code_lines, findings, read_reports
from tilelang.emulator.settings import Emulator
from tilelang.emulator.source import host_source, written_tensors
from tilelang.emulator.toolchain import (
    Compiler,
    CompilerError,
    find_compiler,
    kernel_library,
    runtime_program,
)
from tilelang.emulator.traffic import TRAFFIC, Checked, traffic_of
from tilelang.runtime.cpu_pool import available_cores
from tilelang.runtime.foreign_errors import authors_errors
from tilelang.runtime.programs import run_group
from tilelang.runtime.tensors import size_text
from tilelang_diagnostics import error_for, failure

# Where memory is a file system: tensors never touch a disk.
_SHARED: Final = Path("/dev/shm")
_ERROR: Final = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.*)$"
)
# What a kernel is compiled for, as a message names it.
_HERE: Final = "the emulator"
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM)


def launch(
    device: DeviceSource, names: Mapping[str, Any], tensors: Sequence[Region], settings: Emulator,
    counted: Callable[[Checked], None] | None = None,
) -> None:  # fmt: skip
    """Run every launch of `device`, whose scalars, dims and buffers have the values `names`.

    `counted` is told what checked mode counted, also where it found something.

    Raises CompileError for what went wrong in the kernel, and in checked mode for what could; the
    tensors are then as they were.
    """
    compiler = find_compiler()
    library = build_library(device, settings.check, compiler)
    program = build_runtime(compiler)
    spaces = [Region(w.name, 0, int(evaluate(w.bytes, names)), True) for w in device.workspaces]
    with _memory(device.name, [*tensors, *spaces]) as memory:
        folder = memory.path.parent
        memory.copy_in()
        reports = folder / "reports"
        workers = settings.workers or available_cores()
        call = write_call(folder, device, names, memory, library, reports, settings, workers)
        status, output, errors = _run(program, call, device.name)
        if output:
            sys.stdout.write(output)
        said = read_reports(reports)
        lines = code_lines(said, device, library)
        found = findings([r for r in said if r["kind"] != TRAFFIC], device, lines)
        if counted is not None and settings.check:
            rows = [r for r in said if r["kind"] == TRAFFIC]
            counted(Checked(traffic_of(rows, device, lines)))
        if found:
            raise error_for(found)
        if status != 0:
            raise _died(device.name, status, errors)
        memory.copy_out(written_tensors(device))


@contextmanager
def _memory(name: str, regions: Sequence[Region]) -> Iterator[Memory]:
    """The memory of a call in a folder of its own, where there is room; else TL813."""
    for place in (_SHARED, None) if _SHARED.is_dir() else (None,):
        with tempfile.TemporaryDirectory(prefix="tilelang-emulator-", dir=place) as folder:
            try:
                memory = Memory(Path(folder) / "memory", regions)
            except OSError as error:
                if error.errno not in _FULL:
                    raise
                continue
            try:
                yield memory
            finally:
                memory.close()
            return
    size = size_text(sum(region.bytes for region in regions))
    raise failure(
        "TL813", f"there is no room for the {size} of tensors and workspaces of `{name}`",
        help=f"free some of {tempfile.gettempdir()}, or name a larger folder in TMPDIR",
    )  # fmt: skip


def build_runtime(compiler: Compiler) -> Path:
    """The emulator itself; TL807 where the compiler cannot build it."""
    try:
        return runtime_program(compiler)
    except CompilerError as error:
        raise failure(
            "TL807",
            f"{compiler.command[0]} cannot build the emulator",
            notes=_errors_of(error),
            help="CXX names another compiler: g++ or clang, from version 9",
        ) from None


def build_library(device: DeviceSource, check: bool, compiler: Compiler) -> Path:
    """The library of a kernel; TL816 where the author's source does not compile, else TL806."""
    try:
        return kernel_library(
            host_source(device, check), device.name, check, compiler, device.dialect
        )
    except CompilerError as error:
        said = _said(error.log, f"{device.name}.cpp")
        foreign = authors_errors(device.source, said, Path(compiler.command[0]).name, _HERE)
        if foreign is not None:
            raise error_for((foreign,)) from None
        raise failure(
            "TL806",
            f"{compiler.command[0]} rejected the source generated for `{device.name}`",
            notes=_errors_of(error),
            help="foreign code in a kernel may use what the emulator does not have",
        ) from None


def _said(log: str, file: str) -> list[tuple[str, int | None]]:
    """The errors of g++ or clang, and the lines of the generated source that they are about."""
    found = [m for line in log.splitlines() if (m := _ERROR.match(line)) is not None]
    return [(m["text"], int(m["line"]) if Path(m["file"]).name == file else None) for m in found]


def _errors_of(error: CompilerError) -> tuple[str, ...]:
    lines = [line for line in error.log.splitlines() if "error" in line] or [error.log]
    return tuple(lines[:4])


def _run(program: Path, call: Path, name: str) -> tuple[int, str, str]:
    """Exit status, output and errors of the process that makes a call."""
    limit = options.EMULATOR_TIMEOUT.get()
    try:
        done = run_group([str(program), str(call)], limit)
    except subprocess.TimeoutExpired:
        raise failure(
            "TL733",
            f"`{name}` did not end within {limit:g} seconds",
            help="a thread may wait in a loop for what never comes; "
            "TILELANG_EMULATOR_SECONDS allows more time",
        ) from None
    return done.returncode, done.stdout, done.stderr


def _died(name: str, status: int, errors: str) -> Exception:
    last = tuple(line for line in errors.splitlines() if line.strip())[-3:]
    return failure(
        "TL812",
        f"the emulator's process ended with status {status} while it ran `{name}`",
        notes=last,
        help="please report it with the kernel: the emulator should have said why",
    )
