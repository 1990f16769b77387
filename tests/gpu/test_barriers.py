"""Where threads wait for each other."""

from __future__ import annotations

from typing import Any

import tilelang.language as T
from tests.gpu.lowering import lowered
from tilelang.analysis.uniform import Uniformity
from tilelang.ir import tirx
from tilelang.ir.device_ops import op_of_call
from tilelang.ir.visit import collect


def barriers(node: Any) -> int:
    found = [op_of_call(c) for c in collect(node, tirx.Call)]
    return sum(op is not None and op.name == "sync_threads" for op in found)


@T.prim_func
def steps(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32")):
    """One buffer used in every step of a loop, read by other threads than wrote it."""
    with T.Kernel(1, threads=64):
        s = T.alloc_shared((64,), "float32")
        for k in T.serial(8):
            T.copy(A[k * 64], s)
            for i in T.Parallel(64):
                B[k * 64 + i] = s[63 - i]


def test_a_loop_waits_for_its_own_last_step() -> None:
    func = lowered(steps.function)
    (loop,) = [s for s in collect(func.body, tirx.For) if str(s.loop_var.name) == "k"]
    assert barriers(func.body) == barriers(loop) == 2


@T.prim_func
def counted(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
    """A variable that is the same in all threads, and one that is not."""
    with T.Kernel(1, threads=64):
        tx = T.get_thread_binding(0)
        s = T.alloc_shared((64,), "int32")
        left = T.alloc_var("int32")
        own = T.alloc_var("int32")
        left = A[0]
        own = A[tx]
        if left > 0:
            s[tx] = A[tx]
            B[tx] = s[63 - tx]
        if own > 0:
            s[tx] = own


def test_variables_differ_where_a_thread_number_gets_in() -> None:
    func = lowered(counted.function)
    uniform = Uniformity(func.body)
    named = {str(s.buffer.name): s.buffer for s in collect(func.body, tirx.AllocBuffer)}
    loads = {
        str(e.source.name): e
        for s in collect(func.body, tirx.IfThenElse)
        for e in collect(s.condition, tirx.TensorLoad)
    }
    assert {"left", "own"} <= set(named)
    assert not uniform.diverges(loads["left"])
    assert uniform.diverges(loads["own"])


def test_code_of_some_threads_gets_no_barrier_inside() -> None:
    func = lowered(counted.function)
    branches = collect(func.body, tirx.IfThenElse)
    inside = [barriers(s.then_case) for s in branches]
    assert inside == [1, 0]
    assert barriers(func.body) == 2


@T.prim_func
def looked_up(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
    """A place nobody knows, of one buffer, and then another buffer."""
    with T.Kernel(1, threads=64):
        tx = T.get_thread_binding(0)
        s = T.alloc_shared((64,), "int32")
        t = T.alloc_shared((64,), "int32")
        s[tx] = A[tx]
        T.sync_threads()
        other = s[s[tx]]
        t[tx] = other
        T.sync_threads()
        B[tx] = t[63 - tx] + s[tx]


def test_an_index_stays_inside_of_its_buffer() -> None:
    assert barriers(lowered(looked_up.function).body) == 2


@T.prim_func
def handed_over(A: T.Tensor((4, 64), "int32"), B: T.Tensor((4, 64), "int32")):
    """Two warps write for two others; all meet at named barriers."""
    with T.Kernel(1, threads=128):
        tx = T.get_thread_binding(0)
        s = T.alloc_shared((64,), "int32")
        lanes = T.alloc_shared((64,), "int32")
        if tx < 64:
            for r in T.serial(4):
                s[tx] = A[r, tx]
                T.sync_threads(1, 128)
                T.sync_threads(2, 128)
        else:
            for r in T.serial(4):
                T.sync_threads(1, 128)
                lanes[tx - 64] = s[127 - tx]
                T.sync_warp()
                B[r, tx - 64] = lanes[(tx - 64) ^ 1]
                T.sync_threads(2, 128)


def test_a_named_barrier_of_all_threads_is_enough() -> None:
    body = lowered(handed_over.function).body
    found = [op.name for c in collect(body, tirx.Call) if (op := op_of_call(c)) is not None]
    assert (found.count("sync_threads"), found.count("sync_warp")) == (4, 1)
