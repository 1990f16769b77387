"""For which kinds of target can code be generated, and by what?

One frozen `Backend` a kind, in an explicit tuple. The functions are named by module and imported
when first used: a cached kernel never loads a code generator.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tilelang.target import Kind, Target
from tilelang_diagnostics import failure


@dataclass(frozen=True, slots=True)
class Backend:
    """One code generator: `module:function`, from a lowered PrimFunc and options to an artifact."""

    kind: Kind
    build: str

    def builder(self) -> Callable[..., Any]:
        """The function `build` names."""
        module, _, function = self.build.partition(":")
        found: Callable[..., Any] = getattr(importlib.import_module(module), function)
        return found


BACKENDS: Final[tuple[Backend, ...]] = (
    Backend("cpu", "tilelang.codegen.cpu:build_cpu"),
    # Compiling source is a matter of programs on this machine, so the builder is the runtime's.
    Backend("cuda", "tilelang.runtime.cuda_build:build_cuda"),
)
KINDS_WITH_BACKEND: Final[tuple[Kind, ...]] = tuple(b.kind for b in BACKENDS)


def backend_for(target: Target) -> Backend:
    """The backend of `target`; TL807 for a target that can be checked but not generated for."""
    for backend in BACKENDS:
        if backend.kind == target.kind:
            return backend
    raise failure(
        "TL807",
        f"this version generates no code for {target}",
        help=f"it has: {', '.join(KINDS_WITH_BACKEND)}; pass target='cpu' to run the kernel here",
    )
