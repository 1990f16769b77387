"""How does a compilation go on from generated source that somebody has edited?

Lines that are as they were keep their places in Python, and so do those between lines of one
statement; the rest of the kernel, its launch and its arguments, is taken from the trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.codegen.source_map import Line, SourceMap
from tilelang.compiler import compile_function
from tilelang.runtime.toolchain_cuda import compile_cuda
from tilelang_diagnostics import failure
from tilelang_trace.columns import columns_of, resources_of
from tilelang_trace.model import Trace
from tilelang_trace.replay import unpack


def resume(trace: Trace, edited: str) -> Trace:
    """The trace with what became of edited CUDA: source, PTX, machine code, resources.

    Raises CompileError for what the compiler refuses, at the lines of Python, and for a kernel
    without CUDA source.
    """
    function, target, options = unpack(trace.program)
    artifact = compile_function(function, target, options).artifact
    if not isinstance(artifact, CudaArtifact):
        raise failure(
            "TL417", f"`{trace.kernel}` is compiled for {trace.target}, and only CUDA source can "
            "be edited", span=function.span, help="name a CUDA target: --target cuda:sm_90a",
        )  # fmt: skip
    source = SourceMap(tuple(remapped(artifact.device.source.lines, edited.splitlines())))
    device = replace(artifact.device, source=source)
    binary = compile_cuda(device, target, choices=options)
    made = CudaArtifact(device, (binary,))
    codes = columns_of(made, target)
    return replace(trace, codes=codes, resources=resources_of(made, target, codes))


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
