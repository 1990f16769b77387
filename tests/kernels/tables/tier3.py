"""Attention, quantisation, convolution, split and grouped products."""

from __future__ import annotations

import tilelang.language as T
from tests.kernels import (
    convolution,
    dequant_mm,
    dequant_w4a8,
    fp8_cast,
    gemm_fp8,
    gemm_splitk,
    gqa_fwd,
    grouped_gemm,
    mha_fwd,
    mha_inference,
    mha_sink,
    scalar_flash_attn,
)
from tests.kernels.case import KernelCase

ATTENTION = (
    *(
        KernelCase(
            name=f"mha_fwd_{'causal' if causal else 'full'}",
            row="example_mha_fwd_bshd",
            tier=3,
            style="lazy",
            make=mha_fwd.flashattn,
            inputs=mha_fwd.inputs,
            reference=mha_fwd.reference,
            params={
                "batch": 2,
                "heads": 3,
                "seq_len": 101,
                "dim": 32,
                "is_causal": causal,
                "block_M": 32,
                "block_N": 32,
            },
            device_params={
                "batch": 8,
                "heads": 32,
                "seq_len": 4096,
                "dim": 128,
                "block_M": 128,
                "block_N": 128,
                "threads": 256,
            },
        )
        for causal in (False, True)
    ),
    *(
        KernelCase(
            name=f"gqa_fwd_{'causal' if causal else 'full'}",
            row="example_gqa_fwd_bshd",
            tier=3,
            style="lazy",
            make=gqa_fwd.flashattn,
            inputs=gqa_fwd.inputs,
            reference=gqa_fwd.reference,
            params={
                "batch": 1,
                "heads": 6,
                "seq_len": 77,
                "dim": 32,
                "is_causal": causal,
                "groups": 3,
                "block_M": 32,
                "block_N": 32,
                "num_stages": 2,
            },
            device_params={
                "heads": 64,
                "seq_len": 4096,
                "dim": 128,
                "groups": 16,
                "block_M": 128,
                "block_N": 128,
                "threads": 256,
            },
        )
        for causal in (False, True)
    ),
    KernelCase(
        name="gqa_fwd_tuned",
        row="example_gqa_fwd_bshd",
        tier=3,
        style="lazy",
        make=gqa_fwd.flashattn_tuned,
        inputs=gqa_fwd.inputs,
        reference=gqa_fwd.reference,
        params={
            "batch": 1,
            "heads": 4,
            "seq_len": 45,
            "dim": 16,
            "is_causal": True,
            "groups": 2,
        },
        device_params={"heads": 64, "seq_len": 4096, "dim": 128, "groups": 16},
    ),
    *(
        KernelCase(
            name=f"mha_inference_{name}",
            row="example_mha_inference",
            tier=3,
            style="lazy",
            make=mha_inference.flashattn,
            inputs=mha_inference.inputs,
            reference=mha_inference.reference,
            params={
                "batch": 1,
                "heads": 2,
                "seqlen_q": 35,
                "seqlen_kv": seqlen_kv,
                "dim": 32,
                "is_causal": causal,
                "block_M": 16,
                "block_N": 32,
            },
            device_params={
                "heads": 32,
                "seqlen_q": 128,
                "seqlen_kv": 8192,
                "dim": 128,
                "block_M": 128,
                "block_N": 64,
            },
        )
        for name, causal, seqlen_kv in (
            ("full", False, 230),
            ("causal", True, 230),
            # The last of the four splits begins behind the last key and must count for nothing.
            ("empty_split", False, 150),
        )
    ),
    *(
        KernelCase(
            name=f"mha_sink_{name}",
            row="example_mha_sink_fwd_bhsd",
            tier=3,
            style="lazy",
            make=mha_sink.flashattn,
            inputs=inputs,
            reference=mha_sink.reference,
            params={
                "batch": 1,
                "heads": 3,
                "seq_q": 61,
                "seq_kv": 99,
                "dim": 32,
                "window_size": window_size,
                "block_M": 32,
                "block_N": 32,
                "dtype": dtype,
            },
            device_params={
                "batch": 8,
                "heads": 32,
                "seq_q": 4096,
                "seq_kv": 4096,
                "dim": 128,
                "window_size": window_size and 128,
                "block_M": 128,
                "block_N": 128,
                "threads": 256,
            },
            needs_torch=dtype == T.bfloat16,
        )
        for name, window_size, dtype, inputs in (
            ("full", None, T.float16, mha_sink.inputs),
            ("window", 20, T.float16, mha_sink.inputs),
            ("bfloat16", None, T.bfloat16, mha_sink.inputs_bfloat16),
        )
    ),
    KernelCase(
        name="scalar_flash_attn",
        row="07-scalar-flash-attn",
        tier=3,
        style="eager",
        make=scalar_flash_attn.tl_scalar_flash_attn,
        inputs=scalar_flash_attn.inputs,
        reference=scalar_flash_attn.reference,
        params={"BLOCK_B": 4, "BLOCK_S": 32},
        sizes={"B": 13, "S": 101},
        device_params={"BLOCK_B": 16, "BLOCK_S": 128},
        device_sizes={"B": 256, "S": 16384},
    ),
)

CONVOLUTION = tuple(
    KernelCase(
        name=f"convolution_{name}",
        row="example_convolution",
        tier=3,
        style="eager",
        make=make,
        inputs=convolution.inputs,
        reference=convolution.reference,
        params={
            "S": stride,
            "D": dilation,
            "P": padding,
            "block_M": 32,
            "block_N": 16,
            "block_K": 16,
            "num_stages": 2,
            "threads": 128,
        },
        sizes={"N": 2, "H": 9, "W": 11, "C": 5, "KH": 3, "KW": 3, "F": 20},
        device_params={"block_M": 64, "block_N": 128, "block_K": 32, "num_stages": 3},
        device_sizes={"N": 128, "H": 64, "W": 64, "C": 128, "F": 128},
    )
    for name, make, stride, dilation, padding in (
        ("same", convolution.convolution, 1, 1, 1),
        ("strided", convolution.convolution, 2, 1, 1),
        ("dilated", convolution.convolution, 1, 2, 2),
        ("gather", convolution.convolution_gather, 2, 1, 1),
    )
)

QUANTISED = (
    KernelCase(
        name="per_token_cast_to_fp8",
        row="example_per_token_cast_to_fp8",
        tier=3,
        style="eager",
        make=fp8_cast.per_token_cast_to_fp8,
        inputs=fp8_cast.inputs,
        reference=fp8_cast.reference,
        params={"blk_m": 4},
        sizes={"M": 11, "N": 200},
        device_params={"blk_m": 8},
        device_sizes={"M": 8192, "N": 8192},
        targets=("cpu", "cuda:sm_89"),
        needs_torch=True,
    ),
    *(
        KernelCase(
            name=f"gemm_fp8_{name}",
            row="example_tilelang_gemm_fp8_2xAcc",
            tier=3,
            style="eager",
            make=gemm_fp8.matmul,
            inputs=gemm_fp8.inputs,
            reference=gemm_fp8.reference,
            params={"block_M": 32, "block_N": 32, "block_K": 32, "dtype": dtype},
            sizes={"M": 45, "N": 51, "K": 301},
            # Two accumulators: with 128 columns they would fill all registers of 128 threads.
            device_params={"block_M": 128, "block_N": 64, "block_K": 64},
            device_sizes={"M": 1024, "N": 1024, "K": 8192},
            targets=("cpu", "cuda:sm_89"),
            precision=("float16",),  # WGMMA keeps 14 bits of what it adds up at once
            needs_torch=True,
        )
        for name, dtype in (("e4m3", T.float8_e4m3fn), ("e5m2", T.float8_e5m2))
    ),
    KernelCase(
        name="convert_int4_to_int8",
        row="example_dequant_gemm_w4a8",
        tier=3,
        style="lazy",
        make=dequant_w4a8.convert_test,
        inputs=dequant_w4a8.inputs_convert,
        reference=dequant_w4a8.reference_convert,
        params={"N": 37, "K": 70, "block_N": 16, "block_K": 32, "in_dtype": T.int8},
        device_params={"N": 512, "K": 512, "block_N": 64, "block_K": 64},
    ),
    KernelCase(
        name="gemm_w4a8",
        row="example_dequant_gemm_w4a8",
        tier=3,
        style="lazy",
        make=dequant_w4a8.matmul_int8xint4,
        inputs=dequant_w4a8.inputs_matmul,
        reference=dequant_w4a8.reference_matmul,
        params={
            "M": 45,
            "N": 37,
            "K": 150,
            "in_dtype": T.int8,
            "out_dtype": T.int32,
            "accum_dtype": T.int32,
            "block_K": 64,
        },
        device_params={"M": 512, "N": 512, "K": 512, "block_K": 128},
    ),
    KernelCase(
        name="dequant_matmul",
        row="10-dequant-mm",
        tier=3,
        style="eager",
        make=dequant_mm.tl_dequant_matmul,
        inputs=dequant_mm.inputs,
        reference=dequant_mm.reference,
        params={"N": 70, "BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32},
        sizes={"M": 45, "K": 77},
        device_params={"N": 4096, "BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64},
        device_sizes={"M": 4096, "K": 4096},
    ),
)

PRODUCTS = (
    KernelCase(
        name="gemm_splitk",
        row="example_tilelang_gemm_splitk",
        tier=3,
        style="eager",
        make=gemm_splitk.matmul,
        inputs=gemm_splitk.inputs,
        reference=gemm_splitk.reference,
        params={"block_M": 32, "block_N": 32, "block_K": 16, "split_k": 4},
        sizes={"M": 45, "N": 70, "K": 250},
        mutates=(2,),
        device_params={"block_M": 128, "block_N": 128, "block_K": 32},
        device_sizes={"M": 1024, "N": 1024, "K": 1024},
    ),
    KernelCase(
        name="gemm_splitk_elementwise",
        row="example_tilelang_gemm_splitk",
        tier=3,
        style="eager",
        make=gemm_splitk.matmul_elementwise,
        inputs=gemm_splitk.inputs,
        reference=gemm_splitk.reference,
        params={"block_M": 32, "block_N": 32, "block_K": 16, "split_k": 3},
        sizes={"M": 45, "N": 70, "K": 250},
        mutates=(2,),
        device_params={"block_M": 128, "block_N": 128, "block_K": 32},
        device_sizes={"M": 1024, "N": 1024, "K": 1024},
    ),
    *(
        KernelCase(
            name=f"grouped_gemm_{'nt' if trans_b else 'nn'}",
            row="example_grouped_gemm_fwd",
            tier=3,
            style="eager",
            make=grouped_gemm.grouped_gemm,
            inputs=grouped_gemm.inputs,
            reference=grouped_gemm.reference,
            params={
                "batch_sizes_list": (17, 40, 3, 32),
                "block_M": 16,
                "block_N": 32,
                "block_K": 32,
                "trans_b": trans_b,
            },
            sizes={"N": 45, "K": 70},
            device_params={
                "batch_sizes_list": (64, 128),
                "block_M": 64,
                "block_N": 128,
                "block_K": 64,
                "threads": 256,
            },
            device_sizes={"N": 8192, "K": 8192},
        )
        for trans_b in (False, True)
    ),
)

KERNELS = (*ATTENTION, *CONVOLUTION, *QUANTISED, *PRODUCTS)
