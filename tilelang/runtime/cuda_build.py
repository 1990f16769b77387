"""How does lowered IR become a CUDA artifact? Printed, then compiled unless done before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.codegen.cuda_binary import CudaBinary
from tilelang.codegen.device_source import DeviceSource
from tilelang.codegen.recompute import lighter_forms
from tilelang.ir import attrs
from tilelang.nested import nested
from tilelang.options import CompileOptions, PassConfigKey
from tilelang.runtime.cuda_compiler import identity
from tilelang.runtime.toolchain_cuda import compile_cuda
from tilelang.target import Target, parse_target
from tilelang_diagnostics import error_for

FindBinaries = Callable[[CudaArtifact], "tuple[CudaBinary, ...] | None"]


def build_cuda(
    func: Any, *, options: CompileOptions, find_object: FindBinaries | None = None
) -> CudaArtifact:
    """The artifact of a PrimFunc at stage `device`; raises CompileError.

    `find_object` may know the binaries of an artifact that has all but those.
    """
    from tilelang.codegen.cuda import CudaError, print_cuda

    target: Target = parse_target(str(func.attrs[attrs.TARGET]))
    try:
        with nested("print"):
            device = print_cuda(
                func,
                line_directives=bool(options[PassConfigKey.TL_EMIT_LINE_DIRECTIVES]),
                index_bits=options.index_bits,
            )
    except CudaError as refused:
        raise error_for(refused.diagnostics) from None
    compiler, flags = identity(options)
    empty = CudaBinary(target.arch, b"", compiler=compiler, flags=flags)
    # A kernel that spilled is kept as the form of it that was best.
    for form in (device, *lighter_forms(device)):
        known = find_object(CudaArtifact(form, (empty,))) if find_object is not None else None
        if known is not None:
            return CudaArtifact(form, known)
    device, binary = compile_without_spills(device, target, options)
    return CudaArtifact(device, (binary,))


def compile_without_spills(
    device: DeviceSource, target: Target, options: CompileOptions
) -> tuple[DeviceSource, CudaBinary]:
    """The binary of `device`; where it spills registers, of the form of it that spills fewest."""
    best = device, compile_cuda(device, target, choices=options)
    if best[1].spills:
        for form in lighter_forms(device):
            binary = compile_cuda(form, target, choices=options)
            if binary.spills < best[1].spills:
                best = form, binary
            if not binary.spills:
                break
    return best
