"""Traces of kernels that several tests look at, each compiled once a run."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from tests.inspect import kernels
from tests.kernels import hopper_gemm, mha_fwd, mla_decode
from tilelang.compiler import effective_options
from tilelang.options import CompileOptions
from tilelang.program.stmt import Function
from tilelang.runtime.jit import JitFunction
from tilelang.runtime.nvrtc import find_nvrtc
from tilelang.runtime.sass import find_nvdisasm
from tilelang.target import parse_target
from tilelang_trace.model import Trace
from tilelang_trace.recorder import Recorder, recorded

MLA = {
    "batch": 1, "heads": 64, "kv_head_num": 1, "seqlen_kv": 512, "dim": 128, "pe_dim": 64,
    "block_N": 64, "block_H": 64, "num_split": 1, "softmax_scale": 0.1,
}  # fmt: skip
HOPPER = {"M": 256, "N": 256, "K": 256, "block_M": 128, "block_N": 128, "block_K": 64}


def _for_hopper() -> JitFunction:
    """Its front end asks which architecture it is for."""
    made = hopper_gemm.matmul
    return JitFunction(made.python, made.out_idx, "cuda:sm_90a", made.options, False, made.captured)


KERNELS: dict[str, Callable[[], Function]] = {
    "gemm": lambda: kernels.matmul.function,
    "attention": lambda: mha_fwd.flashattn.get_tir(1, 2, 256, 64, False, num_stages=2).function,
    "hopper_gemm": lambda: _for_hopper().eager.function((), HOPPER),
    "macro_attention": lambda: kernels.attention.function,
    "mla_decode": lambda: mla_decode.flashattn.get_tir(**MLA).function,
}


@cache
def trace_of(kernel: str, arch: str, code: bool = True) -> Trace:
    """The trace of a kernel, down to machine code; skips where that cannot be made or shown."""
    if code and find_nvrtc() is None:
        pytest.skip("NVRTC is not installed")
    if code and find_nvdisasm() is None:
        pytest.skip("nvdisasm is not installed")
    function, target = KERNELS[kernel](), parse_target(f"cuda:{arch}")
    options = effective_options(function, CompileOptions())
    recorder = Recorder(function, target, options, code=code)
    error = recorded(recorder, function, target, options, code)
    assert error is None
    return recorder.trace
