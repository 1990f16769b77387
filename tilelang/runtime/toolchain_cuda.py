"""How does generated CUDA source become a binary, and what does a failure of that mean?

The source is ours, so an error of the compiler is shown at the Python lines its lines came from,
and the file is kept.
"""

from __future__ import annotations

import csv
import hashlib
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

from tilelang import codegen
from tilelang.codegen.cuda_binary import CudaBinary, KernelResources
from tilelang.codegen.device_source import DeviceSource
from tilelang.codegen.ptx_lines import source_line
from tilelang.nested import is_heard, measured, nested
from tilelang.options import CompileOptions
from tilelang.runtime.cuda_compiler import Compiler, find_compiler, flags_of, name_of
from tilelang.runtime.foreign_errors import authors_errors
from tilelang.runtime.nvrtc import Compiled, Nvrtc
from tilelang.runtime.rejected import rejected
from tilelang.target import Target
from tilelang_diagnostics import CompileError, error_for

_TELLS_TIME: Final = (13, 0)  # NVRTC; tried from there on
_COLUMNS: Final = 4  # of its table: file, phase, time, unit
HEADERS: Final = Path(codegen.__file__).parent / "headers" / "cuda"


def compile_cuda(
    source: DeviceSource,
    target: Target,
    *,
    choices: CompileOptions | None = None,
    compiler: Compiler = "auto",
) -> CudaBinary:
    """Compile `source` for `target`; raises CompileError with TL806 or TL807."""
    arch = target.arch
    chosen = find_compiler(compiler)
    flags = flags_of(choices or CompileOptions())
    file_name = f"{source.name}.cu"
    name = name_of(chosen)
    with nested(name), _phases(chosen) as timing:
        if isinstance(chosen, Nvrtc):
            all_flags = [*_nvrtc_flags(chosen, arch, flags), *timing]
            made = chosen.compile(source.text, file_name, all_flags)
        else:
            made = _run_nvcc(chosen, source.text, file_name, arch, (*flags, *timing))
    if not made.ok:
        ptx = ""
        if isinstance(chosen, Nvrtc) and _PTX_LINE.search(made.log):
            # The assembler speaks of lines of PTX, which NVRTC gives only where there is none.
            virtual = arch.replace("sm_", "compute_")
            ptx = chosen.compile(source.text, file_name, _nvrtc_flags(chosen, virtual, flags)).ptx
        raise _failure(source, made.log, name, arch, file_name, ptx)
    return CudaBinary(
        arch, made.cubin, made.ptx, name, flags, parse_resources(made.log),
        tuple(_warnings(made.log)), made.log,
    )  # fmt: skip


@contextmanager
def _phases(chosen: Nvrtc | Path) -> Iterator[tuple[str, ...]]:
    """Flags that make a compiler write down how long its phases take, where somebody listens."""
    if not is_heard() or (isinstance(chosen, Nvrtc) and chosen.version < _TELLS_TIME):
        yield ()
        return
    with tempfile.TemporaryDirectory(prefix="tilelang-times-") as folder:
        table = Path(folder) / "times.csv"
        yield (f"--time={table}",)
        if table.exists():
            for row in csv.reader(table.read_text(encoding="utf-8").splitlines()[1:]):
                cells = [cell.strip() for cell in row]
                if len(cells) >= _COLUMNS and cells[-1] == "ms":
                    measured(cells[1], float(cells[-2]) / 1e3)


@cache
def headers_digest() -> str:
    """A hash of the device headers, for cache keys."""
    digest = hashlib.sha256()
    for path in sorted(HEADERS.rglob("*.h")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _nvrtc_flags(nvrtc: Nvrtc, arch: str, flags: Sequence[str]) -> list[str]:
    return [
        f"--gpu-architecture={arch}",
        f"-I{HEADERS}",
        f"-I{nvrtc.include}",
        "--ptxas-options=-v",
        *flags,
    ]


def _run_nvcc(nvcc: Path, text: str, file_name: str, arch: str, flags: Sequence[str]) -> Compiled:
    with tempfile.TemporaryDirectory(prefix="tilelang-nvcc-") as folder:
        at = Path(folder)
        (at / file_name).write_text(text, encoding="utf-8")
        cubin = at / "kernel.cubin"
        command = [
            str(nvcc), "-cubin", f"-arch={arch}", f"-I{HEADERS}", "-Xptxas", "-v", "-keep",
            "-keep-dir", folder, *flags, file_name, "-o", str(cubin),
        ]  # fmt: skip
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        log = (done.stdout + done.stderr).strip()
        if done.returncode != 0 or not cubin.exists():
            return Compiled(False, log or f"nvcc exited with status {done.returncode}")
        ptx = next(iter(at.glob("*.ptx")), None)
        text = "" if ptx is None else ptx.read_text(encoding="utf-8", errors="replace")
        return Compiled(True, log, cubin.read_bytes(), text)


# --- what compilers say ---

_ENTRY: Final = re.compile(r"Compiling entry function '(\w+)'")
_REGISTERS: Final = re.compile(r"Used (\d+) registers(?:, used (\d+) barriers)?")
_SHARED: Final = re.compile(r"(\d+) bytes smem")
_STACK: Final = re.compile(
    r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
)
_MESSAGE: Final = re.compile(
    r"^(?P<file>[^\n(]+)\((?P<line>\d+)\): (?P<kind>(?:catastrophic )?error|warning)\b[^:]*: "
    r"(?P<text>.*)$"
)
_PTX_LINE: Final = re.compile(r"ptx input, line (\d+)")
_FATAL: Final = re.compile(r"^(ptxas|nvcc|nvlink)\b.*\b(error|fatal)\b\s*:")
_VIA: Final = re.compile(r"at line (\d+)(?: of (\S+))?")


def parse_resources(log: str) -> tuple[KernelResources, ...]:
    """The rows of ptxas' verbose output."""
    rows: list[KernelResources] = []
    for line in log.splitlines():
        if entry := _ENTRY.search(line):
            rows.append(KernelResources(entry[1]))
        elif not rows:
            continue
        elif stack := _STACK.search(line):
            frame, stores, loads = map(int, stack.groups())
            rows[-1] = replace(rows[-1], stack=frame, spill_stores=stores, spill_loads=loads)
        elif used := _REGISTERS.search(line):
            shared = _SHARED.search(line)
            rows[-1] = replace(
                rows[-1],
                registers=int(used[1]),
                barriers=int(used[2] or 0),
                shared=int(shared[1]) if shared else 0,
            )
    return tuple(rows)


def _warnings(log: str) -> Iterator[str]:
    for line in log.splitlines():
        found = _MESSAGE.match(line)
        of_source = found is not None and found["kind"] == "warning"
        if of_source or line.startswith(("ptxas warning", "nvcc warning", "warning")):
            yield line


@dataclass(frozen=True, slots=True)
class _Said:
    """One error of a compiler, and the line of the generated file it is about."""

    text: str
    line: int | None


def _parse_errors(log: str, file_name: str, ptx: str) -> list[_Said]:
    found: list[_Said] = []
    for line in log.splitlines():
        message = _MESSAGE.match(line)
        if message is not None and message["kind"] != "warning":
            ours = Path(message["file"]).name == file_name
            found.append(_Said(message["text"], int(message["line"]) if ours else None))
        elif (via := _VIA.search(line)) and found and found[-1].line is None:
            # An error in a header says which line of the kernel instantiated it.
            if via[2] is None or Path(via[2]).name == file_name:
                found[-1] = replace(found[-1], line=int(via[1]))
        elif _FATAL.match(line) and "assembly aborted" not in line:
            at = _PTX_LINE.search(line) if ptx else None
            where = None if at is None else source_line(ptx, int(at[1]), file_name)
            found.append(_Said(line, where))
    return found or [_Said(log.strip().split("\n")[0] or "no message", None)]


def _failure(
    source: DeviceSource, log: str, compiler: str, arch: str, file_name: str, ptx: str = ""
) -> CompileError:  # fmt: skip
    """TL816 where the author's own source is to blame, else TL806."""
    said = [(s.text, s.line) for s in _parse_errors(log, file_name, ptx)]
    foreign = authors_errors(source.source, said, compiler, arch)
    if foreign is not None:
        return error_for((foreign,))
    return rejected(source, said, compiler, arch, file_name, log)
