"""The same storage seen with another shape or dtype."""

from __future__ import annotations

from typing import Any

from tilelang.dtypes import DType
from tilelang.language.catalog import language_function
from tilelang.language.operands import declared, dtype_of, extents_text, kind_text, known, trace_of
from tilelang.program import arith, operators
from tilelang.program.buffer import Buffer, Dim
from tilelang.program.context import reject
from tilelang.program.stmt import Allocate
from tilelang_diagnostics import counted


@language_function("alloc")
def reshape(src: Buffer, shape: Any) -> Buffer:
    """The same elements in row-major order under another shape; nothing moves.

    Args:
        src: any buffer; shape: extents with the same product.

    >>> flat = T.reshape(A_shared, (block_M * block_N,))
    """
    return _view("reshape", src, shape, None, None)


@language_function("alloc")
def view(src: Buffer, shape: Any = None, dtype: Any = None, strides: Any = None) -> Buffer:
    """The same bytes under another shape, dtype or strides; nothing moves.

    Args:
        src: any buffer; shape: extents, those of `src` when left out; dtype: element type;
        strides: in elements, row-major when left out. The number of bits stays the same.

    >>> packed = T.view(A_shared, (block_M, block_K // 2), "uint8")
    """
    return _view("view", src, shape, dtype, strides)


def _view(function: str, src: Any, shape: Any, dtype: Any, strides: Any) -> Buffer:
    from tilelang.language.types import resolve_shape

    trace = trace_of(function)
    if not isinstance(src, Buffer):
        reject(
            "TL116",
            f"`src` of `T.{function}` is {kind_text(src)}, not a whole buffer",
            help="views are of whole buffers; index the view instead",
        )
    element = src.dtype if dtype is None else dtype_of(function, dtype)
    dims = src.shape if shape is None else resolve_shape(shape)
    _check_size(function, src, dims, element)
    steps = None if strides is None else resolve_shape(strides, what="stride")
    if steps is not None and len(steps) != len(dims):
        reject(
            "TL217",
            f"`T.{function}` of `{src.name}`: {counted(len(steps), 'stride')} for "
            f"{counted(len(dims), 'dimension')}",
            labels=declared(src),
            help="one stride per dimension, in elements",
        )
    if src.strides is not None and steps is None:
        _refuse_strided(function, src)
    name = trace.unique(trace.target_name or f"{src.name}_view")
    result = Buffer(name, dims, element, src.scope_name, trace.span, "view", steps, src)
    trace.emit(Allocate(result, **trace.position()))
    return result


def _check_size(function: str, src: Buffer, dims: tuple[Dim, ...], element: DType) -> None:
    """Both shapes must hold the same number of bits."""
    if not (known(src.dtype) and known(element)):
        return
    have, want = _bits(src.shape, src.dtype), _bits(dims, element)
    if not arith.surely_different(have, want):
        return
    reject(
        "TL213",
        f"`T.{function}` of `{src.name}` {extents_text(src.shape)} {src.dtype} as "
        f"{extents_text(dims)} {element}: {_amount(have)} become {_amount(want)}",
        labels=declared(src),
        help=_advice(src, dims, element),
    )


def _advice(src: Buffer, dims: tuple[Dim, ...], element: DType) -> str:
    if len(dims) == len(src.shape) and element.bits != src.dtype.bits:
        last = arith.constant_value(operators.binary("*", src.shape[-1], src.dtype.bits))
        if last is not None and last % (element.bits * element.lanes) == 0:
            extent = last // (element.bits * element.lanes)
            return f"a {element} view has the shape {extents_text((*src.shape[:-1], extent))}"
    return "the product of the extents times the width of the dtype must stay the same"


def _bits(dims: tuple[Dim, ...], element: DType) -> Any:
    total: Any = element.bits * element.lanes
    for dim in dims:
        total = operators.binary("*", total, dim)
    return arith.simplify(total)


def _amount(bits: Any) -> str:
    number = arith.constant_value(bits)
    if number is None:
        return f"{bits} bits"
    return counted(number // 8, "byte") if number % 8 == 0 else counted(number, "bit")


def _refuse_strided(function: str, src: Buffer) -> None:
    expected: Any = 1
    for dim, stride in zip(reversed(src.shape), reversed(src.strides or ()), strict=True):
        if arith.surely_different(stride, expected):
            reject(
                "TL213",
                f"`T.{function}` of `{src.name}`, whose elements are not contiguous",
                labels=declared(src),
                help="give `T.view` the strides of the result, or copy the tile first",
            )
        expected = operators.binary("*", expected, dim)


FUNCTIONS = (reshape, view)
