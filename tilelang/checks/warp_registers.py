"""Do warp groups ask for more registers than a block has? (TL407)

    with T.ws(1, 2, 3): T.set_max_nreg(240, 1)     # 3 x 128 x 240, of 65536

Whoever asks last waits for registers that nobody gives back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tilelang.program.context import make_diagnostic
from tilelang.program.expr import Intrinsic
from tilelang.program.stmt import Block, Evaluate, Function, Launch, Scoped, bodies, walk_statements
from tilelang_diagnostics.model import Diagnostic, Label, Span

WARP_GROUP: Final = 128
# CUDA programming guide, table of compute capabilities: 32-bit registers per thread block.
OF_A_BLOCK: Final = 1 << 16


def check(function: Function, target: str) -> Iterator[Diagnostic]:
    """The most that the groups of a launch ask for together."""
    if target.split(":")[0] != "cuda":
        return
    for stmt in walk_statements(function.body):
        if isinstance(stmt, Launch):
            asked: dict[int, tuple[int, Span | None]] = {}
            for group, count, span in _asked(stmt.body, ()):
                if count > asked.get(group, (0, None))[0]:
                    asked[group] = (count, span)
            total = sum(count for count, _ in asked.values()) * WARP_GROUP
            if total > OF_A_BLOCK:
                yield _too_many(asked, total)


def _asked(block: Block, groups: tuple[int, ...]) -> Iterator[tuple[int, int, Span | None]]:
    """Warp group, registers of a thread, and where it asks for them."""
    for stmt in block:
        if isinstance(stmt, Evaluate) and isinstance(stmt.value, Intrinsic):
            count = dict(stmt.value.attrs).get("reg_count")
            if stmt.value.name == "set_max_nreg" and isinstance(count, int):
                yield from ((group, count, stmt.span) for group in groups)
        inner = groups
        if isinstance(stmt, Scoped) and stmt.kind == "ws":
            inner = tuple(i for i in stmt.args if isinstance(i, int))
        for body in bodies(stmt):
            yield from _asked(body, inner)


def _too_many(asked: dict[int, tuple[int, Span | None]], total: int) -> Diagnostic:
    most = max(asked, key=lambda group: asked[group][0])
    named = ", ".join(f"{asked[g][0]} in warp group {g}" for g in sorted(asked))
    others = dict.fromkeys(span for _, span in asked.values() if span != asked[most][1])
    each = OF_A_BLOCK // WARP_GROUP
    return make_diagnostic(
        "TL407",
        f"{named}, for each of {WARP_GROUP} threads, are {total} registers, and a block has "
        f"{OF_A_BLOCK}",
        span=asked[most][1],
        label="waits for registers that never come free",
        labels=tuple(Label(span, "asks for some too") for span in others if span is not None),
        help=f"the counts of all warp groups may add up to {each}",
    )
