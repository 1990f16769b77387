"""Do two pipelined loops of different depth share a buffer? (TL505)"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.program.accesses import accesses, storage
from tilelang.program.buffer import Buffer
from tilelang.program.context import make_diagnostic
from tilelang.program.stmt import For, Function, walk_statements
from tilelang_diagnostics.model import Diagnostic, Label


def check(function: Function) -> Iterator[Diagnostic]:
    """A shared tile has one number of versions; two depths cannot both have theirs."""
    filled: dict[int, tuple[Buffer, For, int]] = {}
    for stmt in walk_statements(function.body):
        if not isinstance(stmt, For) or stmt.kind != "pipelined":
            continue
        stages = stmt.attr("num_stages", 0)
        if not isinstance(stages, int) or stages < 2:
            continue
        for inner in walk_statements(stmt.body):
            for access in accesses(inner):
                buffer = storage(access.buffer)
                if access.kind == "write" and buffer.is_shared:
                    first = filled.setdefault(id(buffer), (buffer, stmt, stages))
                    if first[1] is not stmt and first[2] != stages:
                        yield _clash(buffer, first[1], first[2], stmt, stages)


def _clash(buffer: Buffer, first: For, depth: int, second: For, stages: int) -> Diagnostic:
    labels = [] if first.span is None else [Label(first.span, f"{depth} versions of it here")]
    if buffer.span is not None:
        labels.append(Label(buffer.span, f"`{buffer.name}` is allocated once"))
    return make_diagnostic(
        "TL505",
        f"two pipelines of {depth} and {stages} stages share `{buffer.name}`",
        span=second.span,
        label=f"{stages} versions of it here",
        labels=tuple(labels),
        help="give both loops the same num_stages, or each its own buffer",
    )
