"""Kernels of the wild: serving, rows, grids, products."""

from __future__ import annotations

from tests.kernels import wild_grids, wild_norms, wild_products, wild_scan, wild_serving
from tests.kernels.tables.wild import case

KERNELS = (
    case(
        "rope_and_cache",
        wild_serving.rope_and_cache,
        wild_serving.inputs_rope,
        wild_serving.reference_rope,
        sizes={"tokens": 7, "heads": 5, "kv_heads": 2, "D": 24, "L": 50, "pages": 4, "page": 8},
        mutates=(0, 6, 7),
    ),
    case(
        "gather_pages",
        wild_serving.gather_pages,
        wild_serving.inputs_gather,
        wild_serving.reference_gather,
        "lazy",
        params={"batch": 3, "longest": 45, "kv_heads": 2, "dim": 40, "page": 16},
    ),
    case(
        "paged_prefill",
        wild_serving.paged_prefill,
        wild_serving.inputs_prefill,
        wild_serving.reference_prefill,
        "lazy",
        params={"heads": 4, "kv_heads": 2, "dim": 32, "page": 16},
    ),
    case(
        "sliding_window",
        wild_serving.sliding_window,
        wild_serving.inputs_window,
        wild_serving.reference_window,
        sizes={"B": 1, "H": 2, "S": 101, "D": 32},
    ),
    case(
        "combine_splits",
        wild_serving.combine_splits,
        wild_serving.inputs_splits,
        wild_serving.reference_splits,
        "prim_func",
        sizes={"B": 3},
        mutates=(3, 4),
    ),
    case(
        "top_p",
        wild_scan.top_p,
        wild_scan.inputs_top_p,
        wild_scan.reference_top_p,
        sizes={"B": 3, "V": 201},
    ),
    *(
        case(
            f"add_norm_quant_{f}",
            wild_norms.add_norm_quant,
            wild_norms.inputs_add_norm,
            wild_norms.reference_add_norm,
            "lazy",
            params={"M": 5, "N": 133, "fp8": f},
            canonical=None if f else wild_norms.dequantised,
            needs_torch=True,
        )
        for f in (False, True)
    ),
    case(
        "welford",
        wild_norms.welford,
        wild_norms.inputs_welford,
        wild_norms.reference_welford,
        sizes={"M": 3, "N": 333},
    ),
    *(
        case(
            f"long_softmax_{g}",
            wild_norms.long_softmax,
            wild_norms.inputs_long,
            wild_norms.reference_long,
            "lazy",
            params={"rows": 5, "columns": 333, "log": g},
        )
        for g in (False, True)
    ),
    case(
        "cross_entropy_mean",
        wild_norms.cross_entropy_mean,
        wild_norms.inputs_entropy,
        wild_norms.reference_entropy,
        sizes={"rows": 7, "V": 133},
        needs_torch=True,
    ),
    case(
        "dropout_add",
        wild_norms.dropout_add,
        wild_norms.inputs_dropout,
        wild_norms.reference_dropout,
        "prim_func",
        sizes={"N": 1001},
        mutates=(4, 5),
    ),
    case(
        "transpose_swizzled",
        wild_grids.transpose_swizzled,
        wild_grids.inputs_matrix,
        wild_grids.reference_transpose,
        sizes={"M": 45, "N": 77},
    ),
    case(
        "permute_0213",
        wild_grids.permute_0213,
        wild_grids.inputs_permute,
        wild_grids.reference_permute,
        "lazy",
        params={"A": 2, "B": 13, "C": 9, "D": 5},
    ),
    case(
        "reduce_axes",
        wild_grids.reduce_axes,
        wild_grids.inputs_permute,
        wild_grids.reference_axes,
        sizes={"A": 2, "B": 7, "C": 5, "D": 13},
    ),
    *(
        case(
            f"fft_{i}",
            wild_grids.fft,
            wild_grids.inputs_fft,
            wild_grids.reference_fft,
            "lazy",
            params={"batch": 3, "inverse": i},
        )
        for i in (False, True)
    ),
    case(
        "levenshtein",
        wild_grids.levenshtein,
        wild_grids.inputs_edit,
        wild_grids.reference_edit,
        sizes={"pairs": 3, "LA": 45, "LB": 37},
    ),
    case(
        "smooth",
        wild_grids.smooth,
        wild_grids.inputs_smooth,
        wild_grids.reference_smooth,
        sizes={"H": 37, "W": 21},
    ),
    case(
        "cholesky",
        wild_grids.cholesky,
        wild_grids.inputs_cholesky,
        wild_grids.reference_cholesky,
        sizes={"batch": 3, "N": 21},
    ),
    *(
        case(
            f"bias_gelu_{a}_{t}",
            wild_products.bias_gelu,
            wild_products.inputs_bias_gelu,
            wild_products.reference_bias_gelu,
            "lazy",
            params={"M": 45, "N": 77, "K": 50, "how": a, "trans_a": t},
        )
        for a, t in (("tanh", False), ("sigmoid", True))
    ),
    case(
        "bmm_strided",
        wild_products.bmm_strided,
        wild_products.inputs_bmm_strided,
        wild_products.reference_bmm_strided,
        sizes={"batch": 3, "M": 37, "N": 45, "K": 50},
    ),
    case(
        "gemv_atomic",
        wild_products.gemv_atomic,
        wild_products.inputs_gemv,
        wild_products.reference_gemv,
        sizes={"N": 45, "K": 300},
        mutates=(2,),
        needs_torch=True,
    ),
    case(
        "stream_k_atomic",
        wild_products.stream_k,
        wild_products.inputs_matmul,
        wild_products.reference_matmul,
        sizes={"M": 70, "N": 45, "K": 77},
    ),
    case(
        "persistent_split",
        wild_products.persistent_split,
        wild_products.inputs_matmul,
        wild_products.reference_matmul,
        "lazy",
        params={"M": 70, "N": 101, "K": 45},
    ),
    case(
        "gemm_argmin",
        wild_products.gemm_argmin,
        wild_products.inputs_argmin,
        wild_products.reference_argmin,
        sizes={"M": 45, "N": 77, "dim": 40},
    ),
    case(
        "grouped_pointers",
        wild_products.grouped_pointers,
        wild_products.inputs_pointers,
        wild_products.reference_pointers,
        sizes={"groups": 3, "rows": 45, "K": 50, "N": 40},
        mutates=(6,),
        targets=("cpu",),
    ),
)
