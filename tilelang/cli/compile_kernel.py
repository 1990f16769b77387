"""Compile a kernel of a file and show what it became."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, assert_never

import click

from tilelang.backends import backend_for
from tilelang.cli.files import Chosen, choose
from tilelang.cli.output import show, table
from tilelang.cli.specialise import Specialised, specialise
from tilelang.codegen.artifacts import Artifact
from tilelang.codegen.cpu_artifact import CpuArtifact
from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.codegen.device_artifact import DeviceArtifact, DeviceCode
from tilelang.compiler import effective_options, ir_text, lower_function
from tilelang.language.settings import parse_settings
from tilelang.options import PassConfigKey, make_options
from tilelang.runtime.build import build
from tilelang.runtime.crash import guarded
from tilelang.runtime.devices import resolve, resolve_quietly, say_auto
from tilelang.runtime.kernel import write_bytes, write_text
from tilelang.target import Target
from tilelang_diagnostics import error_for, raise_for
from tilelang_diagnostics.model import Diagnostic, Severity


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line asked for."""

    kernel: str
    settings: tuple[str, ...] = ()
    target: str | None = None
    emit: str | None = None
    output: Path | None = None
    as_json: bool = False
    line_directives: bool = False


def compile_kernel(wanted: Wanted) -> int:
    """What `tilelang compile` does; returns the exit status."""
    resolve_quietly()  # said below, once it is known that something is made for a target
    chosen = choose(wanted.kernel)
    several = wanted.emit in ("so", "dir")
    special = specialise(
        chosen, parse_settings(wanted.settings), None if several else wanted.target
    )
    if wanted.line_directives:
        lines = make_options({PassConfigKey.TL_EMIT_LINE_DIRECTIVES: True})
        special = replace(special, options=lines.with_defaults(special.options))
    if several:
        return _export(chosen, special, wanted)
    resolution = resolve(special.target)
    resolved = resolution.target
    kind, word, example = _EMITTED_BY.get(wanted.emit or "", (resolved.kind, "", ""))
    if resolved.kind != kind:
        raise click.UsageError(f"--emit {wanted.emit} needs a {word} target, and this is "
                               f"{resolved}: add --target {example}")  # fmt: skip
    if wanted.emit != "program":
        say_auto(resolution)
    if wanted.emit == "layouts":
        found: str | bytes | None = _layouts(special, resolved, wanted.as_json)
    elif resolved.kind in _PRINTED_ALONE and wanted.emit in ("hip", "source"):
        found = _source(special, resolved)
    elif wanted.emit in _EMITTED_BY:
        found = _device_code(special, resolved, wanted.emit)
    else:
        found = _emit(special, resolved, wanted.emit or ("source" if wanted.output else None))
    if found is None:
        return 0
    if wanted.output is None:
        print(str(found).rstrip())
        return 0
    if isinstance(found, str):
        write_text(wanted.output, found if found.endswith("\n") else found + "\n")
    else:
        write_bytes(wanted.output, found)
    table([("wrote", str(wanted.output))])
    return 0


def _export(chosen: Chosen, special: Specialised, wanted: Wanted) -> int:
    """Compile for every target, and write one shared object with what it was made from."""
    from tilelang.runtime.export import compile_product, target_list, write_artifacts
    from tilelang.runtime.export_files import relative

    assert wanted.output is not None
    targets = target_list(wanted.target)
    if not targets:
        resolution = resolve(special.target)
        say_auto(resolution)
        targets = (resolution.target,)
    products = []
    for target in targets:
        made = compile_product(chosen.name, special.function, target, special.options)
        show(made.diagnostics)
        products.append(made)
    folder = wanted.output.parent if wanted.emit == "so" else wanted.output
    request = {
        "file": relative(str(chosen.file.path.resolve()), folder),
        "kernel": chosen.name,
        "set": list(wanted.settings),
        "targets": [str(t) for t in targets],
        "line_directives": wanted.line_directives,
    }
    library = write_artifacts(products, wanted.output, request)
    table([("wrote", str(library)), ("targets", ", ".join(str(t) for t in targets))])
    return 0


# What only a target of a kind has: the kind, what people call it, and one of them.
_EMITTED_BY: Final = {
    **dict.fromkeys(("cuda", "ptx", "sass", "cubin"), ("cuda", "CUDA", "cuda:sm_90a")),
    **dict.fromkeys(("hip", "s", "co"), ("hip", "HIP", "hip:gfx942")),
    "metal": ("metal", "Metal", "metal:apple9"),
}


# Kinds whose source is printed without a compiler of theirs, which may not be here.
_PRINTED_ALONE: Final = ("hip", "metal")


def _source(special: Specialised, target: Target) -> str:
    """The generated source; nothing compiles it."""
    from tilelang.codegen.device_printer import PrintError, print_device

    backend = backend_for(target)
    options = effective_options(special.function, special.options)
    func = _lowered(special, target)
    lines = bool(options[PassConfigKey.TL_EMIT_LINE_DIRECTIVES])
    try:
        device = print_device(
            func, backend.words(), line_directives=lines, index_bits=options.index_bits
        )
    except PrintError as refused:
        raise error_for(refused.diagnostics) from None
    return DeviceArtifact(device, str(target), backend.words().extension, DeviceCode()).source


def _device_code(special: Specialised, target: Target, what: str) -> str | bytes:
    compiled = build(special.function, target, special.options).compiled
    _show_remarks(compiled.diagnostics)
    artifact = compiled.artifact
    if isinstance(artifact, DeviceArtifact):
        code = artifact.code
        match what:
            case "s":
                return code.assembly
            case "co":
                return code.object
            case _:
                return code.object.decode()
    assert isinstance(artifact, CudaArtifact)
    (binary,) = artifact.binaries
    match what:
        case "cuda":
            return artifact.source
        case "ptx":
            return binary.ptx
        case "cubin":
            return binary.cubin
        case _:
            from tilelang.runtime.sass import disassemble

            return disassemble(binary.cubin, f"{artifact.name}.cu").text


def _emit(special: Specialised, target: Target, what: str | None) -> str | None:
    match what:
        case "program":
            from tilelang.program.printer import function_text

            return str(function_text(special.function))
        case "ir":
            return ir_text(_lowered(special, target))
        case _:
            built = build(special.function, target, special.options)
            _show_remarks(built.compiled.diagnostics)
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


def _show_remarks(diagnostics: Iterable[Diagnostic]) -> None:
    """What no warning of `build` has said already."""
    show(d for d in diagnostics if d.severity is not Severity.WARNING)


def _size_text(artifact: Artifact) -> str:
    match artifact:
        case CpuArtifact():
            return f"{len(artifact.object_code)} bytes"
        case CudaArtifact():
            return ", ".join(f"{len(b.cubin)} bytes for {b.arch}" for b in artifact.binaries)
        case DeviceArtifact():
            return f"{len(artifact.code.object)} bytes"
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
