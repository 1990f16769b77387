"""Reductions across the lanes of a warp: 32 lanes, or the 64 of a wide wavefront."""

import numpy as np

import tilelang
import tilelang.language as T

INTEGER_KINDS = ("bitand", "bitor")


@tilelang.jit(out_idx=[1])
def warp_reduce(kind, threads=32):
    dtype = T.int32 if kind in INTEGER_KINDS else T.float32
    reducers = {
        "sum": T.warp_reduce_sum,
        "max": T.warp_reduce_max,
        "min": T.warp_reduce_min,
        "bitand": T.warp_reduce_bitand,
        "bitor": T.warp_reduce_bitor,
    }
    reduce = reducers[kind]

    @T.prim_func
    def main(A: T.Tensor((threads,), dtype), B: T.Tensor((threads,), dtype)):
        with T.Kernel(1, threads=threads) as _:
            tx = T.get_thread_binding(0)
            lane_value = T.alloc_local((1,), dtype)
            lane_value[0] = A[tx]
            lane_value[0] = reduce(lane_value[0])
            B[tx] = lane_value[0]

    return main


def inputs(rng, kind, threads=32, **_):
    if kind in INTEGER_KINDS:
        return (rng.integers(0, 2**30, threads).astype(np.int32),)
    return (rng.standard_normal(threads).astype(np.float32),)


def reference(a, kind, threads=32, **_):
    combine = {
        "sum": np.add,
        "max": np.maximum,
        "min": np.minimum,
        "bitand": np.bitwise_and,
        "bitor": np.bitwise_or,
    }[kind]
    warps = a.reshape(-1, 32)
    return (np.repeat(combine.reduce(warps, axis=1), 32),)
