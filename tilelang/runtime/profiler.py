"""How long does a call take, and does the kernel agree with a reference?"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from tilelang.runtime.effects import pointer_tables
from tilelang.runtime.inputs import TensorSupplyType, make_inputs
from tilelang.runtime.tensors import copy_of
from tilelang_diagnostics import failure

if TYPE_CHECKING:
    from tilelang.runtime.kernel import JITKernel

ReturnMode = Literal["mean", "min", "max", "median"]


def do_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    _n_warmup: int = 0,
    _n_repeat: int = 0,
    quantiles: Sequence[float] | None = None,
    fast_flush: bool = True,
    backend: str = "event",
    return_mode: ReturnMode = "mean",
    device: Any = None,
    cache_size: int = 256,
    early_stop_baseline: float | None = None,
) -> Any:
    """Milliseconds that `fn()` takes.

    Args:
        warmup, rep: how long to warm up and to measure, in milliseconds.
        _n_warmup, _n_repeat: numbers of calls instead.
        quantiles: return these quantiles, as a list, instead of `return_mode`.
        device: "cuda" takes the time on the GPU, by events, after filling `cache_size` MiB so that
            nothing is left in its cache (unless `fast_flush` is off); "cpu" by the clock. Default:
            the GPU if PyTorch uses one.
        backend: accepted; events are what there is.
        early_stop_baseline: stop once the best time so far cannot beat this any more.
    """
    if return_mode not in ("mean", "min", "max", "median"):
        raise ValueError(f"return_mode is {return_mode!r}, expected mean, min, max or median")
    clock = _clock(device, cache_size if fast_flush else 0)
    once = clock(fn)
    for _ in range(_n_warmup or max(0, min(int(warmup / 1000 / once), 10_000))):
        fn()
    estimate = min(once, clock(fn))
    count = _n_repeat or max(1, min(int(rep / 1000 / estimate), 100_000))
    times: list[float] = []
    for done in range(count):
        times.append(clock(fn) * 1000)
        if early_stop_baseline is not None and done == count // 4:
            if min(times) > 2 * early_stop_baseline:
                break
    if quantiles is not None:
        found = [_quantile(sorted(times), q) for q in quantiles]
        return found[0] if len(found) == 1 else found
    summary: Mapping[str, Callable[[list[float]], float]] = {
        "mean": statistics.fmean, "min": min, "max": max, "median": statistics.median,
    }  # fmt: skip
    return summary[return_mode](times)


class Profiler:
    """Inputs, checks and timing for one kernel. Made by `kernel.get_profiler()`."""

    def __init__(
        self, kernel: JITKernel, supply_type: TensorSupplyType = TensorSupplyType.Auto
    ) -> None:
        self.kernel = kernel
        self.supply_type = supply_type

    def inputs(self, sizes: Mapping[str, Any] | None = None, seed: int = 0) -> list[Any]:
        """Random inputs; `sizes` gives runtime dimensions and scalars by name."""
        self.kernel.require_device()
        tables = pointer_tables(self.kernel.function)
        return make_inputs(
            self.kernel.signature, self.supply_type, sizes, seed, tables=tables,
            device=self.kernel.device_kind,
        )  # fmt: skip

    def run_once(self, func: Callable[..., Any] | None = None) -> Any:
        """One call on random inputs."""
        return (func or self.kernel)(*self.inputs())

    __call__ = run_once

    def do_bench(
        self,
        func: Callable[..., Any] | None = None,
        warmup: float = 25,
        rep: float = 100,
        n_warmup: int = 0,
        n_repeat: int = 0,
        input_tensors: Sequence[Any] | None = None,
        backend: str = "event",
        quantiles: Sequence[float] | None = None,
        return_mode: ReturnMode = "mean",
        dynamic_symbolic_constraints: Mapping[str, int] | None = None,
        **ignored: Any,
    ) -> Any:
        """Milliseconds of a call of the kernel, or of `func`, on the same inputs."""
        given = input_tensors if input_tensors is not None else self.inputs(
            dynamic_symbolic_constraints
        )  # fmt: skip
        call = func or self.kernel
        return do_bench(
            lambda: call(*given), warmup, rep, n_warmup, n_repeat, quantiles, backend=backend,
            return_mode=return_mode, device=self.kernel.device_kind,
        )  # fmt: skip

    def assert_allclose(
        self,
        reference_program: Callable[..., Any],
        input_tensors: Sequence[Any] | None = None,
        atol: float = 1e-2,
        rtol: float = 1e-2,
        max_mismatched_ratio: float = 0.01,
    ) -> None:
        """Raise AssertionError if the kernel's results differ from the reference's.

        The reference gets the inputs only. A kernel that returns nothing is compared by what it
        wrote to its arguments.
        """
        from tilelang.testing import torch_assert_close

        expected, got = self._both(reference_program, input_tensors)
        for want, have in zip(expected, got, strict=True):
            torch_assert_close(have, want, rtol=rtol, atol=atol,
                               max_mismatched_ratio=max_mismatched_ratio)  # fmt: skip

    def manual_assert_close(
        self,
        reference_program: Callable[..., Any],
        input_tensors: Sequence[Any] | None = None,
        manual_check_prog: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        """As `assert_allclose`, with the comparison made by `manual_check_prog(got, expected)`."""
        if manual_check_prog is None:
            raise TypeError("manual_assert_close needs manual_check_prog")
        expected, got = self._both(reference_program, input_tensors)
        manual_check_prog(got, expected)

    def assert_consistent(self, repeat: int = 10) -> None:
        """Raise AssertionError if the same inputs do not always give the same bits."""
        inputs = self.inputs()
        first = _listed(self.kernel(*inputs))
        for _ in range(repeat):
            for a, b in zip(first, _listed(self.kernel(*inputs)), strict=True):
                if _bytes(a) != _bytes(b):
                    raise failure(
                        "TL723",
                        f"{self.kernel.name} gives different results for the same inputs",
                    )

    def _both(
        self, reference: Callable[..., Any], input_tensors: Sequence[Any] | None
    ) -> tuple[list[Any], list[Any]]:
        given = list(input_tensors) if input_tensors is not None else self.inputs()
        expected = _listed(reference(*(copy_of(x) for x in given)))
        returned = self.kernel(*given)
        if returned is None and expected:
            written = self.kernel.written_inputs()
            return expected, [given[i] for i in written][: len(expected)]
        return expected, _listed(returned)


def _clock(device: Any, cache_mib: int) -> Callable[[Callable[[], Any]], float]:
    """What measures one call, in seconds."""
    torch = sys.modules.get("torch")
    if device is None and torch is not None and torch.cuda.is_initialized():
        device = "cuda"
    if device is None or str(device) == "cpu" or torch is None:
        return _once
    filler = torch.empty(cache_mib << 18, dtype=torch.int32, device=device) if cache_mib else None

    def on_device(fn: Callable[[], Any]) -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        if filler is not None:
            filler.zero_()
        start.record()
        fn()
        end.record()
        end.synchronize()
        return max(float(start.elapsed_time(end)) / 1000, 1e-9)

    return on_device


def _once(fn: Callable[[], Any]) -> float:
    started = time.perf_counter()
    fn()
    return max(time.perf_counter() - started, 1e-9)


def _quantile(ordered: list[float], q: float) -> float:
    position = q * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _bytes(value: Any) -> bytes:
    if hasattr(value, "detach"):
        import torch

        value = value.detach().contiguous().view(torch.uint8).cpu().numpy()
    raw: bytes = value.tobytes()
    return raw


__all__ = ["Profiler", "TensorSupplyType", "do_bench"]
