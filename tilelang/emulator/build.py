"""How does a traced kernel become one that the emulator runs?"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from tilelang.backends import Backend, backend_for, find_backend
from tilelang.codegen.artifacts import Artifact
from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.codegen.device_artifact import DeviceArtifact, DeviceCode
from tilelang.codegen.device_source import DeviceSource
from tilelang.compiler import Compiled, effective_options, ir_text, lower_function
from tilelang.emulator.kernel import EmulatedKernel
from tilelang.emulator.launch import build_library
from tilelang.emulator.settings import Emulator, needs_gpu_target
from tilelang.emulator.source import refusals
from tilelang.emulator.toolchain import find_compiler
from tilelang.nested import nested
from tilelang.options import CompileOptions
from tilelang.program.buffer import Buffer
from tilelang.program.expr import Var
from tilelang.program.stmt import Function
from tilelang.runtime.build import Built, is_cache_enabled
from tilelang.runtime.cache import KernelCache
from tilelang.runtime.crash import guarded
from tilelang.runtime.effects import pointer_tables
from tilelang.runtime.fingerprint import Origin, fingerprint
from tilelang.runtime.report import warn
from tilelang.target import Target
from tilelang.watching import is_watched, part, watched
from tilelang_diagnostics import CompileError, diagnose, error_for, raise_for
from tilelang_diagnostics.model import Diagnostic


def build_emulated(
    function: Function, target: Target, options: CompileOptions, settings: Emulator
) -> Built:
    """`function`, compiled for `target` and run by the emulator; raises CompileError.

    C++ is compiled at the first call.
    """
    backend = find_backend(target.kind)
    if backend is None or not backend.dialect:
        raise needs_gpu_target(target)
    backend_for(target)
    addresses = refused_addresses(function)
    if addresses:
        raise error_for(addresses)
    options = effective_options(function, options)
    with guarded(f"compiling {function.name} for {target}", function.span):
        compiled, from_cache = _printed(function, backend, target, options, settings.check)
    warn(compiled.diagnostics)  # found in a cache, too: Python says the same once a place
    artifact = compiled.artifact
    assert isinstance(artifact, CudaArtifact | DeviceArtifact)
    return Built(compiled, EmulatedKernel(artifact.device, function, settings), from_cache)


# By front key and place, as `runtime.build` remembers kernels.
_in_memory: dict[tuple[str, tuple[Origin, ...]], Compiled] = {}


def _printed(
    function: Function, backend: Backend, target: Target, options: CompileOptions, check: bool
) -> tuple[Compiled, bool]:
    """The source of `function`, and whether it was there; TVM is needed for what was not."""
    mark = fingerprint(function) if is_cache_enabled() and not is_watched() else None
    if mark is None:
        return _print(function, backend, target, options, check), False
    kept = KernelCache()
    key = kept.printed_key(mark, target, options)
    compiled = _in_memory.get((key, mark.origins))
    if compiled is None:
        cached = kept.load(key, mark)
        compiled = None if cached is None else cached.compiled
    found = compiled is not None
    if compiled is None:
        compiled = _print(function, backend, target, options, check)
        kept.save(key, mark, compiled)
    _in_memory[key, mark.origins] = compiled
    return compiled, found


def _print(
    function: Function, backend: Backend, target: Target, options: CompileOptions, check: bool
) -> Compiled:  # fmt: skip
    with watched(function, target, options) as watches:
        lowered = lower_function(function, target, options, watches)
        raise_for(lowered.diagnostics)
        with part("generate", watches), nested("print"):
            device = print_for(backend, lowered.func, options)
        refused = refusals(device)
        if refused:
            raise error_for(refused)
        if watches:
            # The first call would do this, and find it done: a trace tells how long it takes.
            with part("emulator", watches), suppress(CompileError):
                compiler = find_compiler()
                with nested(compiler.command[0]):
                    build_library(device, check, compiler)
        artifact = artifact_of(device, target, backend.words().extension)
        for watch in watches:
            watch.finished(artifact, lowered.diagnostics)
    return Compiled(artifact, target, ir_text(lowered.func), lowered.diagnostics)


def refused_addresses(function: Function) -> tuple[Diagnostic, ...]:
    """TL401 for parameters that hold addresses: the emulator's process has memory of its own."""
    found: list[Var | Buffer] = [
        p for p in function.params if isinstance(p, Var) and p.dtype.base == "handle"
    ]
    found += sorted(pointer_tables(function), key=lambda buffer: buffer.name)
    return tuple(
        diagnose(
            "TL401",
            f"`{p.name}` of `{function.name}` holds addresses, which the emulator cannot follow",
            span=p.span,
            help="its process has memory of its own: pass the tensors themselves, or use a GPU",
        )
        for p in found
    )


def print_for(backend: Backend, func: Any, options: CompileOptions) -> DeviceSource:
    """The source of a function at stage `device`; raises CompileError."""
    from tilelang.codegen.device_printer import PrintError, print_device

    try:
        return print_device(func, backend.words(), index_bits=options.index_bits)
    except PrintError as refused:
        raise error_for(refused.diagnostics) from None


def artifact_of(device: DeviceSource, target: Target, suffix: str) -> Artifact:
    """A printed kernel that no compiler of its device has seen."""
    if target.kind == "cuda":
        return CudaArtifact(device)
    return DeviceArtifact(device, str(target), suffix, DeviceCode())
