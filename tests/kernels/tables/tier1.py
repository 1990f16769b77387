"""The elementwise and front-end cases."""

from __future__ import annotations

from tests.kernels import copy_1d, frontend, safe_value, transpose, vector_add
from tests.kernels.case import KernelCase, RejectCase

COPY = (
    KernelCase(
        name="copy_1d_serial",
        row="01-copy",
        tier=1,
        style="eager",
        make=copy_1d.tl_copy_1d_serial,
        inputs=copy_1d.inputs,
        reference=copy_1d.reference,
        sizes={"N": 1003},
        device_sizes={"N": 1 << 20},
    ),
    KernelCase(
        name="copy_1d_multi_threads",
        row="01-copy",
        tier=1,
        style="eager",
        make=copy_1d.tl_copy_1d_multi_threads,
        inputs=copy_1d.inputs,
        reference=copy_1d.reference,
        sizes={"N": 1003},
        device_sizes={"N": 1 << 20},
    ),
    KernelCase(
        name="copy_1d_parallel",
        row="01-copy",
        tier=1,
        style="eager",
        make=copy_1d.tl_copy_1d_parallel,
        inputs=copy_1d.inputs,
        reference=copy_1d.reference,
        params={"BLOCK_N": 256},
        sizes={"N": 1003},
        device_sizes={"N": 1 << 20},
    ),
)

VECTOR_ADD = (
    KernelCase(
        name="vector_add",
        row="02-vector-add",
        tier=1,
        style="eager",
        make=vector_add.tl_add_1d,
        inputs=vector_add.inputs,
        reference=vector_add.reference_add,
        params={"BLOCK_N": 128},
        sizes={"N": 1003},
        device_sizes={"N": 1 << 20},
    ),
    KernelCase(
        name="mul_relu_1d",
        row="02-vector-add",
        tier=1,
        style="eager",
        make=vector_add.tl_mul_relu_1d,
        inputs=vector_add.inputs,
        reference=vector_add.reference_mul_relu,
        params={"BLOCK_N": 128},
        sizes={"N": 1003},
        device_sizes={"N": 1 << 20},
    ),
    KernelCase(
        name="mul_relu_1d_mem",
        row="02-vector-add",
        tier=1,
        style="eager",
        make=vector_add.tl_mul_relu_1d_mem,
        inputs=vector_add.inputs,
        reference=vector_add.reference_mul_relu,
        params={"BLOCK_N": 256},
        sizes={"N": 1003},
        device_sizes={"N": 1 << 20},
    ),
)

SAFE_VALUE = tuple(
    KernelCase(
        name=f"safe_value_{name}",
        row="test_tilelang_language_annotate_safe_value",
        tier=1,
        style="prim_func",
        make=safe_value.shifted_copy,
        inputs=safe_value.inputs,
        reference=safe_value.reference,
        params={
            "M": 70,
            "N": 45,
            "block_M": 32,
            "block_N": 16,
            "shift": 10,
            "pad_value": pad_value,
        },
        device_params={"M": 1024, "N": 1024, "block_M": 128, "block_N": 128},
        out_idx=(1,),
    )
    for name, pad_value in (("minus_one", -1.0), ("large", 12345.0), ("zero", 0.0))
)

TRANSPOSE = (
    *(
        KernelCase(
            name=f"transpose_{name}",
            row="test_tilelang_language_transpose",
            tier=1,
            style="prim_func",
            make=transpose.transpose_tiles,
            inputs=transpose.inputs,
            reference=transpose.reference,
            params={"M": 77, "N": 53, "block_M": block_M, "block_N": block_N},
            device_params={
                "M": 1024,
                "N": 512,
                "block_M": block_M * 2,
                "block_N": block_N * 2,
            },
            out_idx=(1,),
        )
        for name, block_M, block_N in (
            ("square", 32, 32),
            ("wide", 16, 64),
            ("tall", 64, 16),
        )
    ),
    KernelCase(
        name="transpose_batched",
        row="test_tilelang_language_transpose",
        tier=1,
        style="prim_func",
        make=transpose.transpose_batched,
        inputs=transpose.inputs_batched,
        reference=transpose.reference,
        params={"batch": 3, "M": 12, "N": 20},
        out_idx=(1,),
    ),
)

_FRONTEND = "test_tilelang_language_frontend_v2"

SCALARS = (
    *(
        KernelCase(
            name=f"scalar_{name}",
            row=_FRONTEND,
            tier=1,
            style="prim_func",
            make=frontend.scalar_argument,
            inputs=frontend.inputs_scalar,
            reference=frontend.reference_scalar,
            params={"dtype": dtype},
            out_idx=(1,),
        )
        for name, dtype in frontend.SCALARS
    ),
    KernelCase(
        name="scalars_of_every_kind",
        row=_FRONTEND,
        tier=1,
        style="prim_func",
        make=frontend.many_scalars,
        inputs=frontend.inputs_scalars,
        reference=frontend.reference_scalars,
        out_idx=(7,),
        precision=("float32",),
    ),
)

STATEMENTS = (
    KernelCase(
        name="macros",
        row=_FRONTEND,
        tier=1,
        style="prim_func",
        make=frontend.macros,
        inputs=frontend.inputs,
        reference=frontend.reference_macros,
        params={"N": 37},
        out_idx=(1,),
    ),
    KernelCase(
        name="ranges",
        row=_FRONTEND,
        tier=1,
        style="prim_func",
        make=frontend.ranges,
        inputs=frontend.inputs_nonzero_tail,
        reference=frontend.reference_ranges,
        params={"N": 23},
        out_idx=(1,),
    ),
    *(
        KernelCase(
            name=f"bindings_{N}",
            row=_FRONTEND,
            tier=1,
            style="prim_func",
            make=frontend.bindings,
            inputs=frontend.inputs,
            reference=frontend.reference_bindings,
            params={"N": N},
            out_idx=(1,),
        )
        for N in (20, 33)
    ),
    *(
        KernelCase(
            name=f"constant_if_{name}",
            row=_FRONTEND,
            tier=1,
            style="prim_func",
            make=frontend.constant_if,
            inputs=frontend.inputs,
            reference=frontend.reference_constant_if,
            params={"N": 200, "negate": negate, "scale": scale},
            out_idx=(1,),
        )
        for name, negate, scale in (
            ("plain", False, None),
            ("negated", True, None),
            ("x3", True, 3),
        )
    ),
    KernelCase(
        name="metaprogramming",
        row=_FRONTEND,
        tier=1,
        style="prim_func",
        make=frontend.metaprogramming,
        inputs=frontend.inputs,
        reference=frontend.reference_metaprogramming,
        params={"N": 41, "coefficients": (3, -2, 1)},
        out_idx=(1,),
    ),
)

REJECTED = (
    RejectCase("slice_with_step", _FRONTEND, frontend.slice_with_step, "TL224", ("`A`", "step")),
    RejectCase("zero_step", _FRONTEND, frontend.zero_step, "TL142", ("step 0",)),
    RejectCase("infinite_while", _FRONTEND, frontend.infinite_while, "TL139", ("`while True`",)),
    RejectCase("ambiguous_division", _FRONTEND, frontend.ambiguous_division, "TL232", ("int32",)),
    RejectCase("update_without_index", _FRONTEND, frontend.update_without_index, "TL151", ("A",)),
    RejectCase("wrong_rank", _FRONTEND, frontend.wrong_rank, "TL203", ("`A`", "2-dimensional")),
    RejectCase(
        "used_outside_branch", _FRONTEND, frontend.used_outside_branch, "TL134", ("`doubled`",)
    ),
)

KERNELS = (*COPY, *VECTOR_ADD, *SAFE_VALUE, *TRANSPOSE, *SCALARS, *STATEMENTS)
