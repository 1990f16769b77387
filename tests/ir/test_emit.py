"""What the emitted function of each construct looks like, and which invariants it keeps."""

import subprocess
import sys
from pathlib import Path

import pytest

import tilelang.language as T
from tests.support.lowering import body_text, check_text, emitted
from tilelang.ir import attrs, tirx
from tilelang.ir.calls import CALLS
from tilelang.ir.intrinsics import MATH
from tilelang.ir.spans import calls_of, from_tir
from tilelang.ir.text import print_function
from tilelang.ir.verify import verify
from tilelang.ir.visit import collect


@T.prim_func
def gemm(A: T.Tensor((T.dynamic("M"), 64), "float16"), B: T.Tensor((64, 128), "float16")):
    C = T.empty((A.shape[0], 128), "float32")
    with T.Kernel(2, T.ceildiv(A.shape[0], 64), threads=128) as (bx, by):
        a = T.alloc_shared((64, 32), "float16")
        b = T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.clear(c)
        for k in T.Pipelined(2, num_stages=3):
            T.copy(A[by * 64, k * 32], a)
            T.copy(B[k * 32, bx * 64], b)
            T.gemm(a, b, c, transpose_B=False)
        for i, j in T.Parallel(64, 64):
            c[i, j] = T.max(c[i, j], 0)
        T.copy(c, C[by * 64, bx * 64])
    return C


def test_gemm_reads_as_it_was_written():
    assert (
        print_function(emitted(gemm)).text
        == """\
@T.prim_func
def gemm(A: T.Tensor((M, 64), 'float16'), B: T.Tensor((64, 128), 'float16')):
    C = T.empty((M, 128), 'float32')
    with T.Kernel(2, (M + 64 - 1) // 64, threads=128) as (bx, by):
        a = T.alloc_shared((64, 32), 'float16')
        b = T.alloc_shared((32, 64), 'float16')
        c = T.alloc_fragment((64, 64), 'float32')
        T.clear(c)
        for k in T.Pipelined(2, num_stages=3):
            T.copy(A[by * 64:by * 64 + 64, k * 32:k * 32 + 32], a)
            T.copy(B[k * 32:k * 32 + 32, bx * 64:bx * 64 + 64], b)
            T.gemm(a, b, c)
        for i, j in T.Parallel(64, 64):
            c[i, j] = T.max(c[i, j], 0.0)
        T.copy(c, C[by * 64:by * 64 + 64, bx * 64:bx * 64 + 64])
    return C
"""
    )


def test_printing_is_the_same_every_time():
    first, second = print_function(emitted(gemm)), print_function(emitted(gemm))
    assert first == second


def test_every_line_knows_its_place():
    text = print_function(emitted(gemm))
    lines = gemm.python.__code__.co_firstlineno
    copies = [n for n, line in enumerate(text.lines, 1) if "T.copy(A[" in line.text]
    span = text.span_of(copies[0])
    assert span.file == __file__
    source = Path(__file__).read_text().splitlines()
    assert (
        source[span.line - 1][span.column - 1 : span.end_column - 1]
        == "T.copy(A[by * 64, k * 32], a)"
    )
    assert span.line > lines
    assert all(line.span is not None for line in text.lines)
    saved = text.saved()
    assert f"  #@ {Path(__file__).name}:{span.line}:" in saved
    assert f"# file {Path(__file__).name} = {__file__!r}" in saved


def test_parameters_assume_no_more_alignment_than_one_element():
    alignments = {str(p.name): int(p.ty.data_alignment) for p in emitted(gemm).params}
    assert alignments == {"A": 2, "B": 2, "C": 4}


def test_outputs_come_last():
    func = emitted(gemm)
    assert [str(p.name) for p in func.params] == ["A", "B", "C"]
    assert int(func.attrs[attrs.NUM_OUTPUTS]) == 1
    assert str(func.attrs[attrs.GLOBAL_SYMBOL]) == "gemm"


@T.macro
def scale(x, i, factor):
    x[i] = x[i] * factor


def test_inlined_code_carries_its_calls():
    @T.prim_func
    def main(A: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=16) as _:
            for i in T.Parallel(16):
                scale(A, i, 2.0)

    (store,) = collect(emitted(main), tirx.BufferStore)
    (product,) = collect(store, tirx.Mul)
    source = Path(__file__).read_text().splitlines()
    for node in (store, product):
        assert "x[i] = x[i] * factor" in source[from_tir(node.span).line - 1]
        (frame,) = calls_of(node.span)
        call = frame.span
        assert frame.function == "scale"
        assert source[call.line - 1][call.column - 1 : call.end_column - 1] == "scale(A, i, 2.0)"


def test_control_flow_and_scalars():
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), n: T.int32):
        with T.Kernel(1, threads=1) as _:
            count = T.alloc_var("int32", init=3)
            for i in T.serial(2, 20, 3):
                if A[i] > n:
                    count = count + 1
                elif A[i] == 0:
                    break
                else:
                    continue
            for i in T.unroll(4):
                A[i] = -A[i]
            for i in T.vectorized(4):
                A[i] = A[i] // 2 % 7
            while count > 0:
                count = count - 1
            A[0] = T.if_then_else(n > 0, count, ~n) + T.cast(n != 1, "int32")

    check_text(emitted(main), """
        count = T.alloc_var('int32')
        count = 3
        for i in T.serial(6):
            if A[2 + i * 3] > n:
                count = count + 1
            elif A[2 + i * 3] == 0:
                break
            else:
                continue
        for i_1 in T.unroll(4):
            A[i_1] = 0 - A[i_1]
        for i_2 in T.vectorized(4):
            A[i_2] = A[i_2] // 2 % 7
        while count > 0:
            count = count - 1
        A[0] = T.if_then_else(n > 0, count, ~n) + T.cast(n != 1, 'int32')
    """)  # fmt: skip


def test_views_and_pointers():
    @T.prim_func
    def main(Table: T.Tensor((2,), T.ptr), B: T.Tensor((4, 8), "float32")):
        with T.Kernel(2, threads=8) as bx:
            held = T.alloc_shared((4, 8), "float32")
            flat = T.reshape(held, (32,))
            words = T.view(held, (4, 8), "uint32")
            row = T.make_tensor(Table[bx], (8,), "float32")
            for i in T.Parallel(8):
                flat[i] = row[i]
                words[0, i] = words[0, i] ^ 1
                B[bx, i] = held[0, i]

    text = body_text(emitted(main))
    assert "flat = T.view(held, (32,), 'float32')" in text
    assert "words = T.view(held, (4, 8), 'uint32')" in text
    assert "row = T.make_tensor(Table[bx], (8,), 'float32')" in text


def test_annotations_and_assumptions_stay_in_place():
    @T.prim_func
    def main(A: T.Tensor((T.dynamic("n"),), "float32")):
        with T.Kernel(1, threads=16) as _:
            T.assume(A.shape[0] % 16 == 0)
            T.annotate_safe_value({A: 5.0})
            T.use_swizzle(10)
            for i in T.Parallel(16):
                A[i] = 0.0

    check_text(emitted(main), """
        T.assume(n % 16 == 0)
        T.annotate_safe_value({A: 5.0})
        T.use_swizzle(10)
        for i in T.Parallel(16):
            A[i] = 0.0
    """)  # fmt: skip


def test_several_launches():
    @T.prim_func
    def main(A: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=8) as _:
            for i in T.Parallel(8):
                A[i] = 1.0
        with T.Kernel(2, threads=8) as bx:
            for i in T.Parallel(4):
                A[bx * 4 + i] += 1.0

    text = print_function(emitted(main)).text
    assert text.count("with T.Kernel(") == 2


def test_importing_costs_no_tvm():
    code = (
        "import sys, tilelang.ir.tirx, tilelang.ir.emit, tilelang.pipeline, tilelang.ops; "
        "assert 'tvm' not in sys.modules and 'torch' not in sys.modules; "
        "tilelang.ir.tirx.Var; assert 'tvm' in sys.modules and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)})


@pytest.mark.parametrize("op", sorted({*MATH.values()}))
def test_operators_we_name_exist(op):
    assert str(tirx.Op.get(op).name) == op


def test_our_operators_have_an_effect():
    for name in CALLS:
        assert tirx.Op.get(name).get_attr("TCallEffectKind") is not None


def test_verifier_names_what_is_wrong():
    x = tirx.decl_buffer((4,), "float32", name="x", layout=None)
    y = tirx.decl_buffer((4,), "float32", name="y", scope="attic", layout=None)
    i = tirx.Var("i", "int32")
    store = tirx.BufferStore(y, tirx.BufferLoad(x, [i]), [i])
    problems = verify(tirx.PrimFunc([x], store))
    assert "x has no span" in problems
    assert "BufferStore has no span" in problems
    assert "BufferStore uses buffer y where it does not exist" in problems
    assert "BufferStore uses i where it does not exist" in problems
    assert "BufferStore contains x[i] without a span" in problems
