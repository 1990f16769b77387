"""Which instructions does PTX hold, and which line of source is each from?

What `inspect` falls back to where machine code cannot be disassembled: PTX has one instruction for
several of the machine's, and says nothing of registers, but its matrix instructions, copies and
widths are those that were asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tilelang.codegen.ptx_lines import source_lines

_ENTRY: Final = re.compile(r"\.entry\s+(\w+)")
_LABEL: Final = re.compile(r"^(\$\w+):")
_CODE: Final = re.compile(r"^\s*(?:\{\s*)?(?P<predicate>@!?%p\d+\s+)?(?P<opcode>[a-z][\w.:]*)\s*"
                          r"(?P<operands>[^;]*);")  # fmt: skip
_ENDS: Final = ("ret", "exit", "trap")


@dataclass(frozen=True, slots=True)
class PtxInstruction:
    """One instruction; the opcode of `cp.async` ends in its number of bytes."""

    kernel: str
    opcode: str
    operands: str
    predicate: str
    line: int | None
    labels: tuple[str, ...] = ()

    @property
    def jumps_to(self) -> str | None:
        return self.operands.strip() if self.opcode.startswith("bra") else None

    @property
    def falls_through(self) -> bool:
        return bool(self.predicate) or not self.opcode.startswith(("bra", *_ENDS))


def ptx_instructions(ptx: str, file_name: str) -> Iterator[PtxInstruction]:
    """The instructions of every kernel; lines are those of `file_name`."""
    lines = source_lines(ptx, file_name)
    kernel = ""
    labels: list[str] = []
    for text, line in zip(ptx.splitlines(), lines, strict=True):
        entry = _ENTRY.search(text)
        if entry is not None:
            kernel, labels = entry[1], []
        elif (label := _LABEL.match(text)) is not None:
            labels.append(label[1])
        elif kernel and (code := _CODE.match(text)) is not None:
            opcode = code["opcode"]
            if opcode.startswith(("cp.async.ca", "cp.async.cg")):
                opcode += f", {code['operands'].split(',')[2].strip()}"
            predicate = (code["predicate"] or "").strip()
            yield PtxInstruction(kernel, opcode, code["operands"], predicate, line, tuple(labels))
            labels = []
