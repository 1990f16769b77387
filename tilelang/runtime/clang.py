"""Which clang is on this machine, and what does it say is wrong with generated source?

The same one compiles HIP, reads Metal, and builds what the emulator runs of Metal.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tilelang import options
from tilelang.runtime.programs import command_of, find_program, output_of

_ERROR: Final = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):\d+: (?:fatal )?error: (?P<text>.*)$")
_INSTANTIATED: Final = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):\d+: note: in instantiation")


@dataclass(frozen=True, slots=True)
class Clang:
    """How it is called, and what it says of itself."""

    command: tuple[str, ...]
    version: str

    def __str__(self) -> str:
        return f"{' '.join(self.command)} ({self.version})"


def find_clang() -> Clang | None:
    """The clang that `$CXX` names, ROCm's, the one of the ziglang wheel, or the system's."""
    return _clang(options.CXX.get(), options.SEARCH_PATH.get())


@cache
def _clang(wanted: str, path: str) -> Clang | None:
    commands: list[tuple[str, ...]] = []
    named = command_of(wanted)[:1]
    if named and "clang" in Path(named[0]).name and (program := find_program(named[0])):
        commands.append((program,))
    if (program := find_program("amdclang++")) is not None:
        commands.append((program,))
    if importlib.util.find_spec("ziglang") is not None:
        commands.append((sys.executable, "-m", "ziglang", "clang"))
    names = ("clang++", *(f"clang++-{n}" for n in range(22, 17, -1)))
    commands += [(program,) for name in names if (program := find_program(name)) is not None]
    for command in commands:
        text = output_of((*command, "--version")) or ""
        if "clang" in text:
            return Clang(command, text.splitlines()[0])
    return None


def errors_in(log: str, file_name: str) -> Iterator[tuple[str, int | None]]:
    """Each error of a clang, and the line of the generated file it is about."""
    found: list[tuple[str, int | None]] = []
    for line in log.splitlines():
        if error := _ERROR.match(line):
            ours = Path(error["file"]).name == file_name
            found.append((error["text"], int(error["line"]) if ours else None))
        elif (note := _INSTANTIATED.match(line)) and found and found[-1][1] is None:
            # An error in a header is said with the line of the kernel that brought it about.
            if Path(note["file"]).name == file_name:
                found[-1] = (found[-1][0], int(note["line"]))
    if not found:
        first = next((x for x in log.splitlines() if "error" in x), log.split("\n")[0])
        found.append((first or "no message", None))
    yield from found
