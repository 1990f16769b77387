"""Does a loop or grid of `K // block` tiles leave the last elements out? (TL227)

    for k in T.serial(K // block_K):              # K = 1000, block_K = 64: 40 columns are lost
        T.copy(A[0, k * block_K], A_shared)

The division happens on Python integers, so it is judged here, where its operands are still known.
Only a variable that is multiplied by that same divisor in the body counts tiles.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tilelang.language import expressions
from tilelang.language.frame import Frame
from tilelang.program.arith import constant_value
from tilelang.program.context import Reject, warn
from tilelang_diagnostics.model import Applicability, Edit, Fix, Severity


def warn_if_dropped(frame: Frame, node: ast.For | ast.With) -> None:
    """Warn about each rounded-down tile count of a loop or launch."""
    for division, names in _tile_counts(node):
        divisor_text = ast.unparse(division.right)
        if not any(_multiplies(node, name, divisor_text) for name in names):
            continue
        try:
            total = constant_value(expressions.evaluate(frame, division.left))
            block = constant_value(expressions.evaluate(frame, division.right))
        except Reject:
            continue
        if total is None or block is None or block <= 0 or total % block == 0:
            continue
        _warn(frame, division, total, block)


def _tile_counts(node: ast.For | ast.With) -> Iterator[tuple[ast.BinOp, list[str]]]:
    """Each `a // b` that is a whole extent, with the variables that count its tiles."""
    if isinstance(node, ast.For):
        if isinstance(node.iter, ast.Call):
            for argument in node.iter.args:
                if isinstance(argument, ast.BinOp) and isinstance(argument.op, ast.FloorDiv):
                    yield argument, _names(node.target)
        return
    for item in node.items:
        if isinstance(item.context_expr, ast.Call) and item.optional_vars is not None:
            for argument in item.context_expr.args:
                if isinstance(argument, ast.BinOp) and isinstance(argument.op, ast.FloorDiv):
                    yield argument, _names(item.optional_vars)


def _multiplies(node: ast.AST, name: str, divisor: str) -> bool:
    """Whether the body holds `name * divisor`."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Mult):
            sides = (inner.left, inner.right)
            if any(isinstance(s, ast.Name) and s.id == name for s in sides) and any(
                ast.unparse(s) == divisor for s in sides
            ):
                return True
    return False


def _warn(frame: Frame, division: ast.BinOp, total: int, block: int) -> None:
    left, right = ast.unparse(division.left), ast.unparse(division.right)
    lost = total % block
    span = frame.span(division)
    replacement = f"T.ceildiv({left}, {right})"
    warn(
        "TL227",
        f"`{left} // {right}` is {total} // {block} = {total // block} tiles: the last {lost} of "
        f"{total} elements are never visited",
        severity=Severity.WARNING,
        span=span,
        label=f"drops {lost} elements",
        help=f"write `{replacement}`; copies past the end read zeros and write nothing",
        fixes=(Fix(f"write `{replacement}`", (Edit(span, replacement),), Applicability.SAFE),),
    )


def _names(target: ast.expr) -> list[str]:
    return [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]
