"""T.fill and T.clear: nothing. Every owner of an element writes its own copy."""

from __future__ import annotations

from tilelang.layouts.builder import Builder
from tilelang.program.stmt import TileOp

OPS = ("fill",)


def demand(b: Builder, op: TileOp) -> None:
    """No layout is better than another."""
    del b, op
