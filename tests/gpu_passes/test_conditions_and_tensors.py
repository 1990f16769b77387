"""Barriers where a condition reads what a thread writes, and where threads meet in a tensor."""

from __future__ import annotations

import tilelang.language as T
from tests.gpu_passes.test_insert_sync import check


def test_a_loop_looks_at_its_condition_again() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), C: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            S = T.alloc_shared((64,), "int32")
            S[tx] = A[tx]
            while S[0] < 9:
                C[tx] = A[tx]
                if tx == 5:
                    S[0] = S[0] + 1

    check(main, """
        S[tx] = A[tx]
        T.sync_threads()
        while S[0] < 9:
            C[tx] = A[tx]
            T.sync_threads()
            if tx == 5:
                S[0] = S[0] + 1
            T.sync_threads()
    """)  # fmt: skip


def test_a_branch_whose_condition_is_overwritten_inside() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            S = T.alloc_shared((1,), "int32")
            if tx == 0:
                S[0] = A[3]
            if S[0] > 2:
                if tx == 5:
                    S[0] = 1

    check(main, """
        if tx == 0:
            S[0] = A[3]
        T.sync_threads()
        if S[0] > 2:
            T.sync_threads()
            if tx == 5:
                S[0] = 1
    """)  # fmt: skip


def test_a_branch_of_some_threads_whose_condition_others_overwrite() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            S = T.alloc_shared((64,), "int32")
            S[tx] = A[tx]
            if S[tx] > 2:
                S[63 - tx] = 1

    context = check(main, """
        S[tx] = A[tx]
        T.sync_threads()
        if S[tx] > 2:
            S[63 - tx] = 1
    """, remarks=1)  # fmt: skip
    assert context.remarks[0].code == "TL509"


def test_threads_meet_in_a_tensor_that_is_written_and_read() -> None:
    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(4, threads=64) as bx:
            tx = T.get_thread_binding()
            A[bx * 64 + tx] = A[bx * 64 + tx] * 2.0
            A[bx * 64 + tx] = A[bx * 64 + tx] + 1.0
            B[bx * 64 + tx] = A[bx * 64 + 63 - tx]
            B[bx * 64 + tx] = 0.0

    check(main, """
        A[bx * 64 + tx] = A[bx * 64 + tx] * 2.0
        A[bx * 64 + tx] = A[bx * 64 + tx] + 1.0
        T.sync_threads()
        B[bx * 64 + tx] = A[bx * 64 + 63 - tx]
        B[bx * 64 + tx] = 0.0
    """)  # fmt: skip


def test_one_thread_in_a_loop_meets_nobody() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), C: T.Tensor((64,), "int32"), n: T.int32):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            S = T.alloc_shared((1,), "int32")
            if tx == 0:
                S[0] = 0
                for i in T.serial(n):
                    S[0] = S[0] + A[i]
            C[tx] = S[0]

    check(main, """
        if tx == 0:
            S[0] = 0
            for i in T.serial(n):
                S[0] = S[0] + A[i]
        T.sync_threads()
        C[tx] = S[0]
    """)  # fmt: skip
