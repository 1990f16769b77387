"""Which operations on the 8x8 matrices of an Apple GPU's simdgroup are there?

A matrix is an element of a buffer of scope `local.matrix`, whose dtype is that of its numbers: 32
lanes hold it together, and which of them holds what is not known to anybody. In memory it is 8 rows
of 8 neighbours; a region says all that may be touched, from the first element to the last.
"""

from __future__ import annotations

from typing import Final

from tilelang.ir.device_op import Constant, DeviceOp, Operand

_SECTION: Final = "simdgroup_matrix"
# Elements from the start of one row to that of the next.
_ROW: Final = Constant("row")
_FIRST_WITH_MATRICES: Final = 7


def _row(
    name: str, doc: str, operands: tuple[Operand, ...], constants: tuple[Constant, ...] = ()
) -> DeviceOp:
    return DeviceOp(
        name, doc, _SECTION, operands=operands, constants=constants, group="warp",
        min_arch=_FIRST_WITH_MATRICES, only="metal", header="simdgroup.h",
    )  # fmt: skip


ROWS: Final[tuple[DeviceOp, ...]] = (
    _row(
        "simdgroup_fill", "set every element of a matrix",
        (Operand("dst", "matrix", "write"), Operand("value", "scalar")),
    ),
    _row(
        "simdgroup_load", "read a matrix from memory",
        (Operand("dst", "matrix", "write"), Operand("src", "memory")), (_ROW,),
    ),
    _row(
        "simdgroup_load_transposed", "read the transpose of a matrix in memory",
        (Operand("dst", "matrix", "write"), Operand("src", "memory")), (_ROW,),
    ),
    _row(
        "simdgroup_store", "write a matrix to memory",
        (Operand("dst", "memory", "write"), Operand("src", "matrix")), (_ROW,),
    ),
    _row(
        "simdgroup_multiply", "d += a @ b",
        (Operand("d", "matrix", "update"), Operand("a", "matrix"), Operand("b", "matrix")),
    ),
)  # fmt: skip
