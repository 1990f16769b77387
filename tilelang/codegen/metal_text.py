"""What is handed to Metal: how does generated source become one text without files of its own?

#include <tl/common.h>  ->  the lines of that header, once
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tilelang import codegen
from tilelang.codegen.device_source import DeviceSource

HEADERS: Final = Path(codegen.__file__).parent / "headers" / "metal"
_HEAD: Final = (
    "// For Metal 3.1 or later. Compile it without fast maths (-fno-fast-math, or fastMathEnabled",
    "// = NO): infinities and NaN mean something here.",
)


def self_contained(device: DeviceSource) -> str:
    """The source with the headers it uses written out: what `newLibraryWithSource` takes."""
    done: set[str] = set()
    lines = list(_HEAD)
    for line in device.source.lines:
        lines += _written_out(line.text, done)
    return "".join(f"{line}\n" for line in lines)


def _written_out(line: str, done: set[str]) -> list[str]:
    """`line`, or the header that it includes, each only once."""
    if line == "#pragma once":
        return []
    if not line.startswith("#include <"):
        return [line]
    name = line.removeprefix("#include <").rstrip(">")
    if name in done:
        return []
    done.add(name)
    if not name.startswith("tl/"):
        return [line]
    text = (HEADERS / name).read_text(encoding="utf-8")
    return [out for inner in text.splitlines() for out in _written_out(inner, done)]
