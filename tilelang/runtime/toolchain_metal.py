"""How is generated Metal source checked, and what does a failure of that mean?

Metal is compiled from its text where it runs. What can be known before: a clang of any machine reads
the source against headers of ours that stand in for Metal's (`codegen/headers/metal/shim`), and on a
Mac with Xcode Apple's own compiler does. An error is ours, and is shown at the Python lines that the
lines of the source came from. Without either the source is written unchecked.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tilelang import options as settings
from tilelang.codegen.device_artifact import DeviceCode
from tilelang.codegen.device_source import DeviceSource
from tilelang.codegen.metal import HEADERS, self_contained
from tilelang.codegen.metal_words import unknown_words
from tilelang.options import CompileOptions
from tilelang.runtime.programs import command_of, find_program, output_of, run_group
from tilelang.target import Target
from tilelang_diagnostics import code_of, error_for
from tilelang_diagnostics.model import Diagnostic, Label, Span

SHIM: Final = HEADERS / "shim"
_SECONDS: Final = 120
_STRICT: Final = (
    "-x", "c++", "-std=c++14", "-fsyntax-only", "-nostdinc", "-Wno-unknown-attributes",
    "-Werror=old-style-cast", "-Werror=c++17-extensions", "-Werror=return-type",
    "-Werror=uninitialized", "-ferror-limit=20",
)  # fmt: skip
# Metal 3.1 has bfloat; infinities and NaN mean something in kernels.
_APPLE: Final = ("-std=metal3.1", "-fno-fast-math")
_ERROR: Final = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):\d+: (?:fatal )?error: (?P<text>.*)$")
# Attributes are Metal's; a clang knows none of them.
_ARENA: Final = re.compile(r"alignas\((\d+)\) (threadgroup uchar \w+\[\d+\];)")


@dataclass(frozen=True, slots=True)
class Clang:
    """A clang: how it is called to check, how to compile C++, and what it says of itself."""

    check: tuple[str, ...]
    build: tuple[str, ...]
    version: str

    def __str__(self) -> str:
        return f"{' '.join(self.check)} ({self.version})"


def find_clang() -> Clang | None:
    """`$CXX` if it is a clang, clang++, or the ziglang wheel; None if there is none."""
    return _clang(settings.CXX.get(), settings.SEARCH_PATH.get())


@cache
def _clang(wanted: str, path: str) -> Clang | None:
    commands: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
    for name in (*command_of(wanted)[:1], "clang++"):
        program = find_program(name)
        if program is not None:
            commands.append(((program,), (program,)))
    if importlib.util.find_spec("ziglang") is not None:
        zig = (sys.executable, "-m", "ziglang")
        commands.append(((*zig, "clang"), (*zig, "c++")))
    for check, build in commands:
        text = output_of((*check, "--version")) or ""
        if "clang" in text:
            return Clang(check, build, text.splitlines()[0])
    return None


def find_apple_compiler() -> tuple[str, ...] | None:
    """Apple's compiler of Metal, which comes with Xcode."""
    program = find_program("xcrun") if sys.platform == "darwin" else None
    return None if program is None else (program, "-sdk", "macosx", "metal")


def identity(target: Target, options: CompileOptions) -> tuple[str, tuple[str, ...]]:
    """Which compiler would check source, and with which flags."""
    apple = find_apple_compiler()
    if apple is not None:
        return " ".join(apple), _APPLE
    clang = find_clang()
    return ("", ()) if clang is None else (clang.version, (*_STRICT, headers_digest()))


def compile(device: DeviceSource, target: Target, options: CompileOptions) -> DeviceCode:
    """The source as Metal takes it, checked with what is there; raises CompileError with TL806."""
    name, flags = identity(target, options)
    words = unknown_words(device.source.lines)
    if words:
        raise error_for(tuple(_failure(device, number, text) for number, text in words))
    log = _apple_log(device) if find_apple_compiler() is not None else _clang_log(device)
    if log:
        raise error_for(tuple(_errors(device, log)))
    return DeviceCode(name, flags, object=self_contained(device).encode())


@cache
def headers_digest() -> str:
    """A hash of the headers, for cache keys."""
    digest = hashlib.sha256()
    for path in sorted(p for p in HEADERS.rglob("*") if p.is_file()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def checked_text(device: DeviceSource) -> str:
    """The source, line by line, as a clang reads it: where Metal has a local variable in threadgroup
    memory, C++ wants it static."""
    lines = (_ARENA.sub(r"alignas(\1) static \2", line.text) for line in device.source.lines)
    return "".join(f"{line}\n" for line in lines)


def _clang_log(device: DeviceSource) -> str:
    """What clang finds wrong; "" for nothing, or where there is none."""
    clang = find_clang()
    if clang is None:
        return ""
    flags = (*_STRICT, f"-I{SHIM}", f"-I{HEADERS}")
    return _log((*clang.check, *flags), device.name, checked_text(device))


def _apple_log(device: DeviceSource) -> str:
    command = find_apple_compiler()
    assert command is not None
    flags = ("-c", "-o", "/dev/null", *_APPLE, f"-I{HEADERS}")
    return _log((*command, *flags), device.name, device.text)


def _log(command: Sequence[str], name: str, text: str) -> str:
    with tempfile.TemporaryDirectory(prefix="tilelang-metal-") as folder:
        source = Path(folder) / f"{name}.metal"
        source.write_text(text, encoding="utf-8")
        try:
            done = run_group([*command, str(source)], _SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{source}:1:1: error: {error}"
    return "" if done.returncode == 0 else (done.stderr + done.stdout).strip() or "error"


def _errors(device: DeviceSource, log: str) -> Iterator[Diagnostic]:
    """One diagnostic for each error at a line of the kernel; else one with the log."""
    seen: set[tuple[int, str]] = set()
    for row in log.splitlines():
        match = _ERROR.match(row)
        if match is None or Path(match["file"]).name != f"{device.name}.metal":
            continue
        found = int(match["line"]), match["text"]
        if found not in seen:
            seen.add(found)
            yield _failure(device, *found)
    if not seen:
        yield _failure(device, 0, log.splitlines()[0])


def _failure(device: DeviceSource, number: int, text: str) -> Diagnostic:
    lines = device.source.lines
    line = lines[number - 1] if 0 < number <= len(lines) else None
    span: Span | None = None if line is None else line.span
    labels = () if line is None or span is None else (
        Label(span, f"became line {number} of the source: {line.text.strip()[:80]}"),
    )  # fmt: skip
    return Diagnostic(
        code="TL806",
        severity=code_of("TL806").severity,
        message=f"the Metal source generated for `{device.name}` is wrong: {text}",
        span=span,
        labels=labels,
        help="this is a mistake of the compiler, not of the kernel: please report it",
    )
