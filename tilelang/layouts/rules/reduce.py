"""T.reduce_sum and its kin: the result lives where the elements it is made of live.

    T.reduce_max(scores, peak, dim=1)     # a row's maximum is known to all threads of that row

A side in shared memory is loaded into registers first, or stored from them.
"""

from __future__ import annotations

from tilelang.layout.constraints import Mode, Origin, Reduced, Variable, fragment
from tilelang.layouts.addresses import constant_shape, known_shape
from tilelang.layouts.builder import Builder
from tilelang.layouts.indices import region_indices
from tilelang.layouts.rules.naming import origin_of
from tilelang.program.buffer import Region
from tilelang.program.stmt import TileOp

OPS = ("reduce",)


def demand(b: Builder, op: TileOp) -> None:
    """The threads of a result are among those of its row."""
    src, dst = op.args
    assert isinstance(src, Region) and isinstance(dst, Region)
    origin = origin_of(op)
    source = in_registers(b, src, Mode.READ, origin)
    out = in_registers(b, dst, Mode.WRITE, origin)
    if source is None or out is None:
        return
    dim = op.attr("dim")
    whole = tuple(1 if d == dim else n for d, n in enumerate(source.shape))
    kept = tuple(n for d, n in enumerate(source.shape) if d != dim)
    if out.shape in (whole, kept):
        b.constraints.append(Reduced(out, source, dim, origin))


def in_registers(b: Builder, region: Region, mode: Mode, origin: Origin) -> Variable | None:
    """A fragment, or the registers that hold a tile of other memory during one operation."""
    if region.buffer.is_fragment:
        return b.part(region, origin)
    shape = constant_shape(region.extents)
    if shape is None or not region.buffer.is_shared or known_shape(region.buffer) is None:
        return None
    held = fragment(b.unique(f"registers of {region.buffer.name}"), shape, region.dtype.bits)
    nest = b.nest(f"{origin.op}, {region.buffer.name}", shape, origin)
    b.hold(nest, held, mode, origin)
    indices = region_indices(region, {d: d for d in range(len(shape))})
    b.touch(nest, region.buffer, indices, mode, origin)
    return held
