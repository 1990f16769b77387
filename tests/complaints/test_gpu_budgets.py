"""Complaints about what a GPU has: shared memory named before the launch, and what compiles.

`tests/gpu/extents.py` has the kernels of 24, 36, 45 and 52, which `benchmarks/gpu_check.py` runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tilelang
import tilelang.language as T
from tests.gpu import extents
from tests.gpu.lowering import source_of
from tests.kernels.case import KernelCase, relative_error, to_numpy
from tests.support.cuda import needs_nvdisasm, needs_nvrtc
from tilelang.language.frontend import parse_static
from tilelang.runtime.sass import disassemble
from tilelang.runtime.toolchain_cuda import compile_cuda
from tilelang.target import parse_target
from tilelang_diagnostics import CompileError
from tilelang_diagnostics.model import Span


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path))


def matmul(stages: Any) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((1024, 1024), "float16"),
        B: T.Tensor((1024, 1024), "float16"),
        C: T.Tensor((1024, 1024), "float32"),
    ):
        with T.Kernel(8, 8, threads=128) as (bx, by):
            A_s = T.alloc_shared((128, 64), "float16")
            B_s = T.alloc_shared((64, 128), "float16")
            C_l = T.alloc_fragment((128, 128), "float32")
            T.clear(C_l)
            for k in T.Pipelined(16, num_stages=stages):
                T.copy(A[by * 128, k * 64], A_s)
                T.copy(B[k * 64, bx * 128], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C[by * 128, bx * 128])

    return main


def text_at(span: Span | None) -> str:
    assert span is not None and span.line == span.end_line
    line = Path(span.file).read_text().splitlines()[span.line - 1]
    return line[span.column - 1 : span.end_column - 1]


def refusal(stages: Any, target: str) -> Any:
    with pytest.raises(ValueError) as caught:
        tilelang.compile(matmul(stages), target=target)
    assert isinstance(caught.value, CompileError)
    (found,) = caught.value.diagnostics
    assert found.code == "TL406"
    return found


@pytest.mark.parametrize(
    ("stages", "target", "needed", "limit", "help"),
    [
        (4, "cuda:sm_86", 131072, 101376, "num_stages=3 fits, with 98304 bytes"),
        (6, "cuda:sm_80", 196608, 166912, "num_stages=5 fits, with 163840 bytes"),
        (8, "cuda:sm_90a", 262144, 232448, "num_stages=7 fits, with 229376 bytes"),
        (8, "cuda:sm_120a", 262144, 101376, "num_stages=3 fits, with 98304 bytes"),
    ],
)
def test_s12_stages_over_the_budget(
    stages: int, target: str, needed: int, limit: int, help: str
) -> None:
    found = refusal(stages, target)
    each = f"{stages} stages x 16384 bytes"
    assert found.message == (
        f"a block needs {needed} bytes of shared memory, {target} has {limit}: "
        f"`A_s` {each}, `B_s` {each}"
    )
    assert found.help == help
    assert text_at(found.span) == 'T.alloc_shared((128, 64), "float16")' and found.label == each
    assert [(text_at(x.span), x.text) for x in found.labels] == [
        ('T.alloc_shared((64, 128), "float16")', each)
    ]


@needs_nvrtc
def test_27_how_much_shared_memory_a_kernel_takes() -> None:
    kernel = tilelang.compile(matmul(3), target="cuda:sm_86")
    assert kernel.shared_memory_bytes == 3 * 2 * 16384
    assert kernel.diagnostics == ()
    assert tilelang.compile(matmul(3), target="cpu").shared_memory_bytes == 0


@pytest.mark.parametrize("case", extents.CASES, ids=lambda case: case.name)
def test_right_numbers(case: KernelCase) -> None:
    inputs = case.make_inputs(0)
    expected = case.reference(*(to_numpy(x) for x in inputs), **case.values())
    made = case.make(**case.kernel_params())
    kernel = tilelang.compile(made, out_idx=list(case.out_idx), target="cpu")
    found = kernel(*inputs)
    for got, want in zip(found if isinstance(found, list) else [found], expected, strict=True):
        dtype = str(got.dtype)
        assert relative_error(to_numpy(got), want) <= (1e-3 if dtype == "float16" else 1e-5)


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("case", extents.CASES, ids=lambda case: case.name)
def test_they_compile(case: KernelCase, arch: str) -> None:
    source = source_of(case.make(**case.kernel_params()).function, arch)
    binary = compile_cuda(source, parse_target(f"cuda:{arch}"))
    assert binary.cubin and not binary.warnings


@needs_nvrtc
@needs_nvdisasm
@pytest.mark.parametrize(
    ("count", "dtype", "accesses"), [(8, "float32", 2), (8, "float16", 1), (4, "float64", 2)]
)
def test_52_lanes_move_sixteen_bytes_at_a_time(count: int, dtype: str, accesses: int) -> None:
    source = source_of(extents.lanes(count, dtype, 32).function)
    listing = disassemble(compile_cuda(source, parse_target("cuda:sm_80")).cubin)
    assert listing.count("LDG.E.128.CONSTANT") == listing.count("STG.E.128") == accesses


WASTED = """
import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((132, 32), "float16"), B: T.Tensor((32, 128), "float16"),
         C: T.Tensor((132, 128), "float32")):
    with T.Kernel(T.ceildiv(132, 128), threads=128) as bx:
        a = T.alloc_shared((128, 32), "float16")
        b = T.alloc_shared((32, 128), "float16")
        c = T.alloc_fragment((128, 128), "float32")
        T.copy(A[bx * 128, 0], a)
        T.copy(B, b)
        T.clear(c)
        T.gemm(a, b, c)
        T.copy(c, C[bx * 128, 0])
"""


def test_no_tile_is_proposed_that_a_gemm_may_not_take() -> None:
    (parsed,) = parse_static(WASTED, "kernel.py", target="cuda:sm_80")
    (wasted,) = (d for d in parsed.diagnostics if d.code == "TL608")
    assert wasted.help == "try smaller tiles, from 66 on, of a size that T.gemm takes"
