"""Conversions of numbers at their edges: the same on every target.

What is out of range of an integer becomes the nearest there is and NaN becomes 0; a small float is
rounded once, to nearest even, from whatever it is made of, and saturates.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tilelang.language as T
from tests.kernels.case import KernelCase

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
SIZE = 512


def converted(source: str, target: str) -> Any:
    @T.prim_func
    def main(A: T.Tensor((SIZE,), source), B: T.Tensor((SIZE,), target)):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(SIZE):
                B[i] = T.cast(A[i], target)

    return main


def divided(dtype: str) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((SIZE,), dtype), B: T.Tensor((SIZE,), dtype),
        Q: T.Tensor((SIZE,), dtype), R: T.Tensor((SIZE,), dtype),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            for i in T.Parallel(SIZE):
                Q[i] = A[i] // B[i]
                R[i] = A[i] % B[i]

    return main


def nibbles(columns: int) -> Any:
    """Blocks and threads whose elements share bytes."""

    @T.prim_func
    def main(A: T.Tensor((64, columns), "int8"), B: T.Tensor((64, columns), "int4")):
        with T.Kernel(T.ceildiv(64, 8), threads=128) as bx:
            for i, j in T.Parallel(8, columns):
                B[bx * 8 + i, j] = T.cast(A[bx * 8 + i, j], "int4")

    return main


def _reals(rng: np.random.Generator, source: str, target: str) -> tuple[Any, ...]:
    values = rng.standard_normal(SIZE) * 10.0 ** rng.uniform(-3, 21, SIZE)
    if target in INTEGERS:
        info = np.iinfo(target)
        edges = [float(info.min) + d for d in (-1.5, -1, -0.5, 0, 0.5)]
        edges += [float(info.max) + d for d in (-1, -0.5, 0, 0.5, 1, 1.5)]
        values[: len(edges)] = edges
    else:
        # Just beside the middle of two neighbours: float32 lies on it.
        values = rng.standard_normal(SIZE)
        step = 2.0 ** (np.floor(np.log2(np.abs(values))) - 3)
        middle = (np.floor(np.abs(values) / step) + 0.5) * step
        values = np.sign(values) * middle * (1 + rng.integers(-1, 2, SIZE) * 2.0**-40)
    values[20:26] = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e300 if source == "float64" else 3e38]
    with np.errstate(over="ignore"):
        return (values.astype(source),)


def _as_integer(a: Any, target: str, **_: Any) -> tuple[Any, ...]:
    info = np.iinfo(target)
    found = []
    for x in a.tolist():
        whole = 0 if x != x else info.max if x == np.inf else info.min if x == -np.inf else int(x)
        found.append(min(max(whole, info.min), info.max))
    return (np.array(found, dtype=target),)


def _as_small(a: Any, source: str, target: str) -> tuple[Any, ...]:
    """By search among all values of the format."""
    import torch

    codes = torch.arange(256, dtype=torch.uint8).view(getattr(torch, target)).double().numpy()
    values = np.unique(codes[np.isfinite(codes)])
    found = np.empty_like(a, dtype=np.float64)
    for k, x in enumerate(a.astype(np.float64)):
        if np.isnan(x):
            found[k] = np.nan
            continue
        near = np.abs(values - np.clip(x, values[0], values[-1]))
        best = np.flatnonzero(near == near.min())
        even = [b for b in best if _mantissa(values[b], target) % 2 == 0]
        found[k] = values[(even or best)[0]]
    return (found,)


def _mantissa(value: float, target: str) -> int:
    import torch

    code = torch.tensor([value], dtype=torch.float32).to(getattr(torch, target)).view(torch.uint8)
    return int(code.item())


def _integers(rng: np.random.Generator, dtype: str) -> tuple[Any, ...]:
    info = np.iinfo(dtype)
    a = rng.integers(info.min, info.max, SIZE, dtype=dtype, endpoint=True)
    b = rng.integers(-9, 9, SIZE).astype(dtype) if info.min < 0 else rng.integers(
        1, 9, SIZE).astype(dtype)  # fmt: skip
    b[b == 0] = 1
    a[:4] = [info.min, info.max, info.min, 0]
    b[:4] = [-1, -1, 1, 5] if info.min < 0 else [1, 2, 3, 5]
    return a, b


def _divided(a: Any, b: Any, dtype: str) -> tuple[Any, ...]:
    bits = np.iinfo(dtype).bits
    quotients, remainders = [], []
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        quotients.append(x // y)
        remainders.append(x % y)
    wrapped = [np.array([n & ((1 << bits) - 1) for n in part], dtype=f"uint{bits}").astype(dtype)
               for part in (quotients, remainders)]  # fmt: skip
    return wrapped[0], wrapped[1]


def _case(name: str, make: Any, inputs: Any, reference: Any, out: tuple[int, ...],
          **params: Any) -> KernelCase:  # fmt: skip
    return KernelCase(
        name=f"numbers_{name}", row="gpu", tier=1, style="prim_func", make=make, inputs=inputs,
        reference=reference, params=params, out_idx=out, targets=("cuda:sm_80",),
        precision=("exact",) * len(out), needs_torch="float8" in name,
    )  # fmt: skip


CASES: tuple[KernelCase, ...] = (
    *(_case(f"{source}_to_{target}", converted, _reals, _as_integer, (1,), source=source,
            target=target)
      for source in ("float32", "float64") for target in INTEGERS),
    *(_case(f"{source}_to_{target}", converted, _reals, _as_small, (1,), source=source,
            target=target)
      for source in ("float32", "float64") for target in ("float8_e4m3fn", "float8_e5m2")),
    *(_case(f"divided_{dtype}", divided, _integers, _divided, (2, 3), dtype=dtype)
      for dtype in INTEGERS),
)  # fmt: skip
