"""How does a generated C file become a shared object?

With whatever C compiler is there, or that of the `ziglang` package. The result asks for no
library but those of C: the functions of tvm-ffi are those of the process that loads it.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tilelang import options
from tilelang.runtime.programs import command_of, find_program
from tilelang_diagnostics import failure

_TIMEOUT = 120
_FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall")
# Threads of a kernel for the CPU, and what is loaded on a GPU, outlive a `dlclose`.
_STAYS = () if sys.platform in ("darwin", "win32") else ("-Wl,-z,nodelete",)


def link_host(folder: Path, source: str, output: str, objects: Sequence[str] = ()) -> None:
    """Compile `source`, a file of `folder`, to `output` there; TL807 or TL806 if that fails."""
    # Names of files may begin with a dash.
    files = (f"./{name}" for name in (source, *objects))
    command = [*_compiler(), *_FLAGS, *(f"-I{path}" for path in _headers()), *files, *_STAYS,
               "-o", f"./{output}", "-lm", "-ldl", "-pthread"]  # fmt: skip
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _rejected(command[0], str(error)) from None
    if done.returncode != 0:
        raise _rejected(command[0], done.stderr.strip())


def _compiler() -> tuple[str, ...]:
    named = options.COMPILER.get()
    if named.strip():
        return command_of(named)
    for name in ("cc", "gcc", "clang"):
        found = find_program(name)
        if found is not None:
            return (str(found),)
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc", *_zig_target())
    raise failure(
        "TL807",
        "no C compiler is installed, which makes the host side of an exported kernel",
        help="pip install ziglang, or install gcc or clang; `--emit cubin` needs none",
    )


def _zig_target() -> tuple[str, ...]:
    """The C library to link with: the oldest that tvm-ffi's wheels run on. Left to itself, zig asks
    a program on the path."""
    if sys.platform != "linux":
        return ()
    return ("-target", f"{platform.machine()}-linux-gnu.2.28")


def _headers() -> list[Path]:
    """Where tvm-ffi's headers are: found without importing it, which would import PyTorch."""
    spec = importlib.util.find_spec("tvm_ffi")
    if spec is None or spec.origin is None:
        raise failure(
            "TL801",
            "apache-tvm-ffi is not installed, whose headers an exported kernel is made with",
            help="pip install tilelang",
        )
    root = Path(os.path.dirname(spec.origin))
    return [root / "include", root / "3rdparty" / "dlpack" / "include"]


def _rejected(compiler: str, said: str) -> Exception:
    return failure(
        "TL806",
        f"{compiler} did not make the host side of an exported kernel: "
        f"{said.splitlines()[0] if said else 'no message'}",
        notes=tuple(said.splitlines()[:20]),
        help="the source is ours: please report it with these messages, unless CC names a compiler "
        "for another machine",
    )
