"""Which columns stand beside the IR: generated source, PTX and machine code, and what they take?

Each line leads back to Python: generated source by its side map, PTX and machine code through the
line of generated source they are from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Final

from tilelang.codegen.cpu_artifact import CpuArtifact
from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.codegen.cuda_binary import CudaBinary
from tilelang.codegen.device_source import DeviceSource
from tilelang.codegen.ptx_lines import source_lines
from tilelang.codegen.source_map import SourceMap
from tilelang.inspection.counts import counted
from tilelang.occupancy import occupancy_of
from tilelang.options import CompileOptions
from tilelang.target import Target
from tilelang_diagnostics import CompileError
from tilelang_trace.model import Binary, Code, LayoutShot, Line, Resources, Trace
from tilelang_trace.near import near

# What a line of machine code reads like: address, predicate, opcode.
_SASS: Final = re.compile(r"\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)")


def columns_of(artifact: Any, target: Target, disassembled: bool = True) -> tuple[Code, ...]:
    """The languages the kernel was written in, down to the deepest that can be shown.

    Without `disassembled` machine code is left to `with_machine_code`.
    """
    device = getattr(artifact, "device", None)
    if not isinstance(device, DeviceSource):
        text = str(getattr(artifact, "source", ""))
        spans = artifact.places if isinstance(artifact, CpuArtifact) else ()
        lines = tuple(Line(t, s) for t, s in zip_longest(text.splitlines(), spans))
        return (Code("source", "llvm" if target.kind == "cpu" else target.kind, lines),)
    found = [Code("source", device.dialect, _own_lines(device.source))]
    binary = _binary(artifact, target)
    kept = binary_of(artifact, target)
    if binary is not None and kept is not None:
        found.append(_ptx(binary, found[0].lines, kept.file))
        if disassembled:
            found.append(_sass(kept, *found))
    return tuple(found)


def binary_of(artifact: Any, target: Target) -> Binary | None:
    """What machine code is shown from."""
    found = _binary(artifact, target)
    return None if found is None else Binary(f"{artifact.device.name}.cu", found.cubin)


def with_machine_code(trace: Trace) -> Trace:
    """A trace that holds the binary, with what the disassembler makes of it.

    Recordings are made without: the disassembler takes longer than many a compilation.
    """
    source, ptx = trace.code("source"), trace.code("ptx")
    if trace.binary is None or source is None or ptx is None:
        return trace
    sass = _sass(trace.binary, source, ptx)
    opcodes = _opcodes(sass)
    resources = tuple(
        replace(used, counts=counted(opcodes.get(used.kernel, ())).pairs)
        for used in trace.resources
    )
    return replace(trace, codes=(*trace.codes, sass), resources=resources, binary=None)


def _binary(artifact: Any, target: Target) -> CudaBinary | None:
    if not isinstance(artifact, CudaArtifact):
        return None
    return next((b for b in artifact.binaries if b.arch == target.arch), None)


def source_alone(func: Any, target: Target, options: CompileOptions, note: str) -> tuple[Code, ...]:
    """The generated source of a program that did not get further; `note` says why."""
    from tilelang.backends import find_backend
    from tilelang.codegen.device_printer import PrintError, print_device

    backend = find_backend(target.kind)
    if backend is None or not backend.dialect:
        return ()
    try:
        device = print_device(func, backend.words(), index_bits=options.index_bits)
    except PrintError:
        return ()
    return (Code("source", device.dialect, _own_lines(device.source), note),)


def resources_of(artifact: Any, target: Target, codes: Sequence[Code]) -> tuple[Resources, ...]:
    """What each kernel takes, as the assembler reports it."""
    binary = _binary(artifact, target)
    if binary is None:
        return ()
    sass = next((code for code in codes if code.kind == "sass"), None)
    opcodes = _opcodes(sass) if sass is not None else {}
    found = []
    for launch in artifact.launches:
        used = next((r for r in binary.resources if r.kernel == launch.symbol), None)
        if used is None:
            continue
        shared = max(launch.static_shared, used.shared) + launch.dynamic_shared
        occupancy = occupancy_of(
            target, threads=launch.threads, registers=used.registers, shared=shared
        )
        found.append(Resources(
            launch.symbol, launch.threads, used.registers, used.spill_stores + used.spill_loads,
            used.stack, shared, None if occupancy is None else occupancy.blocks,
            counted(opcodes.get(launch.symbol, ())).pairs,
        ))  # fmt: skip
    return tuple(found)


def layout_shots(layouts: Any, traced: str = "") -> tuple[LayoutShot, ...]:
    """Every layout that was chosen, drawn; the same one is drawn once.

    Reasons name files as seen from the `traced` one.
    """
    drawn: dict[tuple[str, tuple[str, ...]], str] = {}
    found = []
    for entry in layouts:
        shape = tuple(str(e) for e in entry.shape)
        key = str(entry.layout), shape
        if key not in drawn:
            drawn[key] = entry.draw_svg()
        found.append(LayoutShot(
            entry.name, entry.kind, shape, str(entry.dtype), entry.short, _why(entry, traced),
            entry.span,
            drawn[key], _cost(entry),
        ))  # fmt: skip
    return tuple(found)


def _why(entry: Any, traced: str) -> str:
    if entry.variable is None or entry.solution is None:
        return str(entry.why)
    origins = entry.solution.why(entry.variable).origins
    return near(entry.why, (origin.span for origin in origins), traced)


def opcode_of(line: str) -> str | None:
    """The opcode, with its modifiers, of a line of machine code as it is shown here."""
    found = _SASS.match(line)
    return None if found is None else found[1]


def _cost(entry: Any) -> str:
    parts = []
    if entry.registers is not None:
        parts.append(f"{entry.registers} registers a thread")
    if entry.bytes is not None:
        parts.append(f"{entry.bytes} bytes")
    if entry.conflict_degree > 1:
        parts.append(f"{entry.conflict_degree}-way bank conflicts")
    return ", ".join(parts)


def _own_lines(source: SourceMap) -> tuple[Line, ...]:
    return tuple(Line(x.text, x.span, x.calls, n) for n, x in enumerate(source.lines, 1))


def _from(generated: Sequence[Line], text: str, number: int | None) -> Line:
    if number is None or not 1 <= number <= len(generated):
        return Line(text)
    return Line(text, generated[number - 1].span, generated[number - 1].calls, number)


def _ptx(binary: CudaBinary, generated: Sequence[Line], name: str) -> Code:
    lines = source_lines(binary.ptx, name)
    shown = [
        _from(generated, text, line if _is_instruction(text) else None)
        for text, line in zip(binary.ptx.splitlines(), lines, strict=True)
    ]
    return Code("ptx", "ptx", tuple(shown))


def _is_instruction(text: str) -> bool:
    """Whether a line of PTX does something, in contrast to directives, labels and comments."""
    bare = text.strip()
    return (
        bool(bare)
        and not bare.startswith((".", "//", "$", "{", "}", "(", ")", "@!"))
        and (bare.endswith(";") or bare.startswith("@"))
    )


def _sass(binary: Binary, source: Code, ptx: Code) -> Code:
    from tilelang.runtime.sass import disassemble

    try:
        listing = disassemble(binary.data, binary.file, ptx.text)
    except CompileError as error:
        (found,) = error.diagnostics
        return Code("sass", "sass", (), f"{found.message}; {found.help}")
    lines: list[Line] = []
    kernel = ""
    for one in listing.instructions:
        if one.is_never_run:
            continue
        if one.kernel != kernel:
            kernel = one.kernel
            lines.append(Line(f"// {kernel}"))
        lines += [Line(f"{label}:") for label in one.labels]
        predicate = f"{one.predicate} " if one.predicate else ""
        text = f"  /*{one.address:04x}*/ {predicate}{one.opcode} {one.operands}".rstrip()
        lines.append(_from(source.lines, text, one.line))
    return Code("sass", "sass", tuple(lines))


def _opcodes(sass: Code) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for kernel, opcode in _by_kernel(sass):
        found.setdefault(kernel, []).append(opcode)
    return found


def _by_kernel(sass: Code) -> Iterator[tuple[str, str]]:
    kernel = ""
    for line in sass.lines:
        if line.text.startswith("// "):
            kernel = line.text[3:]
        elif (opcode := opcode_of(line.text)) is not None:
            yield kernel, opcode
