"""Functions that the HIP headers compute themselves, compiled for the processor."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from tests.emulator.needs import needs_compiler
from tilelang.emulator.toolchain import find_compiler
from tilelang.runtime.programs import run_group
from tilelang.runtime.toolchain_hip import HEADERS

# The instructions, by functions of the C library.
WORDS = """
#define __device__
#define __forceinline__ inline
#define __builtin_amdgcn_exp2f __builtin_exp2f
#define __builtin_amdgcn_logf __builtin_log2f
#define __builtin_amdgcn_sinf(x) __builtin_sinf(6.28318531f * (x))
#define __builtin_amdgcn_cosf(x) __builtin_cosf(6.28318531f * (x))
#define __builtin_amdgcn_fractf(x) ((x) - __builtin_floorf(x))
#define __builtin_amdgcn_ldexpf __builtin_ldexpf
#define __builtin_amdgcn_ldexp __builtin_ldexp
#include "functions.h"
#define EACH(name)                                                   \\
  extern "C" void each_##name(const float* x, float* y, int count) { \\
    for (int i = 0; i < count; ++i) y[i] = name##f(x[i]);            \\
  }
EACH(expm1)
EACH(log1p)
EACH(tanh)
"""
VALUES = np.concatenate([
    np.linspace(-20, 20, 4001), np.geomspace(1e-30, 1, 1000), -np.geomspace(1e-30, 0.999, 1000),
    [0.0, -0.0, 0.35, -0.35, 88.0, -100.0],
]).astype(np.float32)  # fmt: skip


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("functions")
    source, made = folder / "functions.cpp", folder / "functions.so"
    source.write_text(WORDS)
    command = [*find_compiler().command, "-O1", "-ffp-contract=off", "-w", "-shared", "-fPIC",
               f"-I{HEADERS[0] / 'tl'}", str(source), "-o", str(made), "-lm"]  # fmt: skip
    done = run_group(command, 120)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(made))


@needs_compiler
@pytest.mark.parametrize("name", ["expm1", "log1p", "tanh"])
def test_within_four_units_in_the_last_place(name: str, library: Any) -> None:
    x = VALUES[VALUES > -1] if name == "log1p" else VALUES
    got = np.empty_like(x)
    getattr(library, f"each_{name}")(x.ctypes.data_as(ctypes.c_void_p),
                                     got.ctypes.data_as(ctypes.c_void_p), len(x))  # fmt: skip
    with np.errstate(over="ignore"):
        want = getattr(np, name)(x.astype(np.float64))
        near = want.astype(np.float32)
    finite = np.isfinite(near)
    assert np.array_equal(got[~finite], near[~finite])
    units = np.spacing(np.maximum(np.abs(near[finite]), np.float32(1e-38)))
    assert (np.abs(got[finite].astype(np.float64) - want[finite]) / units).max() <= 4
