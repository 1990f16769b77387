"""The products, reductions and norms."""

from __future__ import annotations

import tilelang.language as T
from tests.kernels import gemm, hadamard, reduce_sum, rms_norm
from tests.kernels.case import KernelCase

REDUCE = tuple(
    KernelCase(
        name=f"reduce_sum_{name}",
        row="05-reduce-sum",
        tier=2,
        style="eager",
        make=make,
        inputs=reduce_sum.inputs,
        reference=reduce_sum.reference,
        params={"BLOCK_N": 16, "BLOCK_M": block},
        sizes={"N": 37, "M": 115},
        device_params={"BLOCK_M": device_block},
        device_sizes={"N": 4096, "M": width},
    )
    for name, make, block, device_block, width in (
        ("single_pass", reduce_sum.tl_reduce_sum_single_pass, 128, 512, 512),
        ("clear_false", reduce_sum.tl_reduce_sum, 32, 128, 4096),
        ("accumulator", reduce_sum.tl_reduce_sum_accumulator, 32, 128, 4096),
    )
)

CPU_GEMM = tuple(
    KernelCase(
        name=f"cpu_gemm_{name}",
        row="test_tilelang_cpu_gemm",
        tier=2,
        style="prim_func",
        make=gemm.matmul_prim_func,
        inputs=inputs,
        reference=gemm.reference,
        params={
            "M": 53,
            "N": 70,
            "K": 45,
            "block_M": 16,
            "block_N": 32,
            "block_K": 16,
            "dtype": dtype,
        },
        out_idx=(2,),
        targets=("cpu",),
    )
    for name, dtype, inputs in (
        ("float32", T.float32, gemm.inputs_float32),
        ("float16", T.float16, gemm.inputs),
    )
)

GEMM = (
    KernelCase(
        name="quickstart",
        row="quickstart",
        tier=2,
        style="eager",
        make=gemm.matmul_relu,
        inputs=gemm.inputs,
        reference=gemm.reference_relu,
        params={"block_M": 32, "block_N": 64, "block_K": 32},
        sizes={"M": 101, "N": 150, "K": 77},
        device_params={"block_M": 128, "block_N": 128, "block_K": 32},
        device_sizes={"M": 1024, "N": 1024, "K": 1024},
    ),
    KernelCase(
        name="gemm_float16",
        row="example_gemm",
        tier=2,
        style="eager",
        make=gemm.matmul,
        inputs=gemm.inputs,
        reference=gemm.reference,
        params={"block_M": 64, "block_N": 32, "block_K": 32},
        sizes={"M": 101, "N": 75, "K": 83},
        device_params={"block_M": 128, "block_N": 128, "block_K": 32},
        device_sizes={"M": 1024, "N": 1024, "K": 1024},
    ),
    KernelCase(
        name="gemm_bfloat16",
        row="example_gemm",
        tier=2,
        style="eager",
        make=gemm.matmul,
        inputs=gemm.inputs_bfloat16,
        reference=gemm.reference,
        params={"block_M": 32, "block_N": 32, "block_K": 16, "dtype": T.bfloat16},
        sizes={"M": 45, "N": 75, "K": 51},
        device_params={"block_M": 128, "block_N": 128, "block_K": 32},
        device_sizes={"M": 1024, "N": 1024, "K": 1024},
        needs_torch=True,
    ),
    KernelCase(
        name="gemm_float32",
        row="example_gemm",
        tier=2,
        style="eager",
        make=gemm.matmul,
        inputs=gemm.inputs_float32,
        reference=gemm.reference,
        params={"block_M": 32, "block_N": 32, "block_K": 16, "dtype": T.float32},
        sizes={"M": 45, "N": 75, "K": 51},
        targets=("cpu",),
    ),
    *(
        KernelCase(
            name=f"jit_gemm_{'t' if trans_A else 'n'}{'t' if trans_B else 'n'}",
            row="test_tilelang_jit_gemm",
            tier=2,
            style="lazy",
            make=gemm.matmul_lazy,
            inputs=gemm.inputs,
            reference=gemm.reference,
            params={
                "M": 70,
                "N": 53,
                "K": 45,
                "block_M": 32,
                "block_N": 32,
                "block_K": 16,
                "trans_A": trans_A,
                "trans_B": trans_B,
            },
            device_params={
                "M": 512,
                "N": 1024,
                "K": 768,
                # A tile of 256 columns would fill all registers of 128 threads by itself.
                "block_M": 128,
                "block_N": 128,
                "block_K": 32,
            },
        )
        for trans_A in (False, True)
        for trans_B in (False, True)
    ),
)

_PIPELINE = "test_tilelang_language_pipeline"
PIPELINE = (
    *(
        KernelCase(
            name=f"pipeline_{name}",
            row=_PIPELINE,
            tier=2,
            style="lazy",
            make=gemm.scheduled,
            inputs=gemm.inputs,
            reference=gemm.reference,
            params={
                "M": 45,
                "N": 70,
                "K": 100,
                "block_M": 32,
                "block_N": 32,
                "block_K": 16,
                "stage": stage,
                "order": order,
            },
            device_params={
                "M": 512,
                "N": 512,
                "K": 512,
                "block_M": 128,
                "block_N": 128,
                "block_K": 32,
            },
        )
        for name, stage, order in (
            ("one_ahead", [0, 0, 1], [0, 1, 2]),
            ("product_first", [0, 0, 2], [1, 2, 0]),
            ("no_overlap", [0, 0, 0], [0, 1, 2]),
        )
    ),
    KernelCase(
        name="pipeline_block_sparse",
        row=_PIPELINE,
        tier=2,
        style="lazy",
        make=gemm.matmul_block_sparse,
        inputs=gemm.inputs_block_sparse,
        reference=gemm.reference_block_sparse,
        params={
            "M": 70,
            "N": 70,
            "K": 150,
            "block_M": 32,
            "block_N": 32,
            "block_K": 32,
            "num_stages": 2,
        },
        device_params={
            "M": 1024,
            "N": 1024,
            "K": 1024,
            "block_M": 128,
            "block_N": 128,
            "block_K": 32,
        },
    ),
    KernelCase(
        name="gemm_padded_shared",
        row="test_tilelang_kernel_gemm_with_stride",
        tier=2,
        style="prim_func",
        make=gemm.matmul_padded,
        inputs=gemm.inputs,
        reference=gemm.reference,
        params={
            "M": 45,
            "N": 70,
            "K": 50,
            "block_M": 32,
            "block_N": 32,
            "block_K": 16,
            "padding": 8,
        },
        device_params={
            "M": 256,
            "N": 256,
            "K": 256,
            "block_M": 64,
            "block_N": 64,
            "block_K": 32,
        },
        out_idx=(2,),
    ),
)

NORM = (
    KernelCase(
        name="rms_norm_splitk",
        row="rms_norm",
        tier=2,
        style="eager",
        make=rms_norm.rms_norm_splitk,
        inputs=rms_norm.inputs,
        reference=rms_norm.reference,
        params={"blk_m": 4, "blk_k": 64},
        sizes={"M": 13, "N": 201},
        device_params={"blk_m": 1, "blk_k": 512},
        device_sizes={"M": 8192, "N": 8192},
    ),
    KernelCase(
        name="rms_norm",
        row="rms_norm",
        tier=2,
        style="eager",
        make=rms_norm.rms_norm,
        inputs=rms_norm.inputs,
        reference=rms_norm.reference,
        params={"blk_m": 4},
        sizes={"M": 13, "N": 201},
        device_params={"blk_m": 1},
        device_sizes={"M": 8192, "N": 8192},
    ),
)

HADAMARD = (
    KernelCase(
        name="hadamard",
        row="example_hadamard",
        tier=2,
        style="eager",
        make=hadamard.hadamard,
        inputs=hadamard.inputs,
        reference=hadamard.reference,
        params={"n": 512, "dtype": T.float32},
        sizes={"b": 3},
        device_params={"n": 32768},
        device_sizes={"b": 64},
    ),
    KernelCase(
        name="hadamard_shared",
        row="example_hadamard",
        tier=2,
        style="eager",
        make=hadamard.hadamard_shared,
        inputs=hadamard.inputs,
        reference=hadamard.reference,
        params={"n": 256, "dtype": T.float32},
        sizes={"b": 3},
        device_params={"n": 32768},
        device_sizes={"b": 64},
    ),
)

KERNELS = (*REDUCE, *CPU_GEMM, *GEMM, *PIPELINE, *NORM, *HADAMARD)
