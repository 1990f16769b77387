"""At which element of its storage does an access of an N-dimensional buffer lie?

Index arithmetic happens in the dtype of the indices, except where the buffer may hold more than
2^31 elements: there it happens in 64 bits, from the first product on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tilelang.ir import build, tirx

_INT32_ELEMENTS: Final = 1 << 31


def flat_index(
    buffer: tirx.Buffer, indices: Sequence[tirx.Expr], span: Any = None, bits: int = 32
) -> tirx.Expr:
    """The offset of `buffer[indices]` in elements; `bits` is the least width of a product."""
    wide = bits == 64 or is_large(buffer)
    total: tirx.Expr | None = None
    for index, stride in terms(buffer, indices):
        if not build.is_int(stride, 1):
            index, stride = _matched(index, stride, wide)
            index = _product(index, stride, span)
        if total is not None:
            total, index = _matched(total, index, False)
            index = build.add(total, index, span)
        total = index
    return build.const(0, "int32", span) if total is None else total


def terms(buffer: tirx.Buffer, indices: Sequence[tirx.Expr]) -> list[tuple[tirx.Expr, tirx.Expr]]:
    """Each index with the stride of its dimension; the start of a view counts with stride 1."""
    found = list(zip(indices, strides_of(buffer), strict=True))
    start = buffer.elem_offset
    if start is not None and not build.is_int(start, 0):
        found.append((start, build.const(1, build.dtype_of(start))))
    return found


def strides_of(buffer: tirx.Buffer) -> list[tirx.Expr]:
    """Its strides in elements: as declared, or row-major."""
    declared = list(buffer.strides or [])
    if declared:
        return declared
    shape = list(buffer.shape)
    strides: list[tirx.Expr] = []
    stride: tirx.Expr = build.const(1, build.dtype_of(shape[-1]) if shape else "int32")
    for extent in reversed(shape):
        strides.append(stride)
        stride, extent = _matched(stride, extent, False)
        stride = _product(stride, extent, None)
    return strides[::-1]


def is_large(buffer: tirx.Buffer) -> bool:
    """Whether an offset into `buffer` may not fit in 32 bits."""
    if str(buffer.scope()) != "global":
        return False
    sizes = [build.int_value(extent) for extent in buffer.shape]
    strides = [build.int_value(stride) for stride in buffer.strides or []]
    if None in sizes or None in strides:
        # One dimension of unknown extent is reached by one 32-bit index, if nothing scales it.
        return len(sizes) > 1 or bool(strides)
    if strides:
        pairs = zip(sizes, strides, strict=True)
        return sum((size or 0) * (stride or 0) for size, stride in pairs) > _INT32_ELEMENTS
    total = 1
    for size in sizes:
        total *= size or 0
    return total > _INT32_ELEMENTS


def _product(left: tirx.Expr, right: tirx.Expr, span: Any) -> tirx.Expr:
    a, b = build.int_value(left), build.int_value(right)
    if a is not None and b is not None:
        return build.const(a * b, build.dtype_of(left), span)
    if a == 0 or b == 0:
        return build.const(0, build.dtype_of(left), span)
    return build.mul(left, right, span)


def _matched(a: tirx.Expr, b: tirx.Expr, wide: bool) -> tuple[tirx.Expr, tirx.Expr]:
    if wide or build.dtype_of(a) != build.dtype_of(b):
        return build.cast(a, "int64", a.span), build.cast(b, "int64", b.span)
    return a, b
