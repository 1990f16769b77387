"""How do tests of the CPU backend run a kernel: straight through the compiler, with no cache."""

from __future__ import annotations

from typing import Any

from tilelang.codegen.cpu import build_cpu
from tilelang.codegen.cpu_artifact import CpuArtifact
from tilelang.ir.emit import emit
from tilelang.ir.llvm import HostCpu
from tilelang.language.primfunc import PrimFunc
from tilelang.passes.context import PassContext
from tilelang.pipeline import run_pipeline
from tilelang.runtime.cpu import load_cpu
from tilelang_diagnostics import raise_for
from tilelang_diagnostics.model import Diagnostic


def lower_for_cpu(kernel: PrimFunc) -> Any:
    """The TIRX function that the CPU code generator gets; raises for errors of the passes."""
    context = PassContext("cpu")
    func = run_pipeline(emit(kernel.function), context)
    raise_for(context.remarks)
    return func


def refusals(kernel: PrimFunc) -> tuple[Diagnostic, ...]:
    """The errors the passes report about a kernel."""
    context = PassContext("cpu")
    run_pipeline(emit(kernel.function), context)
    return tuple(d for d in context.remarks if d.is_error)


def compile_for_cpu(kernel: PrimFunc, cpu: HostCpu | None = None) -> CpuArtifact:
    """The kernel as object code, for this processor when no other is named."""
    return build_cpu(lower_for_cpu(kernel), cpu=cpu)


def run_on_cpu(kernel: PrimFunc, *values: Any, cpu: HostCpu | None = None, **dims: int) -> None:
    """Compile and run; arrays are passed by address, runtime dims by name."""
    artifact = compile_for_cpu(kernel, cpu)
    slots = [address_of(v) for v in values]
    slots += [dims[s.name] for s in artifact.slots if s.kind == "dim"]
    load_cpu(artifact).run(slots)


def address_of(value: Any) -> Any:
    """The address of an array or tensor; scalars as they are."""
    if hasattr(value, "data_ptr"):
        return value.data_ptr()
    return value.ctypes.data if hasattr(value, "ctypes") else value
