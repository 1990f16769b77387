"""How does CUDA source of the author's stand in the generated file, and how is it launched?

Line for line as it was written, each line with its place in the author's file, so that what a
compiler says of it is said there. The index of a launch argument is its position in the signature.
"""

from __future__ import annotations

from typing import Any

from tilelang.codegen.device_launch import Host, Launch, constant_extents, free_dims
from tilelang.codegen.device_source import KernelLaunch, KernelParam, ParamKind
from tilelang.codegen.source_map import Line
from tilelang.ir import attrs, build, tirx
from tilelang.ir.spans import calls_of, from_tir
from tilelang.program.cuda_signature import kernels_of, with_c_linkage
from tilelang_diagnostics.model import Span


def foreign_lines(text: str, node: Any, file: str | None = None) -> list[Line]:
    """`text`, which is all of `file`; at the statement `node` where it is a string."""
    location = getattr(node, "span", None)
    span, calls = from_tir(location), calls_of(location)
    lines = []
    for number, part in enumerate(text.split("\n"), 1):
        if file is not None and part.strip():
            begin = len(part) - len(part.lstrip()) + 1
            place: Span | None = Span(file, number, begin, number, len(part.rstrip()) + 1)
        else:
            place = span if file is None else None
        lines.append(Line(part.rstrip("\r"), () if place is None else (place,), calls, True))
    return lines


def is_foreign(launch: Launch) -> bool:
    """Whether the code of a launch is the author's."""
    return launch.said.get("source") is not None


def source_lines(launch: Launch) -> list[Line]:
    """The whole source of a foreign launch; its kernel has C linkage."""
    said, name = launch.said, str(launch.said["entry"])
    text = str(said["source"])
    kernel = next(k for k in kernels_of(text) if k.name == name)
    file = said.get("source_file")
    whole = with_c_linkage(text, kernel)
    return foreign_lines(whole, launch.node, None if file is None else str(file))


def foreign_launch(func: Any, host: Host, launch: Launch) -> KernelLaunch:
    """How it is launched: with as many arguments as its kernel takes."""
    name = str(launch.said["entry"])
    kernel = next(k for k in kernels_of(str(launch.said["source"])) if k.name == name)
    params = [_param(host, p, "scalar") for p in func.params]
    params += [_param(host, d, "dim") for d in free_dims(func)]
    grid = [launch.extent(tag) for tag in attrs.BLOCK_TAGS]
    x, y, z = (1 if e is None else host.expr(e) for e in grid)
    bx, by, bz = constant_extents(launch, attrs.THREAD_TAGS)
    return KernelLaunch(
        name, tuple(params[: len(kernel.parameters)]), (x, y, z), (bx, by, bz),
        cluster=cluster_of(launch),
    )  # fmt: skip


def cluster_of(launch: Launch) -> tuple[int, int, int] | None:
    """The blocks of a cluster along each axis; None for one block."""
    said = launch.said.get("cluster_dims")
    if said is None:
        return None
    sizes = [int(said)] if isinstance(said, int) else [int(s) for s in said]
    x, y, z = (*sizes, 1, 1)[:3]
    return None if (x, y, z) == (1, 1, 1) else (x, y, z)


def _param(host: Host, var: Any, kind: ParamKind) -> KernelParam:
    source = str(host.values.get(var, var.name))
    if tirx.is_buffer_var(var):
        return KernelParam("buffer", source, str(var.dtype), 1, True)
    return KernelParam(kind, source, build.dtype_of(var))
