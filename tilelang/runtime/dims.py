"""What number is a dimension of a signature, given the sizes seen so far?

Dimensions are ints, runtime variables, or expressions over them (`M // 2`, `(M + 63) // 64`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from tilelang.program import expr as ex
from tilelang.program.buffer import Buffer, Dim
from tilelang.program.expr import Expr, Var, walk
from tilelang.runtime.tensors import elements_per_item, numpy_dtype


def dim_vars(dim: Dim) -> tuple[Var, ...]:
    """The variables of `dim`, each once, in order of appearance."""
    if isinstance(dim, int):
        return ()
    found = {e: None for e in walk(dim) if isinstance(e, Var)}
    return tuple(found)


def buffer_vars(buffer: Buffer) -> tuple[Var, ...]:
    """The variables of the shape and strides of `buffer`, each once."""
    dims = (*buffer.shape, *(buffer.strides or ()))
    return tuple({v: None for dim in dims for v in dim_vars(dim)})


def evaluate(dim: Dim, values: Mapping[Var, int]) -> int | None:
    """The value of `dim`, or None when a variable of it has none yet."""
    if isinstance(dim, int):
        return dim
    variables = dim_vars(dim)
    if any(v not in values for v in variables):
        return None
    names = {v: f"v{i}" for i, v in enumerate(variables)}
    return int(_compiled(dim, names)(*(values[v] for v in variables)))


def bytes_of(buffer: Buffer, sizes: Mapping[Var, int]) -> int:
    """Bytes from the first element of a tensor to its last."""
    shape = [evaluate(d, sizes) or 0 for d in buffer.shape]
    if any(n == 0 for n in shape):
        return 0
    per_item = elements_per_item(buffer.dtype)
    item = int(numpy_dtype(buffer.dtype).itemsize)
    if buffer.strides is not None:
        strides = [evaluate(s, sizes) or 0 for s in buffer.strides]
        last = sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        return (last // per_item + 1) * item
    shape[-1:] = [-(-n // per_item) for n in shape[-1:]]
    return math.prod(shape) * item


def solve(dim: Dim, size: int, values: Mapping[Var, int]) -> tuple[Var, int] | None:
    """The one unknown of `dim` that makes it `size`, if `dim` is affine in it.

    `N // 2` gives the even N: a packed tensor holds whole bytes.
    """
    if isinstance(dim, ex.Binary) and dim.op == "//" and isinstance(dim.left, Var):
        divisor = evaluate(dim.right, values)
        if divisor and dim.left not in values:
            return dim.left, size * divisor
    unknown = [v for v in dim_vars(dim) if v not in values]
    if len(unknown) != 1:
        return None
    at = [evaluate(dim, {**values, unknown[0]: x}) for x in (0, 1)]
    if at[0] is None or at[1] is None or at[0] == at[1]:
        return None
    found, rest = divmod(size - at[0], at[1] - at[0])
    if rest or evaluate(dim, {**values, unknown[0]: found}) != size:
        return None
    return unknown[0], found


def dim_source(dim: Dim, names: Mapping[Var, str]) -> str:
    """Python source that computes `dim`, its variables called `names`."""
    match dim:
        case int():
            return str(dim)
        case ex.Const(value=value):
            return repr(int(value) if not isinstance(value, float) else value)
        case Var():
            return names[dim]
        case ex.Binary(op=op, left=left, right=right):
            a, b = dim_source(left, names), dim_source(right, names)
            if op in ("min", "max"):
                return f"{op}({a}, {b})"
            if op == "truncdiv":
                return f"int({a} / {b})"
            if op == "truncmod":
                return f"({a} - {b} * int({a} / {b}))"
            return f"({a} {op} {b})"
        case ex.Unary(op=op, operand=operand):
            return f"({op} {dim_source(operand, names)})"
        case ex.Cast(operand=operand):
            return dim_source(operand, names)
        case ex.Select(condition=condition, true=true, false=false):
            c, a, b = (dim_source(e, names) for e in (condition, true, false))
            return f"({a} if {c} else {b})"
        case _:
            raise ValueError(f"{dim} cannot be a dimension")


def tuple_source(items: Iterable[str]) -> str:
    """Python source of a tuple of `items`."""
    listed = list(items)
    return f"({', '.join(listed)}{',' if len(listed) == 1 else ''})"


_EVALUATORS: Final[dict[Expr, Callable[..., Any]]] = {}


def _compiled(dim: Expr, names: Mapping[Var, str]) -> Callable[..., Any]:
    found = _EVALUATORS.get(dim)
    if found is None:
        source = f"lambda {', '.join(names.values())}: {dim_source(dim, names)}"
        found = _EVALUATORS[dim] = eval(source, {"__builtins__": {}, "min": min, "max": max,
                                                 "int": int})  # fmt: skip
    return found
