"""Do several groups of threads work on one fragment? (TL301)

    with T.ws(0): T.gemm(A, B, acc)
    with T.ws(1): T.gemm(C, D, acc)         # other threads, other registers

A fragment is registers of the threads that work on it, so no other group can reach them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tilelang.layout.constraints import Origin
from tilelang.program.buffer import Buffer
from tilelang.program.context import make_diagnostic
from tilelang_diagnostics.model import Diagnostic, Label

if TYPE_CHECKING:
    from tilelang.layouts.solved import Solved


def check(solved: Solved) -> Iterator[Diagnostic]:
    """Fragments of several groups."""
    for buffer, users in solved.collected.group_users.items():
        if len(users) > 1:
            yield _diagnostic(buffer, users, solved.collected.threads)


def _diagnostic(
    buffer: Buffer, users: dict[tuple[int, int], Origin], threads: int | None
) -> Diagnostic:
    (one, first), *others = users.items()
    last, second = others[-1]
    name = buffer.name
    labels = [
        Label(origin.span, f"{_who(group, threads)} {'work' if _many(group) else 'works'} on it")
        for group, origin in ((one, first), *others[:-1])
        if origin.span is not None
    ]
    if buffer.span is not None:
        labels.append(Label(buffer.span, f"`{name}` is in registers of the threads that use it"))
    return make_diagnostic(
        "TL301",
        f"`{name}` cannot be in the registers of {_who(one, threads)}, for {first.op}, and of "
        f"{_who(last, threads)}, for {second.op}",
        span=second.span,
        label=f"{_who(last, threads)} {'work' if _many(last) else 'works'} on it",
        labels=tuple(labels),
        help=f"give each warp group a fragment of its own and combine them in shared memory, or do "
        f"everything with `{name}` in one `with T.ws(…):`",
    )


def _many(group: tuple[int, int]) -> bool:
    return group[1] - group[0] != 128


def _who(group: tuple[int, int], threads: int | None) -> str:
    first, last = group
    if group == (0, threads):
        return f"all {threads} threads"
    if not _many(group):
        return f"warp group {first // 128}"
    return f"threads {first} to {last - 1}"
