"""A launch whose layouts are all decided, and how it becomes entries of the answer."""

from __future__ import annotations

from tilelang.layout.constraints import Variable, variables_of
from tilelang.layout.loops import replicated
from tilelang.layout.solution import Solution
from tilelang.layouts.addresses import known_shape
from tilelang.layouts.ahead import why_no_words
from tilelang.layouts.builder import UNKNOWN, Builder
from tilelang.layouts.collect import Collected
from tilelang.layouts.findings.registers import most_at_once
from tilelang.layouts.layout_map import Entry, LaunchLayouts
from tilelang.layouts.machine import Machine
from tilelang.layouts.shared import SharedLayout
from tilelang.program.buffer import Buffer
from tilelang.program.text import expr_text


class Solved:
    """A launch with the layouts of all its variables and shared tiles."""

    def __init__(
        self,
        collected: Collected,
        machine: Machine,
        groups: tuple[tuple[Builder, Solution], ...],
        shared: dict[Buffer, SharedLayout],
    ) -> None:
        self.collected = collected
        self.machine = machine
        self.groups = groups
        self.shared = shared

    def layouts(self) -> LaunchLayouts:
        """The entries of the launch."""
        buffers = tuple(e for e in map(self._buffer, self.collected.buffers) if e is not None)
        loops = tuple(
            self._loop(b, solution, nest.variable, nest.span)
            for b, solution in self.groups
            for nest in b.nests
            if nest.span is not None
        )
        return LaunchLayouts(
            self.collected.launch.span, self.collected.threads, buffers, loops,
            tuple(narrow for b, _ in self.groups for narrow in b.narrow()),
            tuple(p for b, _ in self.groups for p in b.products),
            tuple(why for b, solution in self.groups for why in why_no_words(b, solution)),
            most_at_once(self),
        )  # fmt: skip

    def _buffer(self, buffer: Buffer) -> Entry | None:
        shape = tuple(expr_text(d) for d in buffer.shape)
        common = (shape, buffer.dtype.name, buffer.dtype.bits, buffer.span)
        if buffer.is_fragment:
            return self._fragment(buffer, common)
        if buffer.scope_name == "local.reducer":
            extents = known_shape(buffer)
            layout = None
            if extents is not None and self.collected.threads is not None:
                layout = replicated(extents, self.collected.threads)
            return Entry(buffer.name, "reducer", *common, layout, "each thread has its own part")
        if not buffer.is_shared or buffer.source is not None:
            return None
        known = self.shared.get(buffer)
        if known is None:
            return Entry(buffer.name, "shared", *common, None, UNKNOWN)
        return Entry(buffer.name, "shared", *common, known.layout, known.why, bank_uses=known.uses)

    def _fragment(
        self, buffer: Buffer, common: tuple[tuple[str, ...], str, int, object]
    ) -> Entry | None:
        for b, solution in self.groups:
            var = b.variables.get(buffer)
            if var is not None and var in solution.layouts and buffer not in b.unknown:
                return Entry(
                    buffer.name, "fragment", *common, solution.layouts[var],  # type: ignore[arg-type]
                    "", var, solution,
                    conversions=tuple(c for c in solution.conversions if c.var == var),
                    first_thread=b.first_thread, threads=b.threads,
                )  # fmt: skip
        reason = self.collected.reasons.get(buffer)
        if reason is None and known_shape(buffer) is None:
            reason = UNKNOWN
        if reason is None:
            known = self.collected.threads is not None
            reason = "nothing uses it" if known else "the number of threads is not known here"
        return Entry(buffer.name, "fragment", *common, None, reason)  # type: ignore[arg-type]

    def _loop(self, b: Builder, solution: Solution, var: Variable, span: object) -> Entry:
        return Entry(
            var.name, "loop", tuple(map(str, var.shape)), "", 0, span,  # type: ignore[arg-type]
            solution.layouts.get(var), "", var, solution,
            conversions=tuple(
                c for c in solution.conversions if var in variables_of(c.constraint)
            ),
            first_thread=b.first_thread, threads=b.threads,
        )  # fmt: skip
