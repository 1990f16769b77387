"""Which machine instructions does a CUDA binary hold, and which line of source is each from?

Through nvdisasm, from its wheel or a toolkit.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tilelang.runtime.programs import find_program
from tilelang_diagnostics import failure


@dataclass(frozen=True, slots=True)
class Instruction:
    """One machine instruction. `line` is of the generated source file, None for helpers of it
    that were not inlined from a line of ours."""

    kernel: str
    address: int
    predicate: str
    opcode: str
    operands: str
    line: int | None

    @property
    def name(self) -> str:
        """The opcode without its modifiers."""
        return self.opcode.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Listing:
    """A disassembled binary: its text and its instructions in order."""

    text: str
    instructions: tuple[Instruction, ...]

    def of(self, kernel: str) -> tuple[Instruction, ...]:
        """The instructions of one kernel."""
        return tuple(i for i in self.instructions if i.kernel == kernel)

    def count(self, prefix: str, kernel: str | None = None) -> int:
        """How many instructions have an opcode that begins with `prefix` (`HMMA.16816`)."""
        return sum(
            i.opcode == prefix or i.opcode.startswith(prefix + ".")
            for i in self.instructions
            if kernel is None or i.kernel == kernel
        )

    def opcodes(self, kernel: str | None = None) -> Counter[str]:
        """How often each opcode, with its modifiers, occurs."""
        return Counter(i.opcode for i in self.instructions if kernel is None or i.kernel == kernel)


def disassemble(cubin: bytes, file_name: str = "") -> Listing:
    """The instructions of `cubin`; lines are those of `file_name` if it was compiled with them."""
    tool = find_nvdisasm()
    if tool is None:
        raise failure(
            "TL807",
            "nvdisasm is not installed, which shows machine code",
            help="pip install 'tilelang[cuda13]'",
        )
    with tempfile.TemporaryDirectory(prefix="tilelang-sass-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        done = subprocess.run(
            [str(tool), "--print-code", "--print-line-info-inline", str(path)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(f"nvdisasm failed: {done.stderr.strip()}")
    return Listing(done.stdout, tuple(_parse(done.stdout, file_name)))


@cache
def find_nvdisasm() -> Path | None:
    """nvdisasm from its wheel, else from the search path."""
    spec = importlib.util.find_spec("nvidia")
    bases = [] if spec is None else [Path(p) for p in spec.submodule_search_locations or ()]
    for base in bases:
        for tool in sorted(base.glob("*/bin/nvdisasm")):
            return tool
    found = find_program("nvdisasm")
    return None if found is None else Path(found)


_SECTION: Final = re.compile(r"^\s*\.section\s+\.text\.(\w+)")
_LINE: Final = re.compile(r'//## File "(?P<file>[^"]*)", line (?P<line>\d+)(?P<inlined> inlined)?')
_CODE: Final = re.compile(
    r"^\s*/\*(?P<address>[0-9a-f]+)\*/\s+(?P<predicate>@!?U?P\w+\s+)?(?P<opcode>[A-Z][\w.]*)"
    r"(?P<operands>[^;]*);"
)


def _parse(text: str, file_name: str) -> list[Instruction]:
    out: list[Instruction] = []
    kernel, line = "", None
    fresh = True  # whether the next line comment begins a new place
    for row in text.splitlines():
        if section := _SECTION.match(row):
            kernel, line = section[1], None
        elif place := _LINE.search(row):
            # A chain of inlined places ends with the line of the kernel itself.
            if fresh:
                line = None
            fresh = False
            if not file_name or Path(place["file"]).name == file_name:
                line = int(place["line"])
        elif code := _CODE.match(row):
            fresh = True
            out.append(
                Instruction(
                    kernel,
                    int(code["address"], 16),
                    (code["predicate"] or "").strip(),
                    code["opcode"],
                    code["operands"].strip(),
                    line,
                )
            )
    return out
