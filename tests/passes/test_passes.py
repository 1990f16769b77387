"""Each pass on a small kernel: what its output reads like."""

import pytest

import tilelang.language as T
from tests.support.lowering import body_text, check_pass, emitted, lowered
from tilelang.options import make_options
from tilelang.passes.context import PassContext
from tilelang.passes.guard_bounds import guard_bounds
from tilelang.passes.legalize_negative_indices import legalize_negative_indices
from tilelang.passes.lower_tile_ops import lower_tile_ops
from tilelang.passes.name_indices import name_indices
from tilelang.passes.serialize_dependent import serialize_dependent
from tilelang.passes.simplify import simplify
from tilelang.passes.unswitch_guards import unswitch_guards
from tilelang.pipeline import PIPELINE, Pass, order_problems, run_pipeline


@T.prim_func
def ragged(A: T.Tensor((100, 32), "float32"), B: T.Tensor((100, 32), "float32")):
    with T.Kernel(T.ceildiv(100, 64), threads=128) as bx:
        held = T.alloc_shared((64, 32), "float32")
        T.copy(A[bx * 64, 0], held)
        for i, j in T.Parallel(64, 32):
            B[bx * 64 + i, j] = held[i, j] + 1.0


def test_lower_tile_ops():
    check_pass(ragged, lower_tile_ops, "legalize_negative_indices", """
        held = T.alloc_shared((64, 32), 'float32')
        for i0, i1 in T.Parallel(64, 32):
            held[i0, i1] = A[bx * 64 + i0, i1]
        for i, j in T.Parallel(64, 32):
            B[bx * 64 + i, j] = held[i, j] + 1.0
    """)  # fmt: skip


def test_guard_bounds_adds_only_the_upper_row_bound():
    check_pass(ragged, guard_bounds, "lower_tile_ops", """
        held = T.alloc_shared((64, 32), 'float32')
        for i0, i1 in T.Parallel(64, 32):
            held[i0, i1] = T.if_then_else(bx * 64 + i0 < 100, A[bx * 64 + i0, i1], 0.0)
        for i, j in T.Parallel(64, 32):
            if bx * 64 + i < 100:
                B[bx * 64 + i, j] = held[i, j] + 1.0
    """)  # fmt: skip


def test_unswitch_guards_gives_whole_tiles_a_loop_of_their_own():
    check_pass(ragged, unswitch_guards, "serialize_dependent", """
        held = T.alloc_shared((64, 32), 'float32')
        if bx * 64 + 63 < 100:
            for i0, i1 in T.Parallel(64, 32):
                held[i0, i1] = A[bx * 64 + i0, i1]
        else:
            for i0, i1 in T.Parallel(64, 32):
                held[i0, i1] = T.if_then_else(bx * 64 + i0 < 100, A[bx * 64 + i0, i1], 0.0)
        if bx * 64 + 63 < 100:
            for i, j in T.Parallel(64, 32):
                B[bx * 64 + i, j] = held[i, j] + 1.0
        else:
            for i, j in T.Parallel(64, 32):
                if bx * 64 + i < 100:
                    B[bx * 64 + i, j] = held[i, j] + 1.0
    """)  # fmt: skip


def test_author_conditions_prove_bounds():
    @T.prim_func
    def main(A: T.Tensor((T.dynamic("n"),), "float32")):
        with T.Kernel(T.ceildiv(A.shape[0], 64), threads=64) as bx:
            for i in T.Parallel(64):
                if bx * 64 + i < A.shape[0]:
                    A[bx * 64 + i] = A[bx * 64 + i] * 2.0

    check_pass(main, guard_bounds, "lower_tile_ops", """
        for i in T.Parallel(64):
            if bx * 64 + i < n:
                A[bx * 64 + i] = A[bx * 64 + i] * 2.0
    """)  # fmt: skip


def test_assumptions_prove_bounds():
    @T.prim_func
    def main(A: T.Tensor((T.dynamic("n"),), "float32")):
        with T.Kernel(A.shape[0] // 64, threads=64) as bx:
            T.assume(A.shape[0] % 64 == 0)
            for i in T.Parallel(64):
                A[bx * 64 + i] = 0.0

    context = PassContext("cpu")
    lowered(main, context=context)
    assert context.counters.get("guards", 0) == 0


def test_data_dependent_index_is_guarded_both_ways():
    @T.prim_func
    def main(
        A: T.Tensor((50,), "float32"), I: T.Tensor((8,), "int32"), B: T.Tensor((8,), "float32")
    ):
        with T.Kernel(1, threads=8) as _:
            for i in T.Parallel(8):
                B[i] = A[I[i]]

    check_pass(main, guard_bounds, "lower_tile_ops", """
        for i in T.Parallel(8):
            B[i] = T.if_then_else(I[i] >= 0 and I[i] < 50, A[I[i]], 0.0)
    """)  # fmt: skip


def test_an_index_that_cannot_be_read_accesses_nothing():
    @T.prim_func
    def main(
        A: T.Tensor((50,), "float32"),
        I: T.Tensor((5,), "int32"),
        B: T.Tensor((8,), "float32"),
        n: T.int32,
    ):
        with T.Kernel(1, threads=8) as _:
            for i in T.serial(8):
                B[I[i]] = A[i]
                B[i] = A[T.if_then_else(n > 0, I[i], 0)]

    check_pass(main, guard_bounds, "lower_tile_ops", """
        for i in T.serial(8):
            if T.if_then_else(i < 5, I[i] >= 0 and I[i] < 8, False):
                B[I[i]] = A[i]
            B[i] = T.if_then_else(CHOSEN >= 0 and CHOSEN < 50, A[CHOSEN], 0.0)
    """.replace("CHOSEN", "T.if_then_else(n > 0, T.if_then_else(i < 5, I[i], 0), 0)"))  # fmt: skip


def test_an_index_that_a_copy_reads_gets_a_name():
    @T.prim_func
    def main(A: T.Tensor((50, 64), "float16"), I: T.Tensor((5,), "int32")):
        with T.Kernel(5, threads=64) as bx:
            S = T.alloc_shared((2, 64), "float16")
            T.copy(A[I[bx] + I[bx] * 2, 0], S[0, :])
            T.copy(S[1, :], A[bx, :])

    check_pass(main, name_indices, "legalize_negative_indices", """
        S = T.alloc_shared((2, 64), 'float16')
        I_at = I[bx]
        T.copy(A[I_at + I_at * 2, 0:64], S[0, 0:64])
        T.copy(S[1, 0:64], A[bx, 0:64])
    """)  # fmt: skip


def test_legalize_negative_indices():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((4,), "float32"), n: T.int32):
        with T.Kernel(1, threads=4) as _:
            if n < 0:
                B[0] = A[n]
            B[1] = A[n]

    check_pass(main, legalize_negative_indices, "", """
        if n < 0:
            B[0] = A[n + 64]
        B[1] = A[n]
    """)  # fmt: skip


def test_serialize_dependent_marks_a_reduction():
    @T.prim_func
    def main(A: T.Tensor((16, 8), "float32"), B: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=16) as _:
            total = T.alloc_fragment((16,), "float32")
            T.clear(total)
            for i, j in T.Parallel(16, 8):
                total[i] = total[i] + A[i, j]
            T.copy(total, B)

    check_pass(main, serialize_dependent, "simplify", """
        total = T.alloc_fragment((16,), 'float32')
        for i0 in T.Parallel(16):
            total[i0] = 0.0
        for i in T.Parallel(16):
            for j in T.serial(8, reduction=True):
                total[i] = total[i] + A[i, j]
        for i0_1 in T.Parallel(16):
            B[i0_1] = total[i0_1]
    """)  # fmt: skip
    from tilelang.ir import attrs, tirx
    from tilelang.ir.visit import collect

    loops = collect(lowered(main).body, tirx.For)
    marked = [str(loop.loop_var.name) for loop in loops if attrs.REDUCTION in loop.annotations]
    assert marked == ["j"]


def test_shifted_reads_of_the_stored_buffer_run_in_order():
    @T.prim_func
    def main(A: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=16) as _:
            for i in T.Parallel(15):
                A[i + 1] = A[i]

    check_pass(main, serialize_dependent, "simplify", """
        for i in T.serial(15):
            A[i + 1] = A[i]
    """)  # fmt: skip


def test_views_of_the_stored_buffer_run_in_order():
    @T.prim_func
    def main(A: T.Tensor((4, 4), "float32")):
        with T.Kernel(1, threads=16) as _:
            tile = T.alloc_shared((4, 4), "float32")
            flat = T.reshape(tile, (16,))
            for i, j in T.Parallel(4, 4):
                tile[i, j] = A[i, j]
            for i, j in T.Parallel(4, 4):
                tile[i, j] = flat[j * 4 + i]

    check_pass(main, serialize_dependent, "simplify", """
        tile = T.alloc_shared((4, 4), 'float32')
        flat = T.view(tile, (16,), 'float32')
        for i, j in T.Parallel(4, 4):
            tile[i, j] = A[i, j]
        for i_1 in T.serial(4):
            for j_1 in T.serial(4):
                tile[i_1, j_1] = flat[j_1 * 4 + i_1]
    """)  # fmt: skip


def test_atomic_whose_old_value_is_used_is_guarded():
    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), I: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=8) as _:
            for i in T.serial(8):
                B[i] = T.atomic_add(A[I[i]], 1, return_prev=True) + 1

    context = PassContext("cpu")
    text = body_text(lowered(main, context=context))
    assert context.counters["guards"] == 2
    assert "T.if_then_else(I[i] >= 0 and I[i] < 8, T.atomic_add(" in text


def test_flattened_and_scattered_indices():
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=16) as _:
            for i, j in T.Parallel(8, 8):
                A[i * 8 + j] = i
            for i, j in T.Parallel(8, 8):
                A[i + j] = j
            for i in T.Parallel(64):
                A[B[i]] = i

    check_pass(main, serialize_dependent, "simplify", """
        for i, j in T.Parallel(8, 8):
            A[i * 8 + j] = i
        for i_1 in T.serial(8):
            for j_1 in T.serial(8):
                A[i_1 + j_1] = j_1
        for i_2 in T.serial(64):
            if B[i_2] >= 0 and B[i_2] < 64:
                A[B[i_2]] = i_2
    """)  # fmt: skip


def test_simplify():
    @T.prim_func
    def main(A: T.Tensor((16,), "float32"), n: T.int32):
        with T.Kernel(1, threads=16) as _:
            for i in T.serial(1):
                for j in T.serial(n, n):
                    A[j] = 1.0
                for j in T.serial(4):
                    if j < 4:
                        A[j + i] = 2.0
                    else:
                        A[j] = 3.0

    check_pass(main, simplify, "lower_tile_ops", """
        for j_1 in T.serial(4):
            A[j_1] = 2.0
    """)  # fmt: skip


def test_pipeline_order_is_sound():
    assert order_problems() == []
    backwards = tuple(reversed(PIPELINE))
    assert "lower_tile_ops needs 'legal indices'" in order_problems(backwards)


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_90a"])
def test_the_order_is_in_the_data(target: str):
    # What a pass gives, a later one needs; only the last has nobody to give to.
    context = PassContext(target)
    steps = [step for step in PIPELINE if step.applies(context)]
    for n, step in enumerate(steps[:-1]):
        assert any(step.gives & later.needs for later in steps[n + 1 :]), step.name


def test_each_step_has_a_reason_of_its_own():
    # A pass may stand twice, for two reasons.
    assert len({(step.name, step.reason) for step in PIPELINE}) == len(PIPELINE)
    assert all(step.reason for step in PIPELINE)


def test_observers_see_each_pass_in_order():
    seen = []

    class Watch:
        def before(self, name, func, context):
            seen.append(("before", name))

        def after(self, name, func, context, seconds):
            assert seconds >= 0
            seen.append(("after", name))

    context = PassContext("cpu")
    run_pipeline(emitted(ragged), context, [Watch()])
    names = [step.name for step in PIPELINE if step.applies(context)]
    assert seen == [(when, name) for name in names for when in ("before", "after")]


def test_passes_apply_by_target():
    only = Pass(simplify, "only here", when=lambda context: context.kind == "cuda")
    func = emitted(ragged)
    assert run_pipeline(func, PassContext("cpu"), passes=[only]) is func


def test_unsafe_access_option_leaves_out_guards():
    context = PassContext("cpu", make_options({"tl.disable_safe_memory_access": True}))
    lowered(ragged, context=context)
    assert context.counters.get("guards", 0) == 0
