"""What does a pass know besides the function it rewrites?"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tilelang.choices import Choices
from tilelang.ir import tirx
from tilelang.ir.spans import TirSpan, calls_of, from_tir
from tilelang.ir.visit import collect
from tilelang.options import CompileOptions
from tilelang.target import Capabilities, parse_target
from tilelang_diagnostics import diagnose
from tilelang_diagnostics.model import Diagnostic

if TYPE_CHECKING:
    from tilelang.layouts.layout_map import LayoutMap
    from tilelang.roles.split import Split


# Deeper pipelines hide no more of the latency of memory than this, and cost occupancy.
DEEPEST: Final = 4


def moved(buffer: Any, bits: int) -> str:
    """What tells the parts of a copy apart."""
    return f"{bits} bits into {buffer.name}"


@dataclass(slots=True)
class PassContext:
    """One compilation: for which target (`cpu`, `cuda:sm_90a`), with which options.

    `remarks` collects what the passes found worth telling; `counters` what tests count
    (proof queries, guards left); `choices` what a trace shows. `layouts` are those inferred for a
    target whose threads cooperate.
    """

    target: str = "cpu"
    options: CompileOptions = field(default_factory=CompileOptions)
    remarks: list[Diagnostic] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    choices: Choices = field(default_factory=Choices)
    layouts: LayoutMap | None = None
    split: Split | None = None  # what warps take roles in
    deepest: int = DEEPEST  # what num_stages="auto" goes to at most

    @property
    def kind(self) -> str:
        """The kind of target, without its architecture."""
        return self.target.split(":")[0]

    @property
    def capabilities(self) -> Capabilities:
        """What the target has."""
        return parse_target(self.target).capabilities

    def count(self, what: str, by: int = 1) -> None:
        self.counters[what] = self.counters.get(what, 0) + by

    def note(
        self, kind: str, text: str, span: TirSpan = None, why: str = "", *, of: str = "",
        foreign: Collection[str] = (),
    ) -> None:  # fmt: skip
        """Tell what was chosen, once for each place."""
        self.choices.chose(kind, text, from_tir(span), why, of=of, foreign=foreign)

    def narrow(self, store: Any, why: str, bits: int) -> None:
        """Tell why a copy moves `bits` at a time and not 16 bytes; what layout inference knows of
        the rows of a tensor comes first."""
        loads = collect(store.value, tirx.TensorLoad)
        buffers = (store.buffer, *(e.source for e in loads))
        known = None
        if any(str(b.scope()) == "global" for b in buffers):
            known = self.known(store.span)
        place, of = from_tir(store.span), moved(store.buffer, bits)
        self.choices.passed_over("copy", "16 bytes at a time", known or why, place, of)

    def known(self, span: TirSpan) -> str | None:
        """What keeps a copy from moving as many elements at a time as there are instructions for,
        as far as layout inference knows it."""
        return None if self.layouts is None else self.layouts.why_narrow(from_tir(span))

    def why_no_words(self, span: TirSpan) -> str | None:
        """What keeps a copy from moving 4 bytes at a time, as far as layout inference knows it."""
        return None if self.layouts is None else self.layouts.why_no_words(from_tir(span))

    def passed_over(self, kind: str, way: str, why: str, span: TirSpan = None) -> None:
        """Tell why a faster way was not taken at a place, before what was is noted there."""
        self.choices.passed_over(kind, way, why, from_tir(span))

    def report(self, code: str, message: str, span: TirSpan, **details: Any) -> None:
        """Record a finding at a node's place in the user's file, once."""
        found = diagnose(
            code=code,
            message=message,
            span=from_tir(span),
            calls=calls_of(span),
            **details,
        )
        if found not in self.remarks:
            self.remarks.append(found)
