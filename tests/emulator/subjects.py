"""Which correct kernels does the mutation test damage, and what are their inputs and answers?

Inputs of products are small integers: sums are exact in whatever order, so answers are compared bit
for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tests.emulator import mutated_hopper as hopper
from tests.emulator import mutated_kernels as kernels

Arrays = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Subject:
    """A kernel: `inputs` are all its arguments, `reference` gives those at `outputs`."""

    name: str
    make: Callable[[], Any]
    inputs: Callable[[np.random.Generator], Arrays]
    reference: Callable[..., Arrays]
    outputs: tuple[int, ...]
    target: str = "cuda:sm_80"
    tolerance: float = 0.0  # a relative Frobenius error
    canonical: Callable[[np.ndarray], np.ndarray] = lambda output: output


def whole_numbers(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Integers that float16 holds, and whose products add up exactly."""
    return rng.integers(-8, 9, shape).astype(np.float16)


def product_inputs(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int], dtype: type
                   ) -> Callable[[np.random.Generator], Arrays]:  # fmt: skip
    def inputs(rng: np.random.Generator) -> Arrays:
        return whole_numbers(rng, *a), whole_numbers(rng, *b), np.zeros(c, dtype)

    return inputs


def product(a: np.ndarray, b: np.ndarray, *_: np.ndarray) -> Arrays:
    return (a.astype(np.float64) @ b.astype(np.float64),)


def product_t(a: np.ndarray, b: np.ndarray, *_: np.ndarray) -> Arrays:
    return (a.astype(np.float64) @ b.astype(np.float64).T,)


def last_inputs(rng: np.random.Generator) -> Arrays:
    a, b = whole_numbers(rng, 32, 256), whole_numbers(rng, 256, 64)
    parts, count = np.full((4, 32, 64), np.nan, np.float32), np.zeros(2, np.int32)
    return a, b, parts, count, np.zeros((32, 64), np.float32)


def attention_inputs(rng: np.random.Generator) -> Arrays:
    q, k, v = (rng.standard_normal((2, 88, 32)).astype(np.float16) for _ in range(3))
    return q, k, v, np.zeros((2, 88, 32), np.float16)


def attention_reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, _: np.ndarray) -> Arrays:
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ k.transpose(0, 2, 1) * q.shape[-1] ** -0.5
    scores = np.where(np.tri(q.shape[1], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True) @ v,)


def norms_inputs(rng: np.random.Generator) -> Arrays:
    a = rng.integers(1, 100, (6, 500)).astype(np.float32)
    return a, np.zeros(6, np.float32), np.zeros(6, np.float32)


def norms_reference(a: np.ndarray, *_: np.ndarray) -> Arrays:
    return a.max(1), a.sum(1)


def top_k_inputs(rng: np.random.Generator) -> Arrays:
    values = rng.integers(0, 1 << 32, (2, 512), dtype=np.uint64).astype(np.uint32)
    values[0] = (7 << 24) + (rng.permutation(512) // 50)  # the last byte decides, among equals
    return values, np.zeros((2, 24), np.uint32)


def top_k_reference(values: np.ndarray, _: np.ndarray) -> Arrays:
    return (np.sort(values, axis=1)[:, -24:].astype(np.float64),)


def cumsum_inputs(*shape: int) -> Callable[[np.random.Generator], Arrays]:
    def inputs(rng: np.random.Generator) -> Arrays:
        return rng.integers(-99, 100, shape).astype(np.int32), np.zeros(shape, np.int32)

    return inputs


def cumsum_reference(a: np.ndarray, _: np.ndarray) -> Arrays:
    return (np.cumsum(a, axis=-1),)


def transpose_inputs(rng: np.random.Generator) -> Arrays:
    return rng.standard_normal((56, 72)).astype(np.float32), np.zeros((72, 56), np.float32)


def transpose_reference(a: np.ndarray, _: np.ndarray) -> Arrays:
    return (a.T,)


def handover_inputs(rng: np.random.Generator) -> Arrays:
    return rng.integers(0, 1 << 30, (4, 64)).astype(np.int32), np.zeros((4, 64), np.int32)


def handover_reference(a: np.ndarray, _: np.ndarray) -> Arrays:
    return (a[:, ::-1].reshape(4, 32, 2)[:, :, ::-1].reshape(4, 64),)


def stream_inputs(rng: np.random.Generator) -> Arrays:
    return whole_numbers(rng, 112, 64).astype(np.float32), np.zeros((112, 64), np.float32)


def stream_reference(a: np.ndarray, _: np.ndarray) -> Arrays:
    return (a * 2 + 1,)


def sorted_rows(output: np.ndarray) -> np.ndarray:
    return np.sort(output, axis=1)


HOPPER: Final = "cuda:sm_90a"
SUBJECTS: Final = (
    Subject("gemm_plain", kernels.gemm_plain,
            product_inputs((60, 120), (120, 72), (60, 72), np.float32), product, (2,)),
    Subject("gemm_ring", kernels.gemm_ring,
            product_inputs((64, 288), (288, 64), (64, 64), np.float16), product, (2,),
            tolerance=1e-3),
    Subject("gemm_scheduled", kernels.gemm_scheduled,
            product_inputs((64, 200), (200, 64), (64, 64), np.float32), product, (2,)),
    Subject("gemm_registers", kernels.gemm_registers,
            product_inputs((64, 160), (64, 160), (64, 64), np.float32), product_t, (2,)),
    Subject("split_k_atomic", kernels.split_k_atomic,
            product_inputs((32, 288), (288, 40), (32, 40), np.float32), product, (2,)),
    Subject("split_k_last", kernels.split_k_last, last_inputs, product, (4,)),
    Subject("attention", kernels.attention, attention_inputs, attention_reference, (3,),
            tolerance=2e-3),
    Subject("row_norms", kernels.row_norms, norms_inputs, norms_reference, (1, 2)),
    Subject("scan", kernels.scan, cumsum_inputs(256), cumsum_reference, (1,)),
    Subject("tile_scan", kernels.tile_scan, cumsum_inputs(3, 200), cumsum_reference, (1,)),
    Subject("transpose", kernels.transpose, transpose_inputs, transpose_reference, (1,)),
    Subject("top_k", kernels.top_k, top_k_inputs, top_k_reference, (1,), canonical=sorted_rows),
    Subject("handover", kernels.handover, handover_inputs, handover_reference, (1,)),
    Subject("warp_specialised", hopper.warp_specialised,
            product_inputs((64, 960), (960, 64), (64, 64), np.float16), product, (2,), HOPPER,
            tolerance=1e-3),
    Subject("hopper_products", hopper.hopper_products,
            product_inputs((64, 320), (320, 64), (64, 64), np.float32), product, (2,), HOPPER),
    Subject("tma_stream", hopper.tma_stream, stream_inputs, stream_reference, (1,), HOPPER),
)  # fmt: skip
