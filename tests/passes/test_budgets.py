"""What lowering costs and keeps, on one golden kernel: counts, not milliseconds."""

import linecache

import tilelang.language as T
from tests.support.lowering import emitted, lowered
from tilelang.ir import tirx
from tilelang.ir.spans import from_tir
from tilelang.ir.visit import collect, walk
from tilelang.passes.context import PassContext


@T.prim_func
def gemm_relu(
    A: T.Tensor((1000, 512), "float16"),
    B: T.Tensor((512, 768), "float16"),
    C: T.Tensor((1000, 768), "float32"),
):
    with T.Kernel(T.ceildiv(768, 64), T.ceildiv(1000, 64), threads=128) as (bx, by):
        a = T.alloc_shared((64, 32), "float16")
        b = T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.clear(c)
        for k in T.Pipelined(16, num_stages=2):
            T.copy(A[by * 64, k * 32], a)
            T.copy(B[k * 32, bx * 64], b)
            T.gemm(a, b, c)
        for i, j in T.Parallel(64, 64):
            c[i, j] = T.max(c[i, j], 0)
        T.copy(c, C[by * 64, bx * 64])


def test_only_the_ragged_dimension_is_guarded():
    context = PassContext("cpu")
    lowered(gemm_relu, context=context)
    assert context.counters["guards"] == 2  # rows of A and of C
    assert context.counters["unswitched nests"] == 2


def test_each_proof_is_asked_once():
    context = PassContext("cpu")
    lowered(gemm_relu, context=context)
    # Two indices of three tensors, each against both bounds.
    assert context.counters["bound proofs"] <= 12


def test_size_of_the_emitted_function():
    assert len(list(walk(emitted(gemm_relu)))) < 250


def test_lowered_statements_stand_where_their_operation_does():
    """Loads and stores of a lowered operation carry the place of the operation itself."""
    first = gemm_relu.python.__code__.co_firstlineno
    lines = [linecache.getline(__file__, n) for n in range(first, first + 22)]
    where = {
        word: first + next(n for n, line in enumerate(lines) if word in line)
        for word in ("T.gemm(", "T.copy(A", "T.copy(B", "T.copy(c", "T.clear(", "T.max(")
    }
    func = lowered(gemm_relu)
    reads = {}
    for load in collect(func.body, tirx.TensorLoad):
        reads.setdefault(str(load.source.name), set()).add(from_tir(load.span).line)
    assert reads["A"] == {where["T.copy(A"]}
    assert reads["B"] == {where["T.copy(B"]}
    assert reads["a"] == {where["T.gemm("]}
    stores = {}
    for store in collect(func.body, tirx.BufferStore):
        stores.setdefault(str(store.buffer.name), set()).add(from_tir(store.span).line)
    assert stores["C"] == {where["T.copy(c"]}
    assert stores["a"] == {where["T.copy(A"]}
    assert stores["c"] == {where["T.gemm("], where["T.clear("], where["T.max("]}
