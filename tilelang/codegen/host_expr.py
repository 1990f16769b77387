"""How are grid extents and sizes computed where TVM is not?

A host expression is an int, a name (of a scalar parameter or a runtime dimension), or a tuple
`(operator, operand, …)`: plain data that travels as JSON, is evaluated by the Python launcher and
printed into the C wrapper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

HostExpr: TypeAlias = "int | float | str | tuple[Any, ...]"


class NotOnHost(ValueError):
    """An expression that needs the device, such as a load; `node` says where."""

    def __init__(self, node: Any) -> None:
        super().__init__(f"{type(node).__name__} cannot be computed on the host")
        self.node = node


_OPERATORS: Final = {
    "Add": "+", "Sub": "-", "Mul": "*", "FloorDiv": "//", "FloorMod": "%", "Div": "trunc/",
    "Mod": "trunc%", "Min": "min", "Max": "max", "EQ": "==", "NE": "!=", "LT": "<", "LE": "<=",
    "GT": ">", "GE": ">=", "And": "and", "Or": "or", "BitwiseAnd": "&", "BitwiseOr": "|",
    "BitwiseXor": "^", "LShift": "<<", "RShift": ">>",
}  # fmt: skip

_PYTHON: Final[dict[str, Callable[..., Any]]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "trunc/": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "trunc%": lambda a, b: abs(a) % abs(b) * (1 if a >= 0 else -1),
    "min": min,
    "max": max,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "not": lambda a: not a,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "if": lambda c, a, b: a if c else b,
}

_C: Final[dict[str, str]] = {
    "//": "tl_floordiv({}, {})", "%": "tl_floormod({}, {})", "trunc/": "tl_truncdiv({}, {})",
    "trunc%": "tl_truncmod({}, {})", "min": "tl_min({}, {})", "max": "tl_max({}, {})",
    "and": "({} && {})", "or": "({} || {})", "not": "(!{})", "if": "({} ? {} : {})",
}  # fmt: skip


def host_expr(expr: Any, bound: Mapping[Any, HostExpr] | None = None) -> HostExpr:
    """`expr` as plain data; `bound` gives the values of variables that are no parameters."""
    bound = bound or {}
    kind = type(expr).__name__
    match kind:
        case "IntImm":
            return int(expr.value)
        case "FloatImm":
            return float(expr.value)
        case "Var":
            return bound.get(expr, str(expr.name))
        case "Cast":
            return host_expr(expr.value, bound)
        case "Not":
            return ("not", host_expr(expr.a, bound))
        case "Select":
            parts = (expr.condition, expr.true_value, expr.false_value)
            return ("if", *(host_expr(p, bound) for p in parts))
        case "Call" if str(getattr(expr.op, "name", "")) == "prim.if_then_else":
            return ("if", *(host_expr(a, bound) for a in expr.args))
        case "Call" if str(getattr(expr.op, "name", "")) == "prim.likely":
            return host_expr(expr.args[0], bound)
        case _ if kind in _OPERATORS:
            return (_OPERATORS[kind], host_expr(expr.a, bound), host_expr(expr.b, bound))
        case _:
            raise NotOnHost(expr)


def evaluate(expr: HostExpr, values: Mapping[str, Any]) -> Any:
    """The value of `expr` where names have `values`."""
    match expr:
        case str():
            return values[expr]
        case tuple() | list():
            operator, *operands = expr
            return _PYTHON[operator](*(evaluate(o, values) for o in operands))
        case _:
            return expr


def c_text(expr: HostExpr) -> str:
    """`expr` in C over 64-bit integers; uses the functions of `runtime/host/arguments.h`."""
    match expr:
        case tuple() | list():
            operator, *operands = expr
            return _C.get(operator, f"({{}} {operator} {{}})").format(*map(c_text, operands))
        case bool():
            return str(int(expr))
        case int() if expr == -(1 << 63):
            return "INT64_MIN"  # its digits alone are no constant of C
        case int():
            return f"{expr}ll"
        case _:
            return str(expr)


def names_in(expr: HostExpr) -> set[str]:
    """The names `expr` depends on."""
    match expr:
        case str():
            return {expr}
        case tuple() | list():
            return _union(names_in(o) for o in expr[1:])
        case _:
            return set()


def from_json(value: Any) -> HostExpr:
    """A host expression that went through JSON, where tuples become lists."""
    if isinstance(value, list):
        return tuple(from_json(v) for v in value)
    found: HostExpr = value
    return found


def product(factors: Sequence[HostExpr]) -> HostExpr:
    """The product, folded where it is constant."""
    total: HostExpr = 1
    for factor in factors:
        if isinstance(total, int) and isinstance(factor, int):
            total *= factor
        elif total == 1:
            total = factor
        else:
            total = ("*", total, factor)
    return total


def _union(sets: Iterable[set[str]]) -> set[str]:
    found: set[str] = set()
    return found.union(*sets)
