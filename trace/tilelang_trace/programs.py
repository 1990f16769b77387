"""How does a program read after each pass? What a pass left alone is not printed again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilelang_trace.model import Line

if TYPE_CHECKING:
    from tilelang.ir.text import IRLine
    from tilelang.ir.text_memory import TextMemory


class ProgramText:
    """Prints the programs of one compilation."""

    def __init__(self) -> None:
        self._memory: TextMemory[IRLine] | None = None  # made late: this loads TVM
        self._lines: dict[int, tuple[IRLine, Line]] = {}

    def lines(self, func: Any) -> tuple[Line, ...]:
        """The text of a function; programs share the lines that are in several of them."""
        from tilelang.ir.text import print_function
        from tilelang.ir.text_memory import TextMemory

        if self._memory is None:
            self._memory = TextMemory()
        return tuple(self._line(line) for line in print_function(func, self._memory).lines)

    def _line(self, line: IRLine) -> Line:
        known = self._lines.get(id(line))
        if known is None:
            known = line, Line(line.text, line.span, line.calls)
            self._lines[id(line)] = known
        return known[1]
