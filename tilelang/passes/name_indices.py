"""Where a copy begins may be read from a tensor: that is read once, and has a name.

Before: T.copy(K[table[b, t], 0:64, h, 0:64], K_tile)
After:  table_at = table[b, t]
        T.copy(K[table_at, 0:64, h, 0:64], K_tile)

So every thread knows of an address what it needs to move several elements at once, and of an
element whether it exists.
"""

from __future__ import annotations

from typing import Any

from tilelang.ir import build, tirx
from tilelang.ir.tile_op import called_op
from tilelang.ir.visit import Rewriter, with_body
from tilelang.passes.context import PassContext

_TENSORS = ("global", "shared", "shared.dyn")
_COPIES = frozenset({"copy", "async_copy", "tma_copy"})


def name_indices(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Bind what the places of copies read from tensors to names before them."""
    return with_body(func, _Name().any(func.body))


class _Name(Rewriter):
    def evaluate(self, s: Any) -> Any:
        if called_op(s) not in _COPIES:
            return super().evaluate(s)
        reads = _Reads()
        value = reads.any(s.value)
        return s if not reads.named else build.seq([*reads.named, tirx.Evaluate(value, s.span)])


class _Reads(Rewriter):
    """Replaces loads by names; `named` binds them. What is read alike is read once."""

    def __init__(self) -> None:
        self.named: list[tirx.Stmt] = []

    def load(self, e: Any) -> Any:
        if str(e.source.scope()) not in _TENSORS:
            return super().load(e)
        for known in self.named:
            if tirx.structural_equal(known.value, e):
                return known.var
        var = tirx.Var(f"{e.source.name}_at", e.ty)
        self.named.append(tirx.Bind(var, e, e.span))
        return var
