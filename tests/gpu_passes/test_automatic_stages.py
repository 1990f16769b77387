"""How deep `num_stages="auto"` is, and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang
import tilelang.language as T
from tilelang.compiler import Lowered, lower_function
from tilelang.ir import attrs, tirx
from tilelang.ir.visit import collect
from tilelang.options import CompileOptions
from tilelang.target import parse_target
from tilelang_diagnostics import CompileError
from tilelang_diagnostics.model import Diagnostic


def lowered(kernel: Any, target: str) -> Lowered:
    return lower_function(kernel.function, parse_target(target), CompileOptions())


def versions(found: Lowered) -> dict[str, int]:
    return {
        str(s.buffer.name): int(s.annotations.get(attrs.VERSIONS, 1))
        for s in collect(found.func.body, tirx.AllocBuffer)
        if str(s.buffer.scope()) == "shared.dyn"
    }


def remark(found: Lowered) -> Diagnostic:
    (said,) = (d for d in found.diagnostics if d.code == "TL513")
    assert len(found.diagnostics) == 1
    return said


def matmul(depth: int, stages: Any = "auto", dtype: str = "float16") -> Any:
    """128 x 128 tiles, `depth` of K at a time: 512 * depth bytes a stage."""

    @T.prim_func
    def main(
        A: T.Tensor((128, 4096), dtype),
        B: T.Tensor((4096, 128), dtype),
        C: T.Tensor((128, 128), "float32"),
    ):
        with T.Kernel(1, threads=256):
            A_s = T.alloc_shared((128, depth), dtype)
            B_s = T.alloc_shared((depth, 128), dtype)
            C_l = T.alloc_fragment((128, 128), "float32")
            T.clear(C_l)
            for k in T.Pipelined(4096 // depth, num_stages=stages):
                T.copy(A[0, k * depth], A_s)
                T.copy(B[k * depth, 0], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C)

    return main


@pytest.mark.parametrize(
    ("depth", "arch", "stages"),
    [
        (32, "sm_80", 4), (32, "sm_86", 4), (32, "sm_90a", 4),
        (64, "sm_80", 4), (64, "sm_86", 3), (64, "sm_90a", 4),
        (128, "sm_80", 2), (128, "sm_86", 1), (128, "sm_90a", 3),
        (256, "sm_80", 1), (256, "sm_90a", 1),
    ],
)  # fmt: skip
def test_the_deepest_that_fits(depth: int, arch: str, stages: int) -> None:
    found = lowered(matmul(depth), f"cuda:{arch}")
    assert versions(found) == {"A_s": stages, "B_s": stages}
    said = remark(found)
    assert f'num_stages="auto" is {stages} here' in said.message
    assert said.span is not None and said.label == f"{stages} stage{'s' * (stages > 1)}"
    # The number is right: given by hand it fits, and one more does not.
    assert not lowered(matmul(depth, stages), f"cuda:{arch}").diagnostics
    if stages < 4:
        (refused,) = lowered(matmul(depth, stages + 1), f"cuda:{arch}").diagnostics
        assert refused.code == "TL406"


def test_what_is_said_where_memory_is_the_limit() -> None:
    said = remark(lowered(matmul(64), "cuda:sm_86"))
    assert said.message == (
        'num_stages="auto" is 3 here, with 98304 of the 101376 bytes of shared memory that '
        "cuda:sm_86 has for a block"
    )
    assert said.notes == ("4 stages would need 131072 bytes",) and said.help is None
    assert [x.text for x in said.labels] == ["3 stages x 16384 bytes"] * 2


def test_what_is_said_where_a_deeper_one_would_fit() -> None:
    said = remark(lowered(matmul(32), "cuda:sm_80"))
    assert said.help == "num_stages=5 would fit too, with 81920 bytes" and said.notes == ()


def test_what_is_said_where_nothing_deeper_than_one_fits() -> None:
    said = remark(lowered(matmul(128), "cuda:sm_86"))
    assert said.message == (
        'num_stages="auto" is 1 here: 2 stages need 131072 of the 101376 bytes of shared memory '
        "that cuda:sm_86 has for a block"
    )
    assert said.help is not None and said.help.startswith("use smaller tiles")
    assert [x.text for x in said.labels] == ["2 stages x 32768 bytes"] * 2


def test_a_tile_whose_place_is_free_again_does_not_count() -> None:
    """The output tile lies where the operands were."""

    @T.prim_func
    def main(A: T.Tensor((128, 4096), "float16"), C: T.Tensor((128, 256), "float32")):
        with T.Kernel(1, threads=256):
            A_s = T.alloc_shared((128, 128), "float16")
            out = T.alloc_shared((128, 128), "float32")
            C_l = T.alloc_fragment((128, 128), "float32")
            T.clear(C_l)
            for k in T.Pipelined(32, num_stages="auto"):
                T.copy(A[0, k * 128], A_s)
                T.gemm(A_s, A_s, C_l, transpose_B=True)
            T.copy(C_l, out)
            T.copy(out, C[0, 0])

    found = lowered(main, "cuda:sm_86")
    assert versions(found)["A_s"] == 3 and "is 3 here, with 98304 of" in remark(found).message


def test_launches_do_not_add_up() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 4096), "float32"), C: T.Tensor((64, 4096), "float32")):
        with T.Kernel(1, threads=128):
            big = T.alloc_shared((64, 256), "float32")
            T.copy(A[0, 0], big)
            T.copy(big, C[0, 0])
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((64, 64), "float32")
            for k in T.Pipelined(64, num_stages="auto"):
                T.copy(A[0, k * 64], S)
                T.copy(S, C[0, k * 64])

    assert versions(lowered(main, "cuda:sm_86")) == {"big": 1, "S": 4}


def test_two_loops_share_a_tile() -> None:
    """The second one finds the versions of the first."""

    @T.prim_func
    def main(A: T.Tensor((64, 4096), "float32"), C: T.Tensor((64, 4096), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((64, 128), "float32")
            for k in T.Pipelined(32, num_stages="auto"):
                T.copy(A[0, k * 128], S)
                T.copy(S, C[0, k * 128])
            for k in T.Pipelined(32, num_stages="auto"):
                T.copy(A[0, k * 128], S)
                T.copy(S, C[0, k * 128])

    found = lowered(main, "cuda:sm_86")
    assert versions(found) == {"S": 3}
    assert [d.code for d in found.diagnostics] == ["TL513", "TL513"]


def test_memory_that_lowering_needs_is_left_free() -> None:
    """The product is scattered through shared memory: at 3 stages there is no room for that."""

    @T.prim_func
    def main(A: T.Tensor((128, 4096), "float16"), C: T.Tensor((128, 128), "float32")):
        with T.Kernel(1, threads=128):
            A_s = T.alloc_shared((128, 128), "float16")
            C_l = T.alloc_fragment((128, 128), "float32")
            flipped = T.alloc_fragment((128, 128), "float32")
            T.clear(C_l)
            T.clear(flipped)
            for k in T.Pipelined(32, num_stages="auto"):
                T.copy(A[0, k * 128], A_s)
                T.gemm(A_s, A_s, C_l, transpose_B=True)
                for i, j in T.Parallel(128, 128):
                    flipped[i, j] += C_l[j, i]
            T.copy(flipped, C)

    found = lowered(main, "cuda:sm_90a")
    assert all(d.code != "TL406" for d in found.diagnostics)
    scratch = 4 * 128 * 128
    depth = (227 * 1024 - scratch) // (2 * 128 * 128)
    assert versions(found)["A_s"] == min(depth, 4)


def test_no_copy_can_run_ahead() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 32), "float32"), C: T.Tensor((64, 32), "float16")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((32,), "float16")
            for k in T.Pipelined(64, num_stages="auto"):
                T.copy(A[k, 0], S)
                T.copy(S, C[k, 0])

    found = lowered(main, "cuda:sm_80")
    assert [d.code for d in found.diagnostics] == ["TL508"] and versions(found) == {"S": 1}


def test_a_cpu_runs_it_in_order() -> None:
    import numpy as np

    kernel = tilelang.compile(matmul(64, dtype="float32"), out_idx=[2], target="cpu")
    a, b = (np.random.default_rng(0).standard_normal(s).astype("float32")
            for s in ((128, 4096), (4096, 128)))  # fmt: skip
    assert np.allclose(kernel(a, b), a @ b, atol=1e-2)


@pytest.mark.parametrize("wrong", ["atuo", -1, 65, 1.5])
def test_what_is_no_number_of_stages(wrong: Any) -> None:
    with pytest.raises(CompileError) as caught:
        matmul(64, wrong)
    (found,) = caught.value.diagnostics
    assert found.code == "TL504" and repr(wrong) in found.message and '"auto"' in found.message
