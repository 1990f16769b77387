"""Layouts: where elements lie in memory and in registers. Pure integer algebra, no TVM.

`Layout` maps an index to a place in memory, `Fragment` an index to threads and registers;
`make_swizzled_layout` and its kin build the shared memory layouts matrix instructions like. The
other modules: `banks` (conflicts), `atoms` and `gemm` (operand fragments), `loops`,
`constraints` and `solve` (inference), `draw` (text and SVG).
"""

from tilelang.layout.fragment import Fragment
from tilelang.layout.layout import Layout
from tilelang.layout.swizzle import (
    SwizzleMode,
    make_full_bank_swizzled_layout,
    make_half_bank_swizzled_layout,
    make_linear_layout,
    make_quarter_bank_swizzled_layout,
    make_swizzled_layout,
    make_tcgen05mma_swizzled_layout,
    make_wgmma_swizzled_layout,
)

__all__ = [
    "Fragment",
    "Layout",
    "SwizzleMode",
    "make_full_bank_swizzled_layout",
    "make_half_bank_swizzled_layout",
    "make_linear_layout",
    "make_quarter_bank_swizzled_layout",
    "make_swizzled_layout",
    "make_tcgen05mma_swizzled_layout",
    "make_wgmma_swizzled_layout",
]
