"""What single threads do to each other: races in shared memory, barriers that not all reach,
copies that nothing waits for. The correct kernel beside each gets silence."""

from __future__ import annotations

import pytest

from tests.support.markers import check_clean, check_diagnostics

GPU = "cuda:sm_80"


def kernel(body: str, threads: int = 128) -> str:
    return f"""
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32"), n: T.int32):
        with T.Kernel(2, threads={threads}) as bx:
            s = T.alloc_shared((128,), "float32")
            own = T.alloc_local((4,), "float32")
            tx = T.get_thread_binding()
            T.clear(s)
            own[0] = A[tx]
            B[tx] = own[0] + s[tx]
{body}
            B[tx] = s[tx]
"""


WRONG = (
    (
        """
            s[tx // 2] = A[tx]
          # ^^^^^^^^^^ warning[TL509] threads 0 and 1 both write `s[0]`
        """,
        "T.atomic_add",
    ),
    (
        """
            for k in T.serial(4):
                s[(tx + k) % 64] = own[k]
              # ^^^^^^^^^^^^^^^^ warning[TL509] threads 0 and 64 both write `s[0]`
        """,
        "an element of `s` of its own",
    ),
    (
        """
            total = T.alloc_var("float32", init=0.0)
            for k in T.serial(4):
                total += A[(tx + 32 * k) % 128]
            s[tx // 32] = total
          # ^^^^^^^^^^^ warning[TL509] threads 0 and 1 both write `s[0]`
        """,
        "let one thread write it",
    ),
    (
        """
            for j in T.serial(1 + tx // 96):
                s[tx % 16 + 64 * j] = A[tx]
              # ^^^^^^^^^^^^^^^^^^^ warning[TL509] threads 0 and 16 both write `s[0]`
        """,
        "let one thread write it",
    ),
    (
        """
            for j in T.serial(tx // 64):
                T.sync_threads()
              # ^^^^^^^^^^^^^^^^ error[TL510] threads 0 to 63 never come
        """,
        "T.sync_threads(1, 64)",
    ),
    (
        """
            if tx < 48:
                s[tx % 32] = A[tx]
              # ^^^^^^^^^^ warning[TL509] threads 0 and 32 both write `s[0]`
        """,
        "let one thread write it",
    ),
    (
        """
            if tx < 48:
                s[5] = s[5] + 1.0
              # ^^^^ warning[TL509] threads 0 and 1 both write `s[5]`
        """,
        "T.atomic_add",
    ),
    (
        """
            if tx >= 96:
                s[tx] = A[tx]
            else:
                T.sync_threads()
              # ^^^^^^^^^^^^^^^^ error[TL510] threads 96 to 127 never come
        """,
        "T.sync_threads(1, 96)",
    ),
    (
        """
            if bx == 0:
                if tx % 2 == 0:
                    T.sync_threads()
                  # ^^^^^^^^^^^^^^^^ error[TL510] 64 threads, 1 among them
        """,
        "every thread reaches it",
    ),
    (
        """
            for k in T.serial(tx + 1):
                T.sync_threads()
              # ^^^^^^^^^^^^^^^^ error[TL510] threads 0 to 126 never come
        """,
        "every thread reaches it",
    ),
    (
        """
            T.async_copy(A, s)
          # ^^^^^^^^^^^^^^^^^^ warning[TL512] nothing waits
            B[tx] = s[tx]
            T.ptx_wait_group(0)
        """,
        "T.ptx_wait_group(0)",
    ),
)

RIGHT = (
    "            s[tx // 2] = A[tx // 2]",  # the same value
    "            s[tx ^ 1] = A[tx]",
    # Once for the block, or by one thread.
    "            s[5] = s[5] + 1.0\n            if tx == 48:\n                s[5] = s[5] + 1.0",
    # Loops that do not run at all, or as often as an outer one says, or only for some threads.
    "            for i in T.serial(4):\n                for j in T.serial(i):\n"
    "                    if tx < 64 + 64 * j + 64 * i:\n                        T.sync_threads()",
    "            for i in T.serial(0):\n                if tx < 64:\n"
    "                    T.sync_threads()",
    "            for j in T.serial(tx // 64):\n                s[tx % 64] = A[tx]",
    "            for k in T.serial(tx // 128 + 1):\n                T.sync_threads()",
    "            for k in T.serial(4):\n                if bx == 0:\n                    break\n"
    "                if tx < 64 + 64 * bx:\n                    T.sync_threads()",
    # What a warp agreed on is the same in all of its threads.
    "            own[0] = T.warp_reduce_sum(A[tx])\n            s[tx // 32] = own[0]",
    "            s[tx // 32] = T.warp_reduce_sum(A[tx])",
    "            one = T.alloc_var('float32', init=0.0)\n            one = A[tx]\n"
    "            one = T.shfl_sync(one, 0)\n            s[tx // 32] = one * 2.0",
    "            one = T.alloc_var('float32', init=0.0)\n            one = A[0]\n"
    "            s[tx // 32] = one",
    "            s[0] = 1.0",
    "            if tx % 2 == 0:\n                s[tx // 2] = A[tx]",
    "            if tx == 0:\n                for k in T.serial(128):\n                    s[k] = A[k]",
    "            if tx < n:\n                s[tx // 2] = A[tx]",  # nobody knows here
    "            if bx == 0:\n                T.sync_threads()",
    "            if n > 3:\n                T.sync_threads()",
    "            if tx < 64:\n                T.sync_threads(1, 64)",
    "            for k in T.serial(n):\n                T.sync_threads()",
    "            if tx < 128:\n                T.sync_threads()",
    "            T.async_copy(A, s)\n            T.ptx_wait_group(0)\n            T.sync_threads()\n"
    "            B[tx] = s[tx]",
    "            for k in T.serial(4):\n                T.ptx_wait_group(0)\n"
    "                T.sync_threads()\n                B[tx] = s[tx]\n"
    "                T.async_copy(A, s)",
)


@pytest.mark.parametrize(("body", "help_"), WRONG)
def test_wrong(body: str, help_: str) -> None:
    found = check_diagnostics(kernel(body), target=GPU)
    assert any(help_ in (d.help or "") for d in found), [d.help for d in found]


@pytest.mark.parametrize("body", RIGHT)
def test_right(body: str) -> None:
    check_clean(kernel(body), target=GPU)
