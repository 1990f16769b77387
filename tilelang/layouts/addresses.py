"""Where do the elements of tiles and tensors lie, as far as their declarations say?

Extents as numbers, strides in elements, views as the buffers they show, and how wide an aligned
access of global memory can be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilelang.layout.index_map import unflatten
from tilelang.layout.lazy import np
from tilelang.layouts.demands import Nest
from tilelang.layouts.indices import MAX_POINTS, Index, step_of
from tilelang.program import arith
from tilelang.program import expr as ex
from tilelang.program.buffer import Buffer

if TYPE_CHECKING:
    from numpy.typing import NDArray


def constant_shape(dims: Sequence[object]) -> tuple[int, ...] | None:
    """Extents as ints, when all of them are known."""
    found = tuple(arith.constant_value(d) for d in dims)
    known = tuple(n for n in found if n is not None and n > 0)
    return known if len(known) == len(found) and volume(known) <= MAX_POINTS else None


def known_shape(buffer: Buffer) -> tuple[int, ...] | None:
    """The extents of a tile whose element type is known too."""
    return constant_shape(buffer.shape) if buffer.dtype.bits else None


def element_strides(buffer: Buffer) -> tuple[int | None, ...]:
    """Elements in memory from one index to the next, per dimension; None where not known."""
    if buffer.strides is not None:
        return tuple(arith.constant_value(s) for s in buffer.strides)
    strides: list[int | None] = []
    pitch: int | None = 1
    for extent in reversed(buffer.shape):
        strides.append(pitch)
        number = arith.constant_value(extent)
        pitch = None if pitch is None or number is None else pitch * number
    return tuple(reversed(strides))


def storage_elements(buffer: Buffer, places: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Elements of a view as elements of the buffer it shows; None when they are of other widths.

    Elements outside are brought inside: guards keep lanes that would touch them idle."""
    shape = known_shape(buffer)
    assert shape is not None
    limits = np.array(shape).reshape(-1, *[1] * (places.ndim - 1))
    inside = np.clip(places, 0, limits - 1)
    while buffer.source is not None:
        source = buffer.source
        inner = known_shape(source)
        if inner is None or source.dtype.bits != buffer.dtype.bits:
            return None
        pitches = element_strides(buffer)
        if any(p is None for p in pitches):
            return None
        flat = sum(row * p for row, p in zip(inside, pitches, strict=True) if p is not None)
        inside = unravel(np.minimum(flat, volume(inner) - 1), inner)
        buffer = source
    return inside


def alignment(
    buffer: Buffer,
    indices: Sequence[Index],
    pitches: Sequence[int | None],
    nest: Nest,
    strides: Sequence[int | None],
) -> tuple[int, str] | None:
    """The widest vector of a global access that starts at a multiple of its width and does not
    straddle the edge of the tensor, and what allows no wider one; None when sizes decide that are
    not known here.

    Every step of the address other than along the contiguous dimension must be a multiple.
    """
    if any(p is None for p in pitches) or buffer.role == "pointer":
        return None
    unit = next((d for d, p in enumerate(pitches) if p == 1), None)
    if unit is None:
        return None
    steps: list[tuple[int | None, str]] = []
    for dim, (index, pitch) in enumerate(zip(indices, pitches, strict=True)):
        assert pitch is not None
        if dim == unit:
            steps += _starts(index, nest)
            extent = arith.constant_value(buffer.shape[dim])
            if extent is None:
                return None
            steps.append((extent, f"its extent {extent} in dimension {dim} is no multiple"))
        elif buffer.shape[dim] != 1:
            steps.append((pitch, f"its rows lie {pitch} elements apart"))
    steps += [(s, f"iterations lie {s} elements apart") for s in strides if s not in (None, 0, 1)]
    width, because = 128, ""
    for step, why in steps:
        assert step is not None
        while step % width:
            width, because = width // 2, why
    return width, because


def _starts(index: Index, nest: Nest) -> list[tuple[int | None, str]]:
    """The steps in which the start of an access moves, other than with the nest's own loops."""
    found: list[tuple[int | None, str]] = []
    for factors, coefficient in arith.normal_form(index.base).items():
        alone = len(factors) == 1 and any(factors[0] == arith.structure(v) for v in nest.dims)
        if not alone:
            many = f"{coefficient} element{'' if coefficient == 1 else 's'}"
            what = f"the access begins {many} into a row"
            if factors:
                what = f"where the access begins moves by {many}"
            found.append((coefficient, what))
    return found


def stride_along(
    indices: Sequence[Index], pitches: Sequence[int | None], dim: int, var: ex.Var | None
) -> int | None:
    """Elements in memory from one step of a loop dimension to the next; None where it varies."""
    total = 0
    for index, pitch in zip(indices, pitches, strict=True):
        step = step_of(index, dim, var)
        if step == 0:
            continue
        if step is None or pitch is None:
            return None
        total += step * pitch
    return total


def unravel(flat: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """The indices of row-major positions, `[dimension, …]`."""
    return np.stack(unflatten(np.asarray(flat), shape))


def volume(shape: Sequence[int]) -> int:
    """How many elements a tile has."""
    return math.prod(shape)
