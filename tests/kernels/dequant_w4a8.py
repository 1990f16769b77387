"""Int8 activations times int4 weights, two to a byte, unpacked in registers; int32 result."""

import numpy as np

import tilelang
import tilelang.language as T


def int4_to_int8(packed, position, dtype):
    """Sign-extends nibble ``position`` of a byte; a plain function, run while tracing."""
    nibble = (T.cast(packed, T.int32) >> (position * 4)) & 0xF
    return T.cast((nibble << 28) >> 28, dtype)


@tilelang.jit(out_idx=[1])
def convert_test(N, K, block_N, block_K, in_dtype, num_bits=4, threads=128):
    elements_per_byte = 8 // num_bits
    storage_dtype = T.uint8
    B_shape = (N, K // elements_per_byte)

    @T.prim_func
    def main(B: T.Tensor(B_shape, storage_dtype), C: T.Tensor((N, K), in_dtype)):
        with T.Kernel(T.ceildiv(N, block_N), threads=threads) as bx:
            B_shared = T.alloc_shared((block_N, block_K // elements_per_byte), storage_dtype)
            B_local = T.alloc_fragment((block_N, block_K // elements_per_byte), storage_dtype)
            B_dequantize = T.alloc_fragment((block_N, block_K), in_dtype)

            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=1):
                T.copy(B[bx * block_N, k * block_K // elements_per_byte], B_shared)
                T.copy(B_shared, B_local)
                for i, j in T.Parallel(block_N, block_K):
                    B_dequantize[i, j] = int4_to_int8(
                        B_local[i, j // elements_per_byte],
                        j % elements_per_byte,
                        in_dtype,
                    )
                T.copy(B_dequantize, C[bx * block_N, k * block_K])

    return main


@tilelang.jit(out_idx=[2])
def matmul_int8xint4(
    M,
    N,
    K,
    in_dtype,
    out_dtype,
    accum_dtype,
    num_bits=4,
    block_M=32,
    block_N=32,
    block_K=128,
    num_stages=1,
    threads=128,
):
    elements_per_byte = 8 // num_bits
    storage_dtype = T.uint8
    A_shape = (M, K)
    B_shape = (N, K // elements_per_byte)

    @T.prim_func
    def main(
        A: T.Tensor(A_shape, in_dtype),
        B: T.Tensor(B_shape, storage_dtype),
        Ct: T.Tensor((N, M), out_dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), in_dtype)
            B_shared = T.alloc_shared((block_N, block_K // elements_per_byte), storage_dtype)
            B_local = T.alloc_fragment((block_N, block_K // elements_per_byte), storage_dtype)
            B_dequantize = T.alloc_fragment((block_N, block_K), in_dtype)
            B_operand = T.alloc_fragment((block_N, block_K), in_dtype)
            Ct_local = T.alloc_fragment((block_N, block_M), accum_dtype)
            Ct_shared = T.alloc_shared((block_N, block_M), out_dtype)

            T.clear(Ct_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N, k * block_K // elements_per_byte], B_shared)
                T.copy(B_shared, B_local)
                for i, j in T.Parallel(block_N, block_K):
                    B_dequantize[i, j] = int4_to_int8(
                        B_local[i, j // elements_per_byte],
                        j % elements_per_byte,
                        in_dtype,
                    )
                T.copy(B_dequantize, B_operand)
                T.gemm(B_operand, A_shared, Ct_local, transpose_B=True)
            T.copy(Ct_local, Ct_shared)
            T.copy(
                Ct_shared,
                Ct[bx * block_N : (bx + 1) * block_N, by * block_M : (by + 1) * block_M],
            )

    return main


def pack_int4(values):
    """Two signed nibbles to a byte, the even column in the low half."""
    nibbles = values.astype(np.uint8) & 0xF
    return nibbles[:, ::2] | (nibbles[:, 1::2] << 4)


def unpack_int4(packed):
    nibbles = np.stack([packed & 0xF, packed >> 4], axis=-1).reshape(len(packed), -1)
    return ((nibbles.astype(np.int8) << 4) >> 4).astype(np.int64)


def inputs_convert(rng, N, K, **_):
    return (pack_int4(rng.integers(-8, 8, (N, K))),)


def inputs_matmul(rng, M, N, K, **_):
    a = rng.integers(-128, 128, (M, K)).astype(np.int8)
    return a, pack_int4(rng.integers(-8, 8, (N, K)))


def reference_convert(b, **_):
    return (unpack_int4(b),)


def reference_matmul(a, b, **_):
    return (unpack_int4(b) @ a.astype(np.int64).T,)
