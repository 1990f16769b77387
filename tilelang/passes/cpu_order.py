"""Where do the threads of a block have to wait for each other, though nobody wrote a barrier?

Before: S[tx] = A[tx]; B[tx] = S[63 - tx]
After:  S[tx] = A[tx]; T.sync_warp(); B[tx] = S[63 - tx]

At the places where `insert_sync` has a GPU wait, by the same analysis. Threads run one after the
other here, so that any barrier is a cut: one of a warp may stand under a condition, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilelang.analysis.divergence import Divergence
from tilelang.analysis.hazards import Barrier, plan_barriers
from tilelang.analysis.shared_accesses import block_tree
from tilelang.ir import build
from tilelang.ir.device_ops import call
from tilelang.ir.spans import TirSpan
from tilelang.passes.placed_barriers import with_barriers


def keep_threads_in_order(
    body: Any, threads: tuple[tuple[Any, int], ...], launch: Any, together: Callable[[Any], bool]
) -> Any:
    """`body` with a barrier wherever threads would otherwise meet in memory they share; they do
    some statements `together`."""
    tree = block_tree(body, threads, together)
    plan = plan_barriers(tree, Divergence(tree, launch))
    return with_barriers(body, tree.body, plan.before, _cut) if plan.before else body


def _cut(_barrier: Barrier, span: TirSpan) -> Any:
    return build.evaluate(call("sync_warp", [], span=span), span)
