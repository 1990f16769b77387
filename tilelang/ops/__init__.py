"""The tile operations, one file each. This tuple is the only list of them."""

from __future__ import annotations

from tilelang.ir.tile_op import TileOp
from tilelang.ops.atomic import Atomic
from tilelang.ops.copy import Copy
from tilelang.ops.fill import Fill
from tilelang.ops.gemm import Gemm
from tilelang.ops.im2col import Im2col
from tilelang.ops.reduce import Reduce
from tilelang.ops.reducer import ReducerFinalize, ReducerInit
from tilelang.ops.scan import Scan
from tilelang.ops.tma_copy import TmaCopy
from tilelang.ops.transpose import Transpose

OPS: tuple[type[TileOp], ...] = (
    Copy, Fill, Gemm, Reduce, Scan, Transpose, Atomic, Im2col, ReducerInit, ReducerFinalize,
    TmaCopy,
)  # fmt: skip

OP_BY_NAME: dict[str, type[TileOp]] = {op.NAME: op for op in OPS}
