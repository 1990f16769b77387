"""How is generated source compiled for the processor, and run once?

The tensors are copied to a file that the emulator's process maps; when all went well, what the
kernel writes is copied back.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tilelang import options
from tilelang.codegen.device_source import DeviceSource
from tilelang.codegen.host_expr import evaluate
from tilelang.emulator.call import Memory, Region, write_call
from tilelang.emulator.reports import findings, read_reports
from tilelang.emulator.settings import Emulator
from tilelang.emulator.source import host_source, written_tensors
from tilelang.emulator.toolchain import (
    Compiler,
    CompilerError,
    find_compiler,
    kernel_library,
    runtime_program,
)
from tilelang_diagnostics import error_for, failure

# Where memory is a file system: tensors never touch a disk.
_SHARED: Final = Path("/dev/shm")


def launch(
    device: DeviceSource, names: Mapping[str, Any], tensors: Sequence[Region], settings: Emulator
) -> None:
    """Run every launch of `device`, whose scalars, dims and buffers have the values `names`.

    Raises CompileError for what went wrong in the kernel, and in checked mode for what could; the
    tensors are then as they were.
    """
    compiler = find_compiler()
    library = build_library(device, settings.check, compiler)
    program = runtime_program(compiler)
    spaces = [Region(w.name, 0, int(evaluate(w.bytes, names))) for w in device.workspaces]
    with tempfile.TemporaryDirectory(
        prefix="tilelang-emulator-", dir=_SHARED if _SHARED.is_dir() else None
    ) as name:
        folder = Path(name)
        memory = Memory(folder / "memory", [*tensors, *spaces])
        memory.copy_in()
        reports = folder / "reports"
        workers = settings.workers or len(os.sched_getaffinity(0))
        call = write_call(folder, device, names, memory, library, reports, settings, workers)
        status, output, errors = _run(program, call, device.name)
        if output:
            sys.stdout.write(output)
        found = findings(read_reports(reports), device, library)
        if found:
            raise error_for(found)
        if status != 0:
            raise _died(device.name, status, errors)
        memory.copy_out(written_tensors(device))
        memory.close()


def build_library(device: DeviceSource, check: bool, compiler: Compiler) -> Path:
    """The library of a kernel; TL806 where its source cannot be compiled."""
    try:
        return kernel_library(host_source(device), device.name, check, compiler)
    except CompilerError as error:
        lines = [line for line in error.log.splitlines() if "error" in line] or [error.log]
        raise failure(
            "TL806",
            f"{compiler.command[0]} rejected the source generated for `{device.name}`",
            notes=tuple(lines[:4]),
            help="foreign code in a kernel may use what the emulator does not have",
        ) from None


def _run(program: Path, call: Path, name: str) -> tuple[int, str, str]:
    """Exit status, output and errors of the process that makes a call."""
    limit = options.EMULATOR_TIMEOUT.get()
    with subprocess.Popen(
        [str(program), str(call)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        errors="replace", start_new_session=True,
    ) as process:  # fmt: skip
        try:
            output, errors = process.communicate(timeout=limit)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise failure(
                "TL733",
                f"`{name}` did not end within {limit:g} seconds",
                help="a thread may wait in a loop for what never comes; "
                "TILELANG_EMULATOR_SECONDS allows more time",
            ) from None
    return process.returncode, output, errors


def _died(name: str, status: int, errors: str) -> Exception:
    last = tuple(line for line in errors.splitlines() if line.strip())[-3:]
    return failure(
        "TL812",
        f"the emulator's process ended with status {status} while it ran `{name}`",
        notes=last,
        help="please report it with the kernel: the emulator should have said why",
    )
