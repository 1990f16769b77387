"""What `inspect` finds, as frozen values without anything of the compiler in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilelang.choices import Note
from tilelang.inspection.counts import Counts
from tilelang.occupancy import Occupancy
from tilelang_diagnostics.model import Diagnostic, Frame, Span

Source = Literal["sass", "ptx"]


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """Shared memory of a block in bytes: what it takes, and what a block may have."""

    static: int
    dynamic: int
    limit: int | None

    @property
    def total(self) -> int:
        return self.static + self.dynamic


@dataclass(frozen=True, slots=True)
class LoopReport:
    """One loop of the code: the Python loop it is from, its variable, how many loops are around
    it, and what one iteration holds, loops inside included."""

    span: Span | None
    variable: str
    depth: int
    counts: Counts


@dataclass(frozen=True, slots=True)
class LineReport:
    """What one statement of the user's Python became; `calls` is the way to inlined code."""

    span: Span
    calls: tuple[Frame, ...]
    counts: Counts


@dataclass(frozen=True, slots=True)
class KernelReport:
    """One kernel of the code. `mapped` is how many of its instructions have a Python line.

    Registers, stack and spills are of a thread, spills in bytes; None where only PTX is known.
    """

    symbol: str
    threads: int
    shared: SharedMemory
    registers: int | None
    stack: int | None
    spill_stores: int | None
    spill_loads: int | None
    occupancy: Occupancy | None
    counts: Counts
    mapped: int
    loops: tuple[LoopReport, ...] = ()
    lines: tuple[LineReport, ...] = ()

    @property
    def spills(self) -> int | None:
        """Bytes moved for want of registers."""
        if self.spill_stores is None or self.spill_loads is None:
            return None
        return self.spill_stores + self.spill_loads


@dataclass(frozen=True, slots=True)
class BankConflicts:
    """What the layout of a shared tile costs one of its uses: lanes of a warp collide `degree`
    ways (1: not at all). Predicted from layouts, not measured."""

    buffer: str
    operation: str
    access: str
    mode: str
    degree: int
    span: Span | None


@dataclass(frozen=True, slots=True)
class Inspection:
    """All kernels of one compiled function. `source` says whether counts are of machine code or of
    PTX, and `note` why it is PTX. `choices` are those the compiler made, with their reasons."""

    name: str
    target: str
    arch: str
    compiler: str
    source: Source
    note: str
    kernels: tuple[KernelReport, ...]
    conflicts: tuple[BankConflicts, ...]
    remarks: tuple[Diagnostic, ...]
    choices: tuple[Note, ...] = ()

    def kernel(self, symbol: str | None = None) -> KernelReport:
        """The kernel of that name, or the only one; KeyError if there is none."""
        found = [k for k in self.kernels if symbol in (None, k.symbol)]
        if len(found) != 1:
            raise KeyError(f"{symbol or 'one kernel'} among {[k.symbol for k in self.kernels]}")
        return found[0]

    @property
    def counts(self) -> Counts:
        """Those of all kernels together."""
        total = Counts()
        for kernel in self.kernels:
            total = total + kernel.counts
        return total
