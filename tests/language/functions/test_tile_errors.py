"""What is said about tile operations that cannot work: code, place, the way out."""

from __future__ import annotations

import pytest

from tests.support.tiles import check_tiles, diagnostics_in

# (name, body with markers, part of the help)
CASES: list[tuple[str, str, str]] = [
    (
        "copy: ranks",
        """
        T.copy(D, s)
     #         ^ error[TL201] `D` of rank 3 and `s` of rank 2
     """,
        "`D[i, :, :]`",
    ),
    (
        "copy: whole tensor into a tile",
        """
        T.copy(A, s)
     #         ^ error[TL202] 128 elements in dimension 0 of `A`, 32 in dimension 0 of `s`
     """,
        "`A[i * 32, j * 64]`",
    ),
    (
        "copy: swapped",
        """
        T.copy(s, t)
     #         ^ error[TL202] 32 elements in dimension 0 of `s`
     """,
        "T.transpose",
    ),
    (
        "copy: a slice larger than the tile",
        """
        T.copy(A[0:64, 0:64], s)
        #      ^^^^^^^^^^^^^ error[TL202] 64 elements in dimension 0 of `A`, 32 in dimension 0
     """,
        "slice the larger side",
    ),
    (
        "copy: a slice smaller than the tile",
        """
        T.copy(D[0, 0:32, 0:50], s)
        #      ^^^^^^^^^^^^^^^^ error[TL202] 50 elements in dimension 2 of `D`
     """,
        "slice the larger side",
    ),
    (
        "copy: more dimensions than the origin has",
        """
        T.copy(V[0], s)
        #      ^^^^ error[TL201] `V` of rank 1
     """,
        "`s[i, :]`",
    ),
    (
        "copy: a tile beyond an on-chip buffer",
        """
        T.copy(A[0:64, 0:64], s[0, 0])
        #                     ^^^^^^^ error[TL221] exceeds dimension 0 of `s` (extent 32)
     """,
        "allocate a larger `s`",
    ),
    (
        "copy: not a buffer",
        """
        T.copy(0, s)
     #         ^ error[TL116] `src` of `T.copy` is `0`
     """,
        "A[i:i + n, :]",
    ),
    (
        "copy: inside T.Parallel",
        """
        for i in T.Parallel(32):
            T.copy(A[i, 0:64], s[i, :])
     #      ^^^^^^^^^^^^^^^^^^^^^^^^^^^ error[TL241] tile operation inside `T.Parallel`
     """,
        "out of the loop",
    ),
    (
        "copy: instruction",
        """
        T.copy(A[0, 0], s, prefer_instruction="cpasync")
     #                                        ^^^^^^^^^ error[TL117] `cp_async`?
     """,
        "'tma', 'cp_async', 'sync'",
    ),
    (
        "copy: annotation key",
        """
        T.copy(A, B, annotations={"coalesced_with": 4})
     #  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ warning[TL117] `coalesced_width`
     """,
        "it knows",
    ),
    (
        "copy: TMA and not TMA",
        """
        T.copy(A[0, 0], s, disable_tma=True, prefer_instruction="tma")
     #  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ error[TL117] told not to
     """,
        "leave out one of them",
    ),
    (
        "copy: overlapping",
        """
        T.copy(V[0:32], V[16:48])
        #               ^^^^^^^^ error[TL246] overlapping parts of `V`
     """,
        "second buffer",
    ),
    (
        "copy: a reducer",
        """
        T.copy(acc, g)
     #         ^^^ error[TL187] reducer `acc` is used in `T.copy`
     """,
        "finalize_reducer",
    ),
    (
        "copy: a barrier",
        """
        T.copy(full, I[0:2])
     #         ^^^^ error[TL208] `full`, which is in barrier memory
     """,
        "tile",
    ),
    (
        "transpose: shape",
        """
        T.transpose(s, z)
     #                 ^ error[TL214] needs a destination (64, 32), `z` is (32, 128)
     """,
        "(64, 32)",
    ),
    (
        "transpose: rank",
        """
        T.transpose(g, g)
     #  ^^^^^^^^^^^^^^^^^ error[TL214] rank 1
     """,
        "at least 2",
    ),
    (
        "fill: value",
        """
        T.fill(s, "zero")
     #  ^^^^^^^^^^^^^^^^^ error[TL116]
     """,
        "",
    ),
    (
        "im2col: image",
        """
        T.im2col(A, s, 0, 0, 3, 1, 1, 1)
     #           ^ error[TL201] rank 2, not 4
     """,
        "(N, H, W, C)",
    ),
    (
        "gemm: K",
        """
        T.gemm(s, s, f)
     #  ^^^^^^^^^^^^^^^ error[TL204] K is 64 in `s` (M, K) = (32, 64) and 32 in `s` (K, N)
     """,
        "`transpose_B=True`",
    ),
    (
        "gemm: K, no flag helps",
        """
        T.gemm(z, t, f)
     #  ^^^^^^^^^^^^^^^ error[TL204] K is 128 in `z`
     """,
        "must be equal",
    ),
    (
        "gemm: wrong flag",
        """
        T.gemm(s, t, f, transpose_B=True)
     #  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ error[TL204]
     """,
        "`transpose_B=False`",
    ),
    (
        "gemm: M and N",
        """
        T.gemm(t, s, f)
     #               ^ error[TL205] M is 64 in `t` and 32 in `f` and N is 64 in `s` and 32 in `f`
     """,
        "the operands fit in the other order: `T.gemm(s, t, f)`",
    ),
    (
        "gemm: N",
        """
        T.gemm(s, t, tm)
        T.gemm(m, m, c)
     #               ^ error[TL205] N is 32 in `m` and 1 in `c`
     """,
        "shape (32, 32)",
    ),
    (
        "gemm: rank",
        """
        T.gemm(w, t, f)
     #         ^ error[TL207] `w` of shape (2, 32, 64), not a matrix
     """,
        "`w[i, :, :]`",
    ),
    (
        "gemm: element",
        """
        T.gemm(s[0, 0], t, f)
        #      ^^^^^^^ error[TL207] one element
     """,
        "2-D tile",
    ),
    (
        "gemm: operand in global memory",
        """
        T.gemm(A, B, f)
     #         ^ error[TL208] `A`, which is in global memory
     """,
        "T.copy",
    ),
    (
        "gemm: accumulator in shared memory",
        """
        T.gemm(m, m, m)
     #               ^ error[TL208] `C` of `T.gemm` is `m`, which is in shared memory
     """,
        "alloc_fragment",
    ),
    (
        "gemm: dtypes of the operands",
        """
        T.gemm(m, t[0:32, :], f)
     #  ^^^^^^^^^^^^^^^^^^^^^^^^ error[TL206] cannot multiply int8 (`m`) with float16 (`t`)
     """,
        "other's dtype",
    ),
    (
        "gemm: dtype of the accumulator",
        """
        T.gemm(m, m, f)
     #               ^ error[TL206] products of int8 in float32
     """,
        "int32",
    ),
    (
        "gemm: policy",
        """
        T.gemm(s, t, f, policy=7)
        #                      ^ error[TL117] policy
     """,
        "T.GemmWarpPolicy.FullRow",
    ),
    (
        "gemm: k_pack",
        """
        T.gemm(s, t, f, k_pack=4)
     #                         ^ error[TL117] outside 1 … 2
     """,
        "",
    ),
    (
        "gemm: flag from the device",
        """
        T.gemm(s, t, f, transpose_A=bx == 0)
     #                              ^^^^^^^ error[TL152] not True or False
     """,
        "constant",
    ),
    (
        "reduce: output",
        """
        T.reduce_sum(s, c, dim=0)
     #                  ^ error[TL210] gives (64,) or (1, 64), `c` is (32, 1)
     """,
        "(64,)",
    ),
    (
        "reduce: axis",
        """
        T.reduce_max(f, g, dim=2)
     #                         ^ error[TL211] `f` has 2 dimensions
     """,
        "0 … 1",
    ),
    (
        "reduce: bits of floats",
        """
        T.reduce_bitor(f, g, dim=1)
     #                 ^ error[TL236] needs integers, `f` is float32
     """,
        "int and uint",
    ),
    (
        "reduce: global memory",
        """
        T.reduce_sum(A, g)
     #               ^ error[TL208] `A`, which is in global memory
     """,
        "T.copy",
    ),
    (
        "reduce: kind",
        """
        T.reduce(f, g, "summ")
     #                 ^^^^^^ error[TL117] did you mean `sum`?
     """,
        "'absmax'",
    ),
    (
        "reduce: batch",
        """
        T.reduce_sum(f, g, batch=3)
     #  ^^^^^^^^^^^^^^^^^^^^^^^^^^^ error[TL117] not a power of two
     """,
        "2",
    ),
    (
        "question about a fragment",
        """
        y = T.any_of(k)
        #            ^ error[TL208] `k`, which is in fragment memory
     """,
        "reduce it first",
    ),
    (
        "scan: shape",
        """
        T.cumsum(s, t)
     #              ^ error[TL212] `s` (32, 64) cannot go into `t` (64, 32)
     """,
        "(32, 64)",
    ),
    (
        "scan: global memory",
        """
        T.cumsum(V)
     #           ^ error[TL208] global
     """,
        "shared tile",
    ),
    (
        "reducer: update outside T.Parallel",
        """
        T.reducer_init(acc)
        T.reducer_update(acc[0], 1)
     #  ^^^^^^^^^^^^^^^^^^^^^^^^^^^ error[TL187] outside `T.Parallel`
     """,
        "T.Parallel",
    ),
    (
        "reducer: never started",
        """
        T.finalize_reducer(acc, g)
     #  ^^^^^^^^^^^^^^^^^^^^^^^^^^ error[TL187] before `T.reducer_init`
     """,
        "T.reducer_init(acc)",
    ),
    (
        "reducer: another buffer",
        """
        T.reducer_init(g)
     #  ^^^^^^^^^^^^^^^^^ error[TL187] takes a reducer, got buffer `g`
     """,
        "alloc_reducer",
    ),
    (
        "reducer: output",
        """
        T.reducer_init(acc)
        T.finalize_reducer(acc, f)
     #                          ^ error[TL210] reducer `acc` is (32,), `f` is (32, 32)
     """,
        "(32,)",
    ),
    (
        "atomic: registers",
        """
        T.atomic_add(f[0, 0], 1)
        #            ^^^^^^^ error[TL208] `f`, which is in fragment memory
     """,
        "A[i] += v",
    ),
    (
        "atomic: one value for a whole tensor",
        """
        T.atomic_add(C, 1.0)
     #               ^ error[TL203] given one value and no element of `C`
     """,
        "`C[…, …]`; all of its elements are `C[:, :]`",
    ),
    (
        "atomic: memory order",
        """
        T.atomic_add(V[0], 1, memory_order="relax")
     #                                     ^^^^^^^ error[TL117] did you mean `relaxed`?
     """,
        "'acq_rel'",
    ),
    (
        "atomic: a load cannot release",
        """
        y = T.atomic_load(V[0], "release")
        #                       ^^^^^^^^^ error[TL117] is not possible
     """,
        "'acquire'",
    ),
    (
        "atomic: old value of a tile",
        """
        old = T.atomic_add(C[0, 0], f, return_prev=True)
        #                  ^^^^^^^ error[TL117] not those of a tile
     """,
        "index one element",
    ),
    (
        "atomic: bits of floats",
        """
        T.atomic_or(V[0], 1)
        #           ^^^^ error[TL236] needs integers
     """,
        "int32",
    ),
    (
        "atomic: pair past the end",
        """
        T.atomic_addx2(V[255], l[0])
        #              ^^^^^^ error[TL221] `V` ends at 256
     """,
        "254",
    ),
    (
        "atomic: pair of another dtype",
        """
        T.atomic_addx2(V[0], s[0, 0])
        #                    ^^^^^^^ error[TL236] float16 (`s`) to float32
     """,
        "convert",
    ),
    (
        "view: size",
        """
        r = T.reshape(s, (8, 9))
        #   ^^^^^^^^^^^^^^^^^^^^ error[TL213] 4096 bytes become 144 bytes
     """,
        "product",
    ),
    (
        "view: dtype without shape",
        """
        r = T.view(s, dtype="float32")
        #   ^^^^^^^^^^^^^^^^^^^^^^^^^^ error[TL213] 4096 bytes become 8192 bytes
     """,
        "(32, 32)",
    ),
    (
        "view: of a region",
        """
        r = T.view(s[0:8, :], (8, 64))
        #   ^^^^^^^^^^^^^^^^^^^^^^^^^^ error[TL116] not a whole buffer
     """,
        "whole buffers",
    ),
    (
        "view: strides",
        """
        r = T.view(s, (2048,), strides=(1, 1))
        #   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ error[TL217] 2 strides for 1 dimension
     """,
        "one stride per dimension",
    ),
]


@pytest.mark.parametrize(("body", "help"), [pytest.param(*row[1:], id=row[0]) for row in CASES])
def test_diagnostics(body: str, help: str) -> None:
    check_tiles(body, help)


def test_both_declarations_are_shown() -> None:
    (found,) = check_tiles("""
        T.gemm(s, s, f)
     #  ^^^^^^^^^^^^^^^ error[TL204] K is 64
     """)
    texts = [label.text for label in found.labels]
    assert texts == ["`s` is (32, 64) float16 shared", "`f` is (32, 32) float32 fragment"]


def test_the_parallel_loop_is_shown() -> None:
    (found,) = check_tiles("""
        for i in T.Parallel(4):
            T.clear(s)
     #      ^^^^^^^^^^ error[TL241] T.clear
     """)
    assert [label.text for label in found.labels] == ["the body of this loop runs once per element"]


def test_low_precision_accumulator_is_a_warning() -> None:
    allocate = "a16 = T.alloc_fragment((32, 32), 'float16')"
    found = diagnostics_in(f"{allocate}\nT.clear(a16)\nT.gemm(s, t, a16)")
    assert [d for d in found if d.startswith("TL607")] == [
        "TL607: `a16` accumulates in float16, so rounding errors grow with K"
    ]


@pytest.mark.parametrize(
    ("target", "threads", "refused"),
    [("cpu", 96, False), (None, 96, False), ("cuda:sm_90", 96, True), ("cuda:sm_90", 128, False)],
)
def test_scan_thread_counts(target: str | None, threads: int, refused: bool) -> None:
    found = diagnostics_in("T.cumsum(s, dim=1)", target, threads)
    assert [d for d in found if d.startswith("TL408")] == (
        ["TL408: `T.cumsum` cannot work with 96 threads"] if refused else []
    )


# Symbols nobody has chosen yet: nothing may be said.
UNCHOSEN = """
def factory(M, N, K, block_M, block_N, block_K, dtype, flag, policy, dim):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), "float32")
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_N, block_K), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            row = T.alloc_fragment((block_M,), "float32")
            flat = T.reshape(A_shared, (block_M * block_K,))
            T.clear(C_local)
            T.clear(flat)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N:(bx + 1) * block_N, k * block_K:(k + 1) * block_K], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_B=flag, policy=policy)
            T.reduce_max(C_local, row, dim=dim)
            T.cumsum(C_local, dim=dim)
            T.copy(C_local, C[by * block_M, bx * block_N])
    return main
"""


def test_unchosen_symbols_pass() -> None:
    from tests.support.markers import diagnostics_of, kernel_text

    assert [str(d) for d in diagnostics_of(kernel_text(UNCHOSEN)) if d.is_error] == []
