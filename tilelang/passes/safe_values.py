"""What does a buffer read as outside its bounds? Zero, unless the author annotated a value."""

from __future__ import annotations

from tilelang.ir import attrs, tirx
from tilelang.ir.tile_op import op_of
from tilelang.ir.visit import collect


def safe_values_of(func: tirx.PrimFunc) -> dict[tirx.Buffer, tirx.Expr]:
    """The annotated buffers and their values."""
    found: dict[tirx.Buffer, tirx.Expr] = {}
    for call in collect(func.body, tirx.Call):
        if op_of(call) != "annotate":
            continue
        args = list(call.args)
        if args[0].value == attrs.SAFE_VALUE:
            found.update(zip(args[1::2], args[2::2], strict=True))
    return found
