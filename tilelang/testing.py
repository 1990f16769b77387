"""Helpers for tests of kernels: comparisons, skip marks, seeds.

@tilelang.testing.requires_cuda
def test_matmul(): ...

if __name__ == "__main__":
    tilelang.testing.main()
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from tilelang_diagnostics import failure

F = TypeVar("F", bound=Callable[..., Any])


def main() -> None:
    """Run pytest on the calling file and exit with its status."""
    import pytest

    file = sys._getframe(1).f_globals["__file__"]
    sys.exit(pytest.main([file, *sys.argv[1:]]))


def set_random_seed(seed: int = 42) -> None:
    """Seed Python, NumPy and PyTorch (those that are loaded)."""
    import random

    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


def torch_assert_close(
    tensor_a: Any,
    tensor_b: Any,
    rtol: float = 1e-2,
    atol: float = 1e-3,
    max_mismatched_ratio: float = 1e-3,
    verbose: bool = False,
    equal_nan: bool = True,
    check_device: bool = True,
    check_dtype: bool = True,
    check_stride: bool = False,
    base_name: str = "result",
    ref_name: str = "reference",
) -> bool:
    """Raise AssertionError unless all but `max_mismatched_ratio` of the elements are close.

    Tensors may be PyTorch's or NumPy's. The message says how many elements differ, by how much,
    and where the worst one is.
    """
    import numpy

    from tilelang.layout.index_map import unflatten
    from tilelang.runtime.tensors import as_float64

    a, b = as_float64(tensor_a), as_float64(tensor_b)
    if a.shape != b.shape:
        _mismatch(f"{base_name} has shape {a.shape}, {ref_name} has {b.shape}")
    close = numpy.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    wrong = int(close.size - numpy.count_nonzero(close))
    allowed = int(close.size * max_mismatched_ratio)
    if verbose:
        print(f"{wrong} of {close.size} elements differ, {allowed} allowed")
    if wrong <= allowed:
        return True
    error = numpy.where(close, 0.0, numpy.nan_to_num(numpy.abs(a - b), nan=numpy.inf))
    worst = unflatten(int(error.argmax()), a.shape)
    _mismatch(
        f"{wrong} of {close.size} elements of {base_name} differ from {ref_name} ({allowed} "
        f"allowed); the worst, at {worst}, is {a[worst]:g} instead of {b[worst]:g}"
    )


def requires_cuda(func: F) -> F:
    """Skip unless an NVIDIA GPU is usable and this version generates code for it."""
    return _skip_unless(_has_device("cuda"), "needs a CUDA GPU and backend")(func)


def requires_rocm(func: F) -> F:
    """Skip unless an AMD GPU is usable and this version generates code for it."""
    return _skip_unless(_has_device("hip"), "needs a ROCm GPU and backend")(func)


def requires_metal(func: F) -> F:
    """Skip unless an Apple GPU is usable and this version generates code for it."""
    return _skip_unless(_has_device("metal"), "needs an Apple GPU and backend")(func)


def requires_llvm(func: F) -> F:
    """Skip unless TVM, which brings LLVM, is installed."""
    return _skip_unless(importlib.util.find_spec("tvm") is not None, "needs apache-tvm")(func)


def requires_package(*names: str) -> Callable[[F], F]:
    """Skip unless these packages are installed."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    return _skip_unless(not missing, f"needs {', '.join(missing)}")


def requires_cuda_compute_version(major: int, minor: int = 0, mode: str = "eq") -> Callable[[F], F]:
    """Skip unless the GPU's compute capability is equal to (`eq`), at least (`ge`), … this."""
    import operator

    comparisons = {"eq": operator.eq, "ge": operator.ge, "gt": operator.gt,
                   "le": operator.le, "lt": operator.lt}  # fmt: skip
    found = _compute_version()
    fits = found is not None and comparisons[mode](found, (major, minor))
    return _skip_unless(fits, f"needs compute capability {mode} {major}.{minor}")


def requires_cuda_compute_version_eq(major: int, minor: int = 0) -> Callable[[F], F]:
    """Skip unless the compute capability is this one."""
    return requires_cuda_compute_version(major, minor, "eq")


def requires_cuda_compute_version_ge(major: int, minor: int = 0) -> Callable[[F], F]:
    """Skip unless the compute capability is at least this."""
    return requires_cuda_compute_version(major, minor, "ge")


def requires_cuda_compute_version_gt(major: int, minor: int = 0) -> Callable[[F], F]:
    """Skip unless the compute capability is above this."""
    return requires_cuda_compute_version(major, minor, "gt")


def requires_cuda_compute_version_le(major: int, minor: int = 0) -> Callable[[F], F]:
    """Skip unless the compute capability is at most this."""
    return requires_cuda_compute_version(major, minor, "le")


def requires_cuda_compute_version_lt(major: int, minor: int = 0) -> Callable[[F], F]:
    """Skip unless the compute capability is below this."""
    return requires_cuda_compute_version(major, minor, "lt")


def _skip_unless(condition: bool, reason: str) -> Callable[[F], F]:
    import pytest

    mark: Callable[[F], F] = pytest.mark.skipif(not condition, reason=reason)
    return mark


def _has_device(kind: str) -> bool:
    from tilelang.backends import KINDS_LAUNCHED
    from tilelang.runtime.devices import probes

    usable = any(p.kind == kind and p.arch is not None for p in probes())
    return usable and kind in KINDS_LAUNCHED


def _compute_version() -> tuple[int, int] | None:
    if not _has_device("cuda"):
        return None
    from tilelang.runtime.devices import probe_cuda

    arch = probe_cuda().arch
    digits = (arch or "").removeprefix("sm_").rstrip("a")
    return (int(digits[:-1]), int(digits[-1])) if digits.isdigit() else None


def _mismatch(message: str) -> NoReturn:
    raise failure("TL723", message)
