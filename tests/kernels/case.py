"""What is a kernel under test, how is it run, and when is its answer right?

A :class:`KernelCase` is data: the kernel, the values it is specialised with, its inputs, and a
float64 NumPy reference. Every suite (CPU, device, front end, editor, lint) reads the same cases
from ``tests.kernels.registry``; only this file knows how the ways of writing a kernel are called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Style = Literal["prim_func", "lazy", "eager"]

# Relative Frobenius error allowed against float64, by the coarsest dtype a value is rounded to.
# An fp8 value carries 3 (e4m3) or 2 (e5m2) mantissa bits: half a unit in the last place is 1/16 or
# 1/8 in the worst case, and about half of that over a random tensor.
TOLERANCE: Mapping[str, float] = MappingProxyType(
    {
        "float64": 1e-12,
        "float32": 1e-5,
        "float16": 1e-3,
        "bfloat16": 8e-3,
        "float8_e4m3fn": 4e-2,
        "float8_e5m2": 8e-2,
    }
)


@dataclass(frozen=True, slots=True)
class KernelCase:
    """One kernel at one set of values.

    ``params`` are the keyword arguments of the kernel (or of its factory); ``sizes`` are values
    that only shape the inputs, such as the ``M`` that an eager kernel reads off its tensors.
    ``inputs`` and ``reference`` receive both as keywords. ``reference`` receives the inputs as
    float64 or integer NumPy arrays and returns one array per output: those the kernel returns,
    then those it writes in place (``mutates``: positions among the arguments).
    """

    name: str
    row: str
    tier: int
    style: Style
    make: Callable[..., Any]
    inputs: Callable[..., tuple[Any, ...]]
    reference: Callable[..., tuple[Array, ...]]
    params: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, Any] = field(default_factory=dict)
    device_params: Mapping[str, Any] = field(default_factory=dict)
    device_sizes: Mapping[str, Any] = field(default_factory=dict)
    out_idx: tuple[int, ...] = ()
    mutates: tuple[int, ...] = ()
    targets: tuple[str, ...] = ("cpu", "cuda:sm_80")
    precision: tuple[str | None, ...] = ()
    canonical: Callable[[tuple[Array, ...]], tuple[Array, ...]] | None = None
    needs_torch: bool = False

    def __post_init__(self) -> None:
        if self.style != "prim_func" and self.out_idx:
            raise ValueError(f"{self.name}: out_idx is given to tilelang.compile only")
        clash = set(self.params) & set(self.sizes)
        if clash:
            raise ValueError(f"{self.name}: {sorted(clash)} are both params and sizes")
        for name in ("params", "sizes", "device_params", "device_sizes"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def kernel_params(self, device: bool = False) -> dict[str, Any]:
        return {**self.params, **(self.device_params if device else {})}

    def values(self, device: bool = False) -> dict[str, Any]:
        sizes = {**self.sizes, **(self.device_sizes if device else {})}
        return {**self.kernel_params(device), **sizes}

    def source(self) -> Path:
        """The file of the kernel: what editors and the static front end read as text."""
        path = sys.modules[self.make.__module__].__file__
        assert path is not None
        return Path(path)

    def make_inputs(self, seed: int = 0, device: bool = False) -> tuple[Any, ...]:
        return self.inputs(np.random.default_rng(seed), **self.values(device))


@dataclass(frozen=True, slots=True)
class RejectCase:
    """A kernel that must be refused: with this code, and a message in the user's own names."""

    name: str
    row: str
    attempt: Callable[[], Any]
    code: str
    mentions: tuple[str, ...]


def run(case: KernelCase, inputs: Sequence[Any], device: bool = False) -> tuple[Any, ...]:
    """Compiles and calls the kernel; returns its outputs, then the arguments it wrote to."""
    import tilelang

    params = case.kernel_params(device)
    match case.style:
        case "eager":
            result = case.make(*inputs, **params)
        case "lazy":
            result = case.make(**params)(*inputs)
        case "prim_func":
            target = "auto" if device else "cpu"
            kernel = tilelang.compile(
                case.make(**params), out_idx=list(case.out_idx) or None, target=target
            )
            result = kernel(*inputs)
    returned = () if result is None else tuple(result) if _is_sequence(result) else (result,)
    return returned + tuple(inputs[position] for position in case.mutates)


def check(case: KernelCase, seed: int = 0, device: bool = False) -> None:
    """Runs the case and raises AssertionError, with the figures, if an output is wrong."""
    inputs = case.make_inputs(seed, device)
    expected = case.reference(*(to_numpy(x) for x in inputs), **case.values(device))
    outputs = run(case, inputs, device)
    if len(outputs) != len(expected):
        raise AssertionError(f"{case.name}: {len(outputs)} outputs, expected {len(expected)}")
    allowed = [_allowed(case, i, output) for i, output in enumerate(outputs)]
    got = tuple(to_numpy(output) for output in outputs)
    if case.canonical is not None:
        got, expected = case.canonical(got), case.canonical(expected)
    for i, (output, want, limit) in enumerate(zip(got, expected, allowed, strict=True)):
        if output.shape != np.shape(want):
            raise AssertionError(
                f"{case.name}: output {i} has shape {output.shape}, expected {np.shape(want)}"
            )
        error = relative_error(output, want)
        if not error <= limit:
            raise AssertionError(f"{case.name}: output {i} is off by {error:.2e} > {limit:.0e}")


# The tests' own judge: `tilelang run` has one in the package, which they test too.
def relative_error(got: Array, want: Array) -> float:
    """Relative Frobenius error; NaN and infinity must stand at the same places in both."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    odd = ~np.isfinite(want)
    if not np.array_equal(got[odd], want[odd], equal_nan=True) or not np.isfinite(got[~odd]).all():
        return float("inf")
    scale = float(np.linalg.norm(want[~odd]))
    distance = float(np.linalg.norm(got[~odd] - want[~odd]))
    return distance / scale if scale else distance


def dtype_name(array: Any) -> str:
    return str(array.dtype).removeprefix("torch.")


def to_numpy(value: Any) -> Any:
    """The value in float64, or unchanged if it holds integers; Python scalars pass through."""
    if hasattr(value, "detach"):
        import torch

        value = value.detach().cpu()
        value = (value.to(torch.float64) if value.is_floating_point() else value).numpy()
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return value.astype(np.float64)
    return value


def _allowed(case: KernelCase, position: int, output: Any) -> float:
    named = case.precision[position] if position < len(case.precision) else None
    return TOLERANCE.get(named or dtype_name(output), 0.0)


def _is_sequence(result: Any) -> bool:
    return isinstance(result, list | tuple)
