"""Backward passes, latent and linear attention, sparse, persistent and hand-scheduled kernels."""

from __future__ import annotations

import tilelang.language as T
from tests.kernels import (
    backward_op,
    block_sparse_attn,
    gqa_bwd,
    hopper_copy,
    hopper_gemm,
    linear_attn,
    mamba_chunk_state,
    mla_decode,
    retention,
    tcgen05_gemm,
    topk_selector,
    warp_specialized_gemm,
)
from tests.kernels.case import KernelCase

BACKWARD_OP = (
    KernelCase(
        name="mul_relu_bcast",
        row="04-backward-op",
        tier=4,
        style="eager",
        make=backward_op.tl_mul_relu_bcast,
        inputs=backward_op.inputs_forward,
        reference=backward_op.reference_forward,
        params={"BLOCK_N": 16, "BLOCK_M": 32},
        sizes={"N": 37, "M": 71},
        device_params={"BLOCK_N": 64, "BLOCK_M": 64},
        device_sizes={"N": 4096, "M": 4096},
    ),
    KernelCase(
        name="mul_relu_bwd",
        row="04-backward-op",
        tier=4,
        style="eager",
        make=backward_op.tl_mul_relu_bwd,
        inputs=backward_op.inputs_backward,
        reference=backward_op.reference_backward,
        params={"BLOCK_N": 16, "BLOCK_M": 32},
        sizes={"N": 37, "M": 71},
        device_params={"BLOCK_N": 64, "BLOCK_M": 64},
        device_sizes={"N": 4096, "M": 4096},
    ),
)

_GQA_SIZES = {
    "batch": 1,
    "heads": 4,
    "seq_len": 77,
    "dim_qk": 48,
    "dim_v": 32,
    "block_M": 32,
    "block_N": 32,
    "groups": 2,
}
_GQA_DEVICE = {
    "batch": 8,
    "heads": 32,
    "seq_len": 1024,
    "dim_qk": 192,
    "dim_v": 128,
    "block_M": 128,
    "block_N": 32,
    "groups": 16,
}
_GQA = "example_gqa_bwd"

GQA_BACKWARD = (
    *(
        KernelCase(
            name=f"gqa_bwd_forward_{'causal' if causal else 'full'}",
            row=_GQA,
            tier=4,
            style="lazy",
            make=gqa_bwd.flashattn_fwd,
            inputs=gqa_bwd.inputs_forward,
            reference=gqa_bwd.reference_forward,
            params={**_GQA_SIZES, "is_causal": causal},
            device_params={**_GQA_DEVICE, "block_N": 64},
        )
        for causal in (False, True)
    ),
    KernelCase(
        name="gqa_bwd_preprocess",
        row=_GQA,
        tier=4,
        style="lazy",
        make=gqa_bwd.flashattn_bwd_preprocess,
        inputs=gqa_bwd.inputs_preprocess,
        reference=gqa_bwd.reference_preprocess,
        params={"batch": 2, "heads": 3, "seq_len": 77, "dim_v": 40},
        device_params={"batch": 8, "heads": 32, "seq_len": 1024, "dim_v": 128},
    ),
    KernelCase(
        name="gqa_bwd_postprocess",
        row=_GQA,
        tier=4,
        style="lazy",
        make=gqa_bwd.flashattn_bwd_postprocess,
        inputs=gqa_bwd.inputs_postprocess,
        reference=gqa_bwd.reference_postprocess,
        params={"batch": 2, "heads": 3, "seq_len": 77, "dim_qk": 40},
        device_params={"batch": 8, "heads": 32, "seq_len": 1024, "dim_qk": 192},
    ),
    *(
        KernelCase(
            name=f"gqa_bwd_{name}_{'causal' if causal else 'full'}",
            row=_GQA,
            tier=4,
            style="lazy",
            make=make,
            inputs=inputs,
            reference=reference,
            params={**_GQA_SIZES, "is_causal": causal, "threads": 128},
            device_params={**_GQA_DEVICE, "threads": 256},
            mutates=(6, 7, 8),
            # dS and P pass through fp16 before the products that make the fp32 gradients.
            precision=("float16", "float16", "float16"),
        )
        for name, make, inputs, reference in (
            (
                "atomic",
                gqa_bwd.flashattn_bwd_atomic_add,
                gqa_bwd.inputs_atomic,
                gqa_bwd.reference_atomic,
            ),
            (
                "split",
                gqa_bwd.flashattn_bwd_split,
                gqa_bwd.inputs_split,
                gqa_bwd.reference_split,
            ),
        )
        for causal in (False, True)
    ),
)

_MLA_SIZES = {
    "batch": 2,
    "heads": 6,
    "kv_head_num": 1,
    "seqlen_kv": 331,
    "dim": 64,
    "pe_dim": 16,
    "block_N": 64,
    "block_H": 16,
}
_MLA_DEVICE = {
    "batch": 132,
    "heads": 128,
    "seqlen_kv": 8192,
    "dim": 512,
    "pe_dim": 64,
    "block_N": 64,
    "block_H": 64,
}

MLA = (
    *(
        KernelCase(
            name=f"mla_decode_{name}",
            row="example_mla_decode",
            tier=4,
            style="lazy",
            make=mla_decode.flashattn,
            inputs=mla_decode.inputs,
            reference=mla_decode.reference,
            params={**_MLA_SIZES, "num_split": num_split, "softmax_scale": 0.11},
            device_params={**_MLA_DEVICE, "softmax_scale": 576**-0.5},
        )
        for name, num_split in (("split", 3), ("no_split", 1))
    ),
    KernelCase(
        name="mla_decode_persistent",
        row="example_mla_decode_persistent",
        tier=4,
        style="lazy",
        make=mla_decode.flashattn_persistent,
        inputs=mla_decode.inputs_persistent,
        reference=mla_decode.reference,
        params={**_MLA_SIZES, "heads": 32, "num_split": 3, "num_blocks": 4},
        device_params={**_MLA_DEVICE, "batch": 128, "num_split": 4, "num_blocks": 132},
    ),
)

SPARSE = tuple(
    KernelCase(
        name=f"block_sparse_attn_{'causal' if causal else 'full'}",
        row="example_tilelang_block_sparse_attn",
        tier=4,
        style="lazy",
        make=block_sparse_attn.blocksparse_flashattn,
        inputs=block_sparse_attn.inputs,
        reference=block_sparse_attn.reference,
        params={
            "batch": 1,
            "heads": 2,
            "seq_len": 230,
            "dim": 32,
            "downsample_len": 4,
            "is_causal": causal,
        },
        device_params={
            "batch": 4,
            "heads": 32,
            "seq_len": 4096,
            "dim": 128,
            "downsample_len": 64,
        },
    )
    for causal in (False, True)
)

LINEAR = (
    KernelCase(
        name="linear_attn_fwd",
        row="example_linear_attn_fwd",
        tier=4,
        style="lazy",
        make=linear_attn.tl_fused_chunk_fwd_kernel,
        inputs=linear_attn.inputs,
        reference=linear_attn.reference,
        params={"B": 1, "S": 150, "H": 2, "DK": 72, "DV": 40},
        device_params={"B": 8, "S": 1024, "H": 32, "DK": 128, "DV": 128},
        mutates=(3,),
        # The carried state and the scores pass through fp16; the state itself does not.
        precision=("float32", "float16"),
    ),
    KernelCase(
        name="retention_fwd",
        row="example_retention_fwd",
        tier=4,
        style="lazy",
        make=retention.chunk_retention_fwd_kernel,
        inputs=retention.inputs,
        reference=retention.reference,
        params={"B": 1, "S": 150, "H": 3, "DK": 72, "DV": 40},
        device_params={"B": 8, "S": 4096, "H": 32, "DK": 128, "DV": 128},
    ),
    KernelCase(
        name="mamba_chunk_state",
        row="example_mamba_chunk_state",
        tier=4,
        style="eager",
        make=mamba_chunk_state.chunk_state_fwd,
        inputs=mamba_chunk_state.inputs,
        reference=mamba_chunk_state.reference,
        params={"block_M": 16, "block_N": 32, "block_K": 32},
        sizes={
            "batch": 2,
            "nheads": 4,
            "ngroups": 2,
            "nchunks": 3,
            "chunk_size": 50,
            "headdim": 20,
            "dstate": 40,
        },
        device_params={"block_M": 64, "block_N": 128, "block_K": 64},
        device_sizes={
            "batch": 8,
            "nheads": 80,
            "ngroups": 1,
            "nchunks": 16,
            "chunk_size": 256,
            "headdim": 64,
            "dstate": 128,
        },
    ),
)

TOPK = tuple(
    KernelCase(
        name=name,
        row="topk_selector",
        tier=4,
        style="eager",
        make=make,
        inputs=topk_selector.inputs,
        reference=topk_selector.reference,
        sizes={"batch": 4, "seq_len": 1500, "topk": 100},
        device_sizes={"batch": 64, "seq_len": 32768, "topk": 2048},
        mutates=(1,),
        canonical=topk_selector.sort_rows,
    )
    for name, make in (
        ("topk_selector", topk_selector.tl_topk_impl),
        ("topk_selector_threads", topk_selector.tl_topk_threads),
    )
)

HAND_SCHEDULED = (
    KernelCase(
        name="warp_specialized_gemm",
        row="example_warp_specialize_gemm_barrierpipe_stage2",
        tier=4,
        style="eager",
        make=warp_specialized_gemm.matmul,
        inputs=warp_specialized_gemm.inputs,
        reference=warp_specialized_gemm.reference,
        params={"block_M": 128, "block_N": 128, "block_K": 64},
        sizes={"M": 256, "N": 384, "K": 320},
        device_sizes={"M": 16384, "N": 16384, "K": 16384},
        targets=("cuda:sm_90a",),
    ),
    *(
        KernelCase(
            name=f"tma_double_{M}x{N}_{tile[0]}x{tile[1]}",
            row="tma_copy",
            tier=4,
            style="eager",
            make=hopper_copy.tma_double,
            inputs=hopper_copy.inputs,
            reference=hopper_copy.reference,
            params={"block_M": tile[0], "block_N": tile[1], "dtype": dtype},
            sizes={"M": M, "N": N},
            targets=("cuda:sm_90a",),
        )
        for M, N, tile, dtype in (
            (1000, 1032, (128, 64), T.float16),
            (77, 200, (64, 128), T.float16),
            (130, 36, (32, 32), T.float32),
            (300, 24, (16, 24), T.float16),
        )
    ),
    *(
        KernelCase(
            name=f"hopper_gemm_{M}x{N}x{K}_{consumers}",
            row="wgmma_gemm",
            tier=4,
            style="eager",
            make=hopper_gemm.matmul,
            inputs=hopper_gemm.inputs,
            reference=hopper_gemm.reference,
            params={"block_M": 128, "block_N": 128, "block_K": 64, "consumers": consumers},
            sizes={"M": M, "N": N, "K": K},
            device_sizes={"M": 8192, "N": 8192, "K": 8192},
            targets=("cuda:sm_90a",),
        )
        for M, N, K, consumers in ((256, 384, 320, 1), (200, 136, 456, 2))
    ),
    *(
        KernelCase(
            name=f"tcgen05_{name}",
            row="gemm_tcgen5mma_ws",
            tier=5,
            style="eager",
            make=make,
            inputs=tcgen05_gemm.inputs,
            reference=tcgen05_gemm.reference,
            params={
                "block_M": 128,
                "block_N": 256,
                "block_K": 64,
                "in_dtype": T.bfloat16,
                "out_dtype": T.bfloat16,
                "accum_dtype": T.float32,
                "num_stages": 4,
            },
            sizes={"M": 512, "N": 512, "K": 512},
            device_sizes={"M": 8192, "N": 8192, "K": 8192},
            targets=("cuda:sm_100",),
            needs_torch=True,
        )
        for name, make in (
            ("gemm", tcgen05_gemm.gemm),
            ("gemm_2cta", tcgen05_gemm.gemm_2cta),
        )
    ),
)

KERNELS = (*BACKWARD_OP, *GQA_BACKWARD, *MLA, *SPARSE, *LINEAR, *TOPK, *HAND_SCHEDULED)
