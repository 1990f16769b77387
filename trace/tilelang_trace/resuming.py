"""How does a compilation go on from a file that somebody has edited: IR, or generated source?

Of edited source, lines that are as they were keep their places in Python, and so do those between
lines of one statement; the rest of the kernel, its launch and its arguments, is taken from the
trace.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Final

from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.codegen.cuda_binary import CudaBinary
from tilelang.codegen.source_map import Line, SourceMap
from tilelang.compiler import compile_function
from tilelang.runtime.toolchain_cuda import compile_cuda
from tilelang_diagnostics import CompileError, error_for, failure
from tilelang_diagnostics.model import Diagnostic, Label, Span
from tilelang_trace.columns import columns_of, resources_of
from tilelang_trace.edits import edits_of, line_span
from tilelang_trace.model import Trace
from tilelang_trace.replay import unpack
from tilelang_trace.resumed import Resumed
from tilelang_trace.resuming_ir import is_ir, resume_ir

_QUOTED: Final = re.compile(r"[\"‘'](\w+)[\"’']")


def resume(trace: Trace, edited: str, file: str) -> Resumed:
    """What became of `edited`, the text of `file`; what the passes or the compiler refuse is told
    at its lines."""
    if is_ir(edited, file):
        return resume_ir(trace, edited, file)
    try:
        return _resume_cuda(trace, edited, file)
    except CompileError as error:
        return Resumed(trace, error=error)


def _resume_cuda(trace: Trace, edited: str, file: str) -> Resumed:
    """The trace with what became of edited CUDA: source, PTX, machine code, resources."""
    function, target, options = unpack(trace.program)
    artifact = compile_function(function, target, options).artifact
    if not isinstance(artifact, CudaArtifact):
        raise failure(
            "TL417", f"`{trace.kernel}` is compiled for {trace.target}, and of source only CUDA "
            "can be edited", span=function.span,
            help="name a CUDA target (--target cuda:sm_90a), or edit the IR: --ir OUT",
        )  # fmt: skip
    lines = edited.splitlines()
    device = artifact.device
    # Whatever the compiler says, it says of a file that is its author's now.
    own = tuple(
        Line(text, (line_span(text, file, n),), foreign=True) for n, text in enumerate(lines, 1)
    )
    try:
        binary = compile_cuda(replace(device, source=SourceMap(own)), target, choices=options)
    except CompileError as error:
        if not any(d.code in ("TL806", "TL816") for d in error.diagnostics):
            raise
        told = [_in_file(d, device.text, edited, file) for d in error.diagnostics]
        raise error_for(told) from None
    _require_kernels(artifact, binary, lines, file)
    source = SourceMap(tuple(remapped(device.source.lines, lines)))
    made = CudaArtifact(replace(device, source=source), (binary,))
    codes = columns_of(made, target)
    changed = replace(trace, codes=codes, resources=resources_of(made, target, codes))
    return Resumed(changed, made)


def _in_file(found: Diagnostic, original: str, edited: str, file: str) -> Diagnostic:
    """What a compiler said, at the word of the line that it is about."""
    edits = {e.span.line: e.span for e in edits_of(original, edited, file)}
    span = found.span
    if found.code == "TL806":  # said of no line of the file
        span = next(iter(edits.values()), span)
    text = found.message.partition(": ")[2] or found.message
    labels = found.labels
    if span is not None:
        line = edited.splitlines()[span.line - 1]
        words = [re.search(rf"\b{word}\b", line) for word in reversed(_QUOTED.findall(text))]
        at = next((match for match in words if match is not None), None)
        above = [edit for number, edit in edits.items() if number < span.line]
        if span.line not in edits and above:
            labels = (*labels, Label(above[-1], "this was edited"))
        if at is not None:
            span = Span(file, span.line, at.start() + 1, span.line, at.end() + 1)
        else:
            span = edits.get(span.line, span)
    return replace(
        found, code="TL816", message=f"the edited source does not compile: {text}", span=span,
        label="", labels=labels,
        help="the source as it was generated compiles; --source OUT writes it again",
    )  # fmt: skip


def _require_kernels(
    artifact: CudaArtifact, binary: CudaBinary, lines: Sequence[str], file: str
) -> None:  # fmt: skip
    """TL189 if the source lacks a kernel that the launch starts."""
    there = {used.kernel for used in binary.resources}
    for launch in artifact.launches:
        if launch.symbol not in there:
            number = next((n for n, text in enumerate(lines, 1) if "__global__" in text), 1)
            raise failure(
                "TL189", f"the edited source has no kernel `{launch.symbol}`, which the launch "
                "starts", line_span(lines[number - 1] if lines else "", file, number),
                help="kernels keep their names and parameters: the launch is that of the trace",
            )  # fmt: skip


def remapped(lines: Sequence[Line], edited: Sequence[str]) -> list[Line]:
    """`edited` with the places of `lines`: where one line became another, that of the old one."""
    matcher = SequenceMatcher(None, [x.text for x in lines], edited, autojunk=False)
    out: list[Line] = []
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        for n in range(j, j_end):
            if kind == "equal":
                out.append(lines[i + n - j])
            elif kind == "replace":
                out.append(replace(lines[min(i + n - j, i_end - 1)], text=edited[n]))
            else:
                around = lines[i - 1] if i else Line("")
                out.append(replace(around, text=edited[n]))
    return out
