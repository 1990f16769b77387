"""What does a kernel of `device_sizes` take, and what must it give, where tensors are large?

The inputs and the float64 reference are those of the case. Its files are written with NumPy; within
`numpy_on` their `np` is PyTorch's own implementation of the same names, so that the very same
functions make and compute tensors on the GPU. What cannot be done there falls back to NumPy.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


class GpuRandom:
    """What cases ask of a NumPy generator, made on the GPU."""

    def __init__(self, device: str) -> None:
        import torch

        self.torch, self.device = torch, device
        self.generator = torch.Generator(device).manual_seed(0)

    def _made(self, make: Any, shape: Any, dtype: Any) -> Any:
        import torch._numpy as tnp

        sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
        found = make(
            tuple(int(n) for n in sizes), dtype=self.torch.float64,
            device=self.device, generator=self.generator,
        )  # fmt: skip
        return tnp.ndarray(found) if dtype is None else tnp.ndarray(found).astype(dtype)

    def standard_normal(self, shape: Any, dtype: Any = None) -> Any:
        return self._made(self.torch.randn, shape, dtype)

    def random(self, shape: Any, dtype: Any = None) -> Any:
        return self._made(self.torch.rand, shape, dtype)

    def integers(self, low: int, high: int, shape: Any) -> Any:
        import torch._numpy as tnp

        sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
        return tnp.ndarray(
            self.torch.randint(
                low, high, tuple(sizes), device=self.device, generator=self.generator
            )
        )


class _Names:
    """`torch._numpy` where it has a name, NumPy elsewhere."""

    def __getattr__(self, name: str) -> Any:
        import numpy as np
        import torch._numpy as tnp

        return getattr(tnp, name) if hasattr(tnp, name) else getattr(np, name)


@contextmanager
def numpy_on(device: str, case: Any) -> Iterator[None]:
    """Within, `np` in the files of the case makes and computes tensors on the device."""
    import torch
    import torch._numpy as tnp

    import tests.kernels.references as shared

    modules = {sys.modules[f.__module__] for f in (case.inputs, case.reference)} | {shared}
    kept = {module: module.np for module in modules if hasattr(module, "np")}
    from_numpy = torch.from_numpy
    for module in kept:
        module.np = _Names()  # type: ignore[attr-defined]
    torch.from_numpy = lambda x: x.tensor if isinstance(x, tnp.ndarray) else from_numpy(x)
    try:
        with torch.device(device):
            yield
    finally:
        torch.from_numpy = from_numpy
        for module, names in kept.items():
            module.np = names  # type: ignore[attr-defined]


def tensor_of(value: Any, device: str) -> Any:
    """An input as a contiguous tensor on the device, bit for bit."""
    import numpy as np
    import torch
    import torch._numpy as tnp

    if isinstance(value, tnp.ndarray):
        value = value.tensor
    elif isinstance(value, np.ndarray):
        value = torch.from_numpy(np.ascontiguousarray(value))
    # A copy: what a kernel writes to must not be what the answer is computed from.
    return value.to(device).contiguous().clone()


def make_inputs(case: Any, device: str, large: bool) -> tuple[tuple[Any, ...], str]:
    """The arguments of a call, and where they were made."""
    if large and case.canonical is None:
        try:
            with numpy_on(device, case):
                return case.inputs(GpuRandom(device), **case.values(True)), "gpu"
        except Exception as error:
            why = f"numpy, for {type(error).__name__}: {str(error)[:80]}"
            return case.make_inputs(0, True), why
    return case.make_inputs(0, True), "numpy"


def answer(
    case: Any, inputs: Sequence[Any], device: str, large: bool
) -> tuple[tuple[Any, ...], str]:
    """The float64 results, and where they were computed."""
    import torch
    import torch._numpy as tnp

    from tests.kernels.case import to_numpy

    if large and case.canonical is None:
        exact = []
        for value in inputs:
            if hasattr(value, "shape"):
                value = tensor_of(value, device)
                value = tnp.ndarray(value.double() if value.is_floating_point() else value)
            exact.append(value)
        try:
            with numpy_on(device, case):
                return tuple(case.reference(*exact, **case.values(True))), "gpu"
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            why = f"numpy, for {type(error).__name__}: {str(error)[:80]}"
    else:
        why = "numpy"
    host = (x.tensor if isinstance(x, tnp.ndarray) else x for x in inputs)
    return tuple(case.reference(*(to_numpy(x) for x in host), **case.values(True))), why


def compare(got: Any, want: Any, tolerance: float) -> dict[str, Any]:
    """The relative Frobenius error, and the worst element's against its own size and the usual.

    The second finds a few wrong elements among millions. NaN and infinity must stand at the same
    places in both.
    """
    import numpy as np
    import torch
    import torch._numpy as tnp

    if not isinstance(want, tnp.ndarray):
        want = tnp.ndarray(torch.from_numpy(np.ascontiguousarray(np.asarray(want, np.float64))))
    exact = want.tensor.to(got.device).double()
    if tuple(exact.shape) != tuple(got.shape):
        return {"ok": False, "why": f"shape {tuple(got.shape)}, expected {tuple(exact.shape)}"}
    got, finite = got.double(), exact.isfinite()
    if not bool(finite.all()):
        odd = ~finite
        if not torch.allclose(got[odd], exact[odd], equal_nan=True):
            return {"ok": False, "why": "other values are not finite"}
        got, exact = got[finite], exact[finite]
    bad = int((~got.isfinite()).sum())
    if bad:
        return {"ok": False, "why": f"{bad} of {got.numel()} are not finite (or never written)"}
    distance = (got - exact).abs()
    scale, usual = float(exact.norm()), float(exact.norm()) / max(1, exact.numel()) ** 0.5
    error = float(distance.norm()) / (scale or 1.0)
    worst = float((distance / (exact.abs() + (usual or 1.0))).max()) if got.numel() else 0.0
    fine = error <= tolerance and worst <= min(32 * tolerance, 0.5)
    return {"ok": fine, "error": float(f"{error:.3g}"), "worst": float(f"{worst:.3g}")}
