"""Compile a kernel of a file and show what it became."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, assert_never

from tilelang.cli.files import choose
from tilelang.cli.output import show, table
from tilelang.cli.specialise import Specialised, specialise
from tilelang.cli.values import parse_settings
from tilelang.codegen.artifacts import Artifact
from tilelang.codegen.cpu_artifact import CpuArtifact
from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.compiler import effective_options, ir_text, lower_function
from tilelang.runtime.build import build
from tilelang.runtime.crash import guarded
from tilelang.runtime.devices import resolve
from tilelang.runtime.kernel import write_text
from tilelang.target import Target
from tilelang_diagnostics import raise_for


def compile_kernel(
    kernel: str, settings: Sequence[str], target: str | None, emit: str | None,
    output: Path | None, as_json: bool = False,
) -> int:  # fmt: skip
    """What `tilelang compile` does; returns the exit status."""
    chosen = choose(kernel)
    special = specialise(chosen, parse_settings(settings), target)
    resolved = resolve(special.target).target
    if emit == "layouts":
        text: str | None = _layouts(special, resolved, as_json)
    else:
        text = _emit(special, resolved, emit or ("source" if output else None))
    if text is None:
        return 0
    if output is None:
        print(text.rstrip())
    else:
        write_text(output, text if text.endswith("\n") else text + "\n")
        table([("wrote", str(output))])
    return 0


def _emit(special: Specialised, target: Target, what: str | None) -> str | None:
    match what:
        case "program":
            from tilelang.program.printer import function_text

            return str(function_text(special.function))
        case "ir":
            return ir_text(_lowered(special, target))
        case _:
            built = build(special.function, target, special.options)
            show(built.compiled.diagnostics)
            if what == "source":
                return built.compiled.artifact.source
            artifact = built.compiled.artifact
            table(
                [
                    ("kernel", artifact.name),
                    ("target", str(target)),
                    ("code", "from the cache" if built.from_cache else _size_text(artifact)),
                ]
            )
            return None


def _size_text(artifact: Artifact) -> str:
    match artifact:
        case CpuArtifact():
            return f"{len(artifact.object_code)} bytes"
        case CudaArtifact():
            return ", ".join(f"{len(b.cubin)} bytes for {b.arch}" for b in artifact.binaries)
        case _ as never:
            assert_never(never)


def _lowered(special: Specialised, target: Target) -> Any:
    options = effective_options(special.function, special.options)
    with guarded(f"lowering {special.function.name} for {target}", special.function.span):
        lowered = lower_function(special.function, target, options)
    raise_for(lowered.diagnostics)
    show(lowered.diagnostics)
    return lowered.func


def _layouts(special: Specialised, target: Target, as_json: bool) -> str:
    from tilelang.cli.layouts_text import layouts_text
    from tilelang.layouts.as_json import layouts_json
    from tilelang.layouts.infer import infer_layouts

    with guarded(f"inferring the layouts of {special.function.name}", special.function.span):
        found = infer_layouts(special.function, target)
        if as_json:
            text = json.dumps(layouts_json(found), indent=2, ensure_ascii=False)
        else:
            text = layouts_text(found)
    raise_for(found.diagnostics)
    show(found.diagnostics)
    return text
