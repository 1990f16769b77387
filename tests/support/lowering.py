"""Lower, print and run kernels below the public API: what the tests of ir, ops and passes share."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tilelang.codegen.cpu import build_cpu
from tilelang.ir.emit import emit
from tilelang.ir.text import print_function
from tilelang.ir.verify import VerifyObserver, verify
from tilelang.passes.context import PassContext
from tilelang.pipeline import PIPELINE, run_pipeline
from tilelang.runtime.cpu import load_cpu


def emitted(kernel: Any) -> Any:
    """The verified TIRX function of a `T.prim_func`."""
    func = emit(kernel.function)
    problems = verify(func)
    assert not problems, "\n".join(problems)
    return func


def lowered(kernel: Any, until: str | None = None, context: PassContext | None = None) -> Any:
    """`kernel` after the pass called `until` (all passes when None), verified after each."""
    passes = list(PIPELINE)
    if until is not None:
        names = [step.name for step in passes]
        passes = passes[: names.index(until) + 1]
    context = context or PassContext("cpu")
    return run_pipeline(emitted(kernel), context, [VerifyObserver()], passes)


def body_text(func: Any) -> str:
    """The printed code inside the launch of `func`, without its indentation."""
    lines = print_function(func).text.splitlines()
    start = next(n for n, line in enumerate(lines) if "T.Kernel(" in line)
    inside = [line for line in lines[start + 1 :] if line.startswith("        ")]
    return textwrap.dedent("\n".join(inside)).strip() + "\n"


def check_text(func: Any, expect: str) -> None:
    """The launch body of `func` reads `expect` (indentation of the literal aside)."""
    assert body_text(func) == textwrap.dedent(expect).strip() + "\n"


def check_pass(kernel: Any, transform: Callable[..., Any], before: str, expect: str) -> None:
    """`transform`, run after the passes up to `before`, turns the launch body into `expect`."""
    context = PassContext("cpu")
    func = lowered(kernel, before, context) if before else emitted(kernel)
    result = transform(func, context)
    problems = verify(result)
    assert not problems, "\n".join(problems)
    check_text(result, expect)


def run_kernel(kernel: Any, *arguments: Any, dims: Mapping[str, int] | None = None) -> None:
    """Compile `kernel` for the CPU and run it on NumPy arrays and scalars, in place."""
    artifact = build_cpu(lowered(kernel))
    values: list[int | float] = []
    given = iter(arguments)
    for slot in artifact.slots:
        if slot.kind == "dim":
            values.append((dims or {})[slot.name])
            continue
        argument = next(given)
        values.append(argument.ctypes.data if isinstance(argument, np.ndarray) else argument)
    load_cpu(artifact).run(values)


def random_array(shape: Sequence[int], dtype: str, seed: int = 0) -> Any:
    """Numbers that make every dtype's rounding visible but nothing overflow."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith(("int", "uint")):
        low = 0 if dtype.startswith("uint") else -50
        return rng.integers(low, 50, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


TOLERANCE = {"float16": 1e-3, "float32": 1e-5, "float64": 1e-12}


def assert_close(got: Any, want: Any) -> None:
    """Relative Frobenius error by the dtype of `got`; integers exactly."""
    if got.dtype.kind != "f":
        np.testing.assert_array_equal(got, want)
        return
    exact = np.asarray(want, np.float64)
    odd = ~np.isfinite(exact)
    np.testing.assert_array_equal(got[odd], exact[odd])
    scale = np.linalg.norm(exact[~odd]) or 1.0
    error = np.linalg.norm(got[~odd].astype(np.float64) - exact[~odd]) / scale
    assert error <= TOLERANCE[str(got.dtype)], f"off by {error:.2e}"
