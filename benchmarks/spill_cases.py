"""Which kernels does the spill table list? Those under test, at sizes for a GPU, and examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.kernels.case import KernelCase
from tests.kernels.registry import KERNELS
from tilelang.cli.files import choose
from tilelang.cli.specialise import specialise
from tilelang.codegen.cuda_binary import split_arch
from tilelang.program.stmt import Function
from tilelang.runtime.autotune import TunedFunction
from tilelang.runtime.jit import JitFunction

ROOT: Final = Path(__file__).resolve().parent.parent
_ANY_GPU: Final = "cuda:sm_90a"
_SQUARE: Final = {"M": 1024, "N": 1024, "K": 1024}
_ROWS: Final = {"M": 8192, "N": 8192}
# What the files do not say themselves, or say for a CPU.
EXAMPLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "autograd.py::matmul": _SQUARE,
    "convolution.py::convolution": {"N": 8, "H": 64, "W": 64, "C": 64, "KH": 3, "KW": 3, "F": 64},
    "dequant_gemm_int4.py::matmul_int4": {**_SQUARE, "half_K": 512, "K_groups": 32},
    "elementwise_broadcast.py::scaled_gelu": _ROWS,
    "flash_attention.py::flash_attention": {
        "batch": 2, "seq_len": 2048, "heads": 16, "kv_heads": 4, "dim": 128,
    },
    "grouped_gemm.py::grouped_gemm": {
        "total_tiles": 32, "rows": 1024, "N": 1024, "K": 1024, "groups": 4, "bounds": 5,
    },
    "quickstart.py::matmul_relu": _SQUARE,
    # A row of 8192 fills the registers of a block: one row each.
    "rms_layer_norm.py::rms_norm": {**_ROWS, "block_M": 1},
    "rms_layer_norm.py::layer_norm": {**_ROWS, "block_M": 1},
    "softmax.py::softmax": {**_ROWS, "block_M": 1},
    "softmax.py::online_softmax": _ROWS,
    "split_k.py::matmul_split_k": {**_SQUARE, "split": 4},
    "top_k.py::top_k": {"M": 1024, "N": 256, "k": 8},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SpillCase:
    """One kernel, and the oldest architecture it claims. `trace` takes whether to be small."""

    name: str
    trace: Callable[[bool], Function]
    oldest: tuple[int, int]

    def runs_on(self, arch: str) -> bool:
        return split_arch(arch)[:2] >= self.oldest


def spill_cases() -> tuple[SpillCase, ...]:
    """Every case, none of them traced yet; a kernel that names no CUDA target is none."""
    found = []
    for case in KERNELS:
        archs = [t.partition(":")[2] for t in case.targets if t.startswith("cuda:")]
        if archs:
            oldest = min(split_arch(arch)[:2] for arch in archs)
            found.append(SpillCase(case.name, partial(_registered, case), oldest))
    for place, sizes in EXAMPLES.items():
        found.append(SpillCase(f"examples/{place}", partial(_example, place, sizes), (8, 0)))
    return tuple(found)


def _registered(case: KernelCase, small: bool) -> Function:
    params = case.kernel_params(device=not small)
    if case.style == "prim_func":
        function: Function = case.make(**params).function
        return function
    made: Any = case.make
    if isinstance(made, TunedFunction):
        made, params = made.jit, {**made._configs((), params)[0], **params}
    # What a GPU alone has is refused while the kernel is read for anything else.
    made = JitFunction(made.python, made.out_idx, _ANY_GPU, made.options, False, made.captured)
    if case.style == "lazy":
        function = made.get_tir(**params).function
    else:
        values = case.values(device=not small)
        if {"nchunks", "chunk_size"} <= values.keys():
            values["seqlen"] = values["nchunks"] * values["chunk_size"]
        consts = made.eager.specialise(params).consts
        function = made.eager.function((), {**params, **{n: values[n] for n in consts}})
    return function


def _example(place: str, sizes: Mapping[str, Any], small: bool) -> Function:
    return specialise(choose(str(ROOT / "examples" / place)), sizes).function
