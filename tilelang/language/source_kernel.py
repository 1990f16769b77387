"""`T.CUDASourceCodeKernel`: a launch whose device code is CUDA source of the author's.

    T.CUDASourceCodeKernel(T.ceildiv(N, 256), threads=256, source_code_or_path=SOURCE)

The kernel gets the tensors and scalars of the function in their order, then its returned tensors,
then the run-time dimensions, of which it may leave out the last. To everything that reads a tile
program the launch holds one call that may read and write all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from tilelang.dtypes import SCALARS, DType
from tilelang.language.catalog import CUDA, language_function
from tilelang.language.frames import LaunchFrame
from tilelang.language.launch import launch_frame
from tilelang.language.operands import intrinsic, kind_text
from tilelang.program.buffer import Buffer, Range, Region
from tilelang.program.context import argument_span, make_diagnostic, reject
from tilelang.program.cuda_signature import CudaKernel, Parameter, kernels_of
from tilelang.program.expr import INT32, Const, Expr, Var, walk
from tilelang.program.operators import as_expr
from tilelang.program.stmt import Block, Evaluate, Launch
from tilelang_diagnostics import counted, did_you_mean, with_article
from tilelang_diagnostics.model import Diagnostic, Label, Span

# C types that hold numbers of one dtype only.
_EXACT: Final[dict[str, str]] = {
    "float": "float32", "double": "float64", "half": "float16", "__half": "float16",
    "__nv_bfloat16": "bfloat16", "nv_bfloat16": "bfloat16", "int64_t": "int64",
    "long long": "int64",
}  # fmt: skip

_SIZED: Final = re.compile(r"(?:std::)?(?:u?int(8|16|32|64)_t|size_t|ptrdiff_t)")
_WORDS: Final = frozenset({"signed", "unsigned", "char", "short", "int", "long"})
_WIDTHS: Final = (("char", 8), ("short", 16), ("long", 64))


@dataclass(slots=True, eq=False)
class SourceLaunchFrame(LaunchFrame):
    """What `T.CUDASourceCodeKernel` returns: a launch by itself, or a `with` around nothing."""

    def enter_open(self, frame: Any) -> None:
        """Used as a statement: launch."""
        trace = frame.trace
        blocks = tuple((Var(trace.unique(f"b{a}"), INT32, None, "block"), e)
                       for a, e in zip("xyz", self.grid, strict=False))  # fmt: skip
        threads = tuple((Var(trace.unique(f"t{a}"), INT32, None, "thread"), e)
                        for a, e in zip("xyz", self.block, strict=False))  # fmt: skip
        trace.emit(Launch(blocks, threads, (), self.attrs, **trace.position()))


@language_function("launch", targets=CUDA)
def CUDASourceCodeKernel(
    *blocks: Any,
    threads: Any = None,
    source_code_or_path: Any = None,
    entry_name: str = "main_kernel",
    cluster_dims: Any = None,
    prelude: str | None = None,
) -> SourceLaunchFrame:
    """Launches a `__global__` function of CUDA source: nothing in it is checked or changed.

    It gets the tensors and scalars of the kernel in order, then the run-time dimensions.

    Args:
        blocks: one to three grid extents; threads: per block (default 128);
        source_code_or_path: CUDA C++, or the path of a file with it;
        entry_name: the function; cluster_dims: blocks per cluster;
        prelude: CUDA C++ in front of the source.

    >>> T.CUDASourceCodeKernel(T.ceildiv(N, 256), threads=256, source_code_or_path="scale.cu")
    """
    frame = launch_frame("CUDASourceCodeKernel", blocks, threads, prelude, cluster_dims)
    text, file = _source(source_code_or_path)
    if not isinstance(entry_name, str):
        reject("TL116", f"`entry_name` of `T.CUDASourceCodeKernel` is {kind_text(entry_name)}, "
               "not a string", span=argument_span("entry_name"))  # fmt: skip
    _entry(text, entry_name)
    attrs = (*frame.attrs, ("source", text), ("entry", entry_name), ("source_file", file))
    return SourceLaunchFrame(frame.grid, frame.block, frame.span, attrs)


def with_arguments(
    block: Block, arguments: Sequence[Buffer | Var]
) -> tuple[Block, tuple[Diagnostic, ...]]:
    """`block` with the call of each source kernel of `arguments`, and what does not fit."""
    found: list[Diagnostic] = []
    out = []
    for stmt in block:
        if isinstance(stmt, Launch) and stmt.attr("source") is not None:
            found += _misfits(stmt, arguments)
            stmt = replace(stmt, body=(_call(stmt, arguments),))
        out.append(stmt)
    return tuple(out), tuple(found)


def runtime_dims(arguments: Sequence[Buffer | Var]) -> tuple[Var, ...]:
    """The dimensions a call decides that are no arguments themselves, by first appearance."""
    found: dict[Var, None] = {}
    for buffer in arguments:
        if isinstance(buffer, Buffer):
            for dim in (*buffer.shape, *(buffer.strides or ())):
                if isinstance(dim, Expr):
                    found |= {v: None for v in walk(dim) if isinstance(v, Var)}
    return tuple(v for v in found if v not in arguments)


def _source(given: Any) -> tuple[str, str | None]:
    """The text, and the file it is all of."""
    span = argument_span("source_code_or_path")
    if given is None:
        reject(
            "TL189",
            "`T.CUDASourceCodeKernel` is given no source",
            help="source_code_or_path= takes CUDA C++ or the path of a file with it",
        )
    if isinstance(given, Path) or (isinstance(given, str) and _is_path(given)):
        return _read(Path(given), span)
    if not isinstance(given, str):
        reject("TL116", f"`source_code_or_path` of `T.CUDASourceCodeKernel` is {kind_text(given)}, "
               "neither a string nor a path", span=span)  # fmt: skip
    return given, None


def _is_path(text: str) -> bool:
    return "\n" not in text and "{" not in text and bool(text.strip())


def _read(path: Path, span: Span | None) -> tuple[str, str]:
    """A file, looked for from the working folder and from the folder of the kernel's file."""
    places = [path] if path.is_absolute() or span is None else [path, Path(span.file).parent / path]
    for place in places:
        try:
            return place.read_text(encoding="utf-8"), str(place.resolve())
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            reject("TL189", f"the CUDA source {place} cannot be read: {error}", span=span)
    listed = " nor ".join(str(p) for p in places)
    reject("TL189", f"there is no CUDA source {listed}", span=span,
           help="a path is taken from the working folder, then from that of the kernel's file; "
           "source code has a line break or a brace")  # fmt: skip


def _entry(text: str, name: str) -> CudaKernel:
    """The kernel called `name`; TL189 for a source without it."""
    kernels = kernels_of(text)
    found = next((k for k in kernels if k.name == name), None)
    if found is None:
        names = [k.name for k in kernels]
        listed = ", ".join(dict.fromkeys(names)) or "none"
        reject(
            "TL189",
            f"the source has no kernel `{name}`{did_you_mean(name, names)}",
            span=argument_span("entry_name"),
            help=f"entry_name= names one of its __global__ functions: {listed}",
        )
    if found.is_template:
        reject("TL189", f"`{name}` is a template, of which no instance is named",
               span=argument_span("entry_name"),
               help="add a __global__ function that calls the code with its arguments")  # fmt: skip
    return found


def _call(launch: Launch, arguments: Sequence[Buffer | Var]) -> Evaluate:
    """The kernel's code to the compiler: a call that may do anything to its tensors."""
    operands: list[Any] = []
    for argument in arguments:
        if isinstance(argument, Buffer):
            whole = tuple(Range(Const(0, INT32), as_expr(d)) for d in argument.shape)
            region = Region(argument, whole, launch.span)
            operands.append(intrinsic("access_ptr", (region,), SCALARS["handle"], access="rw"))
        else:
            operands.append(argument)
    call = intrinsic("call_extern", operands, SCALARS["handle"], function=launch.attr("entry"),
                     strings=None)  # fmt: skip
    return Evaluate(replace(call, span=launch.span), span=launch.span, calls=launch.calls)


def _misfits(launch: Launch, arguments: Sequence[Buffer | Var]) -> Iterator[Diagnostic]:
    if launch.body:
        yield make_diagnostic(
            "TL189",
            "statements inside `with T.CUDASourceCodeKernel(…)`",
            span=launch.body[0].span,
            label="the source is the whole kernel",
            help="write `pass`, or call T.CUDASourceCodeKernel as a statement",
        )
    name = launch.attr("entry")
    kernel = next(k for k in kernels_of(launch.attr("source")) if k.name == name)
    dims = runtime_dims(arguments)
    passed = [*arguments, *dims]
    most, least, takes = len(passed), len(arguments), len(kernel.parameters)
    if not least <= takes <= most:
        extra = f" and up to {counted(len(dims), 'run-time dimension')}" if dims else ""
        names = ", ".join(a.name for a in arguments)
        yield _misfit(launch, f"`{name}` takes {counted(takes, 'parameter')}, and the kernel "
                      f"passes {least} ({names}){extra}", ())  # fmt: skip
        return
    for position, (parameter, argument) in enumerate(
        zip(kernel.parameters, passed, strict=False), 1
    ):
        yield from _mistyped(launch, name, position, parameter, argument)


def _mistyped(
    launch: Launch, name: str, position: int, parameter: Parameter, argument: Buffer | Var
) -> Iterator[Diagnostic]:
    said = f"parameter {position} of `{name}` is {with_article(parameter.type)}"
    said += " pointer" if parameter.pointer else ""
    labels = () if argument.span is None else (Label(argument.span, f"{argument.dtype}"),)
    if parameter.pointer != isinstance(argument, Buffer) and argument.dtype.base != "handle":
        what = "a tensor" if isinstance(argument, Buffer) else "a scalar"
        yield _misfit(launch, f"{said}, and `{argument.name}` is {what}", labels)
    elif _EXACT.get(parameter.type, argument.dtype.name) != argument.dtype.name or not (
        parameter.pointer or _holds(parameter.type, argument.dtype)
    ):
        yield _misfit(launch, f"{said}, and `{argument.name}` is {argument.dtype}", labels)


def _holds(c_type: str, dtype: DType) -> bool:
    """Whether a scalar of `dtype` arrives whole in an integer of C; True for any other type."""
    width = _integer_bits(c_type)
    return width is None or dtype.base == "handle" or (dtype.is_integer and dtype.bits == width)


def _integer_bits(c_type: str) -> int | None:
    sized = _SIZED.fullmatch(c_type)
    if sized is not None:
        return int(sized[1] or 64)
    words = c_type.split()
    if not words or not _WORDS.issuperset(words):
        return None
    return next((bits for word, bits in _WIDTHS if word in words), 32)


def _misfit(launch: Launch, message: str, labels: tuple[Label, ...]) -> Diagnostic:
    return make_diagnostic(
        "TL189", message, span=launch.span, labels=labels,
        help="a source kernel gets the tensors and scalars in order, then the run-time dimensions",
    )  # fmt: skip


FUNCTIONS = (CUDASourceCodeKernel,)
