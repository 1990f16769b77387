"""Kernels of the wild: scans and orders, experts, windows, weights of few bits."""

from __future__ import annotations

from tests.kernels import wild_conv, wild_moe, wild_quant, wild_scan
from tests.kernels.tables.wild import case

KERNELS = (
    *(
        case(
            f"row_cumsum_{e}",
            wild_scan.row_cumsum,
            wild_scan.inputs_rows,
            wild_scan.reference_cumsum,
            params={"exclusive": e},
            sizes={"M": 3, "N": 77},
        )
        for e in (False, True)
    ),
    case(
        "device_scan",
        wild_scan.device_scan,
        wild_scan.inputs_device_scan,
        wild_scan.reference_device_scan,
        "lazy",
        params={"N": 301},
    ),
    *(
        case(
            f"bitonic_sort_{d}",
            wild_scan.bitonic_sort,
            wild_scan.inputs_sort,
            wild_scan.reference_sort,
            params={"descending": d},
            sizes={"rows": 3, "length": 50},
            mutates=(0, 1),
        )
        for d in (False, True)
    ),
    case(
        "radix_sort",
        wild_scan.radix_sort,
        wild_scan.inputs_radix,
        wild_scan.reference_radix,
        sizes={"B": 3, "L": 101},
    ),
    case(
        "histogram",
        wild_scan.histogram,
        wild_scan.inputs_histogram,
        wild_scan.reference_histogram,
        "lazy",
        params={"N": 3001, "bins": 200},
    ),
    case(
        "topk_rows",
        wild_scan.topk_rows,
        wild_scan.inputs_rows,
        wild_scan.reference_topk,
        sizes={"M": 7, "N": 53},
    ),
    case(
        "argmax",
        wild_scan.argmax,
        wild_scan.inputs_argmax,
        wild_scan.reference_argmax,
        sizes={"M": 5, "N": 333},
    ),
    *(
        case(
            f"moe_route_{r}",
            wild_moe.route,
            wild_moe.inputs_route,
            wild_moe.reference_route,
            "lazy",
            params={"tokens": 13, "experts": 11, "k": 3, "renormalise": r},
        )
        for r in (True, False)
    ),
    case(
        "moe_align",
        wild_moe.align,
        wild_moe.inputs_align,
        wild_moe.reference_align,
        sizes={"n": 77},
        canonical=wild_moe.any_order(),
    ),
    case(
        "moe_gate_up",
        wild_moe.grouped_gate_up,
        wild_moe.inputs_gate_up,
        wild_moe.reference_gate_up,
        "lazy",
        params={"total": 77, "groups": 4, "hidden": 45, "inter": 50},
    ),
    case(
        "moe_gathered",
        wild_moe.moe_gemm_gathered,
        wild_moe.inputs_gathered,
        wild_moe.reference_gathered,
        "prim_func",
        sizes={"M": 21},
        mutates=(5,),
    ),
    case(
        "moe_combine",
        wild_moe.combine,
        wild_moe.inputs_combine,
        wild_moe.reference_combine,
        sizes={"tokens": 7, "k": 3, "slots": 20, "H": 77},
    ),
    case(
        "silu_and_mul",
        wild_moe.silu_and_mul,
        wild_moe.inputs_silu,
        wild_moe.reference_silu,
        "prim_func",
        sizes={"M": 5, "N": 301},
        mutates=(1,),
        needs_torch=True,
    ),
    case(
        "causal_conv1d",
        wild_conv.causal_conv1d,
        wild_conv.inputs_conv1d,
        wild_conv.reference_conv1d,
        sizes={"B": 2, "D": 5, "L": 45, "W": 4},
    ),
    case(
        "conv2d_explicit",
        wild_conv.conv2d_explicit,
        wild_conv.inputs_conv2d,
        wild_conv.reference_conv2d,
        "prim_func",
        params={"N": 2, "H": 9, "W": 7, "C": 5, "F": 37, "K": 3},
        out_idx=(3,),
    ),
    case(
        "conv2d_im2col",
        wild_conv.conv2d_im2col,
        wild_conv.inputs_im2col,
        wild_conv.reference_im2col,
        sizes={"N": 2, "H": 9, "W": 11, "C": 32, "K": 3, "F": 37},
    ),
    case(
        "depthwise2d",
        wild_conv.depthwise2d,
        wild_conv.inputs_depthwise,
        wild_conv.reference_depthwise,
        "lazy",
        params={"N": 2, "C": 3, "H": 13, "W": 21},
    ),
    case(
        "max_pool",
        wild_conv.max_pool,
        wild_conv.inputs_pool,
        wild_conv.reference_pool,
        sizes={"N": 2, "H": 9, "W": 11, "C": 5},
    ),
    case(
        "heat3d",
        wild_conv.heat3d,
        wild_conv.inputs_heat,
        wild_conv.reference_heat,
        "prim_func",
        sizes={"X": 7, "Y": 9, "Z": 11},
        mutates=(0, 1),
    ),
    case(
        "int4_asymmetric",
        wild_quant.int4_asymmetric,
        wild_quant.inputs_int4,
        wild_quant.reference_int4,
        "lazy",
        params={"M": 37, "N": 45, "K": 128},
    ),
    case(
        "codebook_gemm",
        wild_quant.codebook_gemm,
        wild_quant.inputs_codebook,
        wild_quant.reference_codebook,
        sizes={"M": 37, "N": 45, "K2": 64, "codes": 16},
        precision=("bfloat16",),
        needs_torch=True,
    ),
    case(
        "mxfp4",
        wild_quant.mxfp4,
        wild_quant.inputs_mxfp4,
        wild_quant.reference_mxfp4,
        "lazy",
        params={"M": 37, "N": 45, "K": 128},
    ),
    case(
        "sparse_2_4",
        wild_quant.sparse_2_4,
        wild_quant.inputs_2_4,
        wild_quant.reference_2_4,
        sizes={"M": 37, "K2": 50, "N": 45},
    ),
    case(
        "block_sparse",
        wild_quant.block_sparse,
        wild_quant.inputs_block_sparse,
        wild_quant.reference_block_sparse,
        sizes={"nnz": 7, "rows_1": 5, "K": 80, "N": 45},
    ),
    case(
        "pack_int4",
        wild_quant.pack_int4,
        wild_quant.inputs_pack,
        wild_quant.reference_pack,
        "lazy",
        params={"M": 13, "N": 96},
    ),
)
