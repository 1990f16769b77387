"""What does a kernel look like after the last pass, without running it?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilelang.backends import BACKENDS
from tilelang.compiler import effective_options, ir_text, lower_function
from tilelang.options import CompileOptions
from tilelang.runtime.build import build
from tilelang.runtime.crash import guarded
from tilelang.runtime.devices import resolve
from tilelang.runtime.jit import as_prim_func
from tilelang.runtime.kernel import JITKernel, KernelParam
from tilelang_diagnostics import raise_for


@dataclass(frozen=True, slots=True)
class LoweredKernel:
    """A lowered kernel: TIRX, the code generated from it, and (on request) one that runs.

    `device_mod` is the TIRX PrimFunc after the last pass; on the CPU it holds the launches too, and
    `host_mod` is the same function. `rt_mod` is a callable kernel, or None.
    """

    device_mod: Any
    host_mod: Any
    params: list[KernelParam]
    kernel_source: str
    rt_mod: JITKernel | None


def lower(
    func: Any,
    target: Any = "auto",
    target_host: Any = None,
    runtime_only: bool = False,
    enable_host_codegen: bool = False,
    enable_device_compile: bool = False,
) -> LoweredKernel:
    """Lower a `@T.prim_func`; `enable_device_compile` also compiles it.

    For a target without a code generator here, `kernel_source` is the lowered IR.
    """
    prim_func = as_prim_func(func)
    resolved = resolve(target).target
    options = effective_options(prim_func.function, CompileOptions())
    with guarded(f"lowering {prim_func.name} for {resolved}", prim_func.function.span):
        lowered = lower_function(prim_func.function, resolved, options)
    raise_for(lowered.diagnostics)
    if not any(backend.kind == resolved.kind for backend in BACKENDS):
        shown = ir_text(lowered.func)
        return LoweredKernel(lowered.func, lowered.func, _params(prim_func), shown, None)
    built = build(prim_func.function, resolved, options)
    kernel = JITKernel(prim_func.function, built, None, options, prim_func)
    return LoweredKernel(
        lowered.func, lowered.func, kernel.params, kernel.get_kernel_source(),
        kernel if enable_device_compile else None,
    )  # fmt: skip


def _params(prim_func: Any) -> list[KernelParam]:
    function = prim_func.function
    return [
        KernelParam(p.name, p.dtype, getattr(p, "shape", None))
        for p in (*function.params, *function.outputs)
    ]
