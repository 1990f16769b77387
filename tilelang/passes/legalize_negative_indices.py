"""An index that is certainly negative counts from the end, as in Python.

Before: A_s[i - 4, j]   (i in [0, 4), A_s has 64 rows)
After:  A_s[i + 60, j]

Indices of unknown sign are left alone.
"""

from __future__ import annotations

from typing import Any

from tilelang.analysis.ranges import is_integer
from tilelang.ir import build, tirx
from tilelang.ir.visit import with_body
from tilelang.passes.context import PassContext
from tilelang.passes.scoped import ScopedRewriter


def legalize_negative_indices(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Add the extent to indices that are provably negative."""
    return with_body(func, _Legalize(func).any(func.body))


class _Legalize(ScopedRewriter):
    def load(self, e: Any) -> Any:
        old = list(e.indices)
        new = self._legal(e.source, [self.any(i) for i in old])
        same = all(a is b for a, b in zip(old, new, strict=True))
        return e if same else tirx.BufferLoad(e.source, new, e.span)

    def store(self, s: Any) -> Any:
        value = s.value
        new_value = self.any(value)
        old = list(s.indices)
        new = self._legal(s.buffer, [self.any(i) for i in old])
        if new_value is value and all(a is b for a, b in zip(old, new, strict=True)):
            return s
        return tirx.BufferStore(s.buffer, new_value, new, s.span)

    def _legal(self, buffer: tirx.Buffer, indices: list[tirx.Expr]) -> list[tirx.Expr]:
        out = []
        for index, extent in zip(indices, list(buffer.shape), strict=True):
            if is_integer(index) and self._is_negative(index):
                size = build.cast(extent, build.dtype_of(index))
                index = self.prover.simplify(tirx.Add(index, size, index.span))
            out.append(index)
        return out

    def _is_negative(self, index: tirx.Expr) -> bool:
        """Whether `index` is below zero; only interval reasoning, as few ever are."""
        return int(self.prover.analyzer.const_int_bound(index).max_value) < 0
