"""Full-size answers are made on the GPU by the cases' own NumPy code: is that the same answer?

Here both run on the CPU, at the small sizes; `benchmarks/device_sizes.py` runs the large ones.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.kernels.case import to_numpy
from tests.kernels.registry import KERNELS

torch = pytest.importorskip("torch")

from benchmarks.device_answers import answer, compare, make_inputs  # noqa: E402

# One of each kind of reference that is too large for NumPy at full size.
SAMPLE = (
    "reduce_sum_clear_false", "rms_norm", "mha_fwd_causal", "gqa_fwd_full", "mha_inference_causal",
    "mha_sink_window", "mha_sink_bfloat16", "scalar_flash_attn", "convolution_strided",
    "per_token_cast_to_fp8", "gemm_fp8_e4m3", "dequant_matmul", "grouped_gemm_nt", "mul_relu_bwd",
    "gqa_bwd_forward_causal", "gqa_bwd_split_causal", "mla_decode_split",
    "block_sparse_attn_causal", "linear_attn_fwd", "retention_fwd", "mamba_chunk_state",
    "warp_specialized_gemm",
)  # fmt: skip


@pytest.mark.parametrize("name", SAMPLE)
def test_answers_are_those_of_numpy(name: str) -> None:
    full = next(case for case in KERNELS if case.name == name)
    case = dataclasses.replace(full, device_params={}, device_sizes={})
    inputs, made = make_inputs(case, "cpu", large=True)
    got, computed = answer(case, inputs, "cpu", large=True)
    assert (made, computed) == ("gpu", "gpu")  # nothing fell back to NumPy
    host = (to_numpy(getattr(x, "tensor", x)) for x in inputs)
    want = case.reference(*host, **case.values())
    for have, exact in zip(got, want, strict=True):
        assert compare(have.tensor, exact, 1e-11)["ok"]


def test_one_wrong_element_among_many_is_found() -> None:
    want = np.random.default_rng(0).standard_normal((1000, 1000))
    got = torch.from_numpy(want.astype(np.float16))
    assert compare(got, want, 1e-3)["ok"]
    got[17, 3] += 0.2
    found = compare(got, want, 1e-3)
    assert found["error"] < 1e-3  # the norm alone does not see it
    assert not found["ok"]
    assert not compare(got[:, :-1], want, 1e-3)["ok"]
    got[17, 3] = float("nan")
    assert "1 of 1000000 are not finite" in compare(got, want, 1e-3)["why"]
