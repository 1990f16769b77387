"""How much of each column leads back to Python, and to what?

Counted are lines that do something: not blank ones, includes, directives and labels. A line that
leads to the head of a loop or of the kernel is not lost, but says little: `on_heads` counts those,
which are right only for what a loop itself does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tilelang_trace.columns import opcode_of
from tilelang_trace.model import Code, CodeKind, Line, Trace

_HEAD: Final = re.compile(r"\s*(?:for|while) ?\(|.*\b__global__\b")
_PTX: Final = re.compile(r"\s+(?:\{\s*)?(?:@!?%p\d+\s+)?[a-z][\w.:]*[^/]*;$")


@dataclass(frozen=True, slots=True)
class Coverage:
    """Of `lines` that do something, `mapped` lead to Python, `on_heads` of those to a head."""

    kind: CodeKind
    lines: int
    mapped: int
    on_heads: int

    @property
    def percent(self) -> float:
        """How many lead to Python; 100 of none."""
        return 100.0 * self.mapped / self.lines if self.lines else 100.0


def coverage(trace: Trace) -> tuple[Coverage, ...]:
    """One for each language the kernel was written in, where it has any line."""
    heads = heads_of(trace)
    found = []
    for code in trace.codes:
        lines = list(effective(code))
        mapped = [x for x in lines if x.span is not None]
        if lines:
            on_heads = sum(x.origin in heads for x in mapped)
            found.append(Coverage(code.kind, len(lines), len(mapped), on_heads))
    return tuple(found)


def heads_of(trace: Trace) -> frozenset[int]:
    """Lines of generated source that begin a loop or a kernel."""
    source = trace.code("source")
    lines = () if source is None else source.lines
    return frozenset(n for n, line in enumerate(lines, 1) if _HEAD.match(line.text))


def effective(code: Code) -> Iterator[Line]:
    """The lines that do something."""
    for line in code.lines:
        text = line.text
        match code.kind:
            case "source":
                bare = text.strip()
                keep = bool(bare) and not bare.startswith(("#include", "#define"))
                if code.language == "llvm":
                    keep = text.startswith("  ")
            case "ptx":
                keep = _PTX.match(text) is not None
            case "sass":
                keep = opcode_of(text) is not None
        if keep:
            yield line
