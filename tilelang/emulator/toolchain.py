"""Which C++ compiler is there, and how do the emulator and a kernel for it get built?

The emulator itself is compiled once per machine and compiler, a kernel once per source; both are
kept in the folder of the kernel cache.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tilelang import emulator, options
from tilelang.codegen.metal_text import HEADERS as METAL_HEADERS
from tilelang.runtime.cache import cache_root, one_process
from tilelang.runtime.clang import find_clang
from tilelang.runtime.cpu_pool import available_cores
from tilelang.runtime.programs import command_of, find_program, output_of, run_group
from tilelang.runtime.toolchain_cuda import HEADERS, headers_digest
from tilelang.runtime.toolchain_metal import headers_digest as metal_headers_digest
from tilelang_diagnostics import failure

CPP: Final = Path(emulator.__file__).parent / "cpp"
INCLUDE: Final = CPP / "include"
_LANGUAGE: Final = ("-std=c++17", "-fno-strict-aliasing", "-fwrapv", "-g", "-fPIC")
_RUNTIME_FLAGS: Final = ("-O3", "-march=native")
# Loops stay loops, which compiles in half a second; the hot work is the runtime's.
# A frame touches each of its pages, so that one beyond the stack is seen.
_KERNEL_FLAGS: Final = ("-O1", "-w", "-fno-exceptions", "-fno-rtti", "-fno-stack-protector",
                        "-fstack-clash-protection")  # fmt: skip
# Clang tells nobody of accesses of more than 16 bytes, so that it makes none, and may read ahead of
# a condition what it takes out of a loop.
_CHECK_FLAGS: Final = {
    "gcc": ("-fsanitize=thread", "--param=tsan-distinguish-volatile=1",
            "--param=tsan-instrument-func-entry-exit=0", "-fsanitize=bounds",
            "-fstack-reuse=none",
            # A load moved out of a loop, before its condition, is one the kernel does not do.
            "-fno-tree-loop-im"),
    "clang": ("-fsanitize=thread", "-mllvm", "-tsan-distinguish-volatile", "-mllvm",
              "-tsan-instrument-func-entry-exit=0", "-mllvm", "-tsan-instrument-atomics=0",
              "-fsanitize=array-bounds", "-mllvm",
              "-no-stack-coloring", "-fno-vectorize", "-fno-slp-vectorize", "-mllvm",
              "-disable-licm-promotion"),
}  # fmt: skip
# zig adds checks of its own that end a program without a word.
_FAMILY_FLAGS: Final = {"gcc": (), "clang": ("-fno-sanitize=undefined",)}
# zig compiles for the processor it runs on.
_ANY_PROCESSOR: Final = ("-mcpu=baseline",)
# How the source of a dialect is read as C++.
_READ_AS: Final = {
    "cuda": (f"-I{INCLUDE}", f"-I{HEADERS}", "-include", "emulator/cuda.h"),
    # Types and maths as on CUDA, whose device headers say nothing of it but for the warp.
    "hip": (f"-I{INCLUDE / 'hip'}", f"-I{INCLUDE}", f"-I{HEADERS}", "-include", "emulator/cuda.h"),
    # Each operation on 16-bit floats rounds.
    "metal": (f"-I{INCLUDE / 'metal'}", f"-I{METAL_HEADERS}", f"-I{METAL_HEADERS / 'shim'}",
              f"-I{INCLUDE}", "-ffp-contract=off", "-Xclang", "-ffloat16-excess-precision=none",
              "-Xclang", "-fbfloat16-excess-precision=none"),
}  # fmt: skip
_SECONDS: Final = 600


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C++ compiler: what to call, its family, and what it says of itself."""

    command: tuple[str, ...]
    family: str
    version: str

    def __str__(self) -> str:
        return f"{' '.join(self.command)} ({self.version})"


class CompilerError(Exception):
    """A C++ compiler did not take the source; `log` is what it wrote."""

    def __init__(self, log: str) -> None:
        super().__init__(log)
        self.log = log


def find_compiler() -> Compiler:
    """The first C++ compiler of `$CXX`, g++, clang++, c++ and the ziglang wheel; else TL807."""
    found = _compiler(options.CXX.get(), options.SEARCH_PATH.get())
    if found is None:
        named = options.CXX.get()
        raise failure(
            "TL807",
            f"CXX is {named!r}, which is no program that can be run, and the emulator needs a C++ "
            "compiler"
            if named
            else "no C++ compiler is installed, which the emulator runs kernels through",
            help="install g++ or clang, or pip install ziglang; CXX names one elsewhere",
        )
    return found


@cache
def _compiler(wanted: str, path: str) -> Compiler | None:
    named, *flags = command_of(wanted) or ("",)
    names = (named,) if named else ("g++", "clang++", "c++")
    program = find_program(*names)
    if program is not None:
        command: tuple[str, ...] = (program, *flags)
    elif not named and importlib.util.find_spec("ziglang") is not None:
        command = (sys.executable, "-m", "ziglang", "c++")
    else:
        return None
    text = output_of((*command, "--version")) or ""
    lines = text.splitlines() or ["unknown version"]
    return Compiler(command, "clang" if "clang" in text else "gcc", lines[0])


def runtime_program(compiler: Compiler) -> Path:
    """The emulator, built if it is not there yet."""
    family = _FAMILY_FLAGS[compiler.family]
    flags = (*_LANGUAGE, *_RUNTIME_FLAGS, *family, f"-I{INCLUDE}")
    sources = sorted(str(p) for p in (CPP / "runtime").glob("*.cpp"))
    key = _digest(sources_digest(), str(compiler), _machine(), *flags)
    where = cache_root() / "emulator" / f"runtime-{key[:32]}"

    def build(to: Path) -> None:
        if options.PRINT_ON_COMPILATION.get():
            print("building the emulator's runtime, once", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="tilelang-emulator-") as folder:
            objects = [str(Path(folder) / f"{Path(source).stem}.o") for source in sources]
            with ThreadPoolExecutor(available_cores()) as pool:
                jobs = [
                    pool.submit(_run, compiler, (*flags, "-c", source, "-o", made))
                    for source, made in zip(sources, objects, strict=True)
                ]
            for job in jobs:
                job.result()
            _run(compiler, (*flags, "-rdynamic", *objects, "-o", str(to), "-ldl"))

    if where.exists():
        return _made(where, build)
    with one_process(cache_root() / "locks" / "emulator"):
        return _made(where, build)


def metal_compiler() -> Compiler:
    """The clang that reads Metal; TL807 if there is none."""
    found = find_clang()
    if found is None:
        raise failure(
            "TL807",
            "no clang is installed, through which the emulator runs kernels for Metal",
            help="pip install ziglang, or install clang; CXX names one elsewhere",
        )
    zig = "ziglang" in found.command
    return Compiler((*found.command[:-1], "c++") if zig else found.command, "clang", found.version)


def kernel_library(
    text: str, name: str, check: bool, compiler: Compiler, dialect: str = "cuda"
) -> Path:
    """The library of a kernel whose C++ is `text`, built if it is not there yet."""
    linker = compiler
    if dialect == "metal":
        compiler = metal_compiler()
    if check:
        _require_telling(compiler)
    family = (*_FAMILY_FLAGS[compiler.family], *(_CHECK_FLAGS[compiler.family] if check else ()))
    if "ziglang" in compiler.command:
        family += _ANY_PROCESSOR
    flags = (*_LANGUAGE, *_KERNEL_FLAGS, *family, *_READ_AS[dialect])
    key = _digest(
        text, name, sources_digest(), headers_digest(), metal_headers_digest(), str(compiler),
        *flags,
    )  # fmt: skip
    where = cache_root() / "emulator" / key[:2] / f"{key[:32]}.so"

    def build(to: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="tilelang-emulator-") as folder:
            source, made = Path(folder) / f"{name}.cpp", Path(folder) / "kernel.o"
            source.write_text(text, encoding="utf-8")
            _run(compiler, (*flags, "-c", str(source), "-o", str(made)))
            _run(linker, ("-shared", "-o", str(to), str(made)))

    return _made(where, build)


def _require_telling(compiler: Compiler) -> None:
    """TL807 for a clang that fills memory without telling the checks of it, seen with 14."""
    version = re.search(r"clang version (\d+)", compiler.version)
    if version is not None and int(version[1]) < 16:
        raise failure(
            "TL807",
            f"clang {version[1]} is too old for the emulator's checked mode, which needs 16",
            help="CXX names another compiler; or run without checks",
        )


@cache
def sources_digest() -> str:
    """A hash of everything under `cpp`."""
    digest = hashlib.sha256()
    for path in sorted(p for p in CPP.rglob("*") if p.suffix in (".h", ".cpp", "") and p.is_file()):
        digest.update(str(path.relative_to(CPP)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


# What the cache had no place for: where this process keeps it instead.
_KEPT: Final[dict[Path, Path]] = {}


@cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    """A folder of this process, gone when it ends."""
    return tempfile.TemporaryDirectory(prefix="tilelang-emulator-")


def _made(where: Path, build: Callable[[Path], None]) -> Path:
    """`where`, built aside and renamed into place if need be: readers see all of it or nothing.

    Where the cache is full or cannot be written, a file of this process in its place.
    """
    if where in _KEPT:
        return _KEPT[where]
    if where.exists():
        with suppress(OSError):  # whoever may read it need not own it
            os.utime(where)
        return where
    with tempfile.TemporaryDirectory(prefix="tilelang-emulator-") as folder:
        built = Path(folder) / where.name
        build(built)
        if not built.exists():
            raise CompilerError("error: it ended well, and wrote nothing: is it a C++ compiler?")
        try:
            where.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=where.parent, prefix=".making-") as aside:
                Path(shutil.copy2(built, aside)).replace(where)
        except OSError:
            where = _KEPT.setdefault(where, Path(_scratch().name) / where.name)
            shutil.move(built, where)
    return where


def _run(compiler: Compiler, arguments: Sequence[str]) -> None:
    try:
        done = run_group([*compiler.command, *arguments], _SECONDS)
    except subprocess.TimeoutExpired:
        raise CompilerError(f"error: it did not end within {_SECONDS:g} seconds") from None
    except OSError as error:
        raise CompilerError(f"error: it cannot be started: {error}") from None
    if done.returncode != 0:
        said = (done.stderr + done.stdout).strip()
        raise CompilerError(said or f"error: it ended with status {done.returncode}")


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@cache
def _machine() -> str:
    """What decides which instructions `-march=native` may use."""
    try:
        info = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.machine() + platform.processor()
    lines = (line for line in info.splitlines() if line.lower().startswith(("flags", "features")))
    return platform.machine() + next(lines, "")


def symbolizer() -> str | None:
    """The program that knows which lines an address of a library comes from."""
    return find_program("addr2line", "llvm-addr2line", "eu-addr2line") or shutil.which("addr2line")
