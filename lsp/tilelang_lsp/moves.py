"""Where did things go when definitions moved by whole lines, each with its text as it was?

A line added at the top of a file moves all that is known of the rest. Nothing is moved for that:
things stay `Placed` where they were read, and are moved when somebody asks for them.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import Generic, TypeAlias, TypeVar

from tilelang_diagnostics import Diagnostic, Fix, Label, Span
from tilelang_lsp.model import Budget, Fact, Hint, Kernel, Launch, Outline, Part, Symbol

T = TypeVar("T")
Tops: TypeAlias = tuple[int, ...]  # first lines of the statements at the top of a file


@dataclass(frozen=True, slots=True, eq=False)
class Placed(Generic[T]):
    """What was read when the statements at the top of its file began on these lines."""

    what: T
    tops: Tops


class Moves:
    """Where lines went between two texts with the same statements at the top."""

    def __init__(self, old: Tops, new: Tops, path: str = "") -> None:
        self._path = path  # of the file; what lies in others stays
        self._starts = old
        same = len(old) == len(new)
        self._by = [b - a for a, b in zip(old, new, strict=True)] if same else []
        self.any = any(self._by)

    def line(self, line: int) -> int:
        """Where a line is now."""
        at = bisect_right(self._starts, line) - 1
        return line + self._by[at] if 0 <= at < len(self._by) else line

    def span(self, span: Span) -> Span:
        """Where a span is now."""
        if not self.any or (self._path and span.file != self._path):
            return span
        line = self.line(span.line)
        end = line if span.end_line == span.line else self.line(span.end_line)
        if line == span.line and end == span.end_line:
            return span
        return Span(span.file, line, span.column, end, span.end_column)

    def maybe(self, span: Span | None) -> Span | None:
        """The same for one that may be missing."""
        return None if span is None else self.span(span)

    def symbol(self, symbol: Symbol) -> Symbol:
        """A symbol where it is now."""
        if not self.any:
            return symbol
        uses = tuple(map(self.span, symbol.uses))
        return replace(symbol, span=self.span(symbol.span), uses=uses)

    def fact(self, fact: Fact) -> Fact:
        """A fact where it is now."""
        span, cause = self.span(fact.span), self.maybe(fact.cause)
        if span is fact.span and cause is fact.cause:
            return fact
        return Fact(span, fact.kind, fact.label, fact.detail, fact.shorter, cause)

    def diagnostic(self, found: Diagnostic) -> Diagnostic:
        """A finding where it is now, its fixes too."""
        if not self.any:
            return found
        here = self._path or (found.span.file if found.span is not None else "")
        return replace(
            found,
            span=self.maybe(found.span),
            labels=tuple(Label(self._own(x.span, here), x.text) for x in found.labels),
            calls=tuple(replace(c, span=self._own(c.span, here)) for c in found.calls),
            fixes=tuple(self._fix(f, here) for f in found.fixes),
        )

    def _fix(self, fix: Fix, here: str) -> Fix:
        edits = tuple(replace(e, span=self._own(e.span, here)) for e in fix.edits)
        return replace(fix, edits=edits)

    def _own(self, span: Span, here: str) -> Span:
        return self.span(span) if span.file == here else span

    def kernel(self, kernel: Kernel) -> Kernel:
        """A kernel where it is now."""
        return replace(
            kernel,
            span=self.span(kernel.span),
            launches=tuple(
                Launch(self.span(x.span), x.grid, x.threads) for x in kernel.launches
            ),
        )  # fmt: skip

    def outline(self, node: Outline) -> Outline:
        """A definition where it is now."""
        return replace(node, whole=self.span(node.whole), name_span=self.span(node.name_span))

    def budget(self, budget: Budget) -> Budget:
        """A budget with its tiles where they are now."""
        shares = tuple(replace(s, span=self.maybe(s.span)) for s in budget.shares)
        return replace(budget, shares=shares)

    def hint(self, hint: Hint) -> Hint:
        """A hint where it is now."""
        line, target = self.line(hint.line), self.maybe(hint.target)
        if line == hint.line and target is hint.target:
            return hint
        return Hint(line, hint.column, hint.label, hint.tooltip, hint.kind, hint.shorter, target)

    def part(self, part: Part) -> Part:
        """What a definition says, where it is now."""
        if not self.any:
            return part
        return Part(
            tuple(map(self.kernel, part.kernels)),
            tuple(map(self.symbol, part.symbols)),
            tuple(map(self.symbol, part.shared)),
            tuple(map(self.fact, part.facts)),
            tuple(map(self.diagnostic, part.diagnostics)),
            tuple((self.span(a), tuple(map(self.outline, b))) for a, b in part.contents),
        )
