"""Calls into code the compiler does not see: C functions, pointers to elements, source text."""

from __future__ import annotations

from typing import Any

from tilelang.dtypes import SCALARS
from tilelang.language.catalog import language_function
from tilelang.language.operands import (
    IntLike,
    choice,
    declared,
    dtype_of,
    integer,
    intrinsic,
    kind_text,
    static_int,
    tile,
    trace_of,
)
from tilelang.program import arith, operators
from tilelang.program.buffer import Buffer, Range, Region
from tilelang.program.context import reject
from tilelang.program.expr import INT32, Const, Expr, Load
from tilelang.program.stmt import Annotate
from tilelang_diagnostics import counted

HANDLE = SCALARS["handle"]
ACCESS = ("r", "w", "rw")
RW_MASKS = {1: "r", 2: "w", 3: "rw"}  # of tvm_access_ptr


@language_function("scalar")
def access_ptr(
    base: Any,
    access_type: str = "r",
    *extents: IntLike,
    offset: IntLike = 0,
    extent: IntLike | None = None,
    ignore_last_ndim: int = 0,
) -> Expr:
    """A pointer to an element or region, with what is done through it, for extern calls and PTX.

    Args:
        base: buffer, region or element; access_type: r, w or rw; extents: how much is touched,
        per trailing dimension; offset: elements to add to the address; extent: elements touched
        in one run; ignore_last_ndim: dimensions at the end that are touched whole.

    >>> T.call_extern("handle", "load4", T.access_ptr(A[i, 0], "r", 4), T.access_ptr(v, "w"))
    """
    access = choice("access_ptr", "access_type", access_type, ACCESS)
    region = tile("access_ptr", "base", base)
    rank = region.buffer.ndim
    whole = static_int("access_ptr", "ignore_last_ndim", ignore_last_ndim, 0, rank) or 0
    if len(extents) > rank:
        reject(
            "TL114",
            f"`T.access_ptr` of `{region.buffer.name}` has {len(extents)} extents for "
            f"{counted(rank, 'dimension')}",
            labels=declared(region),
        )
    ranges = list(region.ranges)
    for dimension, size in enumerate(extents, rank - len(extents)):
        ranges[dimension] = Range(ranges[dimension].min, integer("access_ptr", "extents", size))
    for dimension in range(rank - whole, rank):
        size = operators.as_expr(region.buffer.shape[dimension])
        ranges[dimension] = Range(Const(0, INT32), size)
    if extent is not None and not extents:
        ranges[-1] = Range(ranges[-1].min, integer("access_ptr", "extent", extent))
    touched = Region(region.buffer, tuple(ranges), region.span)
    shift = integer("access_ptr", "offset", offset)
    args = (touched,) if arith.constant_value(shift) == 0 else (touched, shift)
    return intrinsic("access_ptr", args, HANDLE, access=access)


@language_function("scalar")
def address_of(buffer_load: Any, span: Any = None) -> Expr:
    """A pointer to an element.

    Args:
        buffer_load: element `A[i, j]`; gives a handle.

    >>> T.call_extern("int32", "prefetch", T.address_of(A[i, 0]))
    """
    return intrinsic("address_of", (tile("address_of", "buffer_load", buffer_load),), HANDLE)


@language_function("scalar")
def tvm_access_ptr(
    ptype: Any, data: Any, offset: IntLike, extent: IntLike, rw_mask: int = 3
) -> Expr:
    """A pointer into a buffer by flat offset; `T.access_ptr` is the readable form.

    Args:
        ptype: element dtype; data: buffer; offset, extent: in elements of the flat buffer;
        rw_mask: 1 read, 2 write, 3 both.

    >>> T.tvm_access_ptr("float16", A_shared, 0, 64, 1)
    """
    mask = static_int("tvm_access_ptr", "rw_mask", rw_mask, 1, 3)
    region = tile("tvm_access_ptr", "data", data)
    numbers = (
        integer("tvm_access_ptr", "offset", offset), integer("tvm_access_ptr", "extent", extent),
    )  # fmt: skip
    access = RW_MASKS[mask or 3]
    dtype = dtype_of("tvm_access_ptr", ptype) if not isinstance(ptype, Expr) else region.dtype
    return intrinsic("flat_access_ptr", (region, *numbers), HANDLE, access=access, element=dtype)


@language_function("scalar")
def call_extern(dtype: Any, func_name: str, *args: Any, span: Any = None) -> Expr:
    """Calls a C function that the generated source can see, and the compiler cannot see into.

    Args:
        dtype: of the result ("handle" for none); func_name: its name; args: expressions, and
        buffers, elements or `T.access_ptr` passed as pointers.

    >>> y = T.call_extern("float32", "my_gelu", x)
    """
    return _call("call_extern", dtype, func_name, args)


@language_function("scalar")
def call_pure_extern(dtype: Any, func_name: str, *args: Any, span: Any = None) -> Expr:
    """As `T.call_extern`, of a function that only computes its result from its arguments.

    Args:
        dtype: of the result; func_name: its name; args: expressions and buffers.

    >>> y = T.call_pure_extern("float32", "my_gelu", x)
    """
    return _call("call_extern", dtype, func_name, args)


@language_function("scalar")
def call_intrin(
    dtype: Any, func_name: str, *args: Any, annotations: Any = None, span: Any = None
) -> Expr:
    """Calls an intrinsic of the target by name.

    Args:
        dtype: of the result; func_name: its name; args: expressions and buffers.

    >>> y = T.call_intrin("float32", "__fdividef", a, b)
    """
    return _call("call_intrin", dtype, func_name, args)


@language_function("annotation", targets=("cuda", "hip", "metal", "cpu"))
def import_source(source: str) -> None:
    """Puts C source text in front of the generated kernel.

    Args:
        source: definitions that `T.call_extern` calls.

    >>> T.import_source("__device__ float my_gelu(float x) { return x; }")
    """
    if not isinstance(source, str):
        reject("TL116", f"`source` of `T.import_source` is {kind_text(source)}, not a string")
    trace = trace_of("import_source")
    # In front of the launch, also where it is called in one.
    trace.blocks[0].append(Annotate("import_source", source, **trace.position()))


def _call(function: str, dtype: Any, func_name: Any, args: tuple[Any, ...]) -> Expr:
    if not isinstance(func_name, str):
        reject(
            "TL116",
            f"`func_name` of `T.{function}` is {kind_text(func_name)}, not a string",
            help=f'the dtype comes first: `T.{function}("float32", "name", …)`',
        )
    result = HANDLE if dtype in ("void", "handle") else dtype_of(function, dtype)
    operands = [_argument(function, a) for a in args if not isinstance(a, str)]
    texts = tuple(a for a in args if isinstance(a, str))
    return intrinsic(function, operands, result, function=func_name, strings=texts or None)


def _argument(function: str, value: Any) -> Region | Expr:
    """Tiles are passed as pointers, everything else by value."""
    if isinstance(value, (Buffer, Region)):
        return tile(function, "args", value)
    if isinstance(value, Load):
        return value
    return operators.as_expr(value)


FUNCTIONS = (
    access_ptr, address_of, tvm_access_ptr, call_extern, call_pure_extern, call_intrin,
    import_source,
)  # fmt: skip
