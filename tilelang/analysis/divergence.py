"""Do all threads of a block take the same way, and if not, which of them do?"""

from __future__ import annotations

from typing import Any

from tilelang.analysis.shared_accesses import LaunchTree
from tilelang.analysis.uniform import Uniformity
from tilelang.ir.index_values import Opaque, evaluate
from tilelang.layout.lazy import np


class Divergence:
    """Answers for one launch, whose nest of attributes is `launch`."""

    def __init__(self, tree: LaunchTree, launch: Any) -> None:
        self._tree = tree
        self._uniformity = Uniformity(launch)

    def is_uniform(self, e: Any) -> bool:
        """Whether every thread of the block computes the same `e`."""
        if e is None or not self._uniformity.diverges(e):
            return True
        found = self._over_threads(e)
        return found is not None and bool((found == found[0]).all())

    def selected(self, condition: Any) -> Any:
        """Which threads a condition lets pass, as bools by thread number; None if that depends on
        more than the thread."""
        found = self._over_threads(condition)
        return None if found is None else found.astype(bool)

    def _over_threads(self, e: Any) -> Any:
        number = np.arange(self._tree.count)
        values: dict[Any, Any] = {}
        rest = number
        for var, extent in self._tree.threads:
            values[var] = rest % extent
            rest = rest // extent
        try:
            found = evaluate(e, values, self._tree.values)
        except Opaque:
            return None
        return np.broadcast_to(np.asarray(found), number.shape)
