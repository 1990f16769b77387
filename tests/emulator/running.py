"""How is a kernel under test run on the emulator, in each of its modes?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

import tilelang
from tests.kernels import case as cases
from tests.kernels.case import KernelCase, relative_error, to_numpy
from tilelang.emulator.settings import Emulator
from tilelang.runtime.jit import JitFunction

TARGET: Final = "cuda:sm_80"
MODES: Final = {
    "fifo": Emulator(),
    "shuffle:1": Emulator(seed=1),
    "shuffle:2": Emulator(seed=2),
    "check": Emulator(check=True),
}


def run_emulated(
    case: KernelCase, inputs: Sequence[Any], emulator: Emulator, target: str = TARGET
) -> tuple[Any, ...]:
    """Compiles and calls the kernel; returns its outputs, then the arguments it wrote to."""
    params = case.kernel_params()
    if case.style == "prim_func":
        kernel = tilelang.compile(
            case.make(**params), out_idx=list(case.out_idx) or None, target=target,
            execution_backend=emulator,
        )  # fmt: skip
        result = kernel(*inputs)
    else:
        # A copy: the one of the registry keeps the kernels it compiled for the CPU.
        made: Any = case.make
        function = JitFunction(
            made.python, made.out_idx, target, made.options, False, made.captured, emulator
        )
        eager = case.style == "eager"
        result = function(*inputs, **params) if eager else function(**params)(*inputs)
    returned = () if result is None else tuple(result) if isinstance(result, list) else (result,)
    return returned + tuple(inputs[position] for position in case.mutates)


def check_emulated(case: KernelCase, emulator: Emulator, target: str = TARGET) -> None:
    """Runs the case and raises AssertionError, with the figures, if an output is wrong."""
    inputs = case.make_inputs()
    expected = case.reference(*(to_numpy(x) for x in inputs), **case.values())
    outputs = run_emulated(case, inputs, emulator, target)
    assert len(outputs) == len(expected)
    allowed = [cases._allowed(case, i, output) for i, output in enumerate(outputs)]
    got = tuple(to_numpy(output) for output in outputs)
    if case.canonical is not None:
        got, expected = case.canonical(got), case.canonical(expected)
    for i, (output, want, limit) in enumerate(zip(got, expected, allowed, strict=True)):
        assert output.shape == np.shape(want)
        error = relative_error(output, want)
        assert error <= limit, f"{case.name}: output {i} is off by {error:.2e} > {limit:.0e}"
