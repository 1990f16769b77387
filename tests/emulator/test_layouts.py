"""Layouts decide speed, never results: kernels whose tiles move, on the emulator.

Random programs are compared with what the CPU gives for them; the others with NumPy.
"""

from __future__ import annotations

import linecache
import random
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

import tilelang
from tests.emulator.needs import needs_compiler
from tests.emulator.running import MODES, check_emulated
from tests.gpu import conversions, gemms, numbers, random_numbers
from tests.kernels.case import KernelCase, to_numpy
from tests.property.random_layouts import program_text
from tilelang_diagnostics import CompileError

SEED, SAMPLE = 20261130, 12
CASES = (*conversions.CASES, *gemms.SHALLOW, *random_numbers.CASES, *numbers.CASES)
SAMPLED = {case.name for case in random.Random(SEED).sample(CASES, SAMPLE)}
PARAM = re.compile(r'(A\d+): T\.Tensor\(\((\d+), (\d+)\), "(\w+)"\)')


@needs_compiler
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kernel(case: KernelCase, full: bool) -> None:
    if not full and case.name not in SAMPLED:
        pytest.skip("runs with --full")
    if case.needs_torch:
        pytest.importorskip("torch")
    check_emulated(case, MODES["check"], "cuda:sm_89" if "float8" in case.name else "cuda:sm_80")


SEEDS = range(24)


@needs_compiler
@pytest.mark.parametrize("seed", SEEDS)
def test_random_program(seed: int, full: bool) -> None:
    pytest.importorskip("torch")
    if not full and seed % 4:
        pytest.skip("runs with --full")
    program = _program(seed)
    kernel = _emulated(seed)
    if kernel is None:
        return  # test_most_random_programs_run counts these
    rng = np.random.default_rng(seed)
    inputs = [_array(rng, shape, dtype) for shape, dtype in program.inputs]
    found = _outputs(kernel(*inputs))
    on_cpu = tilelang.compile(program.main, out_idx=program.written, target="cpu")
    for have, want in zip(found, _outputs(on_cpu(*inputs)), strict=True):
        assert np.linalg.norm(have - want) <= 8e-3 * np.linalg.norm(want)


@needs_compiler
def test_most_random_programs_run(full: bool) -> None:
    seeds = SEEDS if full else SEEDS[::4]
    refused = [seed for seed in seeds if _emulated(seed) is None]
    assert 3 * len(refused) <= len(seeds), refused


@dataclass(frozen=True)
class _Program:
    main: Any
    inputs: list[tuple[tuple[int, int], str]]
    written: list[int]


@cache
def _program(seed: int) -> _Program:
    text, path = program_text(seed), f"<random layouts {seed}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    scope: dict[str, Any] = {}
    exec(compile(text, path, "exec"), scope)
    params = PARAM.findall(text)
    written = [n for n, p in enumerate(params) if re.search(rf"T\.copy\(t\d+, {p[0]}\)", text)]
    inputs = [((int(m), int(n)), dtype) for k, (_, m, n, dtype) in enumerate(params)
              if k not in written]  # fmt: skip
    return _Program(scope["main"], inputs, written)


@cache
def _emulated(seed: int) -> Any:
    """The kernel; None where the program is refused, for what its author could change."""
    program = _program(seed)
    try:
        return tilelang.compile(
            program.main, out_idx=program.written, target="cuda:sm_80",
            execution_backend=MODES["check"],
        )  # fmt: skip
    except CompileError as refused:
        assert not any(d.code.startswith("TL9") for d in refused.diagnostics)
        return None


def _array(rng: np.random.Generator, shape: tuple[int, int], dtype: str) -> Any:
    if dtype.startswith("int"):
        return rng.integers(-4, 4, shape).astype(dtype)
    values = rng.standard_normal(shape) / 2
    if dtype != "bfloat16":
        return values.astype(dtype)
    import torch

    return torch.from_numpy(values).bfloat16()


def _outputs(result: Any) -> list[Any]:
    many = result if isinstance(result, (list, tuple)) else (result,)
    return [to_numpy(x).astype(np.float64) for x in many]
