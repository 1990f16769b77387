"""`tilelang doctor`: what is installed, what can therefore be done, and how to get the rest."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import click

from tilelang import options
from tilelang.cli.output import table
from tilelang.runtime.cache import KernelCache
from tilelang.runtime.devices import probes, resolve
from tilelang.runtime.programs import command_of, find_program, output_of
from tilelang.target import is_auto, parse_target
from tilelang.version import VERSION
from tilelang_diagnostics import CompileError

State = Literal["ok", "missing", "absent"]
# absent: not here, and only needed for what this machine may not want to do.
_MARKS = {"ok": "✓", "missing": "✗", "absent": "·"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked for. `remedy` says how to get it."""

    name: str
    state: State
    fact: str
    remedy: str = ""


@click.command("doctor")
def command() -> int:
    """Show what is installed and how to get what is missing.

    Exit status 1 if something is missing that every kernel needs.
    """
    print(f"tilelang {VERSION}")
    found: list[Finding] = []
    for title, check in SECTIONS:
        section = list(check())
        if not section:
            continue
        print(f"\n{title}")
        found += section
        table([(f"{_MARKS[f.state]} {f.name}", _text(f)) for f in section])
    problems = [f for f in found if f.state == "missing"]
    print()
    if problems:
        print(f"missing: {', '.join(f.name for f in problems)}")
        return 1
    print("everything kernels on the CPU need is here")
    return 0


def python_findings() -> Iterator[Finding]:
    """Python and the packages the compiler is made of."""
    version = platform.python_version()
    fine = sys.version_info >= (3, 11)
    yield Finding("python", "ok" if fine else "missing", f"{version} ({sys.executable})",
                  "" if fine else "Python 3.11 or newer is needed")  # fmt: skip
    yield _package("apache-tvm", 'pip install "apache-tvm~=0.27.0"', needed=True)
    yield _package("apache-tvm-ffi", 'pip install "apache-tvm-ffi==0.1.14.post1"', needed=True,
                   bad={"0.1.15.post1", "0.1.15.post2"})  # fmt: skip
    for name in ("numpy", "ml_dtypes", "filelock", "platformdirs"):
        yield _package(name, f"pip install {name}", needed=True)
    yield _package("torch", _torch_remedy())
    yield _package("pygls", "pip install 'pygls>=2,<3'")


def compiler_findings() -> Iterator[Finding]:
    """What turns generated code into machine code."""
    yield _llvm()
    named = command_of(options.COMPILER.get())
    found = find_program(*named[:1], "cc", "gcc", "clang")
    if found:
        yield Finding("linker", "ok", f"{found}{_first_line((found, '--version'))}")
    else:
        yield Finding("linker", "absent", "none: cached CPU kernels are kept as object code",
                      "install gcc or clang to keep them as shared libraries")  # fmt: skip
    yield _emulator()
    nvcc = find_program("nvcc") or find_program(f"{options.CUDA_HOME.get()}/bin/nvcc")
    release = ""
    if nvcc:
        lines = (output_of((nvcc, "--version")) or "").splitlines()
        release = next((line.split(", ")[-2] for line in lines if "release" in line), "")
        yield Finding("nvcc", "ok", f"{nvcc} ({release})" if release else nvcc)
    else:
        yield Finding("nvcc", "absent", "not on the path", "install the CUDA toolkit or the wheels:"
                      ' pip install "tilelang[cuda13]"')  # fmt: skip
    yield _sanitizer()
    if importlib.util.find_spec("nvidia") and _has_nvrtc():
        yield Finding("NVRTC", "ok", "from the nvidia wheels")
    else:
        yield Finding("NVRTC", "absent", "no wheel", f'pip install "tilelang[{_cuda_extra()}]"')
    yield _hip()
    yield _metal()
    hipcc = find_program("hipcc", "amdclang++")
    if hipcc:
        yield Finding("ROCm", "ok", hipcc)
    else:
        yield Finding(
            "ROCm", "absent", "no hipcc on the path", "see rocm.docs.amd.com to install it"
        )


def _hip() -> Finding:
    """What compiles for AMD's processors."""
    from tilelang.runtime.clang import find_clang

    clang = find_clang()
    if clang is None:
        return Finding("HIP", "absent", "no clang", 'pip install "tilelang[clang]"')
    return Finding("HIP", "ok", str(clang))


def _metal() -> Finding:
    """What checks Metal source before it is handed to a Mac."""
    from tilelang.runtime.clang import find_clang
    from tilelang.runtime.toolchain_metal import find_apple_compiler

    apple, clang = find_apple_compiler(), find_clang()
    if apple is not None:
        return Finding("Metal", "ok", " ".join(apple))
    if clang is None:
        return Finding("Metal", "absent", "no clang: source is written unchecked",
                       'pip install "tilelang[clang]"')  # fmt: skip
    return Finding("Metal", "ok", f"source is checked by {clang}")


def _emulator() -> Finding:
    """The C++ compiler that `tilelang run --emulate` takes."""
    from tilelang.emulator.toolchain import find_compiler, symbolizer

    try:
        compiler = find_compiler()
    except CompileError as error:
        return Finding("emulator", "absent", "no C++ compiler", error.diagnostics[0].help or "")
    if symbolizer() is None:
        return Finding("emulator", "ok", f"{compiler}; no addr2line, so that --check cannot name "
                       "every line", "install binutils")  # fmt: skip
    return Finding("emulator", "ok", str(compiler))


def device_findings() -> Iterator[Finding]:
    """Processors and GPUs."""
    yield Finding("cpu", "ok", f"{_cpu_name()}, {_cores()} cores usable")
    for probe in probes():
        if probe.arch is not None:
            yield Finding(probe.kind, "ok", f"{probe.name} ({probe.kind}:{probe.arch})"
                          f"{_driver() if probe.kind == 'cuda' else ''}")  # fmt: skip
        elif probe.hidden is not None:
            yield Finding(probe.kind, "absent", probe.hidden,
                          "start the container with --gpus all, or fix the driver")  # fmt: skip
        elif probe.kind != "metal" or sys.platform == "darwin":
            yield Finding(probe.kind, "absent", "no GPU of this kind")
    try:
        resolved = resolve("auto", announce=False)
    except CompileError as error:
        yield Finding("target auto", "absent", error.diagnostics[0].message)
    else:
        yield Finding("target auto", "ok", f"{resolved.target}: {resolved.reason}")


def cache_findings() -> Iterator[Finding]:
    """The cache of compiled kernels."""
    try:
        info = KernelCache().info()
    except CompileError:
        return  # what is wrong with an environment variable is said there
    except ImportError as error:
        yield Finding("folder", "missing", f"the package {error.name} is needed to find it")
        return
    if info.problem is None:
        yield Finding("folder", "ok", f"{info.root} ({info.kernels} kernels)")
    else:
        yield Finding("folder", "absent", f"{info.root} cannot be written: {info.problem}",
                      "set TILELANG_CACHE_DIR to a folder that can")  # fmt: skip


def environment_findings() -> Iterator[Finding]:
    """The environment variables that are set, and those that could be."""
    for variable in options.ENVIRONMENT:
        if not variable.name.startswith("TILELANG_"):
            continue
        try:
            value = variable.get()
            if variable is options.DEFAULT_TARGET and not is_auto(value):
                parse_target(value)
        except CompileError as error:
            yield Finding(variable.name, "missing", error.diagnostics[0].message,
                          error.diagnostics[0].help or "")  # fmt: skip
            continue
        if variable.is_set():
            yield Finding(variable.name, "ok", f"{value}  ({variable.doc})")


SECTIONS: tuple[tuple[str, Callable[[], Iterator[Finding]]], ...] = (
    ("Python", python_findings),
    ("Compilers", compiler_findings),
    ("Devices", device_findings),
    ("Cache", cache_findings),
    ("Environment", environment_findings),
)


def _package(name: str, remedy: str, needed: bool = False, bad: set[str] | None = None) -> Finding:
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, "missing" if needed else "absent", "not installed", remedy)
    if version in (bad or ()):
        return Finding(name, "missing", f"{version}, which crashes when it saves programs", remedy)
    return Finding(name, "ok", version)


def _llvm() -> Finding:
    """Asked of TVM in a process of its own: importing it here would cost a second and may crash."""
    code = ("from tilelang.ir import llvm; cpu = llvm.host_cpu(); "
            "print(f'{cpu.triple}, {cpu.name}, {cpu.vector_bits}-bit vectors')")  # fmt: skip
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
            env=options.child_environment(PYTHONPATH=_python_path()), check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        return Finding("LLVM", "missing", str(error), 'pip install "apache-tvm~=0.27.0"')
    if done.returncode == 0:
        return Finding("LLVM", "ok", f"in TVM: {done.stdout.strip()}")
    last = (done.stderr.strip().splitlines() or ["it crashed"])[-1]
    return Finding("LLVM", "missing", f"TVM cannot be used: {last}",
                   'pip install --force-reinstall "apache-tvm~=0.27.0"')  # fmt: skip


def _python_path() -> str:
    import os

    return os.pathsep.join(p for p in sys.path if p)


def _torch_remedy() -> str:
    if any(p.kind == "cuda" and p.arch for p in probes()):
        return 'pip install "tilelang[torch]"'
    return "pip install torch --index-url https://download.pytorch.org/whl/cpu"


def _cuda_extra() -> str:
    """The extra that fits the driver: one major version of CUDA each."""
    text = output_of(("nvidia-smi",)) or ""
    return "cuda12" if "CUDA Version: 12" in text else "cuda13"


def _sanitizer() -> Finding:
    """What `tilelang run --sanitize` needs."""
    from tilelang.runtime.sanitizer import find_sanitizer
    from tilelang_diagnostics import CompileError

    try:
        return Finding("sanitizer", "ok", str(find_sanitizer()))
    except CompileError:
        remedy = "install the CUDA toolkit, or: pip install nvidia-cuda-sanitizer-api"
        return Finding("sanitizer", "absent", "no compute-sanitizer", remedy)


def _has_nvrtc() -> bool:
    names = ("nvidia.cuda_nvrtc", "nvidia.cu13", "nvidia.cu12")
    return any(importlib.util.find_spec(name) is not None for name in names)


def _driver() -> str:
    found = output_of(("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"))
    return f", driver {found.splitlines()[0]}" if found else ""


def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _cores() -> int:
    from tilelang.runtime.cpu import num_threads

    return num_threads()


def _first_line(command: tuple[str, ...]) -> str:
    lines = (output_of(command) or "").splitlines()
    return f" ({lines[0]})" if lines else ""


def _text(finding: Finding) -> str:
    return f"{finding.fact}\n→ {finding.remedy}" if finding.remedy else finding.fact
