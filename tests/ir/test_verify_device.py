"""What the verifier says of functions that are not at stage `device`, or break its rules."""

import pytest

import tilelang.language as T
from tests.codegen import kernels
from tests.support.device import device_func
from tests.support.every_op import SPAN, every_op
from tilelang.ir import attrs, build, device_ops, tirx
from tilelang.ir.emit import emit
from tilelang.ir.spans import to_tir
from tilelang.ir.verify import verify
from tilelang.ir.visit import with_body

AT = to_tir(SPAN)


@pytest.mark.parametrize("name", kernels.GOLDEN)
def test_kernels_at_thread_level_are_sound(name):
    kernel, maps = kernels.GOLDEN[name]()
    assert verify(device_func(kernel, maps=maps), "device") == []


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_every_operation_is_called_soundly(arch):
    func = every_op(arch).with_attr({attrs.TARGET: f"cuda:{arch}"})
    assert verify(func) == []


def buffer(name, dtype, count, scope):
    return tirx.decl_buffer(
        [build.const(count, "int32")], dtype, name=name, scope=scope, span=AT, layout=None
    )


def kernel_with(*stmts, target="cuda:sm_80"):
    """A function of one launch around `stmts`."""
    thread = tirx.Var("tx", "int32", AT)
    extent = build.const(32, "int32")
    axis = tirx.IterVar(
        tirx.Range.from_min_extent(build.const(0, "int32"), extent), thread,
        tirx.IterVar.ThreadIndex, "threadIdx.x", AT,
    )  # fmt: skip
    body = tirx.AttrStmt(axis, attrs.THREAD_EXTENT, extent, build.seq(stmts, AT), AT)
    func = tirx.PrimFunc([], body, span=AT)
    return func.with_attr({attrs.STAGE: "device", attrs.TARGET: target})


def called(name, *operands, **constants):
    """A call that nothing checks."""
    tirx.ensure_op(name)
    return build.evaluate(build.call(name, operands, attrs=constants, span=AT), AT)


SHARED = buffer("S", "float16", 256, "shared.dyn")
LOCAL = buffer("L", "float16", 8, "local")
WIDE = buffer("W", "float32", 8, "local")
STORAGE = [build.allocate(b, span=AT) for b in (SHARED, LOCAL, WIDE)]


def part(source, extent):
    return device_ops.region(source, 0, extent, AT)


@pytest.mark.parametrize(
    ("stmt", "problem"),
    [
        (called("ldmatrix_x4", part(LOCAL, 8), part(SHARED, 8)), None),
        (called("ldmatrix_x4", part(SHARED, 8), part(SHARED, 8)),
         "operand dst of T.ldmatrix_x4 is S of scope shared.dyn, not in local memory"),
        (called("mma_m16n8k16_f32_f16_f16", part(WIDE, 4), part(LOCAL, 8), part(LOCAL, 4)), None),
        (called("mma_m16n8k16_f32_f16_f16", part(WIDE, 4), part(LOCAL, 4), part(LOCAL, 4)),
         "operand a of T.mma_m16n8k16_f32_f16_f16 covers 4 elements of L, not 8"),
        (called("mma_m16n8k16_f32_f16_f16", part(LOCAL, 4), part(LOCAL, 8), part(LOCAL, 4)),
         "operand d of T.mma_m16n8k16_f32_f16_f16 is L of float16, not float32"),
        (called("cp_async_wait"), "T.cp_async_wait needs the attribute groups"),
        (called("sync_threads", part(LOCAL, 1)), None),
        (called("stmatrix_x1", part(SHARED, 8), part(LOCAL, 2)),
         "T.stmatrix_x1 does not exist on sm_80"),
        (called("ldmatrix_x4", build.const(0, "int32"), part(SHARED, 8)),
         "operand dst of T.ldmatrix_x4 is not a region"),
    ],
)  # fmt: skip
def test_call(stmt, problem):
    found = verify(kernel_with(*STORAGE, stmt))
    assert [f.partition(": ")[2].partition(" ")[2] for f in found] == (
        [] if problem is None else [problem]
    )


def test_what_is_not_lowered():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=64) as _:
            F = T.alloc_fragment((64, 64), "float16")
            T.copy(A, F)
            for i, j in T.Parallel(64, 64):
                A[i, j] = F[i, j]

    text = "\n".join(verify(emit(main.function), "device"))
    for problem in (
        "F still is of scope local.fragment", "T.copy is not lowered", "is a parallel loop",
    ):  # fmt: skip
        assert problem in text


def test_a_function_without_a_launch():
    func = with_body(kernel_with(), build.nothing(AT))
    assert any("has no launch" in problem for problem in verify(func))


def test_call_builder_refuses_what_the_row_does_not_allow():
    with pytest.raises(ValueError, match="needs the attribute bytes"):
        device_ops.call("cp_async", [part(SHARED, 8), part(SHARED, 8)], span=AT)
    with pytest.raises(ValueError, match=r"operand dst of .* is not a region"):
        device_ops.call("cp_async", [build.const(0, "int32"), part(SHARED, 8)], bytes=16, span=AT)
