"""Kernels printed for Metal give the right numbers on the emulator, in every order of threads.

In checked mode they are accused of nothing. Which lane holds which element of a matrix differs
between schedules, so that no answer can depend on it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilelang
from tests.emulator.needs import needs_compiler
from tests.emulator.running import MODES, check_emulated
from tests.kernels.case import TOLERANCE, KernelCase, relative_error
from tests.kernels.registry import KERNELS
from tests.metal import kernels
from tests.support.clang import needs_clang
from tilelang_diagnostics import CompileError

TARGET = "metal:apple9"
SEED, SAMPLE = 20261130, 5

pytestmark = [needs_compiler, needs_clang]


KINDS = [*(("float16", mode) for mode in MODES), ("float32", "shuffle:1"), ("float32", "check")]


def _numbers(*shape: int, dtype: str = "float16") -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def _run(kernel: Any, mode: str, *arguments: Any) -> None:
    compiled = tilelang.compile(kernel, target=TARGET, execution_backend=MODES[mode])
    compiled(*arguments)


def _check(got: np.ndarray, want: np.ndarray, dtype: str) -> None:
    assert relative_error(got.astype("float64"), want) <= TOLERANCE[dtype]


@pytest.mark.parametrize(("dtype", "mode"), KINDS)
def test_elementwise(dtype: str, mode: str) -> None:
    a = _numbers(1001, dtype=dtype)
    b = np.zeros_like(a)
    _run(kernels.scaled(dtype), mode, a, b, 0.5)
    _check(b, np.exp(a.astype("float64")) * 0.5, dtype)


@pytest.mark.parametrize(("dtype", "mode"), KINDS)
def test_reduction(dtype: str, mode: str) -> None:
    a, b = _numbers(37, 200, dtype=dtype), np.zeros(37, "float32")
    _run(kernels.row_sums(dtype=dtype), mode, a, b)
    _check(b, a.astype("float64").sum(axis=1), "float32")


@pytest.mark.parametrize(("dtype", "mode"), KINDS)
def test_softmax(dtype: str, mode: str) -> None:
    a = _numbers(37, 200, dtype=dtype)
    b = np.zeros_like(a)
    _run(kernels.softmax(dtype=dtype), mode, a, b)
    raised = np.exp(a.astype("float64"))
    _check(b, raised / raised.sum(axis=1, keepdims=True), dtype)


PRODUCTS: dict[str, dict[str, Any]] = {
    "float16": {},
    "float32": {"dtype": "float32", "shape": (33, 17, 45)},
    "rounded": {"out": "float16", "stages": 0},
    "turned": {"transpose_A": True, "transpose_B": True},
    "looked_at": {"epilogue": True, "tile": (32, 32, 16), "threads": 64},
    "one_simdgroup": {"tile": (24, 40, 8), "threads": 32, "dtype": "float32", "transpose_B": True},
    "in_strips": {"tile": (128, 64, 32), "threads": 256, "shape": (150, 100, 80)},
    "not_of_eights": {"tile": (20, 20, 12), "shape": (33, 17, 45), "epilogue": True},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PRODUCTS)
def test_product(name: str, mode: str, full: bool) -> None:
    if not full and mode in ("fifo", "shuffle:2") and name not in ("float16", "looked_at"):
        pytest.skip("runs with --full")
    said = PRODUCTS[name]
    m, n, k = said.get("shape", (100, 72, 80))
    dtype, out = said.get("dtype", "float16"), said.get("out", "float32")
    a, b, c = _numbers(m, k, dtype=dtype), _numbers(k, n, dtype=dtype), np.zeros((m, n), out)
    left = np.ascontiguousarray(a.T) if said.get("transpose_A") else a
    right = np.ascontiguousarray(b.T) if said.get("transpose_B") else b
    _run(kernels.product(**said), mode, left, right, c)
    want = a.astype("float64") @ b.astype("float64")
    _check(c, np.maximum(want, 0) if said.get("epilogue") else want, out)


# --- kernels of the registry ---

# What Metal, or this version of the backend, does not have.
REFUSED: dict[str, str] = {
    **{case.name: "dtype float64" for case in KERNELS if case.name.startswith("scalar_")
       and case.name != "scalar_flash_attn"},
    "scalars_of_every_kind": "dtype float64",
    "atomic_scalars": "acq_rel order",
    "atomic_vectors": "T.atomic_addx2 of float16",
    "atomic_load_store": "T.atomic_load",
    "mla_decode_persistent": "T.sync_grid",
    "wild_add_norm_quant_True": "dtype float8_e4m3fn",
    "linear_attn_fwd": "metal:apple9 has 32768",
    "retention_fwd": "metal:apple9 has 32768",
}  # fmt: skip
CASES = tuple(case for case in KERNELS if "cuda:sm_80" in case.targets)
RIGHT = tuple(case for case in CASES if case.name not in REFUSED)


def _sample() -> set[str]:
    return {case.name for case in random.Random(SEED).sample(RIGHT, SAMPLE)}


def test_most_of_the_registry_runs() -> None:
    assert len(RIGHT) >= 106


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", RIGHT, ids=lambda case: case.name)
def test_kernel(case: KernelCase, mode: str, full: bool) -> None:
    if not full and (case.name not in _sample() or mode != "check"):
        pytest.skip("runs with --full")
    if case.needs_torch:
        pytest.importorskip("torch")
    check_emulated(case, MODES[mode], TARGET)


@pytest.mark.parametrize("case", [c for c in CASES if c.name in REFUSED], ids=lambda c: c.name)
def test_refusal(case: KernelCase, full: bool) -> None:
    if not full and case.name.startswith("scalar_") and case.name != "scalar_float64":
        pytest.skip("runs with --full")
    with pytest.raises(CompileError, match=REFUSED[case.name]):
        check_emulated(case, MODES["fifo"], TARGET)


# --- what checked mode finds ---


def _without(word: str) -> Callable[[Any], Any]:
    def change(device: Any) -> Any:
        from tests.metal.printed import with_words

        return with_words(device, word, "")

    return change


def test_a_missing_barrier_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilelang.emulator import kernel as emulated

    launch = emulated.launch
    change = _without("tl::sync_threads();")

    def damaged(device: Any, *rest: Any) -> Any:
        # The first barrier parts the copies of an iteration from the products before them.
        return launch(change(device), *rest)

    monkeypatch.setattr(emulated, "launch", damaged)
    a, b, c = _numbers(64, 96), _numbers(96, 32), np.zeros((64, 32), "float32")
    kernel = kernels.product((64, 32, 96), stages=1)
    with pytest.raises(CompileError, match="TL731") as caught:
        _run(kernel, "check", a, b, c)
    assert caught.value.diagnostics[0].span.file.endswith("kernels.py")
