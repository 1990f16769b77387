"""The answer of layout inference: one entry per tile and loop, and what is wrong or costly.

found = infer_layouts(function, "cuda:sm_80")
found.of("scores").short     # 'thread=i//16*32 + i%8*4 + j//2%4'
print(found.of("scores").why)
print(found.of("scores").draw())
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from tilelang.layout.constraints import AnyLayout, Variable
from tilelang.layout.draw import draw_svg, draw_text
from tilelang.layout.fragment import Fragment
from tilelang.layout.layout import Layout
from tilelang.layout.solution import Conversion, Solution
from tilelang.layouts.demands import Product
from tilelang.layouts.machine import Machine
from tilelang.layouts.shared import BankUse
from tilelang_diagnostics.model import Diagnostic, Span

Kind = Literal["fragment", "shared", "reducer", "loop"]


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A tile or loop. `layout` is None where it is not known, and `reason` says why.

    `shape` is text, as extents may be symbols. `conversions` are those of a fragment.
    """

    name: str
    kind: Kind
    shape: tuple[str, ...]
    dtype: str
    bits: int
    span: Span | None
    layout: AnyLayout | None
    reason: str = ""
    variable: Variable | None = None
    solution: Solution | None = None
    bank_uses: tuple[BankUse, ...] = ()
    conversions: tuple[Conversion, ...] = ()
    first_thread: int = 0
    threads: int = 0

    @property
    def short(self) -> str:
        """The layout in a few words or as a formula that fits a hint; `unknown` where it is."""
        return "unknown" if self.layout is None else str(self.layout)

    @property
    def why(self) -> str:
        """What the layout rests on, step by step."""
        if self.variable is not None and self.solution is not None and self.layout is not None:
            return str(self.solution.why(self.variable))
        return self.reason

    @property
    def because(self) -> str:
        """The last step of `why` in one line."""
        if self.variable is None or self.solution is None or self.layout is None:
            return self.reason
        lines = self.why.splitlines()
        return lines[1].strip() if len(lines) > 1 else ""

    @property
    def registers(self) -> int | None:
        """32-bit registers a thread spends on a fragment."""
        if self.kind == "fragment" and isinstance(self.layout, Fragment):
            return self.layout.registers(self.bits)
        return None

    @property
    def bytes(self) -> int | None:
        """Shared memory a tile takes, padding included."""
        if self.kind == "shared" and isinstance(self.layout, Layout):
            return -(-self.layout.storage * self.bits // 8)
        return None

    @property
    def conflict_degree(self) -> int:
        """The worst bank conflict of a shared tile, 1 for none."""
        return max((use.degree for use in self.bank_uses), default=1)

    def draw(self, *, color: bool = False, max_rows: int = 16, max_columns: int = 16) -> str:
        """The layout as a grid of text."""
        if self.layout is None:
            return self.short
        return draw_text(self.layout, color=color, max_rows=max_rows, max_columns=max_columns)

    def draw_svg(self) -> str:
        """The layout as a picture; nothing for an unknown one."""
        return "" if self.layout is None else draw_svg(self.layout, title=self.name)

    def __str__(self) -> str:
        return f"{self.name}: {self.short}"


@dataclass(frozen=True, slots=True, eq=False)
class LaunchLayouts:
    """The entries of one launch, tiles and loops each in program order, and its gemms; the
    `registers` of a thread that fragments take at once."""

    span: Span | None
    threads: int | None
    buffers: tuple[Entry, ...]
    loops: tuple[Entry, ...]
    # Statements whose accesses of a tensor cannot be as wide as they come, and why.
    narrow: tuple[tuple[Span, str], ...] = ()
    products: tuple[Product, ...] = ()
    # Copies that might run ahead, if they moved whole words, and why they do not.
    no_words: tuple[tuple[Span, str], ...] = ()
    registers: int = 0

    @property
    def entries(self) -> tuple[Entry, ...]:
        return (*self.buffers, *self.loops)


@dataclass(frozen=True, eq=False)
class LayoutMap:
    """The layouts of a kernel for `machine`, and the diagnostics that come with them."""

    kernel: str
    machine: Machine
    launches: tuple[LaunchLayouts, ...]
    diagnostics: tuple[Diagnostic, ...] = field(default=())

    def __iter__(self) -> Iterator[Entry]:
        for launch in self.launches:
            yield from launch.entries

    def of(self, name: str) -> Entry:
        """The entry of a buffer, or of a loop by its variables or its line; KeyError if none."""
        return self._by_name[name]

    def get(self, name: str) -> Entry | None:
        """The same, or None."""
        return self._by_name.get(name)

    def at_line(self, line: int) -> tuple[Entry, ...]:
        """The loops and copies that stand on a line."""
        return tuple(e for e in self if e.kind == "loop" and e.span and e.span.line == line)

    def why_narrow(self, span: Span | None) -> str | None:
        """What keeps a statement from moving as many elements of a tensor at a time as there are
        instructions for; None where nothing does."""
        return self._narrow.get(span)

    def why_no_words(self, span: Span | None) -> str | None:
        """What keeps a copy from moving 4 bytes at a time, where that is known."""
        found = (why for launch in self.launches for at, why in launch.no_words if at == span)
        return next(found, None)

    @cached_property
    def _narrow(self) -> dict[Span | None, str]:
        return {span: why for launch in self.launches for span, why in launch.narrow}

    @cached_property
    def _by_name(self) -> dict[str, Entry]:
        return {entry.name: entry for entry in reversed(tuple(self))}

    @property
    def conversions(self) -> tuple[Conversion, ...]:
        """Every change of layout, once."""
        found = (c for entry in self for c in entry.conversions)
        return tuple({id(c): c for c in found}.values())

    @property
    def note(self) -> str:
        """What a reader must know about the target."""
        if self.machine.nominal:
            return f"a CPU needs no thread layouts; these are those of {self.machine}"
        return f"for {self.machine}"
