"""Statement rules of a traced function: scalars, macros, ranges, swaps, while, constant if."""

import numpy as np

import tilelang.language as T

SCALARS = (
    ("int8", T.int8),
    ("int16", T.int16),
    ("int32", T.int32),
    ("int64", T.int64),
    ("uint8", T.uint8),
    ("uint16", T.uint16),
    ("uint32", T.uint32),
    ("float16", T.float16),
    ("float32", T.float32),
    ("float64", T.float64),
)


def scalar_argument(dtype):
    """One runtime scalar of the given dtype, added to every element in float64."""

    @T.prim_func
    def main(A: T.Tensor((16,), T.float64), B: T.Tensor((16,), T.float64), x: dtype):
        with T.Kernel(1, threads=16) as _:
            for i in T.Parallel(16):
                B[i] = A[i] + T.cast(x, T.float64)

    return main


def many_scalars():
    @T.prim_func
    def main(
        a: T.int8,
        b: T.int32,
        c: T.int64,
        d: T.uint8,
        flag: T.bool,
        x: T.float32,
        y: T.float64,
        Out: T.Tensor((7,), T.float64),
    ):
        with T.Kernel(1, threads=1) as _:
            Out[0] = a
            Out[1] = b
            Out[2] = c
            Out[3] = d
            Out[4] = T.if_then_else(flag, 1.0, 0.0)
            Out[5] = x
            Out[6] = y

    return main


@T.macro
def square_plus(x, y):
    squared = x * x
    return squared + y


@T.macro
def divide(x, y):
    return x // y, x % y


@T.macro
def increment(target: T.Ref, amount):
    target += amount


def macros(N):
    """Macros return one value or several, and write through T.Ref to variables and elements."""

    @T.prim_func
    def main(A: T.Tensor((N,), T.int32), B: T.Tensor((N,), T.int32)):
        with T.Kernel(1, threads=1) as _:
            count = T.alloc_var(T.int32, 0)
            for i in T.serial(N):
                quotient, remainder = divide(A[i], 7)
                B[i] = square_plus(quotient, remainder)
                increment(count, 2)
                increment(B[i], count)

    return main


def ranges(N):
    """Stepped, offset and falling ranges; each writes its own row of B."""

    @T.prim_func
    def main(A: T.Tensor((N,), T.int32), B: T.Tensor((5, N), T.int32)):
        with T.Kernel(1, threads=1) as _:
            T.clear(B)
            for i in range(0, N, 3):
                B[0, i] = A[i]
            for i in T.serial(2, N):
                B[1, i] = A[i] + i
            for i in range(N - 1, -1, -2):
                B[2, i] = A[i] * 2
            for i in T.unroll(N):
                if i % 2 == 0:
                    continue
                B[3, i] = A[i]
            for i in range(N):
                if A[i] < 0:
                    break
                B[4, i] = A[i]

    return main


def bindings(N):
    """Lets are by value, swaps read before they store, chains and tuples unpack."""

    @T.prim_func
    def main(A: T.Tensor((N,), T.int32), B: T.Tensor((N,), T.int32)):
        with T.Kernel(1, threads=1) as _:
            low = T.alloc_var(T.int32, 0)
            high = T.alloc_var(T.int32, N - 1)
            T.copy(A, B)
            while low < high:
                B[low], B[high] = B[high], B[low]
                low += 1
                high -= 1
            first = last = B[0]
            (a, b), c = (first + 1, last + 2), 3
            B[0] = a + b + c
            low, high = high, low
            B[1] = low - high

    return main


def constant_if(N, negate, scale=None):
    """Python conditions choose what is traced; device conditions become device code."""

    @T.prim_func
    def main(A: T.Tensor((N,), T.int32), B: T.Tensor((N,), T.int32)):
        with T.Kernel(1, threads=32) as _:
            for i in T.Parallel(N):
                if negate:
                    B[i] = -A[i]
                else:
                    B[i] = A[i]
                if scale is not None and scale > 1:
                    B[i] = B[i] * scale
                if -4 <= A[i] < 4 and not (A[i] == 0 or A[i] == 1):
                    B[i] += 100
                elif A[i] == 0:
                    B[i] = 7
                B[i] = B[i] if i % 2 == 0 else B[i] + 1

    return main


def metaprogramming(N, coefficients):
    """A Python sequence unrolls at trace time; helpers and comprehensions run then too."""
    powers = [lambda x, p=power: raise_to(x, p) for power in range(len(coefficients))]

    @T.prim_func
    def main(A: T.Tensor((N,), T.int32), B: T.Tensor((N,), T.int32)):
        with T.Kernel(1, threads=32) as _:
            for i in T.Parallel(N):
                terms = [c * raised(A[i]) for c, raised in zip(coefficients, powers, strict=True)]
                B[i] = sum(terms)
            for offset in [0, len(powers)]:
                B[offset] = B[offset] + 1

    return main


def raise_to(x, power):
    result = 1
    for _ in range(power):
        result = result * x
    return result


def slice_with_step(N=16):
    @T.prim_func
    def main(A: T.Tensor((N,), T.int32), B: T.Tensor((N // 2,), T.int32)):
        with T.Kernel(1, threads=1) as _:
            T.copy(A[0:N:2], B)

    return main


def zero_step(N=16):
    @T.prim_func
    def main(A: T.Tensor((N,), T.int32)):
        with T.Kernel(1, threads=1) as _:
            for i in range(0, N, 0):
                A[i] = 0

    return main


def infinite_while(N=16):
    @T.prim_func
    def main(A: T.Tensor((N,), T.int32)):
        with T.Kernel(1, threads=1) as _:
            while True:
                A[0] = A[0] + 1

    return main


def ambiguous_division(N=16):
    @T.prim_func
    def main(A: T.Tensor((N,), T.int32)):
        with T.Kernel(1, threads=1) as _:
            for i in T.serial(N):
                A[i] = A[i] / 2

    return main


def update_without_index(N=16):
    @T.prim_func
    def main(A: T.Tensor((N,), T.int32)):
        with T.Kernel(1, threads=1) as _:
            A += 1

    return main


def wrong_rank(N=16):
    @T.prim_func
    def main(A: T.Tensor((N, N), T.int32)):
        with T.Kernel(1, threads=1) as _:
            A[0] = 1

    return main


def used_outside_branch(N=16):
    @T.prim_func
    def main(A: T.Tensor((N,), T.int32)):
        with T.Kernel(1, threads=1) as _:
            for i in T.serial(N):
                if A[i] > 0:
                    doubled = A[i] * 2
                A[i] = doubled

    return main


def inputs(rng, N, **_):
    return (rng.integers(-50, 50, N).astype(np.int32),)


def inputs_nonzero_tail(rng, N, **_):
    values = rng.integers(0, 50, N).astype(np.int32)
    values[N // 2] = -1
    return (values,)


def inputs_scalars(rng, **_):
    return (-7, 123456, -(2**40), 200, True, 0.25, 1e-9)


def inputs_scalar(rng, dtype, **_):
    return (rng.standard_normal(16), 3)


def reference_scalars(*scalars, **_):
    return (np.array([float(s) for s in scalars]),)


def reference_scalar(a, x, **_):
    return (a + x,)


def reference_macros(a, **_):
    quotient, remainder = a // 7, a % 7
    return (quotient * quotient + remainder + 2 * np.arange(1, len(a) + 1, dtype=np.int32),)


def reference_ranges(a, N, **_):
    out = np.zeros((5, N), np.int32)
    i = np.arange(N, dtype=np.int32)
    out[0, ::3] = a[::3]
    out[1, 2:] = a[2:] + i[2:]
    out[2, ::-2] = a[::-2] * 2
    out[3, 1::2] = a[1::2]
    stop = int(np.argmax(a < 0)) if (a < 0).any() else N
    out[4, :stop] = a[:stop]
    return (out,)


def reference_bindings(a, N, **_):
    out = a[::-1].copy()
    out[0] = 2 * out[0] + 6
    low, high = N // 2, N - 1 - N // 2
    out[1] = high - low
    return (out,)


def reference_constant_if(a, negate, scale=None, **_):
    out = -a if negate else a.copy()
    out = out * scale if scale is not None and scale > 1 else out
    near = (a >= -4) & (a < 4) & (a != 0) & (a != 1)
    out = np.where(near, out + 100, np.where(a == 0, 7, out))
    return ((out + np.arange(len(a)) % 2).astype(np.int32),)


def reference_metaprogramming(a, coefficients, **_):
    out = np.sum([c * a**p for p, c in enumerate(coefficients)], axis=0)
    out[0] += 1
    out[len(coefficients)] += 1
    return (out,)
