"""Does an assignment count on a value of the iteration before, which a Python value cannot carry?

In `n = 64; for i in T.serial(4): n += 1` the body is read once: `n` is 65 in each iteration.
"""

from __future__ import annotations

import ast
from typing import Any

from tilelang.language.frame import Frame
from tilelang.program.context import reject
from tilelang.program.expr import Const, Expr, Load, Var
from tilelang_diagnostics.model import Label, Severity


def refuse(frame: Frame, target: ast.expr, value: Any, text: ast.AST) -> None:
    """TL135 for a name among `target` whose new `value` was made of its old one in a device loop.

    `text` is what the value was written as.
    """
    if frame.host or not frame.region:
        return
    if isinstance(target, ast.Tuple | ast.List):
        values = value if isinstance(value, tuple | list) else ()
        for element, item in zip(target.elts, values, strict=False):
            refuse(frame, element, item, text)
    elif isinstance(target, ast.Name) and frame.is_carried(target.id) and _reads(text, target.id):
        _refuse_name(frame, target, value)


def _reads(text: ast.AST, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(text))


def _refuse_name(frame: Frame, target: ast.Name, value: Any) -> None:
    name = target.id
    before = frame.lookup(name, None)
    if isinstance(before, Const):
        before = before.value
    now = value.value if isinstance(value, Const) else value
    if not _is_number(now) and not isinstance(now, Expr):
        return
    if isinstance(before, Expr):
        # Elements and variables are stored to; values of the program and loops are warned of.
        if isinstance(before, Load) or not isinstance(before, Var) or before.kind in _WARNED:
            return
        dtype, what = before.dtype.name, "one value of the kernel"
    elif _is_number(before) and now is not before and not _same(now, before):
        dtype, what = _DTYPES[type(before)], f"the Python number {before!r}"
    else:
        return
    local = frame.names.get(name)
    reject(
        "TL135",
        f"`{name}` is {what}, which a loop of the device cannot change",
        severity=Severity.ERROR,
        span=frame.span(target),
        label="this line is read once, not in each iteration",
        labels=() if local is None else (Label(local.span, "bound here"),),
        help=f'declare it before the loop with `{name} = T.alloc_var("{dtype}", init='
        f"{name if isinstance(before, Expr) else before})`"
        + (", or use a new name for a value of one iteration"),
    )


def _is_number(value: Any) -> bool:
    return type(value) in _DTYPES


def _same(a: Any, b: Any) -> bool:
    return _is_number(a) and bool(a == b)


_DTYPES = {bool: "bool", int: "int32", float: "float32"}
_WARNED = ("let", "loop")
