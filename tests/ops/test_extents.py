"""Which elements of the two sides of a copy belong together."""

import pytest

import tilelang.language as T
from tilelang.ir import build, tirx
from tilelang.ir.tile_op import LowerContext, TileRegion
from tilelang.ops.elementwise import pair_extents


def region(*extents):
    buffer = tirx.decl_buffer([1000] * len(extents), "float32", name="x", layout=None)
    zeros = tuple(build.const(0, "int32") for _ in extents)
    return TileRegion(buffer, zeros, tuple(build.const(e, "int32") for e in extents))


@pytest.mark.parametrize(
    ("src", "dst", "axes"),
    [
        ((64, 32), (64, 32), [(64, 0, 0), (32, 1, 1)]),
        ((1, 64, 1, 32), (64, 32), [(64, 1, 0), (32, 3, 1)]),
        ((64, 1, 32), (1, 64, 32), [(64, 0, 1), (32, 2, 2)]),
        ((1,), (1,), []),
        ((32,), (4, 32), [(4, None, 0), (32, 0, 1)]),  # broadcast over rows
        ((64, 1), (64, 32), [(64, 0, 0), (32, None, 1)]),  # broadcast over columns
        ((40,), (64,), [(64, 0, 0)]),  # the larger; each side is guarded by its own slice
    ],
    ids=str,
)
def test_pairs(src, dst, axes):
    context = LowerContext("cpu", None, tirx.Analyzer())
    found = pair_extents(context, region(*src), region(*dst))
    assert [(build.int_value(a.extent), a.src_dim, a.dst_dim) for a in found] == axes


def test_corner_takes_the_extents_of_the_other_side():
    from tilelang.ir.extents import grow, is_corner
    from tilelang.program import arith
    from tilelang.program.buffer import Buffer
    from tilelang.program.indexing import region_of

    a = Buffer("A", (8, 100, 100), T.float32, "global", None, "param")
    s = Buffer("S", (1, 32, 16), T.float32, "shared.dyn", None)
    corner = region_of(a[3, 40, 20])
    assert is_corner(corner)
    grown = grow(corner, region_of(s))
    assert [arith.constant_value(r.min) for r in grown.ranges] == [3, 40, 20]
    assert [arith.constant_value(r.extent) for r in grown.ranges] == [1, 32, 16]
