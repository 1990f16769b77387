"""Does a thread write a fragment element that another thread holds? (TL310)

Every owner must get to a statement that writes its element; a condition on the thread number may
keep it away.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tilelang.layout.fragment import Fragment
from tilelang.layouts.findings.numbers import places
from tilelang.program.context import make_diagnostic
from tilelang_diagnostics.model import Diagnostic

if TYPE_CHECKING:
    from tilelang.layouts.solved import Solved


def check(solved: Solved) -> Iterator[Diagnostic]:
    """Writes outside T.Parallel that some owner does not take part in."""
    for builder, solution in solved.groups:
        reported: set[object] = set()
        for write in builder.uniform_writes:
            layout = solution.layouts.get(write.var)
            if not isinstance(layout, Fragment) or write.origin in reported:
                continue
            owners = {int(thread) for thread, _ in layout.owners(*write.element)}
            writers = set(write.threads.tolist())
            if owners <= writers:
                continue
            reported.add(write.origin)
            at = ", ".join(map(str, write.element))
            lives, written = places("thread", owners), places("thread", writers)
            yield make_diagnostic(
                "TL310",
                f"`{write.var.name}[{at}]` lives in {lives}, but {written} "
                f"write{'s' if len(writers) == 1 else ''} it",
                span=write.origin.span,
                label="not reached by every thread that holds the element",
                help="write it in `T.Parallel`, which gives each iteration to the owner of its "
                "element, with the condition inside",
            )
