"""A tile kernel inside PyTorch autograd: y = relu(x @ w) with its own backward pass.

    python examples/autograd.py --m 101 --n 53 --k 77

One kernel factory makes all three products: the forward pass, and the gradients of x and of w,
which are products with a transposed operand. Gradients are compared with those PyTorch finds in
float64, through two layers.
"""

import argparse
import sys

import torch

import tilelang
import tilelang.language as T

TOLERANCE = 1e-5


@tilelang.jit(out_idx=[-1])
def matmul(M, N, K, trans_A=False, trans_B=False, relu=False, block=32):
    A_shape = (K, M) if trans_A else (M, K)
    B_shape = (N, K) if trans_B else (K, N)

    @T.prim_func
    def main(
        A: T.Tensor(A_shape, T.float32),
        B: T.Tensor(B_shape, T.float32),
        C: T.Tensor((M, N), T.float32),
    ):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            A_tile = T.alloc_shared((block, block), T.float32)
            B_tile = T.alloc_shared((block, block), T.float32)
            C_tile = T.alloc_fragment((block, block), T.float32)

            T.clear(C_tile)
            for k in T.Pipelined(T.ceildiv(K, block), num_stages=2):
                # Python conditions choose which copy is traced; none is left in the kernel.
                if trans_A:
                    T.copy(A[k * block, by * block], A_tile)
                else:
                    T.copy(A[by * block, k * block], A_tile)
                if trans_B:
                    T.copy(B[bx * block, k * block], B_tile)
                else:
                    T.copy(B[k * block, bx * block], B_tile)
                T.gemm(A_tile, B_tile, C_tile, transpose_A=trans_A, transpose_B=trans_B)
            if relu:
                for i, j in T.Parallel(block, block):
                    C_tile[i, j] = T.max(C_tile[i, j], 0)
            T.copy(C_tile, C[by * block, bx * block])

    return main


def matmul_reference(A, B, trans_A=False, trans_B=False, relu=False):
    C = (A.T if trans_A else A) @ (B.T if trans_B else B)
    return torch.relu(C) if relu else C


class LinearReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        (M, K), N = x.shape, w.shape[1]
        y = matmul(M, N, K, relu=True)(x, w)
        ctx.save_for_backward(x, w, y)
        return y

    @staticmethod
    def backward(ctx, *grads):
        (dy,) = grads
        x, w, y = ctx.saved_tensors
        (M, K), N = x.shape, w.shape[1]
        # Autograd may hand over a broadcast or transposed view; kernels take contiguous tensors.
        masked = torch.where(y > 0, dy, 0).contiguous()
        dx = matmul(M, K, N, trans_B=True)(masked, w)
        dw = matmul(K, N, M, trans_A=True)(x, masked)
        return dx, dw


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--m", type=int, default=101)
    parser.add_argument("--n", type=int, default=53)
    parser.add_argument("--k", type=int, default=77)
    args = parser.parse_args()

    generator = torch.Generator().manual_seed(0)
    shapes = ((args.m, args.k), (args.k, args.n), (args.n, args.k))
    leaves = [torch.randn(shape, generator=generator).requires_grad_() for shape in shapes]
    exact = [leaf.detach().double().requires_grad_() for leaf in leaves]

    x, w1, w2 = leaves
    out = LinearReLU.apply(LinearReLU.apply(x, w1), w2)
    out.square().mean().backward()
    x, w1, w2 = exact
    expected = torch.relu(torch.relu(x @ w1) @ w2)
    expected.square().mean().backward()

    errors = {"forward": relative_error(out, expected)}
    for name, leaf, truth in zip(("d x", "d w1", "d w2"), leaves, exact, strict=True):
        errors[name] = relative_error(leaf.grad, truth.grad)
    for name, error in errors.items():
        print(f"{name:<8} relative error {error:.1e}")
    print(f"at most {TOLERANCE:.0e} is allowed")
    return 0 if max(errors.values()) <= TOLERANCE else 1


def relative_error(got, expected):
    return float(((got.double() - expected).norm() / expected.norm()).detach())


if __name__ == "__main__":
    sys.exit(main())
