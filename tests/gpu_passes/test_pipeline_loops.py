"""What a pipelined loop becomes: before anything is lowered, and for one thread."""

from __future__ import annotations

import linecache
import re
from typing import Any

import pytest

import tilelang.language as T
from tests.support.lowering import body_text, emitted
from tilelang.compiler import lower_function
from tilelang.ir import attrs, tirx
from tilelang.ir.device_ops import constants_of, op_of_call
from tilelang.ir.verify import VerifyObserver, verify
from tilelang.ir.visit import collect
from tilelang.options import CompileOptions
from tilelang.passes.context import PassContext
from tilelang.passes.pipeline_loops import pipeline_loops
from tilelang.target import parse_target
from tilelang_diagnostics.model import Diagnostic


def pipelined(kernel: Any, target: str = "cuda:sm_80") -> tuple[str, PassContext]:
    """The launch after the pass, one line a statement, attributes shortened; and the context."""
    context = PassContext(target)
    func = pipeline_loops(emitted(kernel), context)
    assert verify(func) == []
    return "\n".join(_short(func)), context


def _short(func: Any) -> list[str]:
    lines = []
    for line in body_text(func).splitlines():
        if re.search(r"T.alloc|get_thread_binding|T.clear", line):
            continue
        lines.append(re.sub(r"T.copy\((.*), (\w+)\)$", r"copy \1 -> \2", line))
    return lines


def device_ops(kernel: Any, target: str = "cuda:sm_80") -> tuple[list[str], list[Diagnostic]]:
    """Asynchronous and synchronising operations of the lowered kernel, with loops marked."""
    lowered = lower_function(
        kernel.function, parse_target(target), CompileOptions(), [VerifyObserver()]
    )
    found: list[str] = []

    def visit(s: Any) -> None:
        if isinstance(s, tirx.For) and attrs.PIPELINED in s.annotations:
            found.append("loop")
            visit(s.body)
            found.append("end")
        elif isinstance(s, tirx.SeqStmt):
            for x in s.seq:
                visit(x)
        elif isinstance(s, (tirx.For, tirx.AttrStmt)):
            visit(s.body)
        elif isinstance(s, tirx.IfThenElse):
            visit(s.then_case)
        else:
            for c in collect(s, tirx.Call):
                op = op_of_call(c)
                if op is not None and op.name.startswith(("cp_async", "sync", "mma")):
                    groups = constants_of(c).get("groups")
                    found.append(op.name if groups is None else f"{op.name} {int(groups)}")

    visit(lowered.func.body)
    shortened = [x for n, x in enumerate(found) if n == 0 or found[n - 1] != x]
    # That a deeper one would fit is tested elsewhere.
    return shortened, [d for d in lowered.diagnostics if d.code != "TL513"]


def matmul(stages: int = 3, K: Any = 1024, dtype: str = "float16") -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((128, K), dtype),
        B: T.Tensor((K, 128), dtype),
        C: T.Tensor((128, 128), "float32"),
    ):
        with T.Kernel(1, threads=128):
            A_s = T.alloc_shared((128, 32), dtype)
            B_s = T.alloc_shared((32, 128), dtype)
            C_l = T.alloc_fragment((128, 128), "float32")
            T.clear(C_l)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=stages):
                T.copy(A[0, k * 32], A_s)
                T.copy(B[k * 32, 0], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C)

    return main


def test_copies_run_ahead() -> None:
    text, context = pipelined(matmul())
    waits = re.findall(r"cp_async_(?:wait|commit)\([^)]*\)|if k \+ \d+ < \d+|T.gemm|for k", text)
    assert waits == [
        "cp_async_commit()", "cp_async_commit()", "for k", "cp_async_wait(groups=1)",
        "if k + 2 < 32", "cp_async_commit()", "T.gemm",
    ]  # fmt: skip
    assert context.remarks == [] and context.counters["pipelined loops"] == 1


@pytest.mark.parametrize("stages", [2, 3, 4, 7])
def test_one_barrier_and_one_wait_in_each_step(stages: int) -> None:
    found, remarks = device_ops(matmul(stages))
    prologue = ["cp_async", "cp_async_commit"] * (stages - 1)
    arrived = [f"cp_async_wait {stages - 2}", "sync_threads"]
    copies, product = ["cp_async", "cp_async_commit"], ["mma_m16n8k16_f32_f16_f16"]
    if stages == 2:
        assert found == [*prologue, "loop", *arrived, *copies, *product, "end"]
    else:  # the first operands of a step are loaded at the end of the one before
        step = [*copies, *product, *arrived, *product]
        assert found == [*prologue, *arrived, "loop", *step, "end"]
    assert remarks == []


@pytest.mark.parametrize("stages", [0, 1])
def test_no_stages_no_pipeline(stages: int) -> None:
    found, _ = device_ops(matmul(stages))
    assert found == [
        "loop", "sync_threads", "mma_m16n8k16_f32_f16_f16", "end"
    ] or found == [
        "loop", "sync_threads", "sync_threads", "mma_m16n8k16_f32_f16_f16", "end"
    ]  # fmt: skip


def test_a_run_time_number_of_iterations_guards_the_prologue() -> None:
    text, _ = pipelined(matmul(3, T.dynamic("K")))
    assert [x.strip() for x in text.splitlines() if x.strip().startswith("if ")] == [
        "if 0 < (K + 32 - 1) // 32:", "if 1 < (K + 32 - 1) // 32:",
        "if k + 2 < (K + 32 - 1) // 32:",
    ]  # fmt: skip


def test_fewer_iterations_than_stages() -> None:
    text, _ = pipelined(matmul(4, 64))
    guards = [x.strip() for x in text.splitlines() if x.strip().startswith("if ")]
    assert guards == ["if 2 < 2:", "if k + 3 < 2:"]


def test_versions_of_each_statement() -> None:
    func = pipeline_loops(emitted(matmul()), PassContext("cuda:sm_80"))
    versions = {
        str(s.buffer.name): int(s.annotations[attrs.VERSIONS])
        for s in collect(func.body, tirx.AllocBuffer)
        if attrs.VERSIONS in s.annotations
    }
    assert versions == {"A_s": 3, "B_s": 3}
    found = [
        (str(s.node.name), str(s.value)) for s in collect(func.body, tirx.AttrStmt)
        if str(s.attr_key) == attrs.VERSION
    ]  # fmt: skip
    assert found == [
        ("A_s", "0"), ("B_s", "0"), ("A_s", "1"), ("B_s", "1"),
        ("A_s", "(k + 2) % 3"), ("B_s", "(k + 2) % 3"),
        ("B_s", "k % 3"), ("A_s", "k % 3"),
    ]  # fmt: skip


def test_a_loop_that_starts_late() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 32), "float32"), C: T.Tensor((64, 32), "float32"), lo: T.int32):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((32,), "float32")
            for k in T.Pipelined(lo, 64, num_stages=2):
                T.copy(A[k, 0], S)
                T.copy(S, C[k, 0])

    text, _ = pipelined(main)
    assert "if k + 1 < lo + (64 - lo):" in text or "if k + 1 < 64:" in text
    func = pipeline_loops(emitted(main), PassContext("cuda:sm_80"))
    values = [str(s.value) for s in collect(func.body, tirx.AttrStmt)
              if str(s.attr_key) == attrs.VERSION]  # fmt: skip
    assert values == ["0", "(k + 1 - lo) % 2", "(k - lo) % 2"]


def test_names_are_computed_again_in_each_stage() -> None:
    @T.prim_func
    def main(
        A: T.Tensor((64, 32), "float32"),
        C: T.Tensor((64, 32), "float32"),
        I: T.Tensor((64,), "int32"),
    ):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((32,), "float32")
            for k in T.Pipelined(64, num_stages=2):
                row = I[k]
                T.copy(A[row, 0], S)
                T.copy(S, C[row, 0])

    text, _ = pipelined(main)
    assert [x.strip() for x in text.splitlines() if " = " in x] == [
        "row = I[0]", "row_1 = I[k + 1]", "row_2 = I[k]"
    ]  # fmt: skip


def test_conditional_copies_with_their_readers() -> None:
    @T.prim_func
    def main(
        A: T.Tensor((64, 32), "float32"),
        C: T.Tensor((64, 32), "float32"),
        mask: T.Tensor((64,), "int32"),
    ):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((32,), "float32")
            for k in T.Pipelined(64, num_stages=2):
                if mask[k] > 0:
                    T.copy(A[k, 0], S)
                if mask[k] > 0:
                    T.copy(S, C[k, 0])

    found, remarks = device_ops(main)
    assert found == [
        "cp_async", "cp_async_commit", "loop", "cp_async_wait 0", "cp_async", "cp_async_commit",
        "end",
    ]  # fmt: skip
    assert remarks == []


def test_nested_in_a_persistent_loop() -> None:
    @T.prim_func
    def main(A: T.Tensor((8, 64, 32), "float32"), C: T.Tensor((8, 64, 32), "float32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((32,), "float32")
            for tile in T.serial(8):
                for k in T.Pipelined(64, num_stages=3):
                    T.copy(A[tile, k, 0], S)
                    T.copy(S, C[tile, k, 0])

    found, _ = device_ops(main)
    assert found.count("cp_async_commit") == 3
    assert found[found.index("loop") :] == [
        "loop", "cp_async_wait 1", "cp_async", "cp_async_commit", "end"
    ]  # fmt: skip


def test_two_loops_share_buffers() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 32), "float32"), C: T.Tensor((64, 32), "float32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((32,), "float32")
            for k in T.Pipelined(64, num_stages=2):
                T.copy(A[k, 0], S)
                T.copy(S, C[k, 0])
            for k in T.Pipelined(64, num_stages=3):
                T.copy(A[k, 0], S)
                T.copy(S, C[k, 0])

    _, context = pipelined(main)
    assert context.counters["pipelined loops"] == 2 and context.remarks == []


# Schedules by hand.


def scheduled(stage: list[int], order: list[int]) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((128, 1024), "float16"),
        B: T.Tensor((1024, 128), "float16"),
        C: T.Tensor((128, 128), "float32"),
    ):
        with T.Kernel(1, threads=128):
            A_s = T.alloc_shared((128, 32), "float16")
            B_s = T.alloc_shared((32, 128), "float16")
            C_l = T.alloc_fragment((128, 128), "float32")
            T.clear(C_l)
            for k in T.Pipelined(32, stage=stage, order=order):
                T.copy(A[0, k * 32], A_s)
                T.copy(B[k * 32, 0], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C)

    return main


@pytest.mark.parametrize(
    ("stage", "order", "versions", "loop"),
    [
        ([0, 0, 2], [0, 1, 2], {"A_s": 3, "B_s": 3},
         ["cp_async", "cp_async_commit", "mma", "cp_async_wait 1", "sync_threads", "mma"]),
        ([0, 0, 1], [0, 1, 2], {"A_s": 2, "B_s": 2},
         ["cp_async_wait 0", "sync_threads", "cp_async", "cp_async_commit", "mma"]),
        # What is copied after its reader needs one version less, and a barrier more.
        ([0, 0, 1], [1, 2, 0], {},
         ["cp_async_wait 0", "sync_threads", "mma", "sync_threads", "cp_async", "cp_async_commit"]),
        # B is copied and used in the same step.
        ([0, 1, 1], [0, 1, 2], {"A_s": 2},
         ["cp_async_wait 0", "sync_threads", "cp_async", "cp_async_commit", "cp_async_wait 0",
          "sync_threads", "mma"]),
    ],
)  # fmt: skip
def test_schedules_of_the_author_are_kept(
    stage: list[int], order: list[int], versions: dict[str, int], loop: list[str]
) -> None:
    func = pipeline_loops(emitted(scheduled(stage, order)), PassContext("cuda:sm_80"))
    found = {
        str(s.buffer.name): int(s.annotations[attrs.VERSIONS])
        for s in collect(func.body, tirx.AllocBuffer)
        if attrs.VERSIONS in s.annotations
    }
    assert found == versions
    ops, _ = device_ops(scheduled(stage, order))
    inside = ops[ops.index("loop") + 1 : ops.index("end")]
    assert [re.sub("mma.*", "mma", x) for x in inside] == loop


# Copies that wait, and why.


def reasons(kernel: Any, target: str = "cuda:sm_80") -> list[tuple[str, str]]:
    _, remarks = device_ops(kernel, target)
    # Narrow copies and tests in every round are said of each copy, pipelined or not.
    remarks = [d for d in remarks if d.code not in ("TL602", "TL603")]
    assert all(d.code == "TL508" and d.span is not None for d in remarks)
    return [
        (d.message.partition(": ")[2], linecache.getline(d.span.file, d.span.line).strip())
        for d in remarks if d.span is not None
    ]  # fmt: skip


def test_a_conversion() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 32), "float32"), C: T.Tensor((64, 32), "float16")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((32,), "float16")
            for k in T.Pipelined(64, num_stages=2):
                T.copy(A[k, 0], S)
                T.copy(S, C[k, 0])

    assert reasons(main) == [("it converts float32 to float16", "T.copy(A[k, 0], S)")]


def test_arithmetic_on_the_way() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 32), "float32"), C: T.Tensor((64, 32), "float32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((32,), "float32")
            for k in T.Pipelined(64, num_stages=2):
                for i in T.Parallel(32):
                    S[i] = A[k, i] * 2.0
                T.copy(S, C[k, 0])

    assert reasons(main) == [
        ("the statement does more than move elements", "for i in T.Parallel(32):")
    ]  # fmt: skip


def test_a_condition_that_its_readers_do_not_have() -> None:
    """Complaint 28: what the tile holds when nothing was copied would be another iteration's."""

    @T.prim_func
    def main(A: T.Tensor((64, 32), "float32"), C: T.Tensor((64, 32), "float32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((32,), "float32")
            for k in T.Pipelined(64, num_stages=2):
                if k % 4 == 0:
                    T.copy(A[k, 0], S)
                T.copy(S, C[k, 0])

    ((reason, line),) = reasons(main)
    assert (
        reason.startswith("it does not write all of `S` in every iteration")
        and line == "if k % 4 == 0:"
    )


def test_an_address_from_another_copy() -> None:
    @T.prim_func
    def main(
        A: T.Tensor((64, 32), "float32"),
        C: T.Tensor((64, 32), "float32"),
        I: T.Tensor((64, 32), "int32"),
    ):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((32,), "float32")
            at = T.alloc_shared((32,), "int32")
            for k in T.Pipelined(64, num_stages=2):
                T.copy(I[k, 0], at)
                for i in T.Parallel(32):
                    S[i] = A[at[i], i]
                T.copy(S, C[k, 0])

    assert reasons(main) == [
        ("its address is read from `at`, copied just before", "for i in T.Parallel(32):"),
        ("another copy needs `at` at once, for its address", "T.copy(I[k, 0], at)"),
    ]  # fmt: skip


def test_a_tile_that_is_read_after_the_loop() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 32), "float32"), C: T.Tensor((64, 32), "float32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((32,), "float32")
            for k in T.Pipelined(63, num_stages=2):
                T.copy(A[k, 0], S)
                T.copy(S, C[k, 0])
            T.copy(S, C[63, 0])

    assert reasons(main) == [("`S` is read after the loop", "T.copy(A[k, 0], S)")]


def test_rows_that_are_not_aligned() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 33), "float16"), C: T.Tensor((64, 32), "float16")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((32,), "float16")
            for k in T.Pipelined(64, num_stages=2):
                T.copy(A[k, 0:32], S)
                T.copy(S, C[k, 0])

    ((reason, line),) = reasons(main)
    assert reason.startswith("a thread moves 2 bytes at a time, not 4, 8 or 16")
    assert line == "T.copy(A[k, 0:32], S)"


def run_time_rows(promised: bool) -> Any:
    K = T.dynamic("K")

    @T.prim_func
    def main(A: T.Tensor((64, K), "float16"), C: T.Tensor((64, 32), "float16")):
        with T.Kernel(1, threads=32):
            if promised:
                T.assume(K % 8 == 0)
            S = T.alloc_shared((64,), "float16")
            for k in T.Pipelined(64, num_stages=2):
                T.copy(A[k, 0:64], S)
                T.copy(S[0:32], C[k, 0])

    return main


def test_rows_of_a_length_known_at_run_time_need_a_promise() -> None:
    found, remarks = device_ops(run_time_rows(False))
    assert "cp_async" not in found
    # The first row is aligned, and its end may still lie within what a thread moves at once; the
    # others may begin anywhere. One promise settles both, and one reason is told.
    assert [(d.message.partition(": ")[2], d.help) for d in remarks] == [(
        "the edge of the tensor may lie between elements that would move together",
        "if K is always a multiple of 8, promise it: T.assume(K % 8 == 0)",
    )]  # fmt: skip
    found, remarks = device_ops(run_time_rows(True))
    assert "cp_async" in found and remarks == []


def test_values_beyond_the_edge() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 40), "float32"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=32):
            T.annotate_safe_value({A: -1.0})
            S = T.alloc_shared((64,), "float32")
            for k in T.Pipelined(64, num_stages=2):
                T.copy(A[k, 0], S)
                T.copy(S, C[k, 0])

    ((reason, _),) = reasons(main)
    assert reason.startswith("elements beyond `A` read as") and reason.endswith("would give zeros")


def test_a_target_without_asynchronous_copies() -> None:
    found = reasons(matmul(), "cuda:sm_75")
    assert found == [
        ("cuda:sm_75 has no asynchronous copies", f"T.copy({place})")
        for place in ("A[0, k * 32], A_s", "B[k * 32, 0], B_s")
    ]
