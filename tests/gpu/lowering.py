"""How do tests lower a kernel for a GPU?"""

from __future__ import annotations

from typing import Any

from tilelang.codegen.cuda import print_cuda
from tilelang.codegen.device_source import DeviceSource
from tilelang.compiler import effective_options, lower_function
from tilelang.ir.verify import VerifyObserver
from tilelang.options import CompileOptions
from tilelang.program.stmt import Function
from tilelang.target import parse_target
from tilelang_diagnostics import raise_for


def lowered(function: Function, arch: str = "sm_80") -> Any:
    """The function for one thread; every pass is verified."""
    options = effective_options(function, CompileOptions())
    target = parse_target(f"cuda:{arch}")
    found = lower_function(function, target, options, [VerifyObserver()])
    raise_for(found.diagnostics)
    return found.func


def source_of(function: Function, arch: str = "sm_80") -> DeviceSource:
    """Its CUDA source."""
    return print_cuda(lowered(function, arch))
