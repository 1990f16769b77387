"""A CUDA error that PyTorch meets ends the program: which kernels of ours may have caused it?

An error of a kernel is met at whatever waits for the device next, which is PyTorch more often than
us. Once a kernel was loaded on a GPU, an uncaught CUDA error is followed by what we know of it. The
traceback is printed as ever, by whoever prints tracebacks in this process.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Final

from tilelang.runtime import cuda_errors
from tilelang.runtime.cuda_driver import Result
from tilelang.runtime.cuda_ring import Launched
from tilelang_diagnostics import CompileError

# What the CUDA runtime calls the errors after which a context is lost, with the driver's numbers.
_LOST: Final = {
    "an illegal memory access was encountered": 700,
    "the launch timed out and was terminated": 702,
    "device-side assert triggered": 710,
    "an illegal instruction was encountered": 715,
    "misaligned address": 716,
    "operation not supported on global/shared address space": 717,
    "unspecified launch failure": 719,
}
_installed: list[bool] = []


def install(recent: Iterable[Launched]) -> None:
    """From now on uncaught CUDA errors are explained from `recent`; only the first call counts."""
    if _installed:
        return
    _installed.append(True)
    previous: Callable[..., Any] = sys.excepthook

    def hook(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        previous(kind, error, traceback)
        said = explanation(error, tuple(recent))
        if said is not None:
            print(said, file=sys.stderr)

    sys.excepthook = hook


def explanation(error: BaseException, recent: tuple[Launched, ...]) -> str | None:
    """Our diagnostic for somebody else's CUDA error; None for any other error."""
    text = str(error)
    if isinstance(error, CompileError) or "CUDA error" not in text or not recent:
        return None
    found = next(((words, number) for words, number in _LOST.items() if words in text), None)
    if found is None:
        return None
    words, number = found
    return str(cuda_errors.context_lost("PyTorch", words, Result(number), recent))
