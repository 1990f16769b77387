"""Hopper's engines: bulk copies by tensor map in every swizzle, and matrix instructions of a warp
group in every layout of their operands and every dtype."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

import tilelang.language as T
from tests.device.checks import numpy_dtype
from tests.device.golden import (
    DRAWS,
    Golden,
    dtype_of_ptx,
    floats,
    is_float,
    whole_numbers,
)
from tilelang.ir.device_rows_hopper import WGMMA_TYPES

TILE = 8192  # bytes of shared memory that a copy may fill


def _random(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    if is_float(dtype):
        return rng.standard_normal(shape).astype(numpy_dtype(dtype))
    return rng.integers(0, 100, shape).astype(dtype)


# dtype, shape of the tensor, box (outermost first), swizzle, where the box starts. A GPU refuses
# starts that are no multiple of 16 bytes, and stores that start before the tensor.
_BOXES: tuple[tuple[str, tuple[int, ...], tuple[int, ...], int, tuple[int, ...]], ...] = (
    ("uint8", (64,), (32,), 0, (16,)),
    ("uint8", (40, 128), (16, 128), 128, (30, 0)),
    ("float16", (33, 80), (16, 64), 128, (4, 24)),
    ("float16", (33, 80), (16, 64), 128, (24, 40)),
    ("float16", (33, 80), (16, 64), 128, (-3, -8)),
    ("float16", (33, 80), (16, 64), 128, (-3, 8)),
    ("float16", (33, 80), (16, 64), 0, (3, -8)),
    ("float16", (33, 80), (16, 64), 0, (40, 8)),
    ("float16", (33, 80), (16, 32), 64, (20, 56)),
    ("float16", (33, 80), (24, 16), 32, (11, 8)),
    ("float16", (33, 80), (24, 16), 32, (11, 1)),
    ("float16", (33, 80), (8, 24), 0, (3, 72)),
    ("bfloat16", (20, 64), (8, 64), 128, (16, 8)),
    ("float32", (20, 40), (12, 32), 128, (9, 12)),
    ("float32", (20, 40), (12, 16), 64, (-5, 32)),
    ("float32", (20, 40), (12, 16), 64, (5, 30)),
    ("int32", (20, 40), (9, 8), 32, (13, -4)),
    ("int32", (20, 40), (9, 8), 32, (13, 36)),
    ("float64", (20, 20), (8, 16), 128, (14, 8)),
    ("float16", (5, 9, 64), (3, 4, 64), 128, (3, -2, 8)),
    ("float16", (5, 9, 64), (3, 4, 32), 64, (3, 6, 40)),
    ("float32", (4, 5, 6, 8), (2, 3, 4, 8), 32, (-1, 3, 4, 4)),
    ("float32", (4, 5, 6, 8), (2, 3, 4, 8), 32, (3, 3, 4, 4)),
    ("uint16", (3, 4, 3, 5, 16), (2, 2, 2, 3, 16), 32, (2, -1, 1, 4, 8)),
    ("uint16", (3, 4, 3, 5, 16), (2, 2, 2, 3, 16), 32, (2, 3, 1, 4, 8)),
)


def bulk_copies() -> Iterator[Golden]:
    """Loads and stores of boxes that reach over every side; what lies in shared memory is seen."""
    rng = np.random.default_rng(20261206)
    for dtype, shape, box, swizzle, at in _BOXES:
        size = numpy_dtype(dtype).itemsize
        tensor, tile = _random(rng, shape, dtype), _random(rng, (TILE // size,), dtype)
        where = f"{dtype} {len(shape)}d swizzle={swizzle} at {','.join(map(str, at))}"
        maps = {"A_map": ("A", box, swizzle)}
        bytes_ = int(np.prod(box)) * size
        yield Golden(f"tma load {where}", _bulk_load(dtype, shape, at, bytes_),
                     {"A": tensor, "B": tile}, ("B",), maps)  # fmt: skip
        yield Golden(f"tma store {where}", _bulk_store("tma_store", dtype, shape, at),
                     {"A": tensor, "B": tile}, ("A",), maps)  # fmt: skip
    for dtype in ("float32", "float16", "bfloat16", "int32"):
        tensor, tile = _random(rng, (33, 80), dtype), _random(rng, (TILE // 2,), dtype)
        tile = tile[: TILE // numpy_dtype(dtype).itemsize]
        swizzle = 128 if dtype != "float32" else 64
        box = (16, swizzle // numpy_dtype(dtype).itemsize)
        kernel = _bulk_store("tma_reduce_add", dtype, (33, 80), (20, 56))
        yield Golden(f"tma reduce_add {dtype}", kernel,
                     {"A": tensor, "B": tile}, ("A",), {"A_map": ("A", box, swizzle)})  # fmt: skip


def _bulk_load(dtype: str, shape: tuple[int, ...], at: tuple[int, ...], size: int) -> Any:
    each = TILE // numpy_dtype(dtype).itemsize // 128

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor((128 * each,), dtype), A_map: T.int64):
        with T.Kernel(1, threads=128) as _:
            tx = T.get_thread_binding()
            tile = T.alloc_shared((128 * each,), dtype)
            full = T.alloc_barrier([1])
            for i in T.serial(each):
                tile[i * 128 + tx] = B[i * 128 + tx]
            if tx == 0:
                T.call_extern("handle", "mbarrier_init", full[0], 1)
                T.call_extern("handle", "fence_mbarrier_init")
            T.fence_proxy_async()
            T.sync_threads()
            if tx == 0:
                T.mbarrier_arrive_expect_tx(full[0], size)
                T.call_extern(
                    "handle", "tma_load", tile[0 : 128 * each], A_map, full[0], *reversed(at)
                )
            T.mbarrier_wait_parity(full[0], 0)
            for i in T.serial(each):
                B[i * 128 + tx] = tile[i * 128 + tx]

    return main


def _bulk_store(operation: str, dtype: str, shape: tuple[int, ...], at: tuple[int, ...]) -> Any:
    each = TILE // numpy_dtype(dtype).itemsize // 128

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor((128 * each,), dtype), A_map: T.int64):
        with T.Kernel(1, threads=128) as _:
            tx = T.get_thread_binding()
            tile = T.alloc_shared((128 * each,), dtype)
            for i in T.serial(each):
                tile[i * 128 + tx] = B[i * 128 + tx]
            T.fence_proxy_async()
            T.sync_threads()
            if tx == 0:
                T.call_extern("handle", operation, tile[0 : 128 * each], A_map, *reversed(at))
                T.tma_store_arrive()
                T.tma_store_wait(0, read=False)

    return main


AREA = 16384  # bytes of shared memory that hold one operand


def _layout(side: str, swizzle: int, major: int, wide: int) -> str:
    """The constants of a descriptor for 64 rows; `wide` times as far apart as they have to be."""
    atom = 8 * (swizzle or 16) * wide
    if swizzle == 0:  # eight rows of 16 bytes are together; pieces along k, then along rows
        leading, stride = (atom, 2 * atom) if major == 0 else (8 * atom, atom)
    elif major == 0:
        leading, stride = 16, atom
    else:
        leading, stride = 2 * atom, atom
    numbers = {"swizzle": swizzle, "leading": leading, "stride": stride, "major": major}
    return " ".join(f"{side}_{name}={value}" for name, value in numbers.items())


def layouts() -> Iterator[Golden]:
    """Operands in every swizzle and both major orders: sums of whole numbers, which are exact."""
    rng = np.random.default_rng(20261207)
    dtype = "f16"
    for swizzle, major, wide in product((0, 32, 64, 128), (0, 1), (1, 2)):
        plain = {s: _layout(s, 128, 0, 1) for s in "ab"}
        for side in "ab":
            layout = {**plain, side: _layout(side, swizzle, major, wide)}
            yield _wgmma_case(
                rng, f"layout {side} swizzle={swizzle} major={major} wide={wide}", "ss", dtype,
                dtype, "f32", 16, 64, " ".join(layout.values()), exact=True,
            )  # fmt: skip
    for swizzle, major in product((0, 32, 64, 128), (0, 1)):
        yield _wgmma_case(
            rng, f"layout rs swizzle={swizzle} major={major}", "rs", dtype, dtype, "f32", 16, 64,
            _layout("b", swizzle, major, 1), exact=True,
        )  # fmt: skip


def types() -> Iterator[Golden]:
    """Every dtype, A from both places: exact sums of whole numbers, and random floats 8 wide."""
    rng = np.random.default_rng(20261208)
    b_layout, a_layout = _layout("b", 64, 0, 1), _layout("a", 128, 0, 1)
    for source, (a, b, accumulators, k) in product(("ss", "rs"), WGMMA_TYPES):
        layout = b_layout if source == "rs" else f"{a_layout} {b_layout}"
        for acc in accumulators:
            width = 48 if acc == "s32" else 40  # integers come in widths of 16 there
            yield _wgmma_case(rng, "whole", source, a, b, acc, k, width, layout, exact=True)
            if acc != "s32":
                yield _wgmma_case(rng, "floats", source, a, b, acc, k, 8, layout, exact=False)


def _wgmma_case(
    rng: np.random.Generator, what: str, source: str, a: str, b: str, acc: str, k: int, n: int,
    layout: str, exact: bool,
) -> Golden:  # fmt: skip
    instruction = f"wgmma_{source}_k{k}_{acc}_{a}_{b}"
    trials = 1 if exact else len(DRAWS)
    arrays = {
        name: _area(rng, dtype_of_ptx(ptx), exact, size * trials, trials)
        for name, ptx, size in (
            ("A", a, AREA if source == "ss" else 128 * 16), ("B", b, AREA),
            ("D", acc, 64 * n * numpy_dtype(dtype_of_ptx(acc)).itemsize),
        )
    }  # fmt: skip
    kernel = _wgmma(instruction, source, a, b, acc, n, layout, trials)
    return Golden(
        f"wgmma {what} {source} {acc} {a} {b}", kernel, arrays, ("D",),
        rounded={} if exact else {"D": dtype_of_ptx(acc)},
        signed=() if exact else ("A", "B", "D"),
    )  # fmt: skip


def _area(rng: np.random.Generator, dtype: str, exact: bool, size: int, trials: int) -> np.ndarray:
    count = size // numpy_dtype(dtype).itemsize
    if exact:
        return whole_numbers(rng, count, dtype)
    return np.concatenate([floats(rng, count // trials, dtype, draw) for draw in DRAWS[:trials]])


def _wgmma(
    instruction: str, source: str, a: str, b: str, acc: str, n: int, layout: str, trials: int
) -> Any:
    a_type, b_type, d_type = (dtype_of_ptx(t) for t in (a, b, acc))
    a_size, b_size = (numpy_dtype(t).itemsize for t in (a_type, b_type))
    held = 16 // a_size
    a_count = AREA // a_size if source == "ss" else 128 * held
    b_count, mine = AREA // b_size, n // 2
    area = a_count if source == "ss" else 128

    @T.prim_func
    def main(
        A: T.Tensor((trials * a_count,), a_type), B: T.Tensor((trials * b_count,), b_type),
        D: T.Tensor((trials * 128 * mine,), d_type),
    ):  # fmt: skip
        with T.Kernel(trials, threads=128) as trial:
            tx = T.get_thread_binding()
            a_tile = T.alloc_shared((area,), a_type)
            b_tile = T.alloc_shared((b_count,), b_type)
            a_held = T.alloc_local((held,), a_type)
            d = T.alloc_local((mine,), d_type)
            if source == "ss":
                for i in T.serial(a_count // 128):
                    a_tile[i * 128 + tx] = A[trial * a_count + i * 128 + tx]
            else:
                for i in T.unroll(held):
                    a_held[i] = A[trial * a_count + tx * held + i]
            for i in T.serial(b_count // 128):
                b_tile[i * 128 + tx] = B[trial * b_count + i * 128 + tx]
            for i in T.unroll(mine):
                d[i] = D[trial * 128 * mine + tx * mine + i]
            T.fence_proxy_async()
            T.sync_threads()
            T.warpgroup_arrive()
            T.call_extern(
                "handle", f"{instruction} n={n} {layout}", d[0:mine],
                a_tile[0:16] if source == "ss" else a_held[0:held], b_tile[0:16], 1,
            )  # fmt: skip
            T.warpgroup_commit_batch()
            T.wait_wgmma(0)
            for i in T.unroll(mine):
                D[trial * 128 * mine + tx * mine + i] = d[i]

    return main


FAMILIES = (bulk_copies, layouts, types)
