"""How does generated CUDA source become a binary, and what does a failure of that mean?

NVRTC from wheels where it is installed, else `nvcc`; either on request. The source is ours, so an
error of the compiler is shown at the Python lines its lines came from, and the file is kept.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final, Literal

from tilelang import codegen, options
from tilelang.codegen.cuda_binary import CudaBinary, KernelResources
from tilelang.codegen.device_source import DeviceSource
from tilelang.codegen.ptx_lines import source_line
from tilelang.options import CompileOptions, PassConfigKey
from tilelang.runtime.foreign_errors import authors_errors
from tilelang.runtime.nvrtc import Compiled, Nvrtc, find_nvrtc
from tilelang.runtime.programs import find_program
from tilelang.target import Target
from tilelang_diagnostics import code_of, error_for
from tilelang_diagnostics.model import Diagnostic, Label, Span

Compiler = Literal["auto", "nvrtc", "nvcc"]
HEADERS: Final = Path(codegen.__file__).parent / "headers" / "cuda"
_STANDARD: Final = "-std=c++17"


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
    flags = _flags(choices or CompileOptions())
    file_name = f"{source.name}.cu"
    if isinstance(chosen, Nvrtc):
        made = chosen.compile(source.text, file_name, _nvrtc_flags(chosen, arch, flags))
    else:
        made = _run_nvcc(chosen, source.text, file_name, arch, flags)
    name = _name_of(chosen)
    if not made.ok:
        ptx = ""
        if isinstance(chosen, Nvrtc) and _PTX_LINE.search(made.log):
            # The assembler speaks of lines of PTX, which NVRTC gives only where there is none.
            virtual = arch.replace("sm_", "compute_")
            ptx = chosen.compile(source.text, file_name, _nvrtc_flags(chosen, virtual, flags)).ptx
        raise error_for(tuple(_errors(source, made.log, name, arch, file_name, ptx)))
    return CudaBinary(
        arch, made.cubin, made.ptx, name, flags, parse_resources(made.log),
        tuple(_warnings(made.log)), made.log,
    )  # fmt: skip


def identity(choices: CompileOptions, compiler: Compiler = "auto") -> tuple[str, tuple[str, ...]]:
    """Who would compile with `choices`, and its flags: what a binary says of its making."""
    chosen = find_compiler(compiler)
    return _name_of(chosen), _flags(choices)


def find_compiler(wanted: Compiler = "auto") -> Nvrtc | Path:
    """NVRTC, or the path of nvcc; TL807 when there is neither."""
    nvrtc = find_nvrtc() if wanted in ("auto", "nvrtc") else None
    if nvrtc is not None and nvrtc.include is not None:
        return nvrtc
    nvcc = find_nvcc() if wanted in ("auto", "nvcc") else None
    if nvcc is not None:
        return nvcc
    what = {"auto": "NVRTC nor nvcc", "nvrtc": "NVRTC", "nvcc": "nvcc"}[wanted]
    no = "neither " if wanted == "auto" else "no "
    notes: tuple[str, ...] = ()
    if nvrtc is not None:
        notes = ("NVRTC is there, but the headers of nvidia-cuda-runtime are not",)
    raise error_for(
        (
            Diagnostic(
                "TL807",
                code_of("TL807").severity,
                f"{no}{what} is installed, which compiles CUDA source",
                notes=notes,
                help="pip install 'tilelang[cuda13]', or [cuda12] for an older driver",
            ),
        )
    )


def find_nvcc() -> Path | None:
    """nvcc of `CUDA_HOME`, else on the search path."""
    home = options.CUDA_HOME.get()
    candidate = Path(home) / "bin" / "nvcc" if home else None
    if candidate is not None and candidate.exists():
        return candidate
    found = find_program("nvcc")
    return None if found is None else Path(found)


@cache
def headers_digest() -> str:
    """A hash of the device headers, for cache keys."""
    digest = hashlib.sha256()
    for path in sorted(HEADERS.rglob("*.h")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _flags(choices: CompileOptions) -> tuple[str, ...]:
    """Flags both compilers take."""
    found = [_STANDARD, "-lineinfo"]
    if choices.fast_math:
        found.append("--use_fast_math")
    level = choices[PassConfigKey.TL_PTXAS_REGISTER_USAGE_LEVEL]
    if level != 5:
        found.append(f"--ptxas-options=--register-usage-level={level}")
    return (*found, *choices[PassConfigKey.TL_DEVICE_COMPILE_FLAGS], *choices.compile_flags)


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


def _name_of(chosen: Nvrtc | Path) -> str:
    if isinstance(chosen, Nvrtc):
        return f"NVRTC {chosen.version[0]}.{chosen.version[1]}"
    return _nvcc_version(chosen)


@cache
def _nvcc_version(nvcc: Path) -> str:
    done = subprocess.run([str(nvcc), "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"release (\d+\.\d+)", done.stdout)
    return f"nvcc {found[1]}" if found else "nvcc"


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


def _errors(
    source: DeviceSource, log: str, compiler: str, arch: str, file_name: str, ptx: str = ""
) -> Iterator[Diagnostic]:
    """One TL806 that names the first error and labels the Python lines of all."""
    said = _parse_errors(log, file_name, ptx)
    first, *others = said
    foreign = authors_errors(source.source, [(s.text, s.line) for s in said], compiler, arch)
    if foreign is not None:
        yield foreign
        return
    kept = _keep(source.text, file_name, log)
    span, label = None, ""
    line = source.source.at(first.line) if first.line else None
    if line is not None and line.span is not None:
        span, label = line.span, f"became `{line.text.strip()}`"
    labels = []
    for other in others[:5]:
        there = source.source.at(other.line) if other.line else None
        if there is not None and there.span is not None and there.span != span:
            labels.append(Label(there.span, other.text))
    where = f"the source and all messages are in {kept}" if kept else log
    yield Diagnostic(
        "TL806",
        code_of("TL806").severity,
        f"{compiler} rejected the generated source for {arch}: {first.text}",
        span=span if span is not None else _any_span(source),
        label=label,
        labels=tuple(labels),
        notes=(where,),
        help="the source is ours: please report it with that file, unless the kernel brings C "
        "code of its own (T.import_source, T.call_extern)",
    )


def _any_span(source: DeviceSource) -> Span | None:
    return next((line.span for line in source.source.lines if line.span is not None), None)


def _keep(text: str, file_name: str, log: str) -> Path | None:
    """Save a rejected source where it outlives the process."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="tilelang-rejected-"))
        (folder / "messages.txt").write_text(log, encoding="utf-8")
        path = folder / file_name
        path.write_text(text, encoding="utf-8")
    except OSError:
        return None
    return path
