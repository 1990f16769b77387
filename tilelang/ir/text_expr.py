"""How is a TIRX expression written in the language of the user?"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from tilelang.ir import build, tirx
from tilelang.ir.text_forms import (
    Kind,
    dtype_of,
    is_element,
    meaning,
    result_of,
    short_form,
    shown_attrs,
    type_text,
)
from tilelang.ir.text_values import keywords, listed, value_text

OPERATORS: Final = {
    "Or": ("or", 1), "And": ("and", 2), "EQ": ("==", 4), "NE": ("!=", 4), "LT": ("<", 4),
    "LE": ("<=", 4), "GT": (">", 4), "GE": (">=", 4), "BitwiseOr": ("|", 5),
    "BitwiseXor": ("^", 6), "BitwiseAnd": ("&", 7), "LShift": ("<<", 8), "RShift": (">>", 8),
    "Add": ("+", 9), "Sub": ("-", 9), "Mul": ("*", 10), "Div": ("/", 10), "FloorDiv": ("//", 10),
    "FloorMod": ("%", 10),
}  # fmt: skip
FUNCTIONS: Final = {"Min": "min", "Max": "max", "Mod": "truncmod"}
_UNARY_LEVEL = 11
VARIABLE: Final = "local.var"
_NOT_IN_NAMES: Final = re.compile(r"\W")


class ExprText:
    """Prints expressions; gives each variable a name that is unique in the function.

    `sites` are the places of what a line loads, calls and names by region, as they are printed;
    `asked` are the variables named so far, each time with the name; `formless` is what can be shown
    and not read back, with its place.
    """

    def __init__(self) -> None:
        self._names: dict[int, tuple[Any, str]] = {}  # by address, as comparing makes expressions
        self._taken: set[str] = {"T"}
        self.asked: list[tuple[Any, str]] = []
        self.sites: list[Any] = []
        self.formless: list[tuple[str, Any]] = []
        self.operators: set[str] = set()

    def name(self, var: Any) -> str:
        """The printed name of a variable or buffer, in order of first appearance."""
        known = self._names.get(hash(var))
        if known is None:
            base = _NOT_IN_NAMES.sub("_", str(var.name)) or "_"
            if not base.isidentifier() or keyword.iskeyword(base):
                base = f"_{base}"
            found, count = base, 0
            while found in self._taken:
                count += 1
                found = f"{base}_{count}"
            known = self._names[hash(var)] = var, found
            self._taken.add(found)
        self.asked.append(known)
        return known[1]

    @property
    def named(self) -> Iterable[tuple[Any, str]]:
        """All variables with their names, in order of first appearance."""
        return self._names.values()

    def expr(self, e: Any, parent: int = 0) -> str:
        """`e` with only the parentheses it needs inside an operator of level `parent`."""
        kind = type(e).__name__
        if kind in OPERATORS:
            return self._binary(e, kind, parent)
        if kind in FUNCTIONS:
            return f"T.{FUNCTIONS[kind]}({self.expr(e.a)}, {self.expr(e.b)})"
        method = getattr(self, f"_{kind}", None)
        if method is None:
            self.formless.append((f"`{kind}`", getattr(e, "span", None)))
            return str(e)
        return str(method(e, parent))

    def shape(self, dims: Sequence[Any]) -> str:
        """`(64, N)`, with the comma a single extent needs."""
        return listed([self.expr(d) for d in dims])

    def operand(self, arg: Any, kind: Kind = "value") -> str:
        """An operand of a call, with what it takes to be read as what it is."""
        if isinstance(arg, tirx.StringImm):
            return repr(str(arg.value))
        if isinstance(arg, tirx.TensorRegion):
            text = self.region(arg)
            variable = text.isidentifier() and _is_variable(arg.source)
            plain = kind == "region" or (kind == "either" and not variable and not is_element(arg))
            return text if plain else f"T.region({text})"
        if isinstance(arg, tirx.Var) and tirx.is_buffer_var(arg):
            plain = kind == "value" and not _is_variable(arg)
            return self.name(arg) if plain else f"T.buffer({self.name(arg)})"
        if isinstance(arg, tirx.TensorLoad) and kind == "region":
            return f"T.load({self.expr(arg)})"
        return self.expr(arg)

    def region(self, region: Any) -> str:
        """`A` for the whole of it, else `A[i, j : j + 32]`."""
        self.sites.append(region.span)
        ranges = list(region.region)
        shape = list(region.source.shape)
        name = self.name(region.source)
        if all(
            build.is_int(r.min, 0)
            and build.dtype_of(r.min) == build.dtype_of(dim)
            and tirx.structural_equal(r.extent, dim)
            for r, dim in zip(ranges, shape, strict=True)
        ):
            return name
        return f"{name}[{', '.join(self._slice(r) for r in ranges)}]"

    def _slice(self, r: Any) -> str:
        low = self.expr(r.min, 9)
        if build.is_int(r.extent, 1) and build.dtype_of(r.min) == build.dtype_of(r.extent):
            return self.expr_again(r.min)
        if build.is_int(r.min, 0) and build.dtype_of(r.min) == build.dtype_of(r.extent):
            return f"0:{self.expr(r.extent)}"
        if isinstance(r.min, tirx.IntImm) and isinstance(r.extent, tirx.IntImm):
            dtype = build.dtype_of(r.min)
            if dtype == build.dtype_of(r.extent):
                stop = build.const(int(r.min.value) + int(r.extent.value), dtype)
                return f"{low}:{self.expr(stop)}"
        return f"{low}:{low} + {self.expr(r.extent, 10)}"

    def expr_again(self, e: Any, parent: int = 0) -> str:
        """`e`, whose places were noted already."""
        kept = len(self.sites)
        text = self.expr(e, parent)
        del self.sites[kept:]
        return text

    def _binary(self, e: Any, kind: str, parent: int) -> str:
        operator, level = OPERATORS[kind]
        if kind == "Div" and not build.is_float(build.dtype_of(e.a)):
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
        return f"({text})" if text.startswith("-") and parent > 8 else text

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
        self.sites.append(e.span)
        name = self.name(e.source)
        if _is_variable(e.source) and all(build.is_int(i, 0) for i in e.indices):
            return name
        return f"{name}[{', '.join(self.expr(i) for i in e.indices) or '()'}]"

    def _TensorRegion(self, e: Any, parent: int) -> str:
        return self.operand(e)

    def _Ramp(self, e: Any, parent: int) -> str:
        return f"T.Ramp({self.expr(e.base)}, {self.expr(e.stride)}, {e.lanes})"

    def _Broadcast(self, e: Any, parent: int) -> str:
        return f"T.Broadcast({self.expr(e.value)}, {e.lanes})"

    def _Shuffle(self, e: Any, parent: int) -> str:
        lanes = [self.expr(v) for v in e.vectors]
        order = [build.int_value(i) for i in e.indices]
        if len(lanes) > 1 and order == list(range(len(lanes))):
            return f"T.{build.dtype_of(e)}({', '.join(lanes)})"
        return f"T.Shuffle({listed(lanes)}, {listed([self.expr(i) for i in e.indices])})"

    def _Call(self, e: Any, parent: int) -> str:
        text, result = self.call(e)
        expected = result_of(str(e.op.name), list(e.args)) or _like_first(list(e.args))
        return text if result == expected else f"{text[:-1]}{_comma(text)}ret={_said(result)})"

    def call(self, e: Any) -> tuple[str, str]:
        """A call but for its result, which is the second part."""
        self.sites.append(e.span)
        result = type_text(e.ty)
        name, args, said = short_form(e)
        if name == "reinterpret" and not said and result.isidentifier():
            return f"T.reinterpret({self.operand(args[0])}, {result!r})", result
        shown = shown_attrs(e, said)
        found = meaning(name, shown, bool(args) and is_element(args[0]))
        actual = {} if e.attrs is None else {str(k): v for k, v in dict(e.attrs).items()}
        if found.op != str(e.op.name) or _texts(found.said) != _texts(actual):
            return self._in_full(e, args, actual), result
        self.operators.add(name)
        operands = [self.operand(a, found.kind(n)) for n, a in enumerate(args)]
        if name == "clear":
            del operands[1]
        elif name == "gemm":
            return (
                f"T.gemm({', '.join([*self._product(args, operands), *keywords(shown)])})",
                result,
            )
        return f"T.{name}({', '.join([*operands, *keywords(shown)])})", result

    def _product(self, args: Sequence[Any], operands: list[str]) -> list[str]:
        shown = operands[:3]
        if len(args) < 4:
            shown.append("clear_accum=None")
        elif not (build.is_int(args[3], 0) and build.dtype_of(args[3]) == "bool"):
            shown.append(f"clear_accum={operands[3]}")
        if len(args) > 4:
            shown.append(f"mbar={operands[4]}")
        return shown

    def _in_full(self, e: Any, args: Sequence[Any], said: dict[str, Any]) -> str:
        """A call that no short form stands for, by the name of its operator."""
        parts = [repr(str(e.op.name)), *(self.operand(a, "either") for a in args)]
        if said:
            parts.append(f"attrs={value_text(said)}")
        return f"T.call({', '.join(parts)})"


def _texts(said: Any) -> dict[str, str]:
    return {str(key): value_text(value) for key, value in said.items()}


def _like_first(args: Sequence[Any]) -> str:
    """The result that a nested call has where nothing says it."""
    return dtype_of(args[0]) if args and not isinstance(args[0], tirx.StringImm) else "int32"


def _said(result: str) -> str:
    return result if result.startswith("T.") else repr(result)


def _comma(text: str) -> str:
    return "" if text.endswith("()") else ", "


def _is_variable(buffer: Any) -> bool:
    return str(buffer.scope()) == VARIABLE
