"""What is checked on a GPU: the printer and the device headers, one small kernel each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

import tilelang.language as T
from tests.codegen import kernels
from tests.support.device import device_func
from tilelang.ir.device_rows_mma import mma_name, type_combinations
from tilelang.layout.atoms import ATOMS
from tilelang.layout.instructions import MMA_SYNC

_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def numpy_dtype(name: str) -> Any:
    """The NumPy dtype of a dtype, those of ml_dtypes included."""
    name = {"float4_e2m1_unpacked": "float4_e2m1fn"}.get(name, name)
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def as_bits(array: np.ndarray) -> np.ndarray:
    """An array in a dtype that `numpy.save` knows: small floats as their bits."""
    if array.dtype.kind in "fiub" and array.dtype.isbuiltin == 1:
        return array
    return array.view(_BITS[array.dtype.itemsize])


def _check(name: str, kernel: Any, arrays: dict[str, Any], expected: dict[str, Any],
           **more: Any) -> dict[str, Any]:  # fmt: skip
    maps = more.pop("maps", {})
    return {
        "name": name, "func": device_func(kernel, maps=maps),
        "arrays": {k: as_bits(v) for k, v in arrays.items()},
        "expected": {k: as_bits(v) for k, v in expected.items()}, **more,
    }  # fmt: skip


def scaling() -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(1)
    for dtype in ("float16", "bfloat16", "float32"):
        x = rng.standard_normal((10, 1024)).astype(numpy_dtype(dtype))
        y = x.astype(np.float32) * np.float32(0.5) + np.float32(1)
        yield _check(f"scale {dtype}", kernels.scale(dtype), {"A": x, "B": np.zeros_like(y)},
                     {"B": y}, values={"alpha": 0.5, "m": 10})  # fmt: skip


def gemms() -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(2)
    for m, n, k, arch, repeat in (
        (256, 384, 160, None, 0), (4096, 4096, 4096, "sm_80", 30), (4096, 4096, 4096, None, 30),
    ):  # fmt: skip
        a = rng.integers(-4, 5, (m, k)).astype(np.float16)
        b = rng.integers(-4, 5, (k, n)).astype(np.float16)
        if m > 256:  # few different tiles, so that the bundle stays small
            a, b = (
                np.tile(a[:64, :64], (m // 64, k // 64)),
                np.tile(b[:64, :64], (k // 64, n // 64)),
            )
        c = a[:64].astype(np.float32) @ b[:, :64].astype(np.float32)
        c = (
            np.tile(c, (m // 64, n // 64))
            if m > 256
            else a.astype(np.float32) @ b.astype(np.float32)
        )
        yield _check(f"gemm {m}x{n}x{k} {arch or ''}", kernels.gemm(m, n, k),
                     {"A": a, "B": b, "C": np.zeros((m, n), np.float32)}, {"C": c}, repeat=repeat,
                     arch=arch)  # fmt: skip


def matrices() -> Iterator[dict[str, Any]]:
    """Every matrix instruction, with the fragments of `layout.atoms`."""
    rng = np.random.default_rng(3)
    for atom in ATOMS:
        for accumulator, a_type, b_type in type_combinations(atom):
            name = mma_name(MMA_SYNC, atom, accumulator, a_type, b_type)
            a = _operand(rng, (atom.m, atom.k), a_type)
            b = _operand(rng, (atom.k, atom.n), b_type)
            wide = np.float64 if accumulator.startswith("float") else np.int64
            c = _operand(rng, (atom.m, atom.n), accumulator)
            d = (c.astype(wide) + a.astype(wide) @ b.astype(wide)).astype(numpy_dtype(accumulator))
            tables = {
                f"T{x}": _table(fragment) for x, fragment in
                (("a", atom.a), ("b", atom.b), ("c", atom.c))
            }  # fmt: skip
            kernel = _mma_kernel(name, atom, accumulator, a_type, b_type)
            arrays = {"A": _packed(a, a_type), "B": _packed(b, b_type), "D": c, **tables}
            yield _check(name, kernel, arrays, {"D": d})


def _operand(rng: Any, shape: tuple[int, int], dtype: str) -> np.ndarray:
    low, high = (0, 8) if dtype.startswith("uint") else (-4, 5)
    numbers = rng.integers(low, high, shape)
    stored = {"tfloat32": "float32", "int4": "int8", "uint4": "uint8"}.get(dtype, dtype)
    return numbers.astype(np.float32).astype(numpy_dtype(stored))


def _packed(array: np.ndarray, dtype: str) -> np.ndarray:
    if dtype not in ("int4", "uint4"):
        return array
    flat = array.reshape(-1).astype(np.int64) & 15
    return (flat[0::2] | flat[1::2] << 4).astype(np.uint8)


def _table(fragment: Any) -> np.ndarray:
    """Flat element of each (lane, slot)."""
    rows, columns = fragment.shape
    count = rows * columns // 32
    out = np.full((32, count), -1, np.int32)
    for i in range(rows):
        for j in range(columns):
            ((lane, slot),) = fragment.owners(i, j)
            out[lane, slot] = i * columns + j
    assert (out >= 0).all()
    return out.reshape(-1)


def _mma_kernel(name: str, atom: Any, accumulator: str, a_type: str, b_type: str) -> Any:
    m, n, k = atom.m, atom.n, atom.k
    na, nb, nc = m * k // 32, k * n // 32, m * n // 32
    a_type, b_type = ({"tfloat32": "float32"}.get(t, t) for t in (a_type, b_type))

    @T.prim_func
    def main(
        A: T.Tensor((m * k,), a_type), B: T.Tensor((k * n,), b_type),
        D: T.Tensor((m * n,), accumulator), Ta: T.Tensor((32 * na,), "int32"),
        Tb: T.Tensor((32 * nb,), "int32"), Tc: T.Tensor((32 * nc,), "int32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=32) as _:
            tx = T.get_thread_binding()
            a = T.alloc_local((na,), a_type)
            b = T.alloc_local((nb,), b_type)
            d = T.alloc_local((nc,), accumulator)
            for i in T.unroll(na):
                a[i] = A[Ta[tx * na + i]]
            for i in T.unroll(nb):
                b[i] = B[Tb[tx * nb + i]]
            for i in T.unroll(nc):
                d[i] = D[Tc[tx * nc + i]]
            T.call_extern("handle", name, d[0:nc], a[0:na], b[0:nb])
            for i in T.unroll(nc):
                D[Tc[tx * nc + i]] = d[i]

    return main


def _cast_kernel(source: str, target: str, count: int, lanes: int) -> Any:
    @T.prim_func
    def main(A: T.Tensor((count,), source), B: T.Tensor((count,), target),
             C: T.Tensor((count,), "float32")):  # fmt: skip
        with T.Kernel(1, threads=128) as _:
            tx = T.get_thread_binding()
            for i in T.serial(count // 128 // lanes):
                for v in T.vectorized(lanes):
                    B[(i * 128 + tx) * lanes + v] = T.cast(A[(i * 128 + tx) * lanes + v], target)
                for v in T.vectorized(lanes):
                    C[(i * 128 + tx) * lanes + v] = T.cast(B[(i * 128 + tx) * lanes + v], "float32")

    return main


def _odd_numbers() -> np.ndarray:
    rng = np.random.default_rng(4)
    special = np.array([
        0.0, -0.0, 1.0, -1.0, 0.5, 448.0, 464.0, 480.0, 1e4, -1e4, 57344.0, 61440.0, 1e9, -1e9,
        1e-3, -1e-3, 1e-8, -1e-8, 6.1e-5, 5.96e-8, 2.0**-9, 2.0**-10, np.inf, -np.inf, np.nan,
        2.5, 3.5, 5.0, 6.0, 7.0, 28.0, 15.5,
    ], np.float32)  # fmt: skip
    scales = np.float32(2.0) ** rng.integers(-20, 17, 2048 - len(special))
    noise = (rng.standard_normal(2048 - len(special)) * scales).astype(np.float32)
    return np.concatenate([special, noise])


# Formats that saturate, as on the CPU: infinities and what is too large become the largest value.
_SATURATING = {
    "float8_e3m4": 15.5, "float8_e4m3fn": 448.0, "float8_e4m3fnuz": 240.0,
    "float8_e4m3b11fnuz": 30.0, "float8_e5m2": 57344.0, "float8_e5m2fnuz": 57344.0,
    "float6_e2m3fn": 7.5, "float6_e3m2fn": 28.0,
}  # fmt: skip
_NO_NAN = ("float6_e2m3fn", "float6_e3m2fn")


def conversions() -> Iterator[dict[str, Any]]:
    x = _odd_numbers()
    for target in ("float16", "bfloat16", *_SATURATING):
        given = np.where(np.isnan(x), np.float32(1), x) if target in _NO_NAN else x
        top = _SATURATING.get(target, np.inf)
        clipped = np.clip(given, -top, top).astype(np.float32)
        with np.errstate(over="ignore"):
            y = clipped.astype(numpy_dtype(target))
        back = y.astype(np.float32)
        for lanes in (1, 8):
            arrays = {"A": given, "B": np.zeros_like(y), "C": np.zeros_like(back)}
            # A NaN has more than one code: what it reads back as is compared.
            kernel = _cast_kernel("float32", target, 2048, lanes)
            yield _check(f"float32 to {target} x{lanes}", kernel, arrays, {"C": back})
    integers = np.random.default_rng(5).integers(-(2**31), 2**31, 2048).astype(np.int32)
    for target in ("int8", "uint8", "int16", "int64", "float16", "bfloat16", "float64"):
        if target in ("float16", "bfloat16"):
            given = integers % 4097
        else:
            given = integers
        y = given.astype(np.float32 if target == "bfloat16" else numpy_dtype(target))
        y = y.astype(numpy_dtype(target))
        back = y.astype(np.float32)
        arrays = {"A": given.astype(np.int32), "B": np.zeros_like(y), "C": np.zeros_like(back)}
        yield _check(f"int32 to {target}", _cast_kernel("int32", target, 2048, 4), arrays,
                     {"B": y, "C": back})  # fmt: skip
    nibbles = integers % 16 - 8
    for target, values in (("int4", nibbles), ("uint4", nibbles + 8)):
        arrays = {"A": values.astype(np.int32), "B": np.zeros(1024, np.uint8),
                  "C": np.zeros(2048, np.float32)}  # fmt: skip
        packed = _packed(values, target)
        yield _check(f"int32 to {target}", _cast_kernel("int32", target, 2048, 2), arrays,
                     {"B": packed, "C": values.astype(np.float32)})  # fmt: skip


_FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[float, float]]] = {
    "exp": (np.exp, (-5, 5)), "exp2": (np.exp2, (-5, 5)), "exp10": (lambda x: 10.0**x, (-3, 3)),
    "log": (np.log, (0.1, 9)), "log2": (np.log2, (0.1, 9)), "log10": (np.log10, (0.1, 9)),
    "log1p": (np.log1p, (-0.5, 9)), "sqrt": (np.sqrt, (0, 9)),
    "rsqrt": (lambda x: 1 / np.sqrt(x), (0.1, 9)), "sin": (np.sin, (-9, 9)),
    "cos": (np.cos, (-9, 9)), "tan": (np.tan, (-1, 1)), "asin": (np.arcsin, (-1, 1)),
    "acos": (np.arccos, (-1, 1)), "atan": (np.arctan, (-9, 9)), "sinh": (np.sinh, (-3, 3)),
    "cosh": (np.cosh, (-3, 3)), "tanh": (np.tanh, (-3, 3)), "asinh": (np.arcsinh, (-9, 9)),
    "acosh": (np.arccosh, (1, 9)), "atanh": (np.arctanh, (-0.9, 0.9)), "floor": (np.floor, (-9, 9)),
    "ceil": (np.ceil, (-9, 9)), "trunc": (np.trunc, (-9, 9)), "round": (np.rint, (-9, 9)),
    "abs": (np.abs, (-9, 9)), "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), (-9, 9)),
}  # fmt: skip


def functions() -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(6)
    for name, (reference, (low, high)) in _FUNCTIONS.items():
        for dtype, tolerance in (("float32", 1e-6), ("float16", 1e-3)):
            x = rng.uniform(low, high, 256).astype(dtype)
            y = reference(x.astype(np.float64)).astype(dtype)
            kernel = _function_kernel(getattr(T, name), dtype)
            arrays = {"A": x, "B": np.zeros_like(x)}
            yield _check(f"T.{name} {dtype}", kernel, arrays, {"B": y}, tolerance=tolerance)


def _function_kernel(function: Any, dtype: str) -> Any:
    @T.prim_func
    def main(A: T.Tensor((256,), dtype), B: T.Tensor((256,), dtype)):
        with T.Kernel(2, threads=128) as bx:
            i = bx * 128 + T.get_thread_binding()
            B[i] = function(A[i])

    return main


def integers() -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(7)
    for dtype in ("int8", "int32", "int64", "uint32"):
        low = 0 if dtype.startswith("u") else -100
        a = rng.integers(low, 100, 256).astype(dtype)
        b = rng.integers(1, 20, 256).astype(dtype)
        if low:
            b[::2] = -b[::2]
        expected = {"Q": a // b, "R": a % b, "S": a // 8, "X": (a * b + a - b).astype(dtype)}
        arrays = {"A": a, "B": b, **{k: np.zeros_like(v) for k, v in expected.items()}}
        yield _check(f"division of {dtype}", _division_kernel(dtype), arrays, expected)


def _division_kernel(dtype: str) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((256,), dtype), B: T.Tensor((256,), dtype), Q: T.Tensor((256,), dtype),
        R: T.Tensor((256,), dtype), S: T.Tensor((256,), dtype), X: T.Tensor((256,), dtype),
    ):  # fmt: skip
        with T.Kernel(2, threads=128) as bx:
            i = bx * 128 + T.get_thread_binding()
            Q[i] = A[i] // B[i]
            R[i] = A[i] % B[i]
            S[i] = A[i] // 8
            X[i] = A[i] * B[i] + A[i] - B[i]

    return main


def warps() -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(8)
    for dtype in ("int32", "float32", "float16", "int64"):
        x = rng.integers(-50, 50, 128).astype(dtype)
        rows = x.reshape(4, 32)

        def spread(v: Any, dtype: str = dtype) -> Any:
            return np.repeat(v, 32).astype(dtype)

        expected = {
            "S": spread(rows.sum(1)), "M": spread(rows.max(1)),
            "P": rows.reshape(16, 8).min(1).repeat(8).astype(dtype),
            "X": rows[:, np.arange(32) ^ 5].reshape(-1),
            "B": rows[:, [3]].repeat(32, 1).reshape(-1),
            "U": np.where(np.arange(32) >= 2, np.roll(rows, 2, 1), rows).reshape(-1),
            "D": np.where(np.arange(32) < 30, np.roll(rows, -2, 1), rows).reshape(-1),
        }  # fmt: skip
        votes = ((rows > 0) * (1 << np.arange(32, dtype=np.uint64))).sum(1).astype(np.uint32)
        expected["V"] = votes.repeat(32)
        anyone = (rows > 48).any(1).repeat(32)
        expected["N"] = ((x > 0).sum() + anyone * 1000).astype(np.int32)
        arrays = {"A": x, **{k: np.zeros_like(v) for k, v in expected.items()}}
        yield _check(f"warp exchange of {dtype}", _warp_kernel(dtype), arrays, expected)


def _warp_kernel(dtype: str) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((128,), dtype), S: T.Tensor((128,), dtype), M: T.Tensor((128,), dtype),
        P: T.Tensor((128,), dtype), X: T.Tensor((128,), dtype), B: T.Tensor((128,), dtype),
        U: T.Tensor((128,), dtype), D: T.Tensor((128,), dtype), V: T.Tensor((128,), "uint32"),
        N: T.Tensor((128,), "int32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128) as _:
            t = T.get_thread_binding()
            S[t] = T.warp_reduce_sum(A[t])
            M[t] = T.warp_reduce_max(A[t])
            P[t] = T.warp_reduce_min(A[t], 8)
            X[t] = T.shfl_xor(A[t], 5)
            B[t] = T.shfl_sync(A[t], 3)
            U[t] = T.shfl_up(A[t], 2)
            D[t] = T.shfl_down(A[t], 2)
            V[t] = T.ballot_sync(A[t] > 0)
            N[t] = T.syncthreads_count(A[t] > 0) + T.any_sync(A[t] > 48) * 1000

    return main


def atomics() -> Iterator[dict[str, Any]]:
    for dtype in ("int32", "uint32", "int64", "float32", "float64", "float16", "bfloat16", "int8"):
        numpy = numpy_dtype(dtype)
        t, bx = np.meshgrid(np.arange(128), np.arange(4))
        if dtype.startswith("uint"):
            low = (t % 100).astype(np.int64) - bx
            low = low.astype(np.uint32)
        else:
            low = t % 100 - bx
        expected = {
            "S": np.full(8, 64).astype(numpy),
            "M": np.array([(t % 100 + bx)[t % 8 == i].max() for i in range(8)]).astype(numpy),
            "L": np.array([min(50, low[t % 8 == i].min()) for i in range(8)]).astype(numpy),
        }
        start = {"S": np.zeros(8, numpy), "M": np.zeros(8, numpy),
                 "L": np.full(8, 50).astype(numpy)}  # fmt: skip
        yield _check(f"atomics of {dtype}", _atomic_kernel(dtype), start, expected)
    for dtype in ("float16", "bfloat16", "float32"):
        numpy = numpy_dtype(dtype)
        four = np.tile(np.array([8, 16, 24, 32]), 16).astype(numpy)
        two = np.tile(np.array([8, 16, 0, 0]), 16).astype(numpy)
        zero = np.zeros(64, numpy)
        yield _check(f"vector atomics of {dtype}", _pair_kernel(dtype), {"A": zero, "B": zero},
                     {"A": four, "B": two})  # fmt: skip


def _atomic_kernel(dtype: str) -> Any:
    @T.prim_func
    def main(S: T.Tensor((8,), dtype), M: T.Tensor((8,), dtype), L: T.Tensor((8,), dtype)):
        with T.Kernel(4, threads=128) as bx:
            t = T.get_thread_binding()
            T.atomic_add(S[t % 8], T.cast(1, dtype))
            T.atomic_max(M[t % 8], T.cast(t % 100 + bx, dtype))
            T.atomic_min(L[t % 8], T.cast(t % 100 - bx, dtype))

    return main


def _pair_kernel(dtype: str) -> Any:
    @T.prim_func
    def main(A: T.Tensor((64,), dtype), B: T.Tensor((64,), dtype)):
        with T.Kernel(8, threads=16) as _:
            t = T.get_thread_binding()
            v = T.alloc_local((4,), dtype)
            for i in T.unroll(4):
                v[i] = T.cast(i + 1, dtype)
            T.atomic_addx4(A[t * 4], v[0:4])
            T.atomic_addx2(B[t * 4], v[0:2])

    return main


def grids() -> Iterator[dict[str, Any]]:
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(64, threads=64) as bx:
            t = T.get_thread_binding()
            for step in T.serial(5):
                if t == 0:
                    A[bx] = A[bx] + step + bx
                T.sync_grid()
                if t == 0:
                    B[bx] = B[bx] + A[(bx + 1) % 64]
                T.sync_grid()

    a, b = np.zeros(64, np.int32), np.zeros(64, np.int32)
    for step in range(5):
        a = a + step + np.arange(64, dtype=np.int32)
        b = b + np.roll(a, -1)
    zero = np.zeros(64, np.int32)
    yield _check("grid barrier", main, {"A": zero, "B": zero},
                 {"A": a.astype(np.int32), "B": b.astype(np.int32)})  # fmt: skip


def hopper() -> Iterator[dict[str, Any]]:
    """TMA into swizzled shared memory, an mbarrier, WGMMA from shared memory and registers."""
    rng = np.random.default_rng(9)
    a = rng.integers(-4, 5, (128, 320)).astype(np.float16)
    b = rng.integers(-4, 5, (256, 320)).astype(np.float16)
    zero = np.zeros((128, 256), np.float32)
    c = a.astype(np.float32) @ b.astype(np.float32).T
    yield _check("tma and wgmma", kernels.hopper_gemm(128, 256, 320), {"A": a, "B": b, "C": zero},
                 {"C": c}, maps={"A_map": ("A", (64, 64), 128), "B_map": ("B", (128, 64), 128),
                                 "C_map": ("C", (64, 32), 0)})  # fmt: skip


CHECKS = (
    scaling, gemms, conversions, functions, integers, warps, atomics, grids, matrices, hopper,
)  # fmt: skip
