"""Small kernels the runtime is tested with, one per way of writing them."""

import tilelang
import tilelang.language as T


def scale_factory(n, factor=2.0, dtype="float32"):
    @T.prim_func
    def scale(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
            for i in T.Parallel(32):
                B[bx * 32 + i] = A[bx * 32 + i] * factor

    return scale


lazy_scale = tilelang.jit(out_idx=[-1], target="cpu")(scale_factory)


@tilelang.jit(out_idx=[-1], target="cpu")
def factory_with_target(n, target):
    return scale_factory(n, {"up": 2.0, "down": 0.5}[target])


@tilelang.jit(target="cpu")
def eager_scale(A, factor=2.0, block=32):
    n = T.const("n")
    A: T.Tensor((n,), "float32")
    B = T.empty((n,), "float32")
    with T.Kernel(T.ceildiv(n, block), threads=32) as bx:
        for i in T.Parallel(block):
            B[bx * block + i] = A[bx * block + i] * factor
    return B


@tilelang.jit(target="cpu")
def runtime_scale(A, factor):
    n = T.dynamic("n")
    A: T.Tensor((n,), "float32")
    factor: T.float32
    B = T.empty((n,), "float32")
    with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
        for i in T.Parallel(32):
            B[bx * 32 + i] = A[bx * 32 + i] * factor
    return B


@tilelang.jit(out_idx=[2], target="cpu")
def kernel_with_out_idx(
    A: T.Tensor((32, 16), "float32"),
    B: T.Tensor((16, 48), "float32"),
    C: T.Tensor((32, 48), "float32"),
):
    with T.Kernel(1, threads=128):
        A_tile = T.alloc_shared((32, 16), "float32")
        B_tile = T.alloc_shared((16, 48), "float32")
        C_tile = T.alloc_fragment((32, 48), "float32")
        T.clear(C_tile)
        for _ in T.serial(1):
            T.copy(A, A_tile)
            T.copy(B, B_tile)
            T.gemm(A_tile, B_tile, C_tile)
        T.copy(C_tile, C)


@tilelang.jit(target="cpu")
def two_results(A):
    n = T.const("n")
    A: T.Tensor((n,), "float32")
    B = T.empty((n,), "float32")
    C = T.empty((n,), "float32")
    with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
        for i in T.Parallel(32):
            B[bx * 32 + i] = A[bx * 32 + i] + 1.0
            C[bx * 32 + i] = A[bx * 32 + i] - 1.0
    return B, C


@tilelang.jit(target="cpu")
def in_place(A):
    n = T.dynamic("n")
    A: T.Tensor((n,), "float32")
    with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
        for i in T.Parallel(32):
            A[bx * 32 + i] = A[bx * 32 + i] + 1.0


@tilelang.jit(target="cpu")
def checked(A):
    n = T.dynamic("n")
    A: T.Tensor((n,), "float32")
    B = T.empty((n,), "float32")
    with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
        T.assume(n % 4 == 0)
        for i in T.Parallel(32):
            T.device_assert(A[bx * 32 + i] >= 0.0, "negative input")
            B[bx * 32 + i] = A[bx * 32 + i]
    return B
