"""Barriers go where threads meet in shared memory, and nowhere else."""

from __future__ import annotations

import textwrap
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings

import tilelang.language as T
from tests.gpu_passes.thread_programs import (
    barrier_count,
    conflicts,
    emitted_program,
    programs,
    synchronised,
)
from tests.support.lowering import body_text, emitted
from tilelang.analysis.barrier_regions import Groups, Region, branches
from tilelang.analysis.divergence import Divergence
from tilelang.analysis.shared_accesses import launch_tree
from tilelang.ir import attrs, build, tirx
from tilelang.ir.device_ops import call, region
from tilelang.ir.visit import Rewriter, collect, with_body
from tilelang.passes.context import PassContext
from tilelang.passes.insert_sync import insert_sync


def check(kernel: Any, expect: str, remarks: int = 0) -> PassContext:
    context = PassContext("cuda:sm_80")
    lines = body_text(insert_sync(emitted(kernel), context)).splitlines()
    kept = [x for x in lines if "alloc" not in x and "get_thread_binding" not in x]
    assert "\n".join(kept) == textwrap.dedent(expect).strip()
    assert len(context.remarks) == remarks
    return context


def with_cp_async(func: Any) -> Any:
    """Stores of global elements to shared memory as asynchronous copies of one element."""

    class Rewrite(Rewriter):
        def store(self, s: Any) -> Any:
            if not isinstance(s.value, tirx.TensorLoad) or str(s.value.source.scope()) != "global":
                return s
            dst = region(s.buffer, s.indices[0], 1, s.span)
            src = region(s.value.source, s.value.indices[0], 1, s.span)
            return build.evaluate(call("cp_async", [dst, src], bytes=4, span=s.span), s.span)

    return with_body(func, Rewrite().any(func.body))


def test_a_side_that_nobody_takes_needs_no_barrier_of_its_own() -> None:
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), C: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            S = T.alloc_shared((128,), "float32")
            if tx >= 128:
                S[tx] = A[tx]
                C[tx] = S[127 - tx]
            if tx < 64:
                S[tx] = A[tx]
                C[tx] = S[63 - tx]

    launch = next(
        s for s in collect(emitted(main).body, tirx.AttrStmt)
        if str(s.attr_key) == attrs.THREAD_EXTENT
    )  # fmt: skip
    tree = launch_tree(launch)
    groups = Groups(tree, Divergence(tree, launch))
    never, first = branches(tree.body)
    assert groups.region(never, True, Region()) == Region("none")
    assert groups.region(first, True, Region()) == Region("warps", 1, 64)


def test_threads_that_read_what_others_wrote_wait() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            S = T.alloc_shared((64,), "float32")
            own = T.alloc_shared((64,), "float32")
            S[tx] = A[tx]
            own[tx] = S[tx]
            C[tx] = S[63 - tx] + own[tx]

    check(main, """
        S[tx] = A[tx]
        own[tx] = S[tx]
        T.sync_threads()
        C[tx] = S[63 - tx] + own[tx]
    """)  # fmt: skip


def test_each_iteration_overwrites_what_the_last_one_read() -> None:
    @T.prim_func
    def main(A: T.Tensor((1024,), "float32"), C: T.Tensor((64,), "float32"), n: T.int32):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            S = T.alloc_shared((64,), "float32")
            for k in T.serial(n):
                S[tx] = A[k * 64 + tx]
                C[tx] = S[63 - tx]

    check(main, """
        for k in T.serial(n):
            T.sync_threads()
            S[tx] = A[k * 64 + tx]
            T.sync_threads()
            C[tx] = S[63 - tx]
    """)  # fmt: skip


def test_versions_of_a_pipelined_buffer_need_one_barrier() -> None:
    @T.prim_func
    def main(A: T.Tensor((4096,), "float32"), C: T.Tensor((64,), "float32"), n: T.int32):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            S = T.alloc_shared((192,), "float32")
            S[tx] = A[tx]
            S[64 + tx] = A[64 + tx]
            for k in T.serial(n):
                S[(k + 2) % 3 * 64 + tx] = A[(k + 2) * 64 + tx]
                C[tx] = S[k % 3 * 64 + 63 - tx]

    check(main, """
        S[tx] = A[tx]
        S[64 + tx] = A[64 + tx]
        for k in T.serial(n):
            T.sync_threads()
            S[(k + 2) % 3 * 64 + tx] = A[(k + 2) * 64 + tx]
            C[tx] = S[k % 3 * 64 + 63 - tx]
    """)  # fmt: skip


def test_asynchronous_copies_count_where_they_are_waited_for() -> None:
    @T.prim_func
    def main(A: T.Tensor((4096,), "float32"), C: T.Tensor((64,), "float32"), n: T.int32):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            S = T.alloc_shared((192,), "float32")
            for k in T.serial(n):
                T.ptx_wait_group(1)
                S[(k + 2) % 3 * 64 + tx] = A[(k + 2) * 64 + tx]
                T.ptx_commit_group()
                C[tx] = S[k % 3 * 64 + 63 - tx]
            T.ptx_wait_group(0)
            C[tx] = S[63 - tx]

    text = body_text(insert_sync(with_cp_async(emitted(main)), PassContext("cuda:sm_80")))
    found = [line.strip().split("(")[0] for line in text.splitlines() if "T.alloc" not in line]
    assert found == [
        "tx = T.get_thread_binding", "for k in T.serial", "T.ptx_wait_group", "T.sync_threads",
        "T.cp_async", "T.ptx_commit_group", "C[tx] = S[k % 3 * 64 + 63 - tx]",
        "T.ptx_wait_group", "T.sync_threads",
        "C[tx] = S[63 - tx]",
    ]  # fmt: skip


def test_lanes_of_a_warp_wait_for_each_other_only() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            S = T.alloc_shared((64,), "float32")
            S[tx] = A[tx]
            C[tx] = S[tx ^ 1]

    check(main, """
        S[tx] = A[tx]
        T.sync_warp()
        C[tx] = S[tx ^ 1]
    """)  # fmt: skip


def test_a_tree_reduction() -> None:
    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), C: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding()
            S = T.alloc_shared((256,), "float32")
            S[tx] = A[tx]
            for s in T.unroll(8):
                if tx < 128 >> s:
                    S[tx] = S[tx] + S[tx + (128 >> s)]
            if tx == 0:
                C[0] = S[0]

    check(main, """
        S[tx] = A[tx]
        for s in T.unroll(8):
            T.sync_threads()
            if tx < 128 >> s:
                S[tx] = S[tx] + S[tx + (128 >> s)]
        if tx == 0:
            C[0] = S[0]
    """)  # fmt: skip


def test_a_guarded_write_read_by_others() -> None:
    """Complaint 30: the first warp writes, every warp reads."""

    @T.prim_func
    def main(A: T.Tensor((32,), "float32"), C: T.Tensor((512,), "float32")):
        with T.Kernel(1, threads=512):
            tx = T.get_thread_binding()
            S = T.alloc_shared((32,), "float32")
            if tx < 32:
                S[tx] = A[tx]
            C[tx] = S[tx % 32]

    check(main, """
        if tx < 32:
            S[tx] = A[tx]
        T.sync_threads()
        C[tx] = S[tx % 32]
    """)  # fmt: skip


def test_whole_warps_in_a_branch_have_their_own_barrier() -> None:
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), C: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            S = T.alloc_shared((128,), "float32")
            if tx < 64:
                S[tx] = A[tx]
                C[tx] = S[63 - tx]
            else:
                S[tx] = A[tx]
                C[tx] = S[tx ^ 1]

    check(main, """
        if tx < 64:
            S[tx] = A[tx]
            T.sync_threads(1, 64)
            C[tx] = S[63 - tx]
        else:
            S[tx] = A[tx]
            T.sync_warp()
            C[tx] = S[tx ^ 1]
    """)  # fmt: skip


def test_lanes_that_take_a_way_of_their_own() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            S = T.alloc_shared((64,), "float32")
            if tx < 20:
                S[tx] = A[tx]
                C[tx] = S[19 - tx]

    check(main, """
        if tx < 20:
            S[tx] = A[tx]
            T.sync_warp(T.uint32(1048575))
            C[tx] = S[19 - tx]
    """)  # fmt: skip


def test_threads_of_several_warps_that_cannot_be_kept_apart() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            S = T.alloc_shared((64,), "float32")
            if tx < 48:
                S[tx] = A[tx]
                C[tx] = S[47 - tx]

    context = check(main, """
        if tx < 48:
            S[tx] = A[tx]
            C[tx] = S[47 - tx]
    """, remarks=1)  # fmt: skip
    (found,) = context.remarks
    assert found.code == "TL509" and found.message.startswith("`S` is read where another thread")
    assert found.span is not None and [x.text for x in found.labels] == ["written here"]


def test_a_condition_of_the_block_may_hold_a_barrier() -> None:
    @T.prim_func
    def main(
        A: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32"), m: T.Tensor((4,), "int32")
    ):
        with T.Kernel(4, threads=64) as bx:
            tx = T.get_thread_binding()
            S = T.alloc_shared((64,), "float32")
            if m[bx] > 0:
                S[tx] = A[tx]
                C[tx] = S[63 - tx]

    check(main, """
        if m[bx] > 0:
            S[tx] = A[tx]
            T.sync_threads()
            C[tx] = S[63 - tx]
    """)  # fmt: skip


def test_a_barrier_of_the_author_is_enough() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            S = T.alloc_shared((64,), "float32")
            S[tx] = A[tx]
            T.sync_threads()
            C[tx] = S[63 - tx]

    check(main, """
        S[tx] = A[tx]
        T.sync_threads()
        C[tx] = S[63 - tx]
    """)  # fmt: skip


def test_atomics_meet_without_a_barrier_and_are_read_after_one() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), C: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            S = T.alloc_shared((64,), "int32")
            S[tx] = 0
            T.atomic_add(S[A[tx]], 1)
            T.atomic_add(S[A[tx] ^ 1], 1)
            C[tx] = S[tx]

    check(main, """
        S[tx] = 0
        T.sync_threads()
        T.atomic_add(S[A[tx]], 1, memory_order='relaxed')
        T.atomic_add(S[A[tx] ^ 1], 1, memory_order='relaxed')
        T.sync_threads()
        C[tx] = S[tx]
    """)  # fmt: skip


def test_what_cannot_be_decided_waits() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), C: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            S = T.alloc_shared((64,), "int32")
            S[tx] = A[tx]
            C[tx] = S[A[tx]]

    check(main, """
        S[tx] = A[tx]
        T.sync_threads()
        C[tx] = S[A[tx]]
    """)  # fmt: skip


def test_a_place_that_the_block_shifts_on_both_sides() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32"), row: T.int32):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            S = T.alloc_shared((640,), "float32")
            S[row * 64 + tx] = A[tx]
            C[tx] = S[row * 64 + tx]

    check(main, """
        S[row * 64 + tx] = A[tx]
        C[tx] = S[row * 64 + tx]
    """)  # fmt: skip


# Shrinking a program of ten statements takes minutes; what fails is small enough to read.
QUICK = {"deadline": None, "phases": [Phase.explicit, Phase.reuse, Phase.generate],
         "suppress_health_check": [HealthCheck.too_slow]}  # fmt: skip


@settings(max_examples=40, **QUICK)  # type: ignore[arg-type]
@given(programs())
def test_random_programs_have_no_race(steps: Any) -> None:
    func = synchronised(emitted_program(steps))
    for n in (0, 1, 2, 7):
        assert conflicts(func, n) is None


@settings(max_examples=40, **QUICK)  # type: ignore[arg-type]
@given(programs(branches=False))
def test_random_programs_have_no_barrier_to_spare(steps: Any) -> None:
    func = synchronised(emitted_program(steps))
    for n in (0, 1, 2, 7):
        assert conflicts(func, n) is None
    for number in range(barrier_count(func)):
        needed = any(conflicts(func, n, without=number) for n in (7, 2, 1, 0))
        assert needed, f"barrier {number} of {barrier_count(func)} is not needed:\n{func}"
