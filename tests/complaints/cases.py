"""Real complaints of kernel authors as data: what was written, what must be said, what is right.

`wrong` carries markers (see `support.markers`); `help` is part of the help line. `right` is the
correct variant, about which nothing is said. `options` are a target or codes to select; without a
target nothing is assumed about the hardware.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    """One complaint: its number in the collected list, and both kernels."""

    number: str
    about: str
    wrong: str
    help: str
    right: str
    options: Mapping[str, Any] = field(default_factory=dict)


CASES: tuple[Case, ...] = (
    Case(
        "20",
        "float8_e4m3 names no format of its own",
        """
        @T.prim_func
        def main(A: T.Tensor((128, 128), "bfloat16"), B: T.Tensor((128, 128), "float8_e4m3")):
                                                                            # ^^^^^^^^^^^^^ warning[TL231] float8_e4m3fn
            with T.Kernel(1, threads=128) as bx:
                s = T.alloc_shared((128, 128), "bfloat16")
                T.copy(A, s)
                T.copy(s, B)
        """,
        "float8_e4m3fn",
        """
        @T.prim_func
        def main(A: T.Tensor((128, 128), "bfloat16"), B: T.Tensor((128, 128), "float8_e4m3fn")):
            with T.Kernel(1, threads=128) as bx:
                s = T.alloc_shared((128, 128), "bfloat16")
                T.copy(A, s)
                T.copy(s, B)
        """,
    ),
    Case(
        "21",
        "a float used as an index",
        """
        @T.prim_func
        def main(A: T.Tensor((128,), "float32"), I: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
            with T.Kernel(1, threads=128) as bx:
                for i in T.Parallel(128):
                    B[i] = A[I[i]]
                           # ^^^^ error[TL234] not an integer
        """,
        "cast",
        """
        @T.prim_func
        def main(A: T.Tensor((128,), "float32"), I: T.Tensor((128,), "int64"), B: T.Tensor((128,), "float32")):
            with T.Kernel(1, threads=128) as bx:
                for i in T.Parallel(128):
                    B[i] = A[I[i]]
        """,
    ),
    Case(
        "22",
        "rank mismatch in a copy",
        """
        @T.prim_func
        def main(A: T.Tensor((4, 64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
            with T.Kernel(4, threads=128) as b:
                s = T.alloc_shared((64, 64), "float16")
                T.copy(A, s)
                     # ^ error[TL201] `A`
                T.copy(s, B)
        """,
        "A[",
        """
        @T.prim_func
        def main(A: T.Tensor((4, 64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
            with T.Kernel(4, threads=128) as b:
                s = T.alloc_shared((64, 64), "float16")
                T.copy(A[b, :, :], s)
                T.copy(s, B)
        """,
    ),
    Case(
        "25",
        "a slice that leaves an on-chip buffer",
        """
        @T.prim_func
        def main(B: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=128) as bx:
                s = T.alloc_shared((64,), "float32")
                T.fill(s[16:80], 1)
                     # ^^^^^^^^ error[TL221] exceeds dimension 0 of `s`
                T.copy(s, B)
        """,
        "slice at most",
        """
        @T.prim_func
        def main(B: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=128) as bx:
                s = T.alloc_shared((64,), "float32")
                T.fill(s[0:64], 1)
                T.copy(s, B)
        """,
    ),
    Case(
        "27",
        "a shared tile of symbolic extent",
        """
        n = T.dynamic("n")

        @T.prim_func
        def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
            with T.Kernel(1, threads=128) as bx:
                s = T.alloc_shared((n,), "float32")
                                 # ^^^^ error[TL216] `n` is only known
                T.copy(A, s)
        """,
        "largest tile",
        """
        n = T.dynamic("n")

        @T.prim_func
        def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
            with T.Kernel(T.ceildiv(n, 128), threads=128) as bx:
                s = T.alloc_shared((128,), "float32")
                T.copy(A[bx * 128], s)
                T.copy(s, B[bx * 128])
        """,
    ),
    Case(
        "32",
        "iterations of T.Parallel update one element",
        """
        @T.prim_func
        def main(data: T.Tensor((16, 32), "float32"), out: T.Tensor((16,), "float32")):
            with T.Kernel(1, threads=128) as bx:
                buf = T.alloc_shared((16,), "float32")
                T.clear(buf)
                for i, j in T.Parallel(16, 32):
                    buf[i] += data[i, j]
                  # ^^^^^^^^^^^^^^^^^^^^ warning[TL240] differ only in `j`
                T.copy(buf, out)
        """,
        "reduce_sum",
        """
        @T.prim_func
        def main(data: T.Tensor((16, 32), "float32"), out: T.Tensor((16,), "float32")):
            with T.Kernel(1, threads=128) as bx:
                tile = T.alloc_fragment((16, 32), "float32")
                total = T.alloc_fragment((16,), "float32")
                T.copy(data, tile)
                T.reduce_sum(tile, total, dim=1)
                T.copy(total, out)
        """,
    ),
    Case(
        "32b",
        "an iteration reads what another one writes",
        """
        @T.prim_func
        def main(A: T.Tensor((16,), "float32")):
            with T.Kernel(1, threads=32) as bx:
                for i, j in T.Parallel(16, 16):
                    A[i] = A[j] + 1
                  # ^^^^ warning[TL240] differ only in `j`
        """,
        "reduce_sum",
        """
        @T.prim_func
        def main(A: T.Tensor((16,), "float32")):
            with T.Kernel(1, threads=32) as bx:
                for i in T.Parallel(16):
                    A[i] = A[i] + 1
        """,
    ),
    Case(
        "37",
        "an output whose dim no input gives",
        """
        m = T.dynamic("m")

        @T.prim_func
        def main(A: T.Tensor((64,), "float32")):
            C = T.empty((m,), "float32")
              # ^^^^^^^^^^^^^^^^^^^^^^^^ error[TL710] dim `m` of output `C`
            with T.Kernel(1, threads=64) as bx:
                for i in T.Parallel(64):
                    C[i] = A[i]
            return C
        """,
        "extent `m`",
        """
        m = T.dynamic("m")

        @T.prim_func
        def main(A: T.Tensor((m,), "float32")):
            C = T.empty((m,), "float32")
            with T.Kernel(T.ceildiv(m, 64), threads=64) as bx:
                for i in T.Parallel(64):
                    C[bx * 64 + i] = A[bx * 64 + i]
            return C
        """,
    ),
    Case(
        "39",
        "the grid as a tuple",
        """
        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel((1, 1), threads=32) as (a, b):
                        # ^^^^^^ error[TL163] one tuple
                for i in T.Parallel(8):
                    A[i] = 0
        """,
        "T.Kernel(1, 1",
        """
        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, 1, threads=32) as (a, b):
                for i in T.Parallel(8):
                    A[i] = 0
        """,
    ),
    Case(
        "40",
        "a negative thread count",
        """
        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=-1) as bx:
                                   # ^^ error[TL164] 1 to 1024
                for i in T.Parallel(8):
                    A[i] = 0
        """,
        "128",
        """
        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=1024) as bx:
                for i in T.Parallel(8):
                    A[i] = 0
        """,
    ),
    Case(
        "53",
        "a value of a device branch used after it",
        """
        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=8) as bx:
                for i in T.serial(8):
                    if A[i] > 0:
                        x = A[i] * 2
                    A[i] = x
                         # ^ error[TL134] `x` is used outside
        """,
        "alloc_var",
        """
        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=8) as bx:
                x = T.alloc_var("float32", init=0)
                for i in T.serial(8):
                    if A[i] > 0:
                        x = A[i] * 2
                    A[i] = x
        """,
    ),
    Case(
        "55",
        "gemm operands of rank 3",
        """
        @T.prim_func
        def main(C: T.Tensor((64, 64), "float32")):
            with T.Kernel(1, threads=128) as bx:
                a = T.alloc_shared((2, 64, 32), "float16")
                b = T.alloc_shared((32, 64), "float16")
                c = T.alloc_fragment((64, 64), "float32")
                T.clear(a)
                T.clear(b)
                T.clear(c)
                T.gemm(a, b, c)
                     # ^ error[TL207] `a`
                T.copy(c, C)
        """,
        "a[i, :, :]",
        """
        @T.prim_func
        def main(C: T.Tensor((64, 64), "float32")):
            with T.Kernel(1, threads=128) as bx:
                a = T.alloc_shared((2, 64, 32), "float16")
                b = T.alloc_shared((32, 64), "float16")
                c = T.alloc_fragment((64, 64), "float32")
                T.clear(a)
                T.clear(b)
                T.clear(c)
                T.gemm(a[0, :, :], b, c)
                T.copy(c, C)
        """,
    ),
    Case(
        "5",
        "two pipelines of different depth share a tile",
        """
        @T.prim_func
        def main(A: T.Tensor((512, 64), "float32"), B: T.Tensor((64, 64), "float32")):
            with T.Kernel(1, threads=128) as bx:
                s = T.alloc_shared((64, 64), "float32")
                acc = T.alloc_fragment((64, 64), "float32")
                T.clear(acc)
                for k in T.Pipelined(8, num_stages=2):
                    T.copy(A[k * 64, 0], s)
                    for i, j in T.Parallel(64, 64):
                        acc[i, j] += s[i, j]
                for k in T.Pipelined(8, num_stages=4):
              # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ warning[TL505] share `s`
                    T.copy(A[k * 64, 0], s)
                    for i, j in T.Parallel(64, 64):
                        acc[i, j] += s[i, j]
                T.copy(acc, B)
        """,
        "same num_stages",
        """
        @T.prim_func
        def main(A: T.Tensor((512, 64), "float32"), B: T.Tensor((64, 64), "float32")):
            with T.Kernel(1, threads=128) as bx:
                s = T.alloc_shared((64, 64), "float32")
                acc = T.alloc_fragment((64, 64), "float32")
                T.clear(acc)
                for k in T.Pipelined(8, num_stages=2):
                    T.copy(A[k * 64, 0], s)
                    for i, j in T.Parallel(64, 64):
                        acc[i, j] += s[i, j]
                for k in T.Pipelined(8, num_stages=2):
                    T.copy(A[k * 64, 0], s)
                    for i, j in T.Parallel(64, 64):
                        acc[i, j] += s[i, j]
                T.copy(acc, B)
        """,
    ),
    Case(
        "56",
        "grid axes swapped, M != N",
        """
        @T.prim_func
        def main(A: T.Tensor((1024, 64), "float16"), C: T.Tensor((1024, 256), "float16")):
            with T.Kernel(T.ceildiv(1024, 128), T.ceildiv(256, 128), threads=128) as (bx, by):
                c = T.alloc_fragment((128, 128), "float16")
                T.clear(c)
                T.copy(c, C[by * 128, bx * 128])
                                    # ^^^^^^^^ error[TL223] `bx` ranges over 8 blocks
        """,
        "exchange `bx` and `by`",
        """
        @T.prim_func
        def main(A: T.Tensor((1024, 64), "float16"), C: T.Tensor((1024, 256), "float16")):
            with T.Kernel(T.ceildiv(1024, 128), T.ceildiv(256, 128), threads=128) as (bx, by):
                c = T.alloc_fragment((128, 128), "float16")
                T.clear(c)
                T.copy(c, C[bx * 128, by * 128])
        """,
    ),
    Case(
        "S3",
        "wrong case and wrong enum members",
        """
        @T.prim_func
        def main(A: T.Tensor((128, 128), "float16"), C: T.Tensor((128, 128), "float32")):
            with T.Kernel(1, threads=128) as bx:
                a = T.alloc_shared((128, 128), "float16")
                c = T.alloc_fragment((128, 128), "float32")
                T.clear(c)
                for k in T.pipelined(4, num_stages=2):
                         # ^^^^^^^^^ error[TL111] did you mean `Pipelined`?
                    T.copy(A, a)
                    T.gemm(a, a, c, policy=T.GemmWarpPolicy.Full)
                                                          # ^^^^ error[TL111] did you mean `FullCol` or `FullRow`?
                T.copy(c, C)
        """,
        "`T.Pipelined`",
        """
        @T.prim_func
        def main(A: T.Tensor((128, 128), "float16"), C: T.Tensor((128, 128), "float32")):
            with T.Kernel(1, threads=128) as bx:
                a = T.alloc_shared((128, 128), "float16")
                c = T.alloc_fragment((128, 128), "float32")
                T.clear(c)
                for k in T.Pipelined(4, num_stages=2):
                    T.copy(A, a)
                    T.gemm(a, a, c, policy=T.GemmWarpPolicy.FullRow)
                T.copy(c, C)
        """,
    ),
    Case(
        "S3b",
        "T.parallel where T.Parallel was meant",
        """
        @T.prim_func
        def main(A: T.Tensor((128,), "float16")):
            with T.Kernel(1, threads=128) as bx:
                for i in T.parallel(128):
                       # ^^^^^^^^^^^^^^^ warning[TL119] `T.Parallel`
                    A[i] = 0
        """,
        "T.Parallel",
        """
        @T.prim_func
        def main(A: T.Tensor((128,), "float16")):
            with T.Kernel(1, threads=128) as bx:
                for i in T.Parallel(128):
                    A[i] = 0
        """,
    ),
    Case(
        "S8",
        "a rounded-down trip count",
        """
        def matmul(K=1000, block_K=64):
            @T.prim_func
            def main(A: T.Tensor((128, K), "float16"), C: T.Tensor((128, 64), "float16")):
                with T.Kernel(1, threads=128) as bx:
                    a = T.alloc_shared((128, block_K), "float16")
                    for k in T.serial(K // block_K):
                                    # ^^^^^^^^^^^^ warning[TL227] the last 40 of 1000 elements
                        T.copy(A[0, k * block_K], a)
                        T.copy(a, C)
            return main
        """,
        "T.ceildiv(K, block_K)",
        """
        def matmul(K=1000, block_K=64):
            @T.prim_func
            def main(A: T.Tensor((128, K), "float16"), C: T.Tensor((128, 64), "float16")):
                with T.Kernel(1, threads=128) as bx:
                    a = T.alloc_shared((128, block_K), "float16")
                    for k in T.serial(T.ceildiv(K, block_K)):
                        T.copy(A[0, k * block_K], a)
                        T.copy(a, C)
            return main
        """,
    ),
    Case(
        "S2",
        "no launch, tile operations inside T.Parallel, a string as an extent",
        """
        @T.prim_func
        def main(A: T.Tensor((512, 512), "float16"), B: T.Tensor((512, 512), "float16"), C: T.Tensor((512, 512), "float32")):
          # ^^^^ error[TL160]
            for i, j, k in T.Parallel(4, 4, 4, "SSR"):
                T.gemm(A[i * 128, k * 128], B[k * 128, j * 128], C[i * 128, j * 128])
        """,
        "with T.Kernel(",
        """
        @T.prim_func
        def main(A: T.Tensor((512, 512), "float16"), B: T.Tensor((512, 512), "float16"), C: T.Tensor((512, 512), "float32")):
            with T.Kernel(4, 4, threads=128) as (i, j):
                a = T.alloc_shared((128, 128), "float16")
                b = T.alloc_shared((128, 128), "float16")
                c = T.alloc_fragment((128, 128), "float32")
                T.clear(c)
                for k in T.Pipelined(4, num_stages=2):
                    T.copy(A[i * 128, k * 128], a)
                    T.copy(B[k * 128, j * 128], b)
                    T.gemm(a, b, c)
                T.copy(c, C[i * 128, j * 128])
        """,
    ),
    Case(
        "2",
        "a group of columns added into one: the iterations of a group collide",
        """
        @T.prim_func
        def main(B: T.Tensor((16, 448), "int32"), out: T.Tensor((16, 14), "int32")):
            with T.Kernel(1, threads=128) as bx:
                b = T.alloc_fragment((16, 448), "int32")
                a = T.alloc_fragment((16, 14), "int32")
                T.copy(B, b)
                T.clear(a)
                for i, j in T.Parallel(16, 448):
                    a[i, j // 32] += b[i, j]
                  # ^^^^^^^^^^^^^^^^^^^^^^^^ warning[TL240] differ only in `j`
                T.copy(a, out)
        """,
        "reduce_sum",
        """
        @T.prim_func
        def main(B: T.Tensor((16, 448), "int32"), out: T.Tensor((16, 14), "int32")):
            with T.Kernel(1, threads=128) as bx:
                b = T.alloc_shared((16, 448), "int32")
                a = T.alloc_fragment((16, 14), "int32")
                T.copy(B, b)
                groups = T.reshape(b, (16, 14, 32))
                T.reduce_sum(groups, a, dim=2)
                T.copy(a, out)
        """,
    ),
    Case(
        "3",
        "a width that the threads do not divide",
        """
        @T.prim_func
        def main(A: T.Tensor((192,), "float32"), B: T.Tensor((192,), "float32")):
            with T.Kernel(1, threads=128) as bx:
                f = T.alloc_fragment((192,), "float32")
                T.copy(A, f)
                for i in T.Parallel(192):
              # ^^^^^^^^^^^^^^^^^^^^^^^^ remark[TL309] 192 iterations
                    f[i] = f[i] * 2.0
                T.copy(f, B)
        """,
        "128, 256 or 384",
        """
        @T.prim_func
        def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
            with T.Kernel(1, threads=128) as bx:
                f = T.alloc_fragment((256,), "float32")
                T.copy(A, f)
                for i in T.Parallel(256):
                    f[i] = f[i] * 2.0
                T.copy(f, B)
        """,
        {"target": "cuda:sm_80"},
    ),
    Case(
        "6",
        "a fragment element of a neighbour",
        """
        @T.prim_func
        def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
            with T.Kernel(1, threads=128) as bx:
                fa = T.alloc_fragment((128,), "float32")
                fb = T.alloc_fragment((128,), "float32")
                T.copy(A, fa)
                for i in T.Parallel(128):
                    fb[i] = fa[i] + fa[(i + 1) % 128]
                                  # ^^^^^^^^^^^^^^^^^ remark[TL307] `fa` goes through shared memory within each warp for fa[(i + 1) % 128]
                T.copy(fb, B)
        """,
        "keep `fa` in shared memory, where threads can read each other's elements",
        """
        @T.prim_func
        def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
            with T.Kernel(1, threads=128) as bx:
                fa = T.alloc_shared((128,), "float32")
                fb = T.alloc_fragment((128,), "float32")
                T.copy(A, fa)
                for i in T.Parallel(128):
                    fb[i] = fa[i] + fa[(i + 1) % 128]
                T.copy(fb, B)
        """,
        {"target": "cuda:sm_80"},
    ),
    Case(
        "8",
        "a smaller loop pins the layout of a fragment",
        """
        @T.prim_func
        def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
            with T.Kernel(1, threads=128) as bx:
                f = T.alloc_fragment((256,), "float32")
                for i in T.Parallel(100):
              # ^^^^^^^^^^^^^^^^^^^^^^^^ warning[TL305] covers 100 of its 256
                    f[i] = A[i]
                for i in T.Parallel(256):
                    B[i] = f[i]
        """,
        "loop over 256",
        """
        @T.prim_func
        def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
            with T.Kernel(1, threads=128) as bx:
                f = T.alloc_fragment((256,), "float32")
                for i in T.Parallel(256):
                    f[i] = A[i]
                for i in T.Parallel(256):
                    B[i] = f[i]
        """,
        {"target": "cuda:sm_80"},
    ),
    Case(
        "13",
        "twelve warps over 104 columns",
        """
        @T.prim_func
        def main(A: T.Tensor((16, 64), "float16"), B: T.Tensor((64, 104), "float16"), C: T.Tensor((16, 104), "float32")):
            with T.Kernel(1, threads=384) as bx:
                a = T.alloc_shared((16, 64), "float16")
                b = T.alloc_shared((64, 104), "float16")
                c = T.alloc_fragment((16, 104), "float32")
                T.copy(A, a)
                T.copy(B, b)
                T.clear(c)
                T.gemm(a, b, c)
              # ^^^^^^^^^^^^^^^ error[TL314] 16x104
                T.copy(c, C)
        """,
        "make N 96",
        """
        @T.prim_func
        def main(A: T.Tensor((16, 64), "float16"), B: T.Tensor((64, 96), "float16"), C: T.Tensor((16, 96), "float32")):
            with T.Kernel(1, threads=384) as bx:
                a = T.alloc_shared((16, 64), "float16")
                b = T.alloc_shared((64, 96), "float16")
                c = T.alloc_fragment((16, 96), "float32")
                T.copy(A, a)
                T.copy(B, b)
                T.clear(c)
                T.gemm(a, b, c)
                T.copy(c, C)
        """,
        {"target": "cuda:sm_80"},
    ),
    Case(
        "15",
        "an int8 gemm with less depth than any instruction takes",
        """
        @T.prim_func
        def main(A: T.Tensor((64, 8), "int8"), B: T.Tensor((8, 64), "int8"), C: T.Tensor((64, 64), "int32")):
            with T.Kernel(1, threads=128) as bx:
                a = T.alloc_shared((64, 8), "int8")
                b = T.alloc_shared((8, 64), "int8")
                c = T.alloc_fragment((64, 64), "int32")
                T.copy(A, a)
                T.copy(B, b)
                T.clear(c)
                T.gemm(a, b, c)
              # ^^^^^^^^^^^^^^^ error[TL410] below the 16 elements of int8
                T.copy(c, C)
        """,
        "make K 16, or a multiple of it",
        """
        @T.prim_func
        def main(A: T.Tensor((64, 16), "int8"), B: T.Tensor((16, 64), "int8"), C: T.Tensor((64, 64), "int32")):
            with T.Kernel(1, threads=128) as bx:
                a = T.alloc_shared((64, 16), "int8")
                b = T.alloc_shared((16, 64), "int8")
                c = T.alloc_fragment((64, 64), "int32")
                T.copy(A, a)
                T.copy(B, b)
                T.clear(c)
                T.gemm(a, b, c)
                T.copy(c, C)
        """,
        {"target": "cuda:sm_80"},
    ),
    Case(
        "18",
        "a gemm in fp8 on an architecture without it",
        """
        @T.prim_func
        def main(A: T.Tensor((64, 64), "float8_e4m3fn"), C: T.Tensor((64, 64), "float32")):
            with T.Kernel(1, threads=128) as bx:
                a = T.alloc_shared((64, 64), "float8_e4m3fn")
                c = T.alloc_fragment((64, 64), "float32")
                T.copy(A, a)
                T.clear(c)
                T.gemm(a, a, c)
              # ^^^^^^^^^^^^^^^ error[TL412] cannot multiply float8_e4m3fn
                T.copy(c, C)
        """,
        "float16",
        """
        @T.prim_func
        def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
            with T.Kernel(1, threads=128) as bx:
                a = T.alloc_shared((64, 64), "float16")
                c = T.alloc_fragment((64, 64), "float32")
                T.copy(A, a)
                T.clear(c)
                T.gemm(a, a, c)
                T.copy(c, C)
        """,
        {"target": "cuda:sm_86"},
    ),
    Case(
        "21b",
        "an unsigned bound meets signed indices",
        """
        @T.prim_func
        def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32"), n: T.uint64):
            with T.Kernel(2, threads=64) as bx:
                for i in T.serial(n):
                    B[bx * 64 + i] = A[bx * 64 + i]
                    # ^^^^^^^^^^^ warning[TL233] mixes int32 and uint64
                                     # ^^^^^^^^^^^ warning[TL233] mixes int32 and uint64
        """,
        "cast",
        """
        @T.prim_func
        def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32"), n: T.int32):
            with T.Kernel(2, threads=64) as bx:
                for i in T.serial(n):
                    B[bx * 64 + i] = A[bx * 64 + i]
        """,
    ),
    Case(
        "25b",
        "a store whose index only the data bounds (asked for)",
        """
        @T.prim_func
        def main(I: T.Tensor((64,), "int32"), B: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=64) as bx:
                for i in T.Parallel(64):
                    B[I[i]] = 1.0
                    # ^^^^ remark[TL222] may leave
        """,
        "T.assume",
        """
        @T.prim_func
        def main(I: T.Tensor((64,), "int32"), B: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=64) as bx:
                for i in T.Parallel(64):
                    B[T.clamp(I[i], 0, 63)] = 1.0
        """,
        {"select": ("TL222",)},
    ),
    Case(
        "42",
        "an mbarrier on Ampere",
        """
        @T.prim_func
        def main(A: T.Tensor((128,), "float32")):
            with T.Kernel(1, threads=128) as bx:
                ready = T.alloc_barrier(128)
                      # ^^^^^^^^^^^^^^^^^^^^ error[TL402] needs cuda:sm_90
                T.barrier_arrive(ready)
                T.barrier_wait(ready, 0)
                for i in T.Parallel(128):
                    A[i] = 0.0
        """,
        "cuda:sm_90",
        """
        @T.prim_func
        def main(A: T.Tensor((128,), "float32")):
            with T.Kernel(1, threads=128) as bx:
                T.sync_threads()
                for i in T.Parallel(128):
                    A[i] = 0.0
        """,
        {"target": "cuda:sm_86"},
    ),
    Case(
        "43",
        "random numbers without a seed",
        """
        @T.prim_func
        def main(A: T.Tensor((128,), "float32")):
            with T.Kernel(1, threads=128) as bx:
                tx = T.get_thread_binding()
                A[tx] = T.cast(T.rng_rand(), "float32")
                             # ^^^^^^^^^^^^ error[TL188] before `T.rng_init`
        """,
        "rng_init",
        """
        @T.prim_func
        def main(A: T.Tensor((128,), "float32")):
            with T.Kernel(1, threads=128) as bx:
                tx = T.get_thread_binding()
                T.rng_init(42, tx)
                A[tx] = T.cast(T.rng_rand(), "float32")
        """,
    ),
    Case(
        "44",
        "a running sum with 96 threads",
        """
        @T.prim_func
        def main(A: T.Tensor((96,), "float32"), B: T.Tensor((96,), "float32")):
            with T.Kernel(1, threads=96) as bx:
                s = T.alloc_shared((96,), "float32")
                T.copy(A, s)
                T.cumsum(s)
              # ^^^^^^^^^^^ error[TL408] 96 threads
                T.copy(s, B)
        """,
        "32, 64, 128",
        """
        @T.prim_func
        def main(A: T.Tensor((96,), "float32"), B: T.Tensor((96,), "float32")):
            with T.Kernel(1, threads=128) as bx:
                s = T.alloc_shared((96,), "float32")
                T.copy(A, s)
                T.cumsum(s)
                T.copy(s, B)
        """,
        {"target": "cuda:sm_80"},
    ),
    Case(
        "48",
        "a coalesced_width wider than the row allows",
        """
        @T.prim_func
        def main(A: T.Tensor((64, 36), "float32"), B: T.Tensor((64, 36), "float32")):
            with T.Kernel(1, threads=128) as bx:
                s = T.alloc_shared((64, 36), "float32")
                T.copy(A, s, coalesced_width=8)
              # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ warning[TL604] clamped to 4
                T.copy(s, B)
        """,
        "coalesced_width=4",
        """
        @T.prim_func
        def main(A: T.Tensor((64, 36), "float32"), B: T.Tensor((64, 36), "float32")):
            with T.Kernel(1, threads=128) as bx:
                s = T.alloc_shared((64, 36), "float32")
                T.copy(A, s, coalesced_width=4)
                T.copy(s, B)
        """,
        {"target": "cuda:sm_80"},
    ),
    Case(
        "S5",
        "an accumulator no matrix instruction covers",
        """
        @T.prim_func
        def main(A: T.Tensor((20, 16), "float16"), B: T.Tensor((16, 20), "float16"), C: T.Tensor((20, 20), "float32")):
            with T.Kernel(1, threads=32) as bx:
                a = T.alloc_shared((20, 16), "float16")
                b = T.alloc_shared((16, 20), "float16")
                c = T.alloc_fragment((20, 20), "float32")
                T.copy(A, a)
                T.copy(B, b)
                T.clear(c)
                T.gemm(a, b, c)
              # ^^^^^^^^^^^^^^^ error[TL409] M = 20 and N = 20
                T.copy(c, C)
        """,
        "M 16 or 32",
        """
        @T.prim_func
        def main(A: T.Tensor((32, 16), "float16"), B: T.Tensor((16, 24), "float16"), C: T.Tensor((32, 24), "float32")):
            with T.Kernel(1, threads=32) as bx:
                a = T.alloc_shared((32, 16), "float16")
                b = T.alloc_shared((16, 24), "float16")
                c = T.alloc_fragment((32, 24), "float32")
                T.copy(A, a)
                T.copy(B, b)
                T.clear(c)
                T.gemm(a, b, c)
                T.copy(c, C)
        """,
        {"target": "cuda:sm_80"},
    ),
    Case(
        "S10",
        "no axis of a tensor has unit stride; stored by columns is fine, threads follow the columns",
        """
        @T.prim_func
        def main(B: T.StridedTensor((64, 64), (128, 2), "float16"), C: T.Tensor((64, 64), "float16")):
            with T.Kernel(1, threads=128) as bx:
                b = T.alloc_shared((64, 64), "float16")
                T.copy(B, b)
              # ^^^^^^^^^^^^ remark[TL601] `B`
                T.copy(b, C)
        """,
        "unit stride",
        """
        @T.prim_func
        def main(B: T.StridedTensor((64, 64), (1, 64), "float16"), C: T.Tensor((64, 64), "float16")):
            with T.Kernel(1, threads=128) as bx:
                b = T.alloc_shared((64, 64), "float16")
                T.copy(B, b)
                T.copy(b, C)
        """,
        {"target": "cuda:sm_80"},
    ),
    Case(
        "banks",
        "a 32 x 32 tile of floats read by columns, row-major and swizzled by the author",
        """
        @T.prim_func
        def main(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32")):
            with T.Kernel(1, threads=32) as bx:
                tile = T.alloc_shared((32, 32), "float32")
                T.annotate_layout({tile: lambda i, j: i * 32 + j})
                T.copy(A, tile)
                tx = T.get_thread_binding()
                for k in T.serial(32):
                    B[k, tx] = tile[tx, k]
                             # ^^^^^^^^^^^ remark[TL306] 32-way bank conflicts
        """,
        "xor",
        """
        @T.prim_func
        def main(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32")):
            with T.Kernel(1, threads=32) as bx:
                tile = T.alloc_shared((32, 32), "float32")
                T.annotate_layout({tile: lambda i, j: i * 32 + (j ^ i)})
                T.copy(A, tile)
                tx = T.get_thread_binding()
                for k in T.serial(32):
                    B[k, tx] = tile[tx, k]
        """,
        {"target": "cuda:sm_80"},
    ),
)
