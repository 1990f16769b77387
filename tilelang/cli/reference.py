"""What does the file of a kernel say about trying it: its inputs, and the results to expect?

The reference gets the inputs in float64 where it can take them, so that its own rounding plays no
part; the allowed error is that of the output's dtype.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from tilelang.cli.user_code import call
from tilelang.runtime.tensors import as_float64
from tilelang_diagnostics import diagnose, did_you_mean, failure
from tilelang_diagnostics.model import Diagnostic

# Relative Frobenius error allowed against float64, by dtype of the result: a few units of the
# format's rounding, as sums of many terms have. Integers must be exact.
TOLERANCE: Final[Mapping[str, float]] = {
    "float64": 1e-12,
    "float32": 1e-5,
    "float16": 1e-3,
    "bfloat16": 8e-3,
    "float8_e4m3fn": 4e-2,
    "float8_e5m2": 8e-2,
}
# tf32 keeps as many bits of the mantissa as float16.
TF32_TOLERANCE: Final = TOLERANCE["float16"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The error of one result and what is allowed; `instead` says why there is no such number."""

    name: str
    error: float
    allowed: float
    first_wrong: str = ""
    instead: str = ""

    @property
    def fits(self) -> bool:
        return self.error <= self.allowed


def find_reference(module: ModuleType, kernel: str) -> Callable[..., Any] | None:
    """The reference function of a file, by the names authors give it."""
    names = (f"{kernel}_reference", f"reference_{kernel}", f"{kernel}_ref", f"ref_{kernel}",
             "reference", "ref_program", "reference_program", "ref")  # fmt: skip
    found = (getattr(module, name, None) for name in names)
    return next((f for f in found if inspect.isfunction(f)), None)


def replace_inputs(
    module: ModuleType, kernel: str, parameters: Sequence[str], inputs: list[Any],
    values: Mapping[str, Any],
) -> None:  # fmt: skip
    """Put what the file's `inputs` function makes in the place of random inputs.

    It is called with those of its parameters that are values of the kernel, and returns a dict of
    inputs by name, or all of them in order. A function that needs other arguments is another one.
    """
    names = (f"{kernel}_inputs", "inputs")
    make = next((f for f in (getattr(module, n, None) for n in names) if inspect.isfunction(f)),
                None)  # fmt: skip
    if make is None:
        return
    wanted = inspect.signature(make).parameters.values()
    if any(p.default is p.empty and p.name not in values for p in wanted):
        return
    made = call(make, {p.name: values[p.name] for p in wanted if p.name in values})
    if not isinstance(made, Mapping):
        listed = list(made) if isinstance(made, tuple | list) else [made]
        if len(listed) != len(parameters):
            raise failure("TL701", f"`{make.__name__}` returns {len(listed)} inputs, but `{kernel}`"
                          f" takes {len(parameters)}",
                          help="return a dict of inputs by name, or one for every parameter: "
                          + ", ".join(parameters))  # fmt: skip
        made = dict(zip(parameters, listed, strict=True))
    for name, value in made.items():
        if name not in parameters:
            raise failure("TL720", f"`{make.__name__}` returns `{name}`, which is no input of "
                          f"`{kernel}`{did_you_mean(name, parameters)}",
                          help=f"its inputs are: {', '.join(parameters)}")  # fmt: skip
        inputs[parameters.index(name)] = value


def leaves_out(
    reference: Callable[..., Any], inputs: int, written: int, values: Mapping[str, Any]
) -> bool:
    """Whether the reference computes what the kernel writes, and is not given it.

    What it calls like one of `values` is no input.
    """
    required = [p for p in _positional(reference, values) if p.default is p.empty]
    return len(required) < inputs and inputs - written >= len(required)


def compare(
    reference: Callable[..., Any],
    inputs: Sequence[Any],
    results: Sequence[tuple[str, Any]],
    values: Mapping[str, Any],
    written: frozenset[int] = frozenset(),
    least: float = 0.0,
) -> list[Comparison]:
    """The error of each named result. `inputs` are those of before the call.

    `least` is allowed whatever the dtype of the result.
    """
    expected = _call(reference, inputs, values, written)
    if expected is None:
        raise failure(
            "TL723",
            f"`{reference.__name__}` returns nothing to compare with",
            help="return what the kernel computes, or run with --no-check",
        )
    listed = list(expected) if isinstance(expected, tuple | list) else [expected]
    if len(listed) != len(results):
        raise failure(
            "TL723",
            f"{len(results)} results, but {len(listed)} from `{reference.__name__}`",
        )
    return [
        _compare_one(name, got, want, least)
        for (name, got), want in zip(results, listed, strict=True)
    ]


def mismatches(comparisons: Sequence[Comparison], reference: str) -> list[Diagnostic]:
    """TL723 for each result that is off."""
    return [
        diagnose(
            "TL723",
            f"`{c.name}` differs from `{reference}`: "
            + (c.instead or f"relative error {c.error:.2g}, allowed {c.allowed:g}"),
            notes=(c.first_wrong,) if c.first_wrong else (),
        )
        for c in comparisons if not c.fits
    ]  # fmt: skip


def relative_error(got: Any, want: Any) -> float:
    """Relative Frobenius error; NaN and infinity must stand at the same places in both."""
    import numpy

    odd = ~numpy.isfinite(want)
    if not numpy.array_equal(got[odd], want[odd], equal_nan=True):
        return float("inf")
    if not numpy.isfinite(got[~odd]).all():
        return float("inf")
    scale = float(numpy.linalg.norm(want[~odd]))
    distance = float(numpy.linalg.norm(got[~odd] - want[~odd]))
    return distance / scale if scale else distance


def _call(
    reference: Callable[..., Any], inputs: Sequence[Any], values: Mapping[str, Any],
    written: frozenset[int],
) -> Any:  # fmt: skip
    parameters = inspect.signature(reference).parameters
    given = list(inputs)
    if leaves_out(reference, len(given), len(written), values):
        given = [x for i, x in enumerate(given) if i not in written]
    names = {p.name for p in _positional(reference, values)[: len(given)]}
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    keywords = {
        n: v for n, v in values.items() if n not in names and (takes_any or n in parameters)
    }
    try:
        return reference(*(_widened(x) for x in given), **keywords)
    except Exception:
        # Not every reference can compute in float64 (a dtype it was written for, a mask).
        return call(reference, keywords, *given)


def _positional(function: Callable[..., Any], values: Mapping[str, Any]) -> list[inspect.Parameter]:
    parameters = inspect.signature(function).parameters.values()
    return [
        p for p in parameters
        if p.kind is p.POSITIONAL_ONLY
        or (p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in values)
    ]  # fmt: skip


def _widened(value: Any) -> Any:
    if hasattr(value, "is_floating_point"):
        import torch

        return value.to(torch.float64) if value.is_floating_point() else value.clone()
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    # ml_dtypes calls its floats kind V.
    return value.astype("float64") if kind in ("f", "V") else value


def _compare_one(name: str, got: Any, want: Any, least: float) -> Comparison:
    import numpy

    dtype = str(got.dtype).removeprefix("torch.")
    allowed = max(TOLERANCE.get(dtype, 0.0), least)
    a, b = as_float64(got), as_float64(want)
    if a.shape != b.shape:
        shapes = f"its shape is {_shape(a)}, that of the reference {_shape(b)}"
        return Comparison(name, float("inf"), allowed, instead=shapes)
    error = relative_error(a, b)
    where = instead = ""
    if error == float("inf"):
        instead = "NaN or infinity stand at other places"
    if error > allowed:
        limit = allowed * max(1.0, float(numpy.abs(b[numpy.isfinite(b)]).max(initial=0.0)))
        wrong = ~numpy.isclose(a, b, rtol=allowed, atol=limit, equal_nan=True)
        if wrong.any():
            index = tuple(int(i) for i in numpy.argwhere(wrong)[0])
            inside = f"[{', '.join(map(str, index))}]" if index else ""
            where = f"first at {name}{inside}: {a[index]:.6g} instead of {b[index]:.6g}"
    return Comparison(name, error, allowed, where, instead)


def _shape(array: Any) -> str:
    return f"({', '.join(map(str, array.shape))})"
