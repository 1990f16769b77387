"""How is a TIRX expression written in the language of the user?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilelang.ir import build, tirx
from tilelang.ir.intrinsics import FAST
from tilelang.ir.tile_op import op_of

_OPERATORS = {
    "Or": ("or", 1), "And": ("and", 2), "EQ": ("==", 4), "NE": ("!=", 4), "LT": ("<", 4),
    "LE": ("<=", 4), "GT": (">", 4), "GE": (">=", 4), "BitwiseOr": ("|", 5),
    "BitwiseXor": ("^", 6), "BitwiseAnd": ("&", 7), "LShift": ("<<", 8), "RShift": (">>", 8),
    "Add": ("+", 9), "Sub": ("-", 9), "Mul": ("*", 10), "Div": ("/", 10), "FloorDiv": ("//", 10),
    "FloorMod": ("%", 10),
}  # fmt: skip
_FUNCTIONS = {"Min": "T.min", "Max": "T.max", "Mod": "T.truncmod"}
_UNARY_LEVEL = 11


class ExprText:
    """Prints expressions; gives each variable a name that is unique in the function."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}
        self._taken: set[str] = set()

    def name(self, var: Any) -> str:
        """The printed name of a variable or buffer, in order of first appearance."""
        found = self._names.get(var)
        if found is None:
            base = str(var.name)
            found, count = base, 0
            while found in self._taken:
                count += 1
                found = f"{base}_{count}"
            self._names[var] = found
            self._taken.add(found)
        return found

    def expr(self, e: Any, parent: int = 0) -> str:
        """`e` with only the parentheses it needs inside an operator of level `parent`."""
        kind = type(e).__name__
        if kind in _OPERATORS:
            return self._binary(e, kind, parent)
        if kind in _FUNCTIONS:
            return f"{_FUNCTIONS[kind]}({self.expr(e.a)}, {self.expr(e.b)})"
        method = getattr(self, f"_{kind}", None)
        return str(e) if method is None else method(e, parent)

    def shape(self, dims: Sequence[Any]) -> str:
        """`(64, N)`, with the comma a single extent needs."""
        return _tuple([self.expr(d) for d in dims])

    def operand(self, arg: Any) -> str:
        """An operand of a call: a region as slices, a buffer by name, a string quoted."""
        if isinstance(arg, tirx.StringImm):
            return repr(str(arg.value))
        return self.expr(arg)

    def region(self, region: Any) -> str:
        """`A` for the whole of it, else `A[i, j : j + 32]`."""
        ranges = list(region.region)
        shape = list(region.source.shape)
        name = self.name(region.source)
        if all(
            build.is_int(r.min, 0) and tirx.structural_equal(r.extent, dim)
            for r, dim in zip(ranges, shape, strict=True)
        ):
            return name
        return f"{name}[{', '.join(self._slice(r) for r in ranges)}]"

    def _slice(self, r: Any) -> str:
        if build.is_int(r.extent, 1):
            return self.expr(r.min)
        if build.is_int(r.min, 0):
            return f"0:{self.expr(r.extent)}"
        if isinstance(r.min, tirx.IntImm) and isinstance(r.extent, tirx.IntImm):
            return f"{r.min.value}:{int(r.min.value) + int(r.extent.value)}"
        return f"{self.expr(r.min, 9)}:{self.expr(r.min, 9)} + {self.expr(r.extent, 10)}"

    def _binary(self, e: Any, kind: str, parent: int) -> str:
        operator, level = _OPERATORS[kind]
        if kind == "Div" and not build.is_float(build.dtype_of(e)):
            return f"T.truncdiv({self.expr(e.a)}, {self.expr(e.b)})"
        # A comparison never stands unbracketed inside another: Python would chain them.
        left = level + 1 if level == 4 else level
        text = f"{self.expr(e.a, left)} {operator} {self.expr(e.b, level + 1)}"
        return f"({text})" if level < parent else text

    def _Var(self, e: Any, parent: int) -> str:
        return self.name(e)

    def _IntImm(self, e: Any, parent: int) -> str:
        dtype = build.dtype_of(e)
        if dtype == "bool":
            return str(bool(e.value))
        text = str(int(e.value))
        if dtype != "int32":
            return f"T.{dtype}({text})"
        return f"({text})" if int(e.value) < 0 and parent > 8 else text

    def _FloatImm(self, e: Any, parent: int) -> str:
        value = float(e.value)
        dtype = build.dtype_of(e)
        if value in (float("inf"), float("-inf")):
            text = f"T.infinity({dtype!r})"
            return text if value > 0 else f"-{text}"
        text = f"float({str(value)!r})" if value != value else repr(value)
        if dtype != "float32":
            return f"T.{dtype}({text})"
        return f"({text})" if value < 0 and parent > 8 else text

    def _StringImm(self, e: Any, parent: int) -> str:
        return repr(str(e.value))

    def _Not(self, e: Any, parent: int) -> str:
        text = f"not {self.expr(e.a, 4)}"
        return f"({text})" if parent > 3 else text

    def _BitwiseNot(self, e: Any, parent: int) -> str:
        return f"~{self.expr(e.a, _UNARY_LEVEL)}"

    def _Cast(self, e: Any, parent: int) -> str:
        return f"T.cast({self.expr(e.value)}, {build.dtype_of(e)!r})"

    def _Select(self, e: Any, parent: int) -> str:
        parts = (e.condition, e.true_value, e.false_value)
        return f"T.Select({', '.join(self.expr(p) for p in parts)})"

    def _TensorLoad(self, e: Any, parent: int) -> str:
        name = self.name(e.source)
        if str(e.source.scope()) == "local.var":
            return name
        return f"{name}[{', '.join(self.expr(i) for i in e.indices)}]"

    def _TensorRegion(self, e: Any, parent: int) -> str:
        return self.region(e)

    def _Ramp(self, e: Any, parent: int) -> str:
        return f"T.Ramp({self.expr(e.base)}, {self.expr(e.stride)}, {e.lanes})"

    def _Broadcast(self, e: Any, parent: int) -> str:
        return f"T.Broadcast({self.expr(e.value)}, {e.lanes})"

    def _Shuffle(self, e: Any, parent: int) -> str:
        lanes = ", ".join(self.expr(v) for v in e.vectors)
        return f"T.{build.dtype_of(e)}({lanes})"

    def _Call(self, e: Any, parent: int) -> str:
        name = op_of(e)
        op = str(e.op.name) if name is None and isinstance(e.op, tirx.Op) else str(name)
        short = op.rpartition(".")[2]
        args = [self.operand(a) for a in e.args]
        if e.attrs is not None and FAST in e.attrs:
            return f"T.__{short}({', '.join(args)})"
        if short == "reinterpret":
            args.append(repr(build.dtype_of(e)))
        return f"T.{_NAMES.get(short, short)}({', '.join([*args, *keywords(e.attrs)])})"


# TVM's operators whose name in the language differs.
_NAMES = {"fabs": "abs", "nearbyint": "round"}


def keywords(attrs: Any) -> list[str]:
    """Attributes of a call as keyword arguments, in the order of their names."""
    if attrs is None:
        return []
    found = dict(attrs)
    return [
        f"{key}={_value(found[key])}" for key in sorted(found) if _value(found[key]) not in _HIDDEN
    ]


def _value(value: Any) -> str:
    if type(value).__name__ in ("Array", "List", "tuple", "list"):
        return _tuple([_value(v) for v in value])
    if isinstance(value, str):
        return repr(str(value))
    if isinstance(value, (bool, int, float)) or value is None:
        return repr(value)
    return str(value)


def _tuple(parts: list[str]) -> str:
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


# Attributes that say nothing at these values are left out.
_HIDDEN = frozenset({"None", "False", "''", "()"})
