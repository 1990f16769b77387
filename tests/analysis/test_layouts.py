"""Layouts inferred for whole kernels: what follows, what is chosen, what cannot be."""

import pytest

import tilelang.language as T
from tilelang.analysis.layouts import describe_layouts
from tilelang.layout import Fragment, Layout


def attention(policy=T.GemmWarpPolicy.FullRow, threads=128):
    @T.prim_func
    def main(
        Q: T.Tensor((128, 64), "float16"),
        K: T.Tensor((128, 64), "float16"),
        V: T.Tensor((128, 64), "float16"),
        O: T.Tensor((128, 64), "float16"),
    ):
        with T.Kernel(2, threads=threads) as bx:
            q = T.alloc_shared((64, 64), "float16")
            k = T.alloc_shared((64, 64), "float16")
            v = T.alloc_shared((64, 64), "float16")
            scores = T.alloc_fragment((64, 64), "float32")
            weights = T.alloc_fragment((64, 64), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            peak = T.alloc_fragment((64,), "float32")
            T.copy(Q[bx * 64, 0], q)
            T.clear(acc)
            for step in T.Pipelined(2, num_stages=2):
                T.copy(K[step * 64, 0], k)
                T.clear(scores)
                T.gemm(q, k, scores, transpose_B=True, policy=policy)
                T.copy(V[step * 64, 0], v)
                T.reduce_max(scores, peak, dim=1)
                for i, j in T.Parallel(64, 64):
                    scores[i, j] = T.exp2(scores[i, j] - peak[i])
                T.copy(scores, weights)
                T.gemm(weights, v, acc, policy=policy)
            T.copy(acc, O[bx * 64, 0])

    return main.function


def test_attention():
    report = describe_layouts(attention(), "cuda:sm_80")
    assert report.diagnostics == ()
    expected = {
        "scores": "thread=i//16*32 + i%8*4 + j//2%4",
        "acc": "thread=i//16*32 + i%8*4 + j//2%4",
        "weights": "thread=i//16*32 + i%8*4 + j//2%4",
        "peak": "thread=i//16*32 + i%8*4 + rep, slot=i//8%2",
        "q": "(i*64 + j) ^ i%8*8",
        "i, j": "thread=i//16*32 + i%8*4 + j//2%4",
    }
    assert {name: str(report.layout_of(name)) for name in expected} == expected


def test_reasons_name_the_operation():
    text = str(describe_layouts(attention(), "cuda:sm_80"))
    assert "scores  (64, 64)  32 registers" in text
    assert "from scores, by T.reduce_max(scores, peak, dim=1) at " in text
    assert "swizzled, no bank conflicts" in text


def test_a_cpu_target_is_read_as_one_with_mma():
    assert str(describe_layouts(attention(), "cpu")) == str(
        describe_layouts(attention(), "cuda:sm_80")
    )


def test_warps_that_cannot_cover_the_tile():
    report = describe_layouts(attention(threads=96), "cuda:sm_80")
    found = {d.code: d for d in report.diagnostics}
    assert "no grid of 3 warps covers a 64x64 tile" in found["TL314"].message
    assert "T.gemm" in found["TL314"].label
    assert found["TL314"].span.line > 1


def test_partial_warp():
    report = describe_layouts(attention(threads=48), "cuda:sm_80")
    assert {d.code for d in report.diagnostics} == {"TL408"}


def test_square_policy_needs_a_conversion_between_the_gemms():
    report = describe_layouts(attention(T.GemmWarpPolicy.Square), "cuda:sm_80")
    assert {d.code for d in report.diagnostics} == {"TL307"}
    (remark,) = report.diagnostics
    assert "through shared memory" in remark.message


def test_annotated_layouts_are_kept():
    mine = Fragment((32,), lambda i: (i, 0))
    swizzled = Layout((32, 32), lambda i, j: (i, j ^ i))

    @T.prim_func
    def main(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32) as _:
            tile = T.alloc_shared((32, 32), "float32")
            row = T.alloc_fragment((32,), "float32")
            T.annotate_layout({row: mine, tile: swizzled})
            T.copy(A, tile)
            for i in T.Parallel(32):
                row[i] = tile[i, 3]
            T.copy(row, B)

    report = describe_layouts(main.function, "cuda:sm_80")
    assert report.layout_of("row") == mine
    assert report.layout_of("tile") == swizzled
    assert report.layout_of("i") == mine


def test_elementwise_kernel_vectorises():
    @T.prim_func
    def main(A: T.Tensor((1024,), "float32"), B: T.Tensor((1024,), "float32")):
        with T.Kernel(1, threads=128) as _:
            x = T.alloc_fragment((1024,), "float32")
            T.copy(A, x)
            for i in T.Parallel(1024):
                x[i] = x[i] * 2.0
            T.copy(x, B)

    layout = describe_layouts(main.function, "cuda:sm_80").layout_of("x")
    assert layout.vector_width() == 4
    assert str(layout) == "thread=i//4%128, slot=i//512*4 + i%4"


@pytest.mark.parametrize(
    ("dtype", "accum", "k", "thread"),
    [
        ("float16", "float32", 16, "thread=i//16*32 + i%8*4 + j//2"),
        ("int8", "int32", 32, "thread=i//16*32 + i%8*4 + j//2"),
        ("float32", "float32", 8, "thread=i//16*32 + i%8*4 + j//2"),
    ],
)
def test_accumulators_of_each_input_type(dtype, accum, k, thread):
    @T.prim_func
    def main(A: T.Tensor((64, k), dtype), B: T.Tensor((k, 8), dtype), C: T.Tensor((64, 8), accum)):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((64, k), dtype)
            b = T.alloc_shared((k, 8), dtype)
            c = T.alloc_fragment((64, 8), accum)
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c)
            T.copy(c, C)

    assert str(describe_layouts(main.function, "cuda:sm_80").layout_of("c")).startswith(thread)
