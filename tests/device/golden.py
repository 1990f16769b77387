"""What is recorded on a GPU, for the emulator to be compared with: one kernel, its inputs by seed.

The kernels are in `golden_*.py`; `record.py` runs them, `tests/emulator/test_golden.py` compares.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tests.device.checks import as_bits, numpy_dtype
from tests.support.device import device_func


@dataclass(frozen=True)
class Golden:
    """A kernel at thread level, what it is given, and which of it is looked at afterwards.

    `rounded`: outputs that depend on how sums are rounded, each with its dtype; what they may be
    off by is relative to the sum of magnitudes, which the same kernel gives for magnitudes of the
    inputs `signed`. All other outputs have to be equal bit for bit.
    """

    name: str
    kernel: Any
    arrays: Mapping[str, np.ndarray]
    outputs: tuple[str, ...]
    maps: Mapping[str, tuple[str, tuple[int, ...], int]] = field(default_factory=dict)
    rounded: Mapping[str, str] = field(default_factory=dict)
    signed: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """What the case is about: the first word of its name."""
        return self.name.split()[0]

    def func(self) -> Any:
        """The PrimFunc at stage `device`."""
        return device_func(self.kernel, maps=self.maps)

    def inputs(self) -> dict[str, np.ndarray]:
        """Fresh copies of the arrays, in dtypes that `numpy.save` knows."""
        return {name: as_bits(np.ascontiguousarray(a)).copy() for name, a in self.arrays.items()}

    def fingerprint(self) -> str:
        """A hash of all inputs: what was recorded holds for these and no others."""
        digest = hashlib.sha256()
        for name, array in sorted(self.inputs().items()):
            digest.update(f"{name} {array.dtype} {array.shape} ".encode() + array.tobytes())
        return digest.hexdigest()


def golden_cases() -> Iterator[Golden]:
    """Every case, in the order they are recorded in."""
    from tests.device import golden_hopper, golden_matrix, golden_warp

    for module in (golden_matrix, golden_hopper, golden_warp):
        for make in module.FAMILIES:
            yield from make()


_PTX_DTYPES: Final = {
    "f16": "float16", "bf16": "bfloat16", "tf32": "float32", "f32": "float32", "f64": "float64",
    "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "s8": "int8", "u8": "uint8", "s32": "int32",
    "s4": "int4", "u4": "uint4",
}  # fmt: skip


def dtype_of_ptx(name: str) -> str:
    """`f16` is `float16`, and so on."""
    return _PTX_DTYPES[name]


def is_float(dtype: str) -> bool:
    """Whether sums of products in this dtype are rounded."""
    return "float" in dtype


def whole_numbers(rng: np.random.Generator, count: int, dtype: str) -> np.ndarray:
    """Numbers whose products and sums are exact: small ones of floats, any of integers."""
    if dtype in ("int4", "uint4"):
        return rng.integers(0, 256, count // 2).astype(np.uint8)
    if is_float(dtype):
        return rng.integers(-4, 5, count).astype(np.float32).astype(numpy_dtype(dtype))
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, count, dtype=dtype, endpoint=True)


# What a random float is like: of one size; of many sizes; with infinities, NaN, the smallest and
# the largest.
DRAWS: Final = ("normal", "wide", "odd")


def floats(rng: np.random.Generator, count: int, dtype: str, draw: str) -> np.ndarray:
    """`count` random numbers of a float dtype."""
    values = rng.standard_normal(count)
    if draw == "wide":
        values *= 2.0 ** rng.integers(-6, 7, count)
    made = values.astype(np.float32 if dtype != "float64" else np.float64)
    out = made.astype(numpy_dtype(dtype))
    if draw == "odd":
        places = rng.random(count) < 0.04
        special = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 240.0, -240.0, 2.0**-9])
        chosen = rng.choice(special, count).astype(np.float32).astype(numpy_dtype(dtype))
        out = np.where(places, chosen, out)
    return out
