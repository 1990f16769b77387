"""How is what an author or a pass attached to a buffer written, so that it can be read back?

A layout with a closed form is the call that makes it, one without a table of its values.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping
from typing import Any

from tilelang.ir.attrs import Held, unheld
from tilelang.layout.fragment import Fragment
from tilelang.layout.index_map import IndexMap
from tilelang.layout.layout import Layout, index_names
from tilelang.layout.lazy import np

KINDS = ("Layout", "Fragment")
TABLE = "table"
# What nobody means, and takes minutes: tables of layouts have an entry for each element.
_MOST_ELEMENTS = 1 << 22
_MOST_THREADS = 1 << 13
_MOST_UNUSED = 16  # places for each element


def attached(value: Any) -> str:
    """A layout as the call that makes it; anything else in a few words."""
    found = unheld(value)
    if not isinstance(found, (Layout, Fragment)):
        return str(value)
    kind = type(found).__name__
    if found.map.forms is None:
        return f"T.{kind}({found.shape}, {TABLE}={found.map.table.tolist()}{_more(found)})"
    names = [*index_names(len(found.shape))]
    if isinstance(found, Fragment):
        parts = found.map.formula([*names, "rep"], written=True)
        if found.replicas > 1 or any(re.search(r"\brep\b", part) for part in parts):
            names.append("rep")
    else:
        parts = found.map.formula(names, written=True)
    value = parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
    function = f"lambda {', '.join(names)}: {value}"
    return f"T.{kind}({found.shape}, {function}{_more(found)})"


def _more(found: Layout | Fragment) -> str:
    """What the values of a map do not say."""
    if isinstance(found, Fragment):
        return f", replicate={found.replicas}" if found.replicas > 1 else ""
    highest = found.map.table.reshape(found.map.outputs, -1).max(axis=1)
    needed = tuple(int(n) + 1 for n in highest)
    return f", out_shape={found.out_shape}" if needed != found.out_shape else ""


def read_attached(call: ast.Call, kind: str) -> Held:
    """The layout that `attached` wrote as `call`; ValueError says what is wrong with it."""
    said = {word.arg: word.value for word in call.keywords if word.arg is not None}
    unknown = set(said) - {TABLE, "out_shape", "replicate"}
    if unknown or not call.args or len(call.args) + (TABLE in said) != 2:
        raise ValueError(f"T.{kind} has a shape and a function of its indices")
    shape = tuple(_literal(call.args[0]))
    copies = _literal(said["replicate"]) if "replicate" in said else 1
    if math.prod(shape) * copies > _MOST_ELEMENTS:
        raise ValueError(f"a layout of {shape} has more than {_MOST_ELEMENTS} elements")
    found = _layout(call, kind, shape, copies, said)
    size = math.prod(found.shape)
    if isinstance(found, Fragment):
        if found.slots > size * found.replicas or found.thread_extent > _MOST_THREADS:
            raise ValueError(
                f"{found.thread_extent} threads with {found.slots} places each are too many for "
                f"{size} elements"
            )
    elif found.storage > size * _MOST_UNUSED + _MOST_THREADS:
        raise ValueError(f"{found.storage} places are too many for {size} elements")
    return Held(found)


def _layout(
    call: ast.Call, kind: str, shape: tuple[int, ...], copies: int, said: Mapping[str, ast.expr]
) -> Layout | Fragment:
    out_shape = _literal(said["out_shape"]) if "out_shape" in said else None
    if TABLE in said:
        index_map = IndexMap.of_table(np.array(_literal(said[TABLE]), dtype=np.int64))
        if kind == "Fragment":
            return Fragment.of_map(index_map)
        return Layout(index_map.shape, index_map, out_shape=out_shape)
    function = call.args[1]
    if not isinstance(function, ast.Lambda):
        raise ValueError(f"T.{kind} has a function of its indices, written `lambda i, j: …`")
    names = [a.arg for a in function.args.args]
    rank = len(shape)
    if not rank <= len(names) <= rank + (kind == "Fragment"):
        raise ValueError(f"its function has {len(names)} indices and its shape {rank}")

    def forward(*index: Any) -> Any:
        return _evaluated(function.body, dict(zip(names, index, strict=False)))

    if kind == "Fragment":
        return Fragment(shape, forward, replicate=copies)
    return Layout(shape, forward, out_shape=out_shape)


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise ValueError(f"`{ast.unparse(node)}` is no literal") from None


def _evaluated(node: ast.expr, index: Mapping[str, Any]) -> Any:
    """Arithmetic of indices, by a walk: nothing of a file is ever executed."""
    match node:
        case ast.Constant(value=int() as value):
            return value
        case ast.Name(id=name) if name in index:
            return index[name]
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return tuple(_evaluated(part, index) for part in parts)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return 0 - _evaluated(operand, index)
        case ast.BinOp(left=left, op=operator, right=right):
            a, b = _evaluated(left, index), _evaluated(right, index)
            return _arithmetic(operator, a, b, node)
    raise ValueError(f"a layout has no form for `{ast.unparse(node)}`")


def _arithmetic(operator: ast.operator, a: Any, b: Any, node: ast.expr) -> Any:
    match operator:
        case ast.Add():
            return a + b
        case ast.Sub():
            return a - b
        case ast.Mult():
            return a * b
        case ast.FloorDiv():
            return a // b
        case ast.Mod():
            return a % b
        case ast.BitXor():
            return a ^ b
        case ast.BitAnd():
            return a & b
        case ast.BitOr():
            return a | b
    raise ValueError(f"a layout has no form for `{ast.unparse(node)}`")
