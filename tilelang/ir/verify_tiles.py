"""Do the tiles of an operation fit each other? Extents known only at run time fit anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tilelang.ir import build, tirx
from tilelang.ir.text_forms import dtype_of


def tile_problems(name: str, call: Any) -> Iterator[str]:
    """What does not fit, each as the end of a sentence."""
    args, said = list(call.args), dict(call.attrs or {})
    if name == "copy" and len(args) == 2:
        yield from _copy(*args)
    elif name == "gemm" and len(args) > 2:
        yield from _gemm(args[:3], bool(said.get("transpose_A")), bool(said.get("transpose_B")))
    elif name in ("reduce", "scan") and len(args) == 2 and "dim" in said:
        rank, dim = len(_extents(args[0])), int(said["dim"])
        if not 0 <= dim < rank:
            yield f"goes along dimension {dim} of {_shape(args[0])}"


def _copy(source: Any, target: Any) -> Iterator[str]:
    here, there = ([n for n in _extents(x) if n != 1] for x in (source, target))
    known = None not in (*here, *there)
    fits = len(here) == len(there) and all(
        a is None or b is None or a == b for a, b in zip(here, there, strict=True)
    )
    if not fits and (known or len(here) == len(there)):
        yield f"copies {_shape(source)} to {_shape(target)}"


def _gemm(operands: Sequence[Any], transpose_a: bool, transpose_b: bool) -> Iterator[str]:
    shapes = [_extents(x) for x in operands]
    names = [_name(x) for x in operands]
    if any(len(shape) < 2 for shape in shapes):
        yield f"multiplies {', '.join(map(_shape, operands))}, and not matrices"
        return
    a, b, (m, n) = shapes[0][-2:], shapes[1][-2:], shapes[2][-2:]
    rows, depth = reversed(a) if transpose_a else a
    other, columns = reversed(b) if transpose_b else b
    for what, x, y, p, q in (
        ("K", depth, other, 0, 1), ("M", rows, m, 0, 2), ("N", columns, n, 1, 2),
    ):  # fmt: skip
        if x is not None and y is not None and x != y:
            yield f"has {what} = {x} in `{names[p]}` and {y} in `{names[q]}`"
    kinds = [dtype_of(x) for x in operands[:2]]
    signless = {kind.removeprefix("u") for kind in kinds}  # int8 with uint8 is a product
    if len(signless) > 1 and not all(kind.startswith("float8") for kind in kinds):
        yield f"multiplies `{names[0]}` of {kinds[0]} with `{names[1]}` of {kinds[1]}"


def _extents(operand: Any) -> list[int | None]:
    if isinstance(operand, tirx.TensorRegion):
        return [build.int_value(r.extent) for r in operand.region]
    return [build.int_value(d) for d in operand.shape]


def _name(operand: Any) -> str:
    return str((operand.source if isinstance(operand, tirx.TensorRegion) else operand).name)


def _shape(operand: Any) -> str:
    shown = " x ".join("?" if n is None else str(n) for n in _extents(operand))
    return f"{shown} of `{_name(operand)}`"
