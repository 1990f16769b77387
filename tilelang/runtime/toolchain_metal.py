"""How is generated Metal source checked, and what does a failure of that mean?

Metal is compiled from its text where it runs. What can be known before: a clang of any machine
reads the source against headers of ours that stand in for Metal's (`codegen/headers/metal/shim`),
and on a Mac with Xcode Apple's own compiler does. An error is ours, and is shown at the Python
lines that the lines of the source came from. Without either the source is written unchecked.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from tilelang.codegen.device_artifact import DeviceCode
from tilelang.codegen.device_source import DeviceSource
from tilelang.codegen.metal_text import HEADERS, self_contained
from tilelang.codegen.metal_words import unknown_words
from tilelang.options import CompileOptions
from tilelang.runtime.clang import errors_in, find_clang
from tilelang.runtime.programs import find_program, run_group
from tilelang.runtime.rejected import rejected
from tilelang.target import Target
from tilelang_diagnostics import failure

SHIM: Final = HEADERS / "shim"
_SECONDS: Final = 120
# Attributes are Metal's; a clang knows none of them.
STRICT: Final = (
    "-x", "c++", "-std=c++14", "-fsyntax-only", "-nostdinc", "-Wno-unknown-attributes",
    "-Werror=old-style-cast", "-Werror=c++17-extensions", "-Werror=return-type",
    "-Werror=uninitialized",
)  # fmt: skip
# Metal 3.1 has bfloat; infinities and NaN mean something in kernels.
_APPLE: Final = ("-std=metal3.1", "-fno-fast-math")
_ARENA: Final = re.compile(r"alignas\((\d+)\) (threadgroup uchar \w+\[\d+\];)")
_PRINTER: Final = "the list of Metal's words"


def find_apple_compiler() -> tuple[str, ...] | None:
    """Apple's compiler of Metal, which comes with Xcode."""
    program = find_program("xcrun") if sys.platform == "darwin" else None
    return None if program is None else (program, "-sdk", "macosx", "metal")


def identity(target: Target, options: CompileOptions) -> tuple[str, tuple[str, ...]]:
    """Which compiler would check source, and with which flags; "" for none."""
    apple, clang = find_apple_compiler(), find_clang()
    if apple is not None:
        return " ".join(apple), (*_APPLE, headers_digest())
    return "" if clang is None else clang.version, (*STRICT, headers_digest())


def compile(device: DeviceSource, target: Target, options: CompileOptions) -> DeviceCode:
    """The source as Metal takes it, checked with what is there; raises CompileError with TL806."""
    file_name = f"{device.name}.metal"
    words = [(text, number) for number, text in unknown_words(device.source.lines)]
    if words:
        log = "\n".join(f"{number}: {text}" for text, number in words)
        raise rejected(device, words, _PRINTER, target.arch, file_name, log)
    apple, clang = find_apple_compiler(), find_clang()
    name, flags = identity(target, options)
    if apple is not None:
        log = _log((*apple, "-c", "-o", "/dev/null", *_APPLE, f"-I{HEADERS}"), device, device.text)
    elif clang is not None:
        include = (f"-I{SHIM}", f"-I{HEADERS}")
        log = _log((*clang.command, *STRICT, *include), device, checked_text(device))
    else:
        log = ""
    if log:
        said = tuple(errors_in(log, file_name))
        raise rejected(device, said, name, target.arch, file_name, log)
    return DeviceCode(name, flags, object=self_contained(device).encode())


@cache
def headers_digest() -> str:
    """A hash of the headers, for cache keys."""
    digest = hashlib.sha256()
    for path in sorted(p for p in HEADERS.rglob("*") if p.is_file()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def checked_text(device: DeviceSource) -> str:
    """The source, line by line, as a clang reads it: where Metal has a local variable in
    threadgroup memory, C++ wants it static."""
    lines = (_ARENA.sub(r"alignas(\1) static \2", line.text) for line in device.source.lines)
    return "".join(f"{line}\n" for line in lines)


def _log(command: Sequence[str], device: DeviceSource, text: str) -> str:
    """What a compiler finds wrong, "" for nothing."""
    with tempfile.TemporaryDirectory(prefix="tilelang-metal-") as folder:
        source = Path(folder) / f"{device.name}.metal"
        source.write_text(text, encoding="utf-8")
        try:
            done = run_group([*command, str(source)], _SECONDS)
        except subprocess.TimeoutExpired:
            raise failure(
                "TL809",
                f"{command[0]} did not read `{device.name}` within {_SECONDS} seconds",
                help="make tiles smaller, or use fewer unrolled iterations",
            ) from None
    return "" if done.returncode == 0 else (done.stderr + done.stdout).strip() or "no message"
