"""Which matrix instructions of one warp exist? The atoms of each family, a row per combination of
types.

A row is called `mma_m16n8k16_f32_f16_f16`: family, shape, accumulator, A, B, types as the PTX ISA
spells them. Its operands are the registers of one lane in the order of the atom's fragments.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

from tilelang.ir.device_op import Access, DeviceOp, Operand
from tilelang.layout.atoms import Atom
from tilelang.layout.instructions import FAMILIES, Family

PTX_TYPES: Final = {
    "float16": "f16", "bfloat16": "bf16", "tfloat32": "tf32", "float32": "f32", "float64": "f64",
    "int8": "s8", "uint8": "u8", "int4": "s4", "uint4": "u4", "int32": "s32",
    "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2",
}  # fmt: skip
# tf32 values live in float32 registers; `to_tf32` rounds them.
_STORED = {"tfloat32": "float32"}


def mma_name(family: Family, atom: Atom, accumulator: str, a: str, b: str) -> str:
    """The name of the row for one combination of types of `atom`, operands as they are stored."""
    seen = (accumulator, family.seen_as(a), family.seen_as(b))
    types = "_".join(PTX_TYPES[t] for t in seen)
    return f"{family.prefix}_{atom.shape}_{types}"


def type_combinations(atom: Atom) -> Iterator[tuple[str, str, str]]:
    """Each (accumulator, A, B) that `atom` takes; two 8-bit or 4-bit inputs may differ."""
    for accumulator, a, b in product(atom.accumulators, atom.inputs, atom.inputs):
        if a == b or atom.bits < 16:
            yield accumulator, a, b


def _row(family: Family, atom: Atom, accumulator: str, a: str, b: str) -> DeviceOp:
    def operand(name: str, elements: int, dtype: str, access: Access = "read") -> Operand:
        stored = _STORED.get(dtype, dtype)
        return Operand(name, "local", access, lanes=elements // atom.threads, dtype=stored)

    return DeviceOp(
        mma_name(family, atom, accumulator, a, b),
        f"d += a @ b, {atom.m}x{atom.n}x{atom.k}, {a} by {b} into {accumulator}",
        section=atom.section,
        operands=(
            operand("d", atom.m * atom.n, accumulator, "update"),
            operand("a", atom.m * atom.k, a),
            operand("b", atom.k * atom.n, b),
        ),
        group="warp",
        min_arch=atom.min_arch,
        only=None if family.kind == "cuda" else family.kind,
        header=family.header,
    )


ROWS: Final[tuple[DeviceOp, ...]] = tuple(
    _row(family, atom, *types)
    for family in FAMILIES
    for atom in family.atoms
    for types in type_combinations(atom)
)
