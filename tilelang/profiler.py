"""Timing of kernels: `do_bench`, and the `Profiler` that `kernel.get_profiler()` returns."""

from tilelang.runtime.inputs import TensorSupplyType
from tilelang.runtime.profiler import Profiler, do_bench

__all__ = ["Profiler", "TensorSupplyType", "do_bench"]
