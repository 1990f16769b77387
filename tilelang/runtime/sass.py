"""Which machine instructions does a CUDA binary hold, and which line of source is each from?

Through nvdisasm, from its wheel or a toolkit.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Final

from tilelang.codegen.ptx_lines import source_lines
from tilelang.nested import nested
from tilelang.runtime.programs import find_program
from tilelang_diagnostics import failure

_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Instruction:
    """One machine instruction. `line` is of the generated source file, None for helpers of it
    that were not inlined from a line of ours; `labels` stand before it."""

    kernel: str
    address: int
    predicate: str
    opcode: str
    operands: str
    line: int | None
    labels: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The opcode without its modifiers."""
        return self.opcode.partition(".")[0]

    @property
    def jumps_to(self) -> str | None:
        """The label it may go on at instead of the next instruction."""
        if self.name not in _JUMPS:
            return None
        found = _TARGET.search(self.operands)
        return None if found is None else found[1]

    @property
    def falls_through(self) -> bool:
        """Whether the next instruction may follow it."""
        if self.predicate or self.name not in (*_JUMPS, *_ENDS):
            return True
        # A jump may have its condition among the operands: `BRA.U UP0, (label)`.
        return self.name in _JUMPS and _ONLY_TARGET.fullmatch(self.operands) is None

    @property
    def is_never_run(self) -> bool:
        """Whether its predicate is false for ever: what ptxas pads with."""
        return self.predicate in ("@!PT", "@!UPT")


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


def disassemble(cubin: bytes, file_name: str = "", ptx: str = "") -> Listing:
    """The instructions of `cubin`; lines are those of `file_name` if it was compiled with them.

    Raises CompileError: TL807 without nvdisasm, TL818 if it fails.

    With the PTX it was assembled from, lines are exact. The line table alone says the same of
    neighbours that were inlined from one line of a header, whatever line of ours each is from
    (ptxas 13.0: the loads of two copies in a row all count as the first copy's).
    """
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
        if ptx:
            with nested("nvdisasm"):
                text = _run(tool, "--print-line-info-ptx", path)
            if _PTX_FILE in text:
                lines = source_lines(ptx, file_name)
                found = _parse(text, partial(_line_through_ptx, lines))
                return Listing(text, tuple(_in_order_of_ptx(found, ptx, lines)))
        with nested("nvdisasm"):
            text = _run(tool, "--print-line-info-inline", path)
    return Listing(text, tuple(_parse(text, partial(_line_of, file_name))))


def _run(tool: Path, lines: str, path: Path) -> str:
    try:
        done = subprocess.run(
            [str(tool), "--print-code", lines, str(path)], capture_output=True, text=True,
            errors="replace", timeout=_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        said = f"it took longer than {_SECONDS:.0f} s"
    except OSError as error:
        said = error.strerror or str(error)
    else:
        if done.returncode == 0:
            return done.stdout
        said = done.stderr.strip() or f"it ended with status {done.returncode}"
    raise failure(
        "TL818",
        f"{tool.name} does not show this machine code: {said.splitlines()[0]}",
        notes=tuple(said.splitlines()[1:]),
        help="install one as new as the compiler: pip install -U 'tilelang[cuda13]'",
    )


def _in_order_of_ptx(
    found: Sequence[Instruction], ptx: str, lines: Sequence[int | None]
) -> Iterator[Instruction]:
    """Instructions of warp groups with the lines of those of PTX.

    The table says nothing new of one behind an instruction that was moved before it (ptxas 13.0),
    but their order is kept: where there are as many, they are the same.
    """
    places: dict[str, list[int | None]] = {}
    kernel = ""
    for row, line in zip(ptx.splitlines(), lines, strict=True):
        if entry := _ENTRY.search(row):
            kernel = entry[1]
        elif "wgmma.mma_async" in row:
            places.setdefault(kernel, []).append(line)
    counts = Counter(i.kernel for i in found if i.name in _OF_WARP_GROUPS)
    queues = {k: iter(p) for k, p in places.items() if counts[k] == len(p)}
    for one in found:
        if one.name in _OF_WARP_GROUPS and one.kernel in queues:
            yield replace(one, line=next(queues[one.kernel]))
        else:
            yield one


def _line_through_ptx(lines: Sequence[int | None], file: str, number: int) -> int | None:
    return lines[number - 1] if file == _PTX_FILE and number <= len(lines) else None


def _line_of(wanted: str, file: str, number: int) -> int | None:
    return number if not wanted or Path(file).name == wanted else None


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


_OF_WARP_GROUPS: Final = ("HGMMA", "IGMMA", "QGMMA", "BGMMA")
_ENTRY: Final = re.compile(r"\.entry\s+(\w+)")
_PTX_FILE: Final = ".nv_debug_ptx_txt"
_JUMPS: Final = ("BRA", "JMP")
_ENDS: Final = ("EXIT", "RET", "BRX", "JMX", "BPT")
_TARGET: Final = re.compile(r"`\((\.L\w+)\)")
_ONLY_TARGET: Final = re.compile(r"\s*`\(\.L\w+\)\s*")
_LABEL: Final = re.compile(r"^(\.L\w+):")
_SECTION: Final = re.compile(r"^\s*\.section\s+\.text\.(\w+)")
_LINE: Final = re.compile(r'//## File "(?P<file>[^"]*)", line (?P<line>\d+)(?P<inlined> inlined)?')
_CODE: Final = re.compile(
    r"^\s*/\*(?P<address>[0-9a-f]+)\*/\s+(?P<predicate>@!?U?P\w+\s+)?(?P<opcode>[A-Z][\w.]*)"
    r"(?P<operands>[^;]*);"
)


def _parse(text: str, line_of: Callable[[str, int], int | None]) -> list[Instruction]:
    out: list[Instruction] = []
    kernel, line = "", None
    fresh = True  # whether the next line comment begins a new place
    labels: list[str] = []
    for row in text.splitlines():
        if section := _SECTION.match(row):
            kernel, line, labels = section[1], None, []
        elif label := _LABEL.match(row):
            labels.append(label[1])
        elif place := _LINE.search(row):
            # A chain of inlined places ends with the line of the kernel itself.
            if fresh:
                line = None
            fresh = False
            found = line_of(place["file"], int(place["line"]))
            line = line if found is None else found
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
                    tuple(labels),
                )
            )
            labels = []
    return out
