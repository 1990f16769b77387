"""What is done for a kernel that spills registers."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang.language as T
from tests.gpu.lowering import source_of
from tests.support.cuda import needs_nvrtc
from tilelang.codegen.device_source import DeviceSource
from tilelang.codegen.recompute import lighter_forms
from tilelang.codegen.source_map import Line, SourceMap
from tilelang.options import CompileOptions
from tilelang.runtime import cuda_build
from tilelang.runtime.cuda_build import compile_without_spills
from tilelang.runtime.toolchain_cuda import compile_cuda
from tilelang.target import parse_target
from tilelang_diagnostics.model import Span

PLAIN = """\
extern "C" __global__ void __launch_bounds__(64) main_kernel(float* A) {
  const int tx = int(threadIdx.x);
  const int ty = int(threadIdx.y);
  __align__(16) float acc[8];
  __align__(16) tl::float16 A_r[8];
  #pragma unroll
  for (int r = 0; r < 8; ++r) {
    acc[r] = 0.0f;
  }
  for (int k = 0; k < 4; ++k) {
    #pragma unroll
    for (int k_1 = 0; k_1 < 8; ++k_1) {
      tl::ldmatrix_x4(&A_r[0], &A_shared[k_1 * 8 + tx]);
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        tl::mma_m16n8k16_f32_f16_f16(&acc[i * 4], &A_r[0], &B_r[tx]);
      }
    }
    #pragma unroll
    for (int k_2 = 0; k_2 < 8; ++k_2) {
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        tl::mma_m16n8k16_f32_f16_f16(&acc[i * 4], &A_r[(k_2 % 2) * 4], &B_r[tx]);
      }
    }
  }
}
"""


def source(text: str) -> DeviceSource:
    span = Span("kernel.py", 7, 1, 7, 9)
    lines = tuple(Line(line, (span,)) for line in text.splitlines())
    return DeviceSource("main", "cuda", SourceMap(lines), (), ())


def test_addresses_are_computed_in_each_round() -> None:
    first, *_ = lighter_forms(source(PLAIN))
    assert first.text == (
        PLAIN.replace("const int tx", "int tx")
        .replace("const int ty", "int ty")
        .replace("k < 4; ++k) {\n", "k < 4; ++k) {\n    tl::again(tx); tl::again(ty);\n")
    )
    assert all(line.spans for line in first.source.lines)


def test_products_are_rolled_where_registers_do_not_depend_on_the_step() -> None:
    first, *rolled = lighter_forms(source(PLAIN))
    assert [form.text for form in rolled] == [
        text.replace("#pragma unroll\n    for (int k_1", f"#pragma unroll {n}\n    for (int k_1")
        for text in (first.text, PLAIN)
        for n in (6, 2)
    ]


def test_few_steps_are_not_rolled() -> None:
    _, *rolled = lighter_forms(source(PLAIN.replace("k_1 < 8", "k_1 < 4")))
    assert len(rolled) == 2 and all("#pragma unroll 2\n" in form.text for form in rolled)
    assert ["tl::again" in form.text for form in rolled] == [True, False]


def test_without_loops_there_is_nothing_to_do() -> None:
    head = PLAIN.split("  for (int k = 0")[0]
    assert list(lighter_forms(source(head + "}\n"))) == []


def heavy() -> Any:
    """128 x 128 + 64 x 128 accumulators of two products of one warp group, and many addresses."""

    @T.prim_func
    def main(
        Q: T.Tensor((128, 128), "float16"), K: T.Tensor((4096, 128), "float16"),
        O: T.Tensor((128, 128), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            Q_s = T.alloc_shared((128, 128), "float16")
            K_s = T.alloc_shared((64, 128), "float16")
            scores = T.alloc_fragment((128, 64), "float32")
            weights = T.alloc_fragment((128, 64), "float16")
            out = T.alloc_fragment((128, 128), "float32")
            T.copy(Q, Q_s)
            T.clear(out)
            for k in T.Pipelined(64, num_stages=2):
                T.copy(K[k * 64, 0], K_s)
                T.clear(scores)
                T.gemm(Q_s, K_s, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(scores, weights)
                T.gemm(weights, K_s, out, policy=T.GemmWarpPolicy.FullRow)
            T.copy(out, O)

    return main


@needs_nvrtc
def test_every_form_compiles_and_the_one_that_spills_fewest_is_kept() -> None:
    target = parse_target("cuda:sm_80")
    given = source_of(heavy().function, "sm_80")
    tried = [compile_cuda(form, target) for form in (given, *lighter_forms(given))]
    assert len(tried) >= 3 and all(not binary.warnings for binary in tried)
    _, binary = compile_without_spills(given, target, CompileOptions())
    assert binary.spills == min(b.spills for b in tried)


def test_order_of_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first form without spills ends the search; a form that spills more is not taken."""
    given = source(PLAIN)
    forms = [given, *lighter_forms(given)]

    def compiled(spills: list[int]) -> tuple[int, int]:
        calls: list[int] = []

        class Binary:
            def __init__(self, number: int) -> None:
                self.spills = spills[number]

        def compile_cuda(device: DeviceSource, *_: Any, **__: Any) -> Binary:
            calls.append([f.text for f in forms].index(device.text))
            return Binary(calls[-1])

        monkeypatch.setattr(cuda_build, "compile_cuda", compile_cuda)
        kept, _ = compile_without_spills(given, parse_target("cuda:sm_80"), CompileOptions())
        return [f.text for f in forms].index(kept.text), len(calls)

    assert compiled([0, 0, 0, 0, 0, 0]) == (0, 1)
    assert compiled([9, 0, 0, 0, 0, 0]) == (1, 2)
    assert compiled([9, 4, 0, 0, 0, 0]) == (2, 3)
    assert compiled([9, 12, 10, 11, 12, 9]) == (0, 6)
    assert compiled([9, 4, 6, 3, 5, 4]) == (3, 6)
    assert compiled([9, 12, 11, 10, 0, 0]) == (4, 5)
