"""What each operation demands of layouts: one rule per file, and `RULES` to find them.

A rule reads one statement and adds its demands to a `Builder`. An operation without a rule leaves
its fragments without a layout, and says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tilelang.layouts.builder import Builder
from tilelang.layouts.rules import (
    atomic,
    copy,
    fill,
    gemm,
    im2col,
    reduce,
    reducer,
    scan,
    tma_copy,
    transpose,
)
from tilelang.program.stmt import TileOp

Rule: TypeAlias = Callable[[Builder, TileOp], None]

RULES: dict[str, Rule] = {
    name: module.demand
    for module in (
        atomic, copy, fill, gemm, im2col, reduce, reducer, scan, tma_copy, transpose,
    )
    for name in module.OPS
}  # fmt: skip

__all__ = ["RULES", "Rule"]
