"""Where does a runnable kernel come from: this process, the cache on disk, or the compiler?"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, assert_never

from tilelang import options as settings
from tilelang.codegen.artifacts import Artifact
from tilelang.codegen.cpu_artifact import CpuArtifact
from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.codegen.device_artifact import DeviceArtifact
from tilelang.compiler import Compiled, compile_function, effective_options
from tilelang.options import CompileOptions
from tilelang.program.stmt import Function
from tilelang.runtime.cache import Cached, KernelCache
from tilelang.runtime.crash import guarded
from tilelang.runtime.fingerprint import Fingerprint, Origin, fingerprint
from tilelang.runtime.report import warn
from tilelang.target import Target
from tilelang.watching import is_watched


class Runner(Protocol):
    """Launches a kernel: one value per slot of its artifact, addresses as ints.

    `device` is the number of the GPU the addresses are on.
    """

    def run(self, values: Sequence[int | float], device: int = 0) -> None: ...

    def require_device(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Built:
    """A kernel that can be launched, and where it came from."""

    compiled: Compiled
    runner: Runner
    from_cache: bool


_enabled: list[bool] = []
# By front key and place: a kernel that moved in its file has other positions in its messages.
_in_memory: dict[tuple[str, tuple[Origin, ...]], Built] = {}


def enable_cache() -> None:
    """Keep compiled kernels, in this process and on disk (the default)."""
    _enabled[:] = [True]


def disable_cache() -> None:
    """Compile every kernel anew from here on."""
    _enabled[:] = [False]


def is_cache_enabled() -> bool:
    """Whether compiled kernels are kept and found again."""
    return _enabled[0] if _enabled else not settings.DISABLE_CACHE.get()


def build(
    function: Function, target: Target, caller_options: CompileOptions, verbose: bool = False
) -> Built:
    """A launchable kernel for `function`; raises CompileError."""
    options = effective_options(function, caller_options)
    # What is found in a cache has no passes to watch.
    mark = fingerprint(function) if is_cache_enabled() and not is_watched() else None
    if mark is None:
        return _compile(function, target, options, verbose)
    with guarded(f"building {function.name} for {target}", function.span):
        return _build_cached(function, mark, target, options, verbose)


def build_for(
    execution_backend: Any, function: Function, target: Target, caller_options: CompileOptions,
    verbose: bool = False,
) -> Built:  # fmt: skip
    """A kernel that runs where `execution_backend` says: on `target`, or emulated."""
    from tilelang.emulator.settings import emulator_of

    emulator = emulator_of(execution_backend)
    if emulator is None:
        return build(function, target, caller_options, verbose)
    from tilelang.emulator.build import build_emulated

    return build_emulated(function, target, caller_options, emulator)


def _build_cached(
    function: Function, mark: Fingerprint, target: Target, options: CompileOptions, verbose: bool
) -> Built:
    cache = KernelCache()
    key = cache.front_key(mark, target, options)
    remembered = _in_memory.get((key, mark.origins))
    if remembered is None:
        cached = cache.load(key, mark)
        if cached is None:
            with cache.compiling(key):
                cached = cache.load(key, mark)
                if cached is None:
                    remembered = _compile(function, target, options, verbose, cache.find_object)
                    anywhere = cache.found_anywhere(mark, target, options)
                    cache.save(key, mark, remembered.compiled, anywhere)
        if remembered is None:
            assert cached is not None
            remembered = _load(cached)
            if remembered is None:
                remembered = _compile(function, target, options, verbose)
            else:
                warn(remembered.compiled.diagnostics)  # as whoever compiled it was warned
        _in_memory[key, mark.origins] = remembered
    return remembered


def start(compiled: Compiled, library: Path | None = None) -> Runner:
    """The machine code of `compiled`, ready to run: on a GPU it is loaded at the first call."""
    artifact = compiled.artifact
    match artifact:
        case CpuArtifact():
            from tilelang.runtime import cpu

            threads = settings.NUM_THREADS.get()
            if threads is not None:
                cpu.set_num_threads(threads)
            return cpu.load_cpu(artifact, library=library)
        case CudaArtifact():
            from tilelang.runtime.cuda import load_cuda

            return load_cuda(artifact)
        case DeviceArtifact():
            from tilelang.runtime.no_launcher import NoLauncher

            return NoLauncher(artifact)
        case _:
            assert_never(artifact)


def _load(cached: Cached) -> Built | None:
    try:
        return Built(cached.compiled, start(cached.compiled, cached.library), True)
    except OSError:
        # Dropped by another process between reading and loading.
        return None


def _compile(
    function: Function,
    target: Target,
    options: CompileOptions,
    verbose: bool,
    find_object: Callable[[Artifact], Any] | None = None,
) -> Built:  # fmt: skip
    if verbose or settings.VERBOSE.get():
        print(f"tilelang: compiling {function.name} for {target}", file=sys.stderr)
    with guarded(f"compiling {function.name} for {target}", function.span):
        compiled = compile_function(function, target, options, find_object=find_object)
    warn(compiled.diagnostics)
    with guarded(f"loading {function.name}", function.span):
        return Built(compiled, start(compiled), False)


def forget() -> None:
    """Drop the kernels this process remembers (the cache on disk stays)."""
    _in_memory.clear()
