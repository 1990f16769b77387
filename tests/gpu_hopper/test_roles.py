"""Which launches get a warp that loads, why others do not, and that odd ones give right numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang
import tilelang.language as T
from tests.emulator.needs import needs_compiler
from tests.emulator.running import MODES
from tests.gpu_hopper import mixed_roles
from tests.gpu_hopper.mixed_roles import Mixed
from tilelang.compiler import compile_function
from tilelang.options import make_options
from tilelang.roles import split as splitting
from tilelang.target import parse_target
from tilelang.watching import watched_by
from tilelang_trace.recorder import Recorder

TARGET = "cuda:sm_90a"
SEEDS = (5, 9)
MANY = range(60)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch is split wherever it can be, whether or not it pays."""
    monkeypatch.setattr(splitting, "why_not", lambda *_: "")


def check(case: Mixed) -> None:
    a, b = mixed_roles.inputs(case)
    want = mixed_roles.reference(case, a, b)
    out = np.full(want.shape, np.nan, np.float32)
    kernel = tilelang.compile(
        mixed_roles.kernel(case), target=TARGET, execution_backend=MODES["check"]
    )
    kernel(a, b, out)
    error = np.linalg.norm(out - want) / np.linalg.norm(want)
    assert error < 1e-3, f"{case}: off by {error:.2e}"


@needs_compiler
@pytest.mark.usefixtures("always")
@pytest.mark.filterwarnings("ignore")  # each leaves out parts, and what is only for them
@pytest.mark.parametrize("seed", MANY)
def test_mixed_kernels(seed: int, full: bool) -> None:
    if not full and seed not in SEEDS:
        pytest.skip("runs with --full")
    check(mixed_roles.drawn(seed))


def product(what: str, columns: int = 128) -> Any:
    """A product with one thing that is out of the ordinary."""
    M, N, K = 128, 128, columns

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=192 if what == "threads" else 256) as _:
            tx = T.get_thread_binding()
            A_s = T.alloc_shared((M, 64), "float16")
            B_s = T.alloc_shared((64, N), "float16")
            Z_s = T.alloc_shared((64, N), "float16")
            out = T.alloc_fragment((M, N), "float32")
            at = T.alloc_var("int32", init=0)
            if what == "safe":
                T.annotate_safe_value({A: 1.0})
            T.clear(out)
            steps = 2
            if what == "steps":
                steps = at + 2
            if what == "warps":
                steps = 2 - T.get_warp_idx() // 8
            for k in T.Pipelined(steps, num_stages=1 if what == "stages" else 2):
                if what == "branch":
                    if k > 0:
                        T.copy(A[0, k * 64], A_s)
                elif what == "counter":
                    T.copy(A[0, at], A_s)
                    at = at + 64
                elif what == "narrow":
                    T.copy(A[0:64, k * 64 : k * 64 + 64], A_s[0:64, :])
                elif what == "options":
                    T.copy(A[0, k * 64], A_s, coalesced_width=2)
                elif what == "odd":
                    T.copy(A[0, k * 64 + 1], A_s)
                else:
                    T.copy(A[0, k * 64], A_s)
                T.copy(B[k * 64, 0], B_s)
                if what == "in_place":
                    for i, j in T.Parallel(M, 64):
                        A_s[i, j] = A_s[i, j] * T.float16(2)
                if what == "barrier":
                    T.sync_threads()
                T.gemm(A_s, B_s, out)
                if what == "while":
                    turn = T.alloc_var("int32", init=0)
                    while turn < 2:
                        T.copy(B_s, Z_s)
                        if k != 0:
                            T.gemm(A_s, Z_s, out)
                        turn = turn + 1
                if what == "print":
                    T.print(k)
                if what == "written":
                    A[0, 0] = T.float16(1)
            if what == "after":
                out[0, 0] += T.cast(A_s[0, 0], "float32")
            if what == "thread":
                if tx == 0:
                    out_of = T.alloc_local((1,), "float32")
                    out_of[0] = T.cast(B[0, 0], "float32")
                    C[0, 0] = out_of[0]
            T.copy(out, C)

    return main


def nested(what: str) -> Any:
    """A pipeline inside something else."""

    @T.prim_func
    def main(
        A: T.Tensor((128, 256), "float16"), B: T.Tensor((256, 128), "float16"),
        n: T.Tensor((2,), "int32"), C: T.Tensor((128, 128), "float32"),
    ):  # fmt: skip
        with T.Kernel(2, threads=256) as bx:
            A_s = T.alloc_shared((128, 64), "float16")
            B_s = T.alloc_shared((64, 128), "float16")
            out = T.alloc_fragment((128, 128), "float32")
            at = T.alloc_var("int32", init=0)
            T.clear(out)
            if what == "in_while":
                while at < 2:
                    for k in T.Pipelined(2, num_stages=2):
                        T.copy(A[0, k * 64], A_s)
                        T.copy(B[k * 64, 0], B_s)
                        T.gemm(A_s, B_s, out)
                    at = at + 1
            if what in ("in_loop", "in_counted"):
                for turn in T.serial(n[bx] if what == "in_loop" else at + 1):
                    if turn < 5:
                        first = turn * 64
                        for k in T.Pipelined(2, num_stages=2):
                            T.copy(A[0, first + k * 64], A_s)
                            T.copy(B[k * 64, 0], B_s)
                            T.gemm(A_s, B_s, out)
            T.copy(out, C)

    return main


REASONS = {
    "plain": "",
    "thread": "",
    "threads": "its threads are no whole warp groups along x",
    "stages": "the loop does not ask for two stages or more",
    "steps": "how often it runs is computed by its threads",
    "warps": "how often it runs is computed by its threads",
    "branch": "a copy stands inside a branch or an inner loop",
    "counter": "where in `A` it copies is computed by its threads",
    "narrow": "it fills a part of `A_s`",
    "options": "the author says how threads share a copy",
    "in_place": "`A_s` is written while it is computed with",
    "barrier": "`T.sync_threads` may count on all threads",
    "print": "`T.print` may count on all threads",
    "written": "`A` is no argument that is only read",
    "after": "`A_s` is read outside of its loop",
    "in_loop": "",
    "in_counted": "whether the pipeline runs is computed by its threads",
    "in_while": "the pipeline stands inside another, or in a `while`",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("what", REASONS)
def test_why_not(what: str) -> None:
    made = nested if what in ("in_loop", "in_counted", "in_while") else product
    function = made(what).function
    found = splitting.split(function, parse_target(TARGET), make_options(None, None))
    assert {why for why, _ in found.refused} == ({REASONS[what]} if REASONS[what] else set())
    assert (found.function is not None) == (not REASONS[what])


# What only lowering sees: the author's program is lowered after all.
LATE = {
    "safe": (128, "what lies outside the tensor reads as its safe value, and TMA writes zeros"),
    "odd": (128, "it starts within a row of `A` at no multiple of 16 bytes"),
    "while": (128, "`Z_s` is read where another thread may just have written it"),
    "plain": (75, "rows of `A` are 150 bytes apart, no multiple of 16"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("what", LATE)
def test_what_lowering_refuses_is_lowered_without_roles(what: str) -> None:
    columns, why = LATE[what]
    function = product(what, columns).function
    target, options = parse_target(TARGET), make_options(None, None)
    recorder = Recorder(function, target, options, code=False)
    with watched_by(lambda *_: recorder):
        compile_function(function, target, options)
    assert recorder.failure is None
    attempts = [step.attempt for step in recorder.steps if step.name == "lower_gpu_ops"]
    assert attempts == [0, 1]
    told = [d for step in recorder.steps if step.attempt == 1 for d in step.decisions]
    copies = [str(d) for d in told if d.kind == "copy" and "_s`" in d.text]
    # The copy that cannot be made says why, the other that it is not the reason.
    assert any(why in text for text in copies)
    if what != "while":
        assert any("another copy of the kernel cannot be made by it" in text for text in copies)
