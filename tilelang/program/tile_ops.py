"""Which tile operations exist: their operands and attributes, in the order they are stored.

The front end builds `TileOp` statements from this table, emission turns them into `tl.<name>`
calls with the same operands, and `ops/` lowers those. Operands are regions unless marked.

Regions of copies and tile atomics have explicit extents. Matched dimensions have equal extents, or
differ where one is not a constant: then the operation covers the larger of the two and guards each
side by its own extent. `reduce` and `scan` count `dim` from 0 over all dimensions of `src`, those
of extent 1 included.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TileOpSchema:
    """Operand names (`?` optional, `=` a scalar expression or a region) and attribute names."""

    name: str
    operands: tuple[str, ...]
    attrs: tuple[str, ...]


SCHEMAS: dict[str, TileOpSchema] = {
    schema.name: schema
    for schema in (
        TileOpSchema(
            "copy",
            ("src", "dst"),
            ("coalesced_width", "disable_tma", "eviction_policy", "prefer_instruction",
             "loop_layout"),
        ),
        TileOpSchema("fill", ("dst", "=value"), ()),
        TileOpSchema(
            "gemm",
            ("A", "B", "C", "=clear_accum", "?mbar"),
            ("transpose_A", "transpose_B", "policy", "k_pack", "instruction"),
        ),
        TileOpSchema(
            "tcgen05_gemm",
            ("A", "B", "C", "=clear_accum", "?mbar"),
            ("transpose_A", "transpose_B", "policy", "use_2cta"),
        ),
        TileOpSchema(
            "gemm_sp",
            ("A_sparse", "E", "B", "C", "=clear_accum"),
            ("transpose_A", "transpose_E", "transpose_B", "policy", "k_pack", "wg_wait"),
        ),
        TileOpSchema(
            "gemm_blockscaled",
            ("A", "B", "C", "SFA", "SFB", "=clear_accum", "=k_start", "?mbar"),
            ("transpose_A", "transpose_B", "policy", "sf_a_granularity_k", "sf_b_granularity_k",
             "use_2cta", "sf_layout", "instruction"),
        ),
        TileOpSchema("async_copy", ("src", "dst"), ("coalesced_width", "loop_layout")),
        TileOpSchema(
            "tma_copy",
            ("src", "dst", "?barrier"),
            ("cluster_mask", "leader_scope_threads", "eviction_policy"),
        ),
        TileOpSchema(
            "copy_cluster",
            ("src", "dst", "?=dst_block", "?remote_barrier"),
            ("cluster_mask", "eviction_policy", "coalesced_width", "loop_layout"),
        ),
        TileOpSchema("reduce", ("src", "dst"), ("kind", "dim", "clear", "batch", "nan_propagate")),
        TileOpSchema("scan", ("src", "dst"), ("kind", "dim", "reverse")),
        TileOpSchema("transpose", ("src", "dst"), ()),
        TileOpSchema("atomic", ("dst", "=value"), ("op", "memory_order", "use_tma")),
        TileOpSchema(
            "im2col",
            ("img", "col", "=nhw_step", "=c_step"),
            ("kernel", "stride", "dilation", "pad", "eviction_policy"),
        ),
        TileOpSchema("reducer_init", ("reducer", "?=init"), ()),
        TileOpSchema("reducer_finalize", ("reducer", "?dst"), ("batch",)),
    )
}  # fmt: skip
