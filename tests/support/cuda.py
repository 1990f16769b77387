"""Compiling for CUDA in tests: where no compiler is installed, those tests are skipped."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from tests.codegen import kernels
from tests.support.device import device_func
from tests.support.every_op import every_op
from tilelang.codegen.cuda import print_cuda
from tilelang.codegen.device_source import DeviceSource
from tilelang.runtime.cuda_compiler import find_nvcc
from tilelang.runtime.nvrtc import find_nvrtc
from tilelang.runtime.sass import find_nvdisasm
from tilelang.runtime.toolchain_cuda import compile_cuda
from tilelang.target import Target

ARCHS = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a")

needs_nvrtc = pytest.mark.skipif(find_nvrtc() is None, reason="needs tilelang[cuda13]")
needs_cuda_compiler = pytest.mark.skipif(
    find_nvrtc() is None and find_nvcc() is None, reason="needs tilelang[cuda13] or nvcc"
)
needs_nvdisasm = pytest.mark.skipif(find_nvdisasm() is None, reason="needs tilelang[cuda13]")


@cache
def golden_source(name: str, line_directives: bool = False) -> DeviceSource:
    """One of `kernels.GOLDEN`, printed."""
    kernel, maps = kernels.GOLDEN[name]()
    return print_cuda(device_func(kernel, maps=maps), line_directives=line_directives)


@cache
def compiled_ops(arch: str) -> tuple[DeviceSource, Any]:
    """Every device operation of `arch`: source and binary."""
    source = print_cuda(every_op(arch))
    return source, compile_cuda(source, Target("cuda", arch))
