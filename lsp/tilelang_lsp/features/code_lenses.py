"""textDocument/codeLens: what a kernel takes, what was assumed, and what can be done with it.

shared 40 KiB of 227 KiB · 128 threads · 90+ registers · 5 blocks, 31 % occupancy
assumes dim = 64, seq_len = 333 (its argument parser); open: heads
compile | run on the emulator | trace | target cuda:sm_90a
@tilelang.jit
def flash_attention(…):
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tilelang_diagnostics import Span
from tilelang_lsp.describe_budget import assumed_line, budget_line
from tilelang_lsp.features.base import Feature, Request
from tilelang_lsp.insights import keys_of
from tilelang_lsp.model import Insight, Kernel

SHOW, SET, COMPILE, EMULATE, TRACE, TARGET = (
    f"tilelang.server.{name}" for name in ("show", "set", "compile", "emulate", "trace", "target")
)


@dataclass(frozen=True, slots=True)
class Lens:
    """A line above a place; a click runs `command` with `arguments`."""

    span: Span
    title: str
    command: str
    arguments: tuple[Any, ...]


def code_lenses(request: Request) -> tuple[Lens, ...]:
    """The lenses of every kernel."""
    found = keys_of(request.analysis.kernels)
    return tuple(
        lens for key, kernel in found.items()
        for lens in _lenses(request, kernel, request.insights.of(key))
    )  # fmt: skip


FEATURE = Feature("textDocument/codeLens", code_lenses, "fresh")


def _lenses(request: Request, kernel: Kernel, insight: Insight | None) -> Iterator[Lens]:
    span, where = kernel.span, (request.uri, kernel.owner or kernel.name, kernel.span.line)
    for budget in insight.budgets if insight is not None else ():
        named = len(insight.budgets) > 1 if insight is not None else False
        yield Lens(span, budget_line(budget, named), SHOW, where)
    assumed = insight.assumed if insight is not None else ()
    line = assumed_line(kernel, assumed, insight is not None and insight.nominal, insight)
    if line:
        yield Lens(span, line, SET, (*where, dict.fromkeys(kernel.open_names, "")))
    for title, command in (
        ("compile", COMPILE), ("run on the emulator", EMULATE), ("trace", TRACE)
    ):  # fmt: skip
        yield Lens(span, title, command, where)
    chosen = request.options.targets
    yield Lens(span, f"target {', '.join(chosen)}" if chosen else "no target", TARGET, where)
