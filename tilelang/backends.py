"""For which kinds of target can code be generated, and by what?

One frozen `Backend` a kind, in an explicit tuple. What a backend consists of is named by module and
imported when first used: a cached kernel never loads a code generator.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from tilelang.codegen.device_artifact import DeviceCode
from tilelang.codegen.device_source import DeviceSource
from tilelang.codegen.dialect import Dialect
from tilelang.options import CompileOptions
from tilelang.target import GENERATED, Kind, Target
from tilelang_diagnostics import failure


class Toolchain(Protocol):
    """The module that compiles the source of a dialect: these functions of it."""

    def identity(self, target: Target, options: CompileOptions) -> tuple[str, tuple[str, ...]]:
        """Which compiler would be used, and with which flags; it need not be loaded for that."""

    def compile(self, device: DeviceSource, target: Target, options: CompileOptions) -> DeviceCode:
        """The code; raises CompileError with TL806 or TL807."""


@dataclass(frozen=True, slots=True)
class Backend:
    """One code generator; the strings are `module:name`.

    - `build`: a function from a lowered PrimFunc and options to an artifact.
    - `dialect`: the words its source is printed in, "" where `build` needs none.
    - `toolchain`: the module that compiles such source, where `build` is the general one.
    - `launches`: whether kernels run on a device of this machine. Others run on the emulator.
    - `archs`: the architectures it is for, () for all that are known.
    """

    kind: Kind
    build: str
    dialect: str = ""
    toolchain: str = ""
    launches: bool = True
    archs: tuple[str, ...] = ()

    def builder(self) -> Callable[..., Any]:
        """The function `build` names."""
        found: Callable[..., Any] = _named(self.build)
        return found

    def words(self) -> Dialect:
        """The dialect."""
        found: Dialect = _named(self.dialect)
        return found

    def compiler(self) -> Toolchain:
        """The toolchain."""
        found: Any = importlib.import_module(self.toolchain)
        return found  # type: ignore[no-any-return]


BACKENDS: Final[tuple[Backend, ...]] = (
    Backend("cpu", "tilelang.codegen.cpu:build_cpu"),
    # Compiling source is a matter of programs on this machine, so the builder is the runtime's.
    Backend(
        "cuda", "tilelang.runtime.cuda_build:build_cuda", dialect="tilelang.codegen.cuda:CUDA"
    ),
    Backend(
        "hip", "tilelang.runtime.device_build:build_device", dialect="tilelang.codegen.hip:HIP",
        toolchain="tilelang.runtime.toolchain_hip", launches=False,
        # Those with waves of 64 lanes, which the device headers count on.
        archs=GENERATED["hip"],
    ),
    Backend(
        "metal", "tilelang.runtime.device_build:build_device",
        dialect="tilelang.codegen.metal:METAL", toolchain="tilelang.runtime.toolchain_metal",
        launches=False,
    ),
)  # fmt: skip
KINDS_WITH_BACKEND: Final[tuple[Kind, ...]] = tuple(b.kind for b in BACKENDS)
KINDS_LAUNCHED: Final[tuple[Kind, ...]] = tuple(b.kind for b in BACKENDS if b.launches)


def find_backend(kind: Kind) -> Backend | None:
    """The backend of a kind of target, if there is one."""
    return next((b for b in BACKENDS if b.kind == kind), None)


def backend_for(target: Target) -> Backend:
    """The backend of `target`; TL807 for a target that can be checked but not generated for."""
    backend = find_backend(target.kind)
    if backend is not None and (not backend.archs or target.arch in backend.archs):
        return backend
    if backend is not None:
        raise failure(
            "TL807",
            f"this version generates no code for {target}",
            help=f"of this kind it has: {', '.join(backend.archs)}",
        )
    raise failure(
        "TL807",
        f"this version generates no code for {target}",
        help=f"it has: {', '.join(KINDS_WITH_BACKEND)}; pass target='cpu' to run the kernel here",
    )


def _named(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
