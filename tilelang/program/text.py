"""Expressions, buffers and regions as the Python text a user would write."""

from __future__ import annotations

from typing import Any

from tilelang.program import expr as ex
from tilelang.program.buffer import Buffer, Region

_PRECEDENCE = {
    "or": 1, "and": 2, "==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "|": 5, "^": 6, "&": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "//": 10, "%": 10,
}  # fmt: skip


def expr_text(value: Any, parent: int = 0) -> str:
    """`value` in Python syntax, with only the parentheses it needs."""
    match value:
        case ex.Const(value=number):
            return repr(number)
        case ex.Var(name=name):
            return name
        case ex.Load(buffer=Buffer(name=name, scope_name="local.var")):
            return name
        case ex.Load(buffer=buffer, indices=indices):
            return f"{buffer.name}[{', '.join(expr_text(i) for i in indices)}]"
        case ex.Binary(op=op, left=left, right=right):
            return _binary_text(op, left, right, parent)
        case ex.Unary(op=op, operand=operand):
            return f"{op if op != 'not' else 'not '}{expr_text(operand, 11)}"
        case ex.Cast(operand=operand, dtype=dtype):
            return f"T.cast({expr_text(operand)}, {dtype.name!r})"
        case ex.Select(condition=condition, true=true, false=false, lazy=lazy):
            name = "T.if_then_else" if lazy else "T.Select"
            return f"{name}({expr_text(condition)}, {expr_text(true)}, {expr_text(false)})"
        case ex.Intrinsic(name=name, args=args):
            return f"T.{name}({', '.join(operand_text(a) for a in args)})"
        case ex.Vector(lanes=lanes, dtype=dtype):
            return f"T.{dtype.name}({', '.join(expr_text(lane) for lane in lanes)})"
        case _:
            return str(value)


def operand_text(value: Any) -> str:
    """An argument of a tile operation: region, buffer or expression."""
    return region_text(value) if isinstance(value, Region) else expr_text(value)


def region_text(region: Region) -> str:
    """`A` for a whole buffer, else `A[i, j:j + 32]`."""
    from tilelang.program import arith

    whole = all(
        not r.is_point and arith.constant_value(r.min) == 0 and arith.same(r.extent, d)
        for r, d in zip(region.ranges, region.buffer.shape, strict=True)
    )
    if whole:
        return region.buffer.name
    parts = []
    for r in region.ranges:
        if r.is_point:
            parts.append(expr_text(r.min))
        else:
            parts.append(f"{expr_text(r.min)}:{expr_text(arith.simplify(r.min + r.extent))}")
    return f"{region.buffer.name}[{', '.join(parts)}]"


def shape_text(buffer: Buffer) -> str:
    """`(64, block_N) float16 shared`, as hints and hovers show it."""
    dims = ", ".join(expr_text(d) for d in buffer.shape)
    comma = "," if len(buffer.shape) == 1 else ""
    scope = {"shared.dyn": "shared", "local.fragment": "fragment", "local.var": "var"}
    return f"({dims}{comma}) {buffer.dtype.name} {scope.get(buffer.scope_name, buffer.scope_name)}"


def _binary_text(op: str, left: ex.Expr, right: ex.Expr, parent: int) -> str:
    if op in ("min", "max", "truncdiv", "truncmod"):
        return f"T.{op}({expr_text(left)}, {expr_text(right)})"
    level = _PRECEDENCE[op]
    text = f"{expr_text(left, level)} {op} {expr_text(right, level + 1)}"
    return f"({text})" if level < parent else text
