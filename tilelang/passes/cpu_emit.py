"""How does a split block become statements again: thread loops, and what lives across them?

A private buffer used in one group only is allocated in that group's loop, so it can stay in
registers; one that lives across groups gets a leading dimension of one element per thread. A
variable bound in one group and used in another is computed again there when that is free, and
kept in such an array when it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilelang.ir import attrs, build, tirx
from tilelang.ir.tile_op import op_of
from tilelang.ir.visit import Rewriter, collect, walk
from tilelang.passes.cpu_divergence import Divergence, is_private
from tilelang.passes.cpu_split import Control, Group, NeedsThreads, Node, Once, PerThread

Indices = Callable[[Any], dict[Any, Any]]


def emit_skeleton(
    nodes: Sequence[Node], divergence: Divergence, threads: int, indices: Indices, span: Any
) -> Any:
    """The statements of a whole block."""
    return _Emitter(divergence, threads, indices, span).block(nodes)


class _Emitter:
    def __init__(
        self, divergence: Divergence, threads: int, indices: Indices, span: Any
    ) -> None:
        self.divergence = divergence
        self.threads = threads
        self.indices = indices
        self.span = span
        self.expanded: dict[Any, Any] = {}  # private buffer -> its array of copies
        self.kept: dict[Any, Any] = {}  # variable -> the array it is kept in
