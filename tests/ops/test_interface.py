"""Every operation is its call: decoding and encoding lose nothing, and say what is touched."""

import pytest

import tilelang.language as T
from tests.support.lowering import emitted
from tilelang.ir import tirx
from tilelang.ir.tile_op import called_op
from tilelang.ir.visit import collect
from tilelang.ops import OP_BY_NAME, OPS
from tilelang.program.tile_ops import SCHEMAS


@T.prim_func
def everything(A: T.Tensor((2, 8, 8, 4), "float32"), B: T.Tensor((64, 32), "float32")):
    with T.Kernel(2, threads=128) as bx:
        a = T.alloc_shared((64, 32), "float32")
        b = T.alloc_shared((32, 64), "float32")
        c = T.alloc_fragment((64, 64), "float32")
        row = T.alloc_fragment((64,), "float32")
        acc = T.alloc_reducer((64,), "float32", op="max")
        col = T.alloc_shared((16, 12), "float32")
        full = T.alloc_barrier(1)
        T.copy(B, a, coalesced_width=4)
        T.tma_copy(B, a, barrier=full, eviction_policy="evict_last")
        T.fill(c, 1.5)
        T.transpose(a, b)
        T.gemm(a, b, c, clear_accum=bx == 0)
        T.reduce_sum(c, row, dim=1, clear=False)
        T.cumsum(c, dim=0, reverse=True)
        T.atomic_add(B[0, 0], a)
        T.im2col(A, col, bx, 0, 3, 1, 1, 1)
        T.reducer_init(acc)
        for i, j in T.Parallel(64, 64):
            T.reducer_update(acc[i], c[i, j])
        T.finalize_reducer(acc, row)


# operation -> buffers it reads, buffers it writes
TOUCHED = {
    "copy": (["B"], ["a"]),
    "tma_copy": (["B"], ["a"]),
    "fill": ([], ["c"]),
    "transpose": (["a"], ["b"]),
    "gemm": (["a", "b", "c"], ["c"]),
    "reduce": (["c", "row"], ["row"]),
    "scan": (["c"], ["c"]),
    "atomic": (["a", "B"], ["B"]),
    "im2col": (["A"], ["col"]),
    "reducer_init": ([], ["acc"]),
    "reducer_finalize": (["acc"], ["row"]),
}


def calls():
    statements = collect(emitted(everything).body, tirx.Evaluate)
    return {called_op(s): s.value for s in statements if called_op(s) in OP_BY_NAME}


def test_the_kernel_uses_every_operation():
    assert set(calls()) == set(OP_BY_NAME) == set(TOUCHED)


@pytest.mark.parametrize("name", TOUCHED)
def test_decoding_and_encoding(name):
    call = calls()[name]
    again = OP_BY_NAME[name].from_call(call).to_call(call.span)
    for old, new in zip(call.args, again.args, strict=True):
        assert tirx.structural_equal(old, new)
    said = dict(call.attrs or {})
    kept = dict(again.attrs or {})
    assert {key: kept[key] for key in said} == said


@pytest.mark.parametrize("name", TOUCHED)
def test_what_is_touched(name):
    op = OP_BY_NAME[name].from_call(calls()[name])
    names = [[str(r.buffer.name) for r in side] for side in (op.reads(), op.writes())]
    assert tuple(names) == TOUCHED[name]


def test_operations_are_those_of_the_schema():
    assert {op.NAME for op in OPS} <= set(SCHEMAS)
    assert len({op.NAME for op in OPS}) == len(OPS)


def test_missing_operand_is_named():
    call = calls()["copy"]
    short = tirx.Call(call.op, list(call.args)[:1], ret_ty=call.ty, span=call.span)
    with pytest.raises(TypeError, match="lacks dst"):
        OP_BY_NAME["copy"].from_call(short)
