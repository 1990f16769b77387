"""Work of a block under a condition on the thread: those that come share it, or it is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang
import tilelang.language as T
from tests.emulator.needs import needs_compiler
from tests.emulator.running import MODES, TARGET
from tests.support.markers import expected_of, kernel_text
from tilelang.compiler import lower_function
from tilelang.language.frontend import parse_static
from tilelang.options import CompileOptions
from tilelang.target import parse_target
from tilelang_diagnostics import CompileError, SourceMap, raise_for, render_text

SHAPE = (64, 32)


def copy_of_the_lower_half() -> Any:
    @T.prim_func
    def main(A: T.Tensor(SHAPE, "float16"), C: T.Tensor(SHAPE, "float16")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared(SHAPE, "float16")
            tx = T.get_thread_binding()
            T.copy(A, S)
            if tx < 64:
                T.copy(S, C)

    return main


def copy_of_one_warp() -> Any:
    @T.prim_func
    def main(A: T.Tensor(SHAPE, "float16"), C: T.Tensor(SHAPE, "float16")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared(SHAPE, "float16")
            tx = T.get_thread_binding()
            if 64 <= tx < 96:
                T.copy(A, S)
            T.copy(S, C)

    return main


def loop_of_one_warp() -> Any:
    @T.prim_func
    def main(A: T.Tensor(SHAPE, "float16"), C: T.Tensor(SHAPE, "float16")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            if tx >= 64:
                if tx < 96:
                    for i, j in T.Parallel(64, 32):
                        C[i, j] = A[i, j]

    return main


def both_branches() -> Any:
    @T.prim_func
    def main(A: T.Tensor(SHAPE, "float16"), C: T.Tensor(SHAPE, "float16")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            if tx < 40:
                T.copy(A[0:32, 0:32], C[0:32, 0:32])
            else:
                for i, j in T.Parallel(32, 32):
                    C[32 + i, j] = A[32 + i, j]

    return main


def in_and_out_by_two_warps() -> Any:
    @T.prim_func
    def main(A: T.Tensor(SHAPE, "float16"), C: T.Tensor(SHAPE, "float16")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared(SHAPE, "float16")
            tx = T.get_thread_binding()
            if tx < 64:
                T.fill(S, 7)
                T.copy(A, S)
                for i, j in T.Parallel(64, 32):
                    C[63 - i, j] = S[63 - i, j]

    return main


def one_thread() -> Any:
    @T.prim_func
    def main(A: T.Tensor(SHAPE, "float16"), C: T.Tensor(SHAPE, "float16")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            if tx == 77:
                T.copy(A, C)

    return main


def within_a_warp_group() -> Any:
    @T.prim_func
    def main(A: T.Tensor(SHAPE, "float16"), C: T.Tensor(SHAPE, "float16")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding()
            with T.ws(1):
                if tx < 160:
                    T.copy(A, C)

    return main


def a_condition_that_always_holds() -> Any:
    @T.prim_func
    def main(A: T.Tensor(SHAPE, "float16"), C: T.Tensor(SHAPE, "float16")):
        with T.Kernel(1, threads=128):
            F = T.alloc_fragment(SHAPE, "float16")
            tx = T.get_thread_binding()
            if tx < 128:
                T.copy(A, F)
                T.copy(F, C)

    return main


def a_condition_that_was_copied() -> Any:
    @T.prim_func
    def main(A: T.Tensor(SHAPE, "float16"), C: T.Tensor(SHAPE, "float16")):
        with T.Kernel(1, threads=128):
            own = T.alloc_local((4,), "float16")
            T.fill(own, 2)
            if own[0] > T.float16(1):
                T.copy(A, C)

    return main


SHARED_OUT: tuple[Callable[[], Any], ...] = (
    copy_of_the_lower_half, copy_of_one_warp, loop_of_one_warp, both_branches,
    in_and_out_by_two_warps, one_thread, within_a_warp_group, a_condition_that_always_holds,
    a_condition_that_was_copied,
)  # fmt: skip


@needs_compiler
@pytest.mark.parametrize("mode", ["shuffle:1", "check"])
@pytest.mark.parametrize("make", SHARED_OUT, ids=lambda make: make.__name__)
def test_those_that_come_share_it(make: Callable[[], Any], mode: str, full: bool) -> None:
    if not full and mode != "check" and make not in SHARED_OUT[:4]:
        pytest.skip("runs with --full")
    a = np.random.default_rng(5).standard_normal(SHAPE).astype("float16")
    c = np.zeros(SHAPE, "float16")
    tilelang.compile(make(), target=TARGET, execution_backend=MODES[mode])(a, c)
    np.testing.assert_array_equal(c, a)


# The statements of a kernel with 128 threads; markers as in `tests/support/markers.py`.
REFUSED = {
    "every other thread": """
        if tx % 2 == 0:
            T.copy(S, C)
          # ^^^^^^^^^^^^ error[TL413] not neighbours
    """,
    "known to the data": """
        if A[tx // 2, 0] > 0:
            T.copy(S, C)
          # ^^^^^^^^^^^^ error[TL413] is not known
    """,
    "a product": """
        if tx < 64:
            T.gemm(S, S, F, transpose_B=True)
          # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ error[TL413] only threads 0 … 63 come here
    """,
    "a reduction": """
        if tx >= 96:
            T.reduce_sum(F, sums, dim=1)
          # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ error[TL413] only threads 96 … 127 come here
    """,
    "a fragment": """
        if tx < 64:
            T.clear(F)
          # ^^^^^^^^^^ error[TL413] they hold `F` together
    """,
    "a fragment in the other branch": """
        if tx == 0:
            C[0, 0] = S[0, 0]
        else:
            T.copy(F, C)
          # ^^^^^^^^^^^^ error[TL413] only threads 1 … 127 come here
    """,
    "an element that another thread holds": """
        T.clear(F)
        if tx == 0:
            C[0, 0] = F[37, 5]
          # ^^^^^^^ error[TL413] `F`
    """,
    "a loop of different lengths": """
        for k in T.serial(tx):
            T.copy(S, C)
          # ^^^^^^^^^^^^ error[TL413] is not known
    """,
    "a loop that some leave": """
        for k in T.serial(4):
            T.copy(S, C)
          # ^^^^^^^^^^^^ error[TL413] is not known
            if A[tx // 2, k] > 0:
                break
    """,
    "after some have ended": """
        if tx >= 64:
            T.thread_return()
        T.copy(S, C)
      # ^^^^^^^^^^^^ error[TL413] is not known
    """,
}
HEAD = """\
@T.prim_func
def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float16")):
    with T.Kernel(1, threads=128):
        S = T.alloc_shared((64, 64), "float16")
        F = T.alloc_fragment((64, 64), "float32")
        sums = T.alloc_fragment((64,), "float32")
        tx = T.get_thread_binding()
        T.copy(A, S)
"""


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_the_others_is_refused(name: str) -> None:
    text = kernel_text(HEAD + REFUSED[name].strip("\n").rstrip() + "\n")
    (parsed,) = parse_static(text, "kernel.py", target=TARGET)
    assert parsed.function is not None
    with pytest.raises(CompileError) as raised:
        lowered = lower_function(parsed.function, parse_target(TARGET), CompileOptions())
        raise_for(lowered.diagnostics)
    found = [d for d in raised.value.diagnostics if d.is_error]
    shown = render_text(found, SourceMap({"kernel.py": text}))
    (wanted,) = expected_of(text)
    (one,) = found
    assert one.span is not None and one.help, shown
    span = one.span
    assert (span.line, span.column, span.end_column, one.severity.value, one.code) == (
        wanted.key
    ), shown
    assert wanted.text in one.message, shown
    (label,) = one.labels
    assert label.text == "differs between threads", shown
