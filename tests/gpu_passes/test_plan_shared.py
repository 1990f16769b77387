"""Where buffers of shared memory go, which of them share a place, and what does not fit."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import tilelang.language as T
from tests.support.lowering import emitted
from tilelang.analysis.lifetimes import Lifetime
from tilelang.ir import attrs, tirx
from tilelang.ir.device_ops import SHARED_ALIGNMENT, SHARED_OFFSET
from tilelang.ir.visit import Rewriter, collect, with_body
from tilelang.options import make_options
from tilelang.passes.context import PassContext
from tilelang.passes.plan_shared import Tile, place, plan_shared


def planned(kernel: Any, target: str = "cuda:sm_80", **options: Any) -> tuple[dict[str, int], Any]:
    """Offsets by name, and the context; `options` are pass configs, `_` for the dot."""
    configs = {key.replace("tl_", "tl."): value for key, value in options.items()}
    context = PassContext(target, make_options(configs))
    func = plan_shared(kernel if isinstance(kernel, tirx.PrimFunc) else emitted(kernel), context)
    offsets = {
        str(s.buffer.name): int(s.annotations[SHARED_OFFSET])
        for s in collect(func.body, tirx.AllocBuffer)
        if SHARED_OFFSET in s.annotations
    }
    return offsets, context


def with_versions(kernel: Any, versions: dict[str, int]) -> Any:
    """The kernel as if buffers held several versions already."""

    class Rewrite(Rewriter):
        def alloc(self, s: Any) -> Any:
            count = versions.get(str(s.buffer.name))
            return (
                s if count is None else tirx.AllocBuffer(s.buffer, {attrs.VERSIONS: count}, s.span)
            )

    func = emitted(kernel)
    return with_body(func, Rewrite().any(func.body))


@T.prim_func
def sequence(A: T.Tensor((1024,), "float32"), C: T.Tensor((1024,), "float32")):
    with T.Kernel(1, threads=128):
        tx = T.get_thread_binding()
        first = T.alloc_shared((1000,), "float32")
        second = T.alloc_shared((500,), "float32")
        both = T.alloc_shared((100,), "float32")
        both[tx % 100] = A[tx]
        first[tx] = A[tx]
        C[tx] = first[tx + 1]
        second[tx] = A[tx]
        C[tx] = second[tx + 1] + both[tx % 100]


def test_buffers_used_one_after_the_other_share_a_place() -> None:
    offsets, context = planned(sequence)
    assert offsets == {"first": 0, "second": 0, "both": 4096}
    assert context.counters["shared bytes"] == 4096 + 400


def test_sharing_can_be_turned_off() -> None:
    offsets, context = planned(sequence, tl_disable_shared_memory_reuse=True)
    assert offsets == {"first": 0, "second": 4096, "both": 6144}
    assert context.counters["shared bytes"] == 6144 + 400


@T.prim_func
def in_a_loop(A: T.Tensor((1024,), "float32"), C: T.Tensor((1024,), "float32"), n: T.int32):
    with T.Kernel(1, threads=128):
        tx = T.get_thread_binding()
        for _k in T.serial(n):
            first = T.alloc_shared((1024,), "float32")
            second = T.alloc_shared((1024,), "float32")
            first[tx] = A[tx]
            C[tx] = first[tx + 1]
            second[tx] = A[tx]
            C[tx] = second[tx + 1]


def test_within_a_loop_only_on_request_or_need() -> None:
    assert planned(in_a_loop)[0] == {"first": 0, "second": 4096}
    eager, _ = planned(in_a_loop, tl_enable_aggressive_shared_memory_merge=True)
    assert eager == {"first": 0, "second": 0}


def test_a_buffer_that_outlives_a_loop_is_used_throughout_it() -> None:
    @T.prim_func
    def main(A: T.Tensor((1024,), "float32"), C: T.Tensor((1024,), "float32"), n: T.int32):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            kept = T.alloc_shared((1024,), "float32")
            for _k in T.serial(n):
                kept[tx] = kept[tx] + A[tx]
                for _j in T.serial(n):
                    scratch = T.alloc_shared((1024,), "float32")
                    scratch[tx] = A[tx]
                    C[tx] = scratch[tx + 1]

    offsets, _ = planned(main, tl_enable_aggressive_shared_memory_merge=True)
    assert offsets == {"kept": 0, "scratch": 4096}


def test_both_sides_of_a_branch_are_in_use_at_once() -> None:
    @T.prim_func
    def main(A: T.Tensor((1024,), "float32"), C: T.Tensor((1024,), "float32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            left = T.alloc_shared((1024,), "float32")
            right = T.alloc_shared((1024,), "float32")
            if tx < 64:
                left[tx] = A[tx]
                C[tx] = left[tx ^ 1]
            else:
                right[tx] = A[tx]
                C[tx] = right[tx ^ 1]

    assert planned(main)[0] == {"left": 0, "right": 4096}


def test_small_buffers_are_aligned_to_vectors_and_large_ones_to_rows() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "uint8"), C: T.Tensor((64,), "uint8")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            big = T.alloc_shared((130,), "uint8")
            small = T.alloc_shared((33,), "uint8")
            tiny = T.alloc_shared((3,), "uint8")
            big[tx] = A[tx]
            small[tx % 33] = A[tx]
            tiny[tx % 3] = A[tx]
            C[tx] = big[tx] + small[tx % 33] + tiny[tx % 3]

    func = emitted(main)
    result = plan_shared(func, PassContext("cuda:sm_80"))
    found = {
        str(s.buffer.name): (
            int(s.annotations[SHARED_OFFSET]),
            int(s.annotations[SHARED_ALIGNMENT]),
        )
        for s in collect(result.body, tirx.AllocBuffer)
    }
    assert found == {"big": (0, 128), "small": (144, 16), "tiny": (192, 16)}


def test_a_buffer_that_nothing_uses_takes_no_place() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            unused = T.alloc_shared((4096,), "float32")
            C[tx] = A[tx]

    offsets, context = planned(main)
    assert offsets == {} and context.counters["shared bytes"] == 0


# What does not fit.


@T.prim_func
def deep(A: T.Tensor((8192,), "float16"), C: T.Tensor((8192,), "float16")):
    with T.Kernel(1, threads=128):
        tx = T.get_thread_binding()
        A_s = T.alloc_shared((4 * 16384,), "float16")
        B_s = T.alloc_shared((4 * 8192,), "float16")
        out = T.alloc_shared((4096,), "float32")
        A_s[tx] = A[tx]
        B_s[tx] = A[tx]
        out[tx] = A_s[tx] + B_s[tx]
        C[tx] = out[tx + 1]


def test_the_error_names_the_biggest_buffers_and_the_depth_that_fits() -> None:
    """Complaint S12."""
    func = with_versions(deep, {"A_s": 4, "B_s": 4})
    _, context = planned(func)
    (found,) = context.remarks
    assert found.code == "TL406"
    assert found.message == (
        "a block needs 212992 bytes of shared memory, cuda:sm_80 has 166912: `A_s` 4 stages x "
        "32768 bytes, `B_s` 4 stages x 16384 bytes, `out` 16384 bytes"
    )
    assert found.help == "num_stages=3 fits, with 163840 bytes"
    assert found.span is not None and found.label == "4 stages x 32768 bytes"
    assert [x.text for x in found.labels] == ["4 stages x 16384 bytes", "16384 bytes"]
    assert planned(func, "cuda:sm_90a")[1].remarks == []
    assert planned(func, "cuda:sm_86")[1].remarks[0].help == (
        "num_stages=1 fits, with 65536 bytes"
    )  # fmt: skip


def test_no_depth_fits() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            S = T.alloc_shared((262144,), "float32")
            S[tx] = A[tx]
            C[tx] = S[tx + 1]

    assert planned(with_versions(main, {"S": 2}))[1].remarks[0].help == (
        "not even one stage fits: use smaller tiles"
    )  # fmt: skip
    assert planned(main)[1].remarks[0].help == "use smaller tiles"


def test_static_shared_memory_has_a_limit_of_its_own() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            S = T.alloc_shared((16384,), "float32", scope="shared")
            S[tx] = A[tx]
            C[tx] = S[tx + 1]

    (found,) = planned(main)[1].remarks
    assert found.code == "TL406" and "of scope 'shared', which is limited to 49152" in found.message


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(0, 8), st.integers(1, 5000),
                  st.sampled_from([16, 128, 1024])),
        max_size=12,
    )
)  # fmt: skip
def test_places_are_aligned_and_never_shared_at_the_same_time(rows: Any) -> None:
    tiles = []
    for n, (first, length, size, align) in enumerate(rows):
        life = Lifetime(n, None, first, first + length, (first - 1, first + length + 1))
        tiles.append(Tile(life, 1, size, align))
    for in_loops in (False, True):
        found = place(tiles, share=True, in_loops=in_loops)
        for tile in tiles:
            at = found.offsets[tile.life.buffer]
            assert at % tile.align == 0 and at + tile.stride <= found.total
            for other in tiles:
                there = found.offsets[other.life.buffer]
                apart = at + tile.stride <= there or there + other.stride <= at
                assert other is tile or apart or not tile.life.meets(other.life, in_loops)
    apart_total = place(tiles, share=False).total
    assert place(tiles, share=True, in_loops=True).total <= apart_total
