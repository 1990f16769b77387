"""`tilelang run --sanitize`: one call of a kernel under compute-sanitizer, told in Python lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from tilelang.cli.output import show, table
from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.runtime.devices import probes
from tilelang.runtime.kernel import JITKernel
from tilelang.runtime.sanitizer import find_sanitizer, sanitize
from tilelang.runtime.sanitizer_tools import Tool
from tilelang.target import Target
from tilelang_diagnostics import CompileError, failure

_CLEAN = {
    "memcheck": "no access outside of memory",
    "racecheck": "no race in shared memory",
    "initcheck": "no read of global memory that was never written",
    "synccheck": "no misused barrier",
}


def require_sanitizer(target: Target, name: str) -> None:
    """Raise TL815 before anything is compiled that could not be watched."""
    if target.kind != "cuda":
        raise failure(
            "TL815",
            f"--sanitize watches a GPU, and `{name}` is compiled for {target}",
            help="give a target such as --target cuda:sm_90a; on the CPU, run without --sanitize",
        )
    try:
        find_sanitizer()
    except CompileError:
        if any(p.kind == "cuda" and p.arch is not None for p in probes()):
            raise
        # A tool would be of no use: say first what is not to be had by installing it.
        raise failure(
            "TL815",
            f"--sanitize watches a GPU, and no NVIDIA GPU can be used from here for `{name}`",
            help=f"without one, --target {target} --emulate --check reports races and accesses "
            "outside of memory, also in lines of CUDA source of your own",
        ) from None


def sanitize_kernel(made: JITKernel, inputs: Sequence[Any], tool: str) -> int:
    """Make the call, show what was found; the exit status."""
    artifact = made.artifact
    assert isinstance(artifact, CudaArtifact)
    made.require_device()
    found = sanitize(artifact, made.signature, inputs, cast(Tool, tool))
    said = f"{len(found.diagnostics)} found" if found.diagnostics else _CLEAN[tool]
    table([(tool, f"{said} ({found.seconds:.1f} s)")], width=len("compile"))
    show(found.diagnostics)
    return 1 if found.diagnostics else 0
