"""What has to be underlined: each line with a mark, and no other."""

import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(A, block=64):
    N = T.const("N")
    A: T.Tensor((N,), T.float32)
    B = T.empty((N,), T.floot32)  # wrong
    with T.Kernel(T.ceildiv(N, block), threds=128) as bx:  # wrong
        tile = T.aloc_shared((block,), T.float32)  # wrong
        other = T.alloc_shared(shape=(block,), dtyp=T.float32)  # wrong
        third = T.alloc_fragment((block,), T.float32)
        T.copy(A[bx * block])  # wrong
        T.copy(A[bx * block], tile).wait()  # wrong
        T.copy(A[bx * block], tile, coalesced=4)  # wrong
        T.gemm(tile, tile, other, policy=T.GemmWarpPolicy.FullRows)  # wrong
        for i in T.Paralel(block):  # wrong
            B[i] = third.shap[0]  # wrong
        with T.Parallel(block):  # wrong
            T.clear(tile)
        T.reduce_sum(tile, other, dim=0, axis=1)  # wrong
    return B


kernel.compil(N=64)  # wrong
kernel.compile(N=64).get_kernel_sauce()  # wrong
tilelang.jit(out_index=[1])  # wrong
tilelang.autotune(warmup=1)  # wrong
tilelang.compile()  # wrong
tilelang.jitt  # wrong
