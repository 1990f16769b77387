"""What does an expression of printed IR stand for? The inverse of `text_expr`.

Nothing of the text is executed: its syntax tree is walked.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, Final

from tilelang.dtypes import find_dtype
from tilelang.ir import build, tirx
from tilelang.ir.read_error import Mistake, Silent, meant
from tilelang.ir.spans import TirSpan
from tilelang.ir.text_expr import FUNCTIONS, OPERATORS, VARIABLE
from tilelang.ir.text_forms import Kind, dtype_of
from tilelang.ir.text_layout import KINDS, read_attached
from tilelang_diagnostics import with_article

# Stands for a name whose statement could not be read.
UNKNOWN: Final = object()

_NODE_OF: Final = {word: node for node, (word, _) in OPERATORS.items()}
_SYMBOLS: Final[Mapping[type, str]] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.BitOr: "|", ast.BitXor: "^", ast.BitAnd: "&", ast.LShift: "<<", ast.RShift: ">>",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_FUNCTION_OF: Final = {word: node for node, word in FUNCTIONS.items()}
_INT32: Final = range(-(1 << 31), 1 << 31)


class ExprReader:
    """Reads expressions over the names in scope.

    `span` is the place of the statement; `sites` those of what its line names, loads and calls.
    """

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self.operators: frozenset[str] = frozenset()
        self.span: TirSpan = None
        self._sites: list[TirSpan] | None = None
        self._taken = 0

    # --- places ---

    def place(self, span: TirSpan, sites: list[TirSpan] | None) -> None:
        """Read on at a statement."""
        self.span, self._sites, self._taken = span, sites, 0

    @property
    def fits(self) -> bool:
        """Whether the places of the line were exactly those it needs."""
        return self._sites is None or self._taken == len(self._sites)

    def site(self) -> TirSpan:
        """The place of the next thing of the line that has one of its own."""
        found = self._sites
        self._taken += 1
        if found is None or self._taken > len(found):
            return self.span
        return found[self._taken - 1]

    # --- expressions ---

    def expr(self, node: ast.expr) -> Any:
        """The expression; raises Mistake."""
        match node:
            case ast.Constant(value=value):
                return self._constant(value, node)
            case ast.Name(id=name):
                return self._name(name, node)
            case ast.Subscript(value=ast.Name(id=name)):
                return self._load(name, node)
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(_SYMBOLS.get(type(op), ""), left, right, node)
            case ast.BoolOp(op=op, values=values):
                kind = tirx.And if isinstance(op, ast.And) else tirx.Or
                found = self.condition(values[0])
                for operand in values[1:]:
                    found = kind(found, self.condition(operand), self.span)
                return found
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._binary(_SYMBOLS.get(type(op), ""), left, right, node)
            case ast.Compare():
                raise Mistake("TL131", "a chain of comparisons has no form in the IR", node,
                              help="write `a < b and b < c`")  # fmt: skip
            case ast.UnaryOp(op=op, operand=operand):
                return self._unary(op, operand, node)
            case ast.Call():
                return self._call(node)
        raise Mistake("TL131", f"`{ast.unparse(node)}` has no form in the IR", node)

    def typed(self, node: ast.expr, dtype: str, what: str) -> Any:
        """An expression of a dtype that its use demands; a bare number takes it."""
        found = _as_literal(self.expr(node), node, dtype, self.span)
        if dtype_of(found) != dtype:
            raise Mistake(
                "TL236", f"{what} is {dtype}, and `{ast.unparse(node)}` is {dtype_of(found)}", node,
                help=f"write `T.cast({ast.unparse(node)}, {dtype!r})`",
            )  # fmt: skip
        return found

    def index(self, node: ast.expr) -> Any:
        """An integer."""
        found = self.expr(node)
        dtype = dtype_of(found)
        if not dtype.startswith(("int", "uint")):
            raise Mistake("TL234", f"`{ast.unparse(node)}` is {dtype}, and an index an integer",
                          node)  # fmt: skip
        return found

    def condition(self, node: ast.expr) -> Any:
        """A bool."""
        found = self.expr(node)
        if not dtype_of(found).startswith("bool"):
            raise Mistake(
                "TL236", f"a condition is bool, and `{ast.unparse(node)}` is {dtype_of(found)}",
                node, help=f"write `{ast.unparse(node)} != 0`",
            )  # fmt: skip
        return found

    def _constant(self, value: Any, node: ast.expr) -> Any:
        match value:
            case bool():
                return tirx.IntImm("bool", int(value), self.span)
            case int():
                dtype = "int32" if value in _INT32 else "int64"
                return self._checked(dtype, value, node)
            case float():
                return tirx.FloatImm("float32", value, self.span)
            case str():
                return tirx.StringImm(value, self.span)
        raise Mistake("TL131", f"`{value!r}` has no form in the IR", node)

    def _checked(self, dtype: str, value: int, node: ast.AST) -> Any:
        try:
            return tirx.IntImm(dtype, value, self.span)
        except Exception as error:  # whatever TVM raises for a number out of range
            raise Mistake("TL235", f"{dtype} does not hold {value}", node) from error

    def lookup(self, name: str, node: ast.AST) -> Any:
        """What a name stands for."""
        found = self.names.get(name)
        if found is None:
            hint = meant(name, list(self.names))
            raise Mistake("TL110", f"`{name}` is bound nowhere above", node, help=hint)
        if found is UNKNOWN:
            raise Silent
        return found

    def _name(self, name: str, node: ast.expr) -> Any:
        found = self.lookup(name, node)
        if not tirx.is_buffer_var(found):
            return found
        if str(found.scope()) == VARIABLE:
            zeros = [build.const(0, "int32", self.span) for _ in found.shape]
            return tirx.BufferLoad(found, zeros, self.site())
        return found

    def buffer(self, node: ast.expr) -> Any:
        """A buffer by its name."""
        if isinstance(node, ast.Name):
            found = self.lookup(node.id, node)
            if tirx.is_buffer_var(found):
                return found
        raise Mistake("TL228", f"`{ast.unparse(node)}` is no buffer", node)

    def indices(self, buffer: Any, node: ast.Subscript) -> list[ast.expr]:
        """The indices of a buffer, as many as it has dimensions."""
        found = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(found) != len(buffer.shape):
            raise Mistake(
                "TL203", f"`{buffer.name}` has {len(buffer.shape)} dimensions, and "
                f"{len(found)} indices here", node,
            )  # fmt: skip
        return list(found)

    def _load(self, name: str, node: ast.Subscript) -> Any:
        found = self.lookup(name, node.value)
        if not tirx.is_buffer_var(found):
            raise Mistake("TL228", f"`{name}` is {dtype_of(found)} and no buffer", node)
        place = self.site()
        places = [self.index(i) for i in self.indices(found, node)]
        return tirx.BufferLoad(found, places, place)

    def _binary(self, symbol: str, left: ast.expr, right: ast.expr, node: ast.expr) -> Any:
        if symbol not in _NODE_OF:
            raise Mistake("TL131", f"`{ast.unparse(node)}` has no form in the IR", node)
        a, b = self._pair(left, right, node)
        if symbol == "/" and not build.is_float(dtype_of(a)):
            raise Mistake("TL232", f"`{ast.unparse(node)}` divides integers", node,
                          help="write `//`, or T.truncdiv to round towards zero")  # fmt: skip
        return self._built(_NODE_OF[symbol], a, b, node)

    def _pair(self, left: ast.expr, right: ast.expr, node: ast.expr) -> tuple[Any, Any]:
        a, b = self.expr(left), self.expr(right)
        a = _as_literal(a, left, dtype_of(b), self.span)
        b = _as_literal(b, right, dtype_of(a), self.span)
        if dtype_of(a) != dtype_of(b) or isinstance(a, tirx.StringImm):
            raise Mistake(
                "TL236",
                f"`{ast.unparse(left)}` is {dtype_of(a)} and `{ast.unparse(right)}` {dtype_of(b)}",
                node, help="the IR converts nothing by itself: write T.cast",
            )  # fmt: skip
        return a, b

    def _built(self, kind: str, a: Any, b: Any, node: ast.AST) -> Any:
        try:
            return getattr(tirx, kind)(a, b, self.span)
        except Exception as error:  # whatever TVM raises for types it has no operation for
            raise Mistake(
                "TL236", f"{with_article(dtype_of(a))} has no operation `{ast.unparse(node)}`", node
            ) from error

    def _unary(self, op: ast.unaryop, operand: ast.expr, node: ast.expr) -> Any:
        if isinstance(op, ast.Not):
            return tirx.Not(self.condition(operand), self.span)
        if isinstance(op, ast.Invert):
            return tirx.BitwiseNot(self.index(operand), self.span)
        if isinstance(op, ast.UAdd):
            return self.expr(operand)
        if isinstance(operand, ast.Constant) and isinstance(operand.value, (int, float)):
            return self._constant(-operand.value, node)
        found = self.expr(operand)
        if isinstance(found, tirx.FloatImm):
            return tirx.FloatImm(dtype_of(found), -float(found.value), self.span)
        zero = build.const(0, dtype_of(found), self.span)
        return self._built("Sub", zero, found, node)

    # --- calls: `read_call` adds those of operators ---

    def _call(self, node: ast.Call) -> Any:
        name = language_name(node.func)
        if isinstance(node.func, ast.Name) and node.func.id == "float":
            return tirx.FloatImm("float32", self.number(node), self.span)
        if name is None:
            raise Mistake("TL131", f"`{ast.unparse(node.func)}` has no form in the IR", node)
        found = self._form(name, node)
        return self.operator(name, node) if found is None else found

    def operator(self, name: str, node: ast.Call, ret: Any = None, statement: bool = False) -> Any:
        """A call of an operator."""
        raise NotImplementedError

    def _form(self, name: str, node: ast.Call) -> Any:
        """A call that stands for an expression of its own kind; None for one of an operator."""
        args = node.args
        if name in _FUNCTION_OF or name == "truncdiv":
            self.count(node, 2)
            a, b = self._pair(args[0], args[1], node)
            return self._built(_FUNCTION_OF.get(name, "Div"), a, b, node)
        match name:
            case "Select":
                self.count(node, 3)
                test = self.condition(args[0])
                a, b = self._pair(args[1], args[2], node)
                return tirx.Select(test, a, b, self.span)
            case "Ramp":
                self.count(node, 3)
                base, stride = self.index(args[0]), self.index(args[1])
                return tirx.Ramp(base, stride, self.integer(args[2]), self.span)
            case "Broadcast":
                self.count(node, 2)
                return tirx.Broadcast(self.expr(args[0]), self.integer(args[1]), self.span)
            case "Shuffle":
                self.count(node, 2)
                if not all(isinstance(arg, ast.Tuple) for arg in args):
                    raise Mistake(
                        "TL116", "T.Shuffle has a tuple of vectors and one of lanes", node
                    )
                vectors, lanes = ([self.expr(e) for e in a.elts] for a in args)  # type: ignore[attr-defined]
                return tirx.Shuffle(vectors, lanes, self.span)
            case "cast":
                self.count(node, 2)
                return tirx.Cast(self.dtype(args[1]), self.expr(args[0]), self.span)
            case "infinity":
                self.count(node, 1)
                return tirx.FloatImm(self.dtype(args[0]), float("inf"), self.span)
        return self._literal(name, node) if is_dtype(name) else None

    def _literal(self, name: str, node: ast.Call) -> Any:
        """`T.float16(1.0)`, and `T.float32x2(a, b)`."""
        if node.keywords or not node.args:
            raise Mistake("TL113", f"T.{name} has a value", node)
        if len(node.args) > 1:
            vectors = [self.expr(arg) for arg in node.args]
            lanes = [build.const(n, "int32", self.span) for n in range(len(vectors))]
            return tirx.Shuffle(vectors, lanes, self.span)
        value = self.number(node.args[0], required=False)
        if value is None:
            found = self.expr(node.args[0])
            return tirx.Cast(name, found, self.span)
        if build.is_float(name):
            return tirx.FloatImm(name, float(value), self.span)
        return self._checked(name, int(value), node)

    def number(self, node: ast.expr, required: bool = True) -> Any:
        """A number that is written out."""
        match node:
            case ast.Constant(value=bool() | int() | float() as value):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                found = self.number(operand, required)
                return None if found is None else -found
            case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str() as text)]):
                if text in ("inf", "-inf", "nan", "-nan"):
                    return float(text)
        if required:
            raise Mistake("TL116", f"`{ast.unparse(node)}` is no number", node)
        return None

    def integer(self, node: ast.expr) -> int:
        """An integer that is written out."""
        found = self.number(node)
        if isinstance(found, float):
            raise Mistake("TL116", f"`{ast.unparse(node)}` is no integer", node)
        return int(found)

    def text(self, node: ast.expr) -> str:
        """A string that is written out."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        raise Mistake("TL116", f"`{ast.unparse(node)}` is no string", node)

    def dtype(self, node: ast.expr) -> str:
        """The name of a dtype."""
        found = self.text(node)
        if not is_dtype(found):
            raise Mistake("TL230", f"there is no dtype {found!r}", node)
        return found

    def count(self, node: ast.Call, wanted: int) -> None:
        """Check how many arguments there are, none of them by name."""
        given = len(node.args) + len(node.keywords)
        if given != wanted or node.keywords:
            code = "TL113" if given < wanted else "TL114"
            raise Mistake(code, f"`{ast.unparse(node.func)}` takes {wanted} arguments, not {given}",
                          node)  # fmt: skip

    # --- regions and attributes ---

    def region(self, node: ast.expr) -> Any:
        """A box of a buffer: by its name all of it, or `A[i, j:j + 32]`."""
        place = self.site()
        if isinstance(node, ast.Name):
            buffer = self.buffer(node)
            pairs = [(build.const(0, build.dtype_of(d), self.span), d) for d in buffer.shape]
        elif isinstance(node, ast.Subscript):
            buffer = self.buffer(node.value)
            pairs = [self._range(i) for i in self.indices(buffer, node)]
        else:
            raise Mistake("TL116", f"`{ast.unparse(node)}` is no region of a buffer", node)
        return build.region(buffer, pairs, place)

    def _range(self, node: ast.expr) -> tuple[Any, Any]:
        if not isinstance(node, ast.Slice):
            low = self.index(node)
            return low, build.const(1, build.dtype_of(low), self.span)
        if node.step is not None:
            raise Mistake("TL224", "a slice has no step here", node)
        if node.upper is None:
            raise Mistake("TL226", "a slice has an end here", node)
        low = build.const(0, "int32", self.span) if node.lower is None else self.index(node.lower)
        extent = self.extent(node.lower, low, node.upper)
        if build.int_value(low) == 0 and not _begins_with(node.upper, node.lower):
            low = build.const(0, build.dtype_of(extent), self.span)
        return low, extent

    def extent(self, first: ast.expr | None, low: Any, stop: ast.expr) -> Any:
        """How far it is from `low`, which `first` says, to `stop`."""
        if _begins_with(stop, first):
            assert isinstance(stop, ast.BinOp)
            return self.index(stop.right)
        end = self.index(stop)
        if build.int_value(low) == 0:
            return end
        a, b = build.int_value(end), build.int_value(low)
        if a is not None and b is not None:
            return build.const(a - b, build.dtype_of(end), self.span)
        if build.dtype_of(end) != build.dtype_of(low):
            raise Mistake("TL233", f"bounds of {build.dtype_of(low)} and {build.dtype_of(end)}",
                          stop)  # fmt: skip
        return tirx.Sub(end, low, self.span)

    def value(self, node: ast.expr) -> Any:
        """An attribute: a literal, a tuple, a dict, or a layout."""
        match node:
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return [self.value(part) for part in parts]
            case ast.Dict(keys=keys, values=values):
                pairs = zip(keys, values, strict=True)
                return {self.text(k): self.value(v) for k, v in pairs if k is not None}
            case ast.Constant(value=None | bool() | int() | float() | str() as value):
                return value
            case ast.Call(func=func):
                name = language_name(func)
                if name in KINDS:
                    try:
                        return read_attached(node, str(name))
                    except (ValueError, TypeError, OverflowError, ZeroDivisionError) as error:
                        raise Mistake("TL117", str(error), node) from None
        return self.number(node)

    def operand(self, node: ast.expr, kind: Kind) -> Any:
        """An operand of a call, read as its kind says."""
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="T"), attr=word), args=[inner]):
                if word == "region":
                    return self.region(inner)
                if word == "load":
                    return self.expr(inner)
                if word == "buffer":
                    return self.buffer(inner)
        if kind == "region" or (kind == "either" and self._is_box(node)):
            return self.region(node)
        return self.expr(node)

    def _is_box(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            found = self.lookup(node.id, node)
            return bool(tirx.is_buffer_var(found)) and str(found.scope()) != VARIABLE
        if not isinstance(node, ast.Subscript):
            return False
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return any(isinstance(part, ast.Slice) for part in parts)


def _begins_with(stop: ast.expr, first: ast.expr | None) -> bool:
    """Whether `stop` is written `first + extent`."""
    if first is None or not isinstance(stop, ast.BinOp) or not isinstance(stop.op, ast.Add):
        return False
    return ast.dump(stop.left) == ast.dump(first)


def language_name(func: ast.expr) -> str | None:
    """`copy` of `T.copy`."""
    if (
        isinstance(func, ast.Attribute)
        and isinstance(func.value, ast.Name)
        and func.value.id == "T"
    ):
        return func.attr
    return None


def is_dtype(name: str) -> bool:
    """Whether there is a dtype of that name."""
    found = find_dtype(name)
    return found is not None and found.name == name


def _as_literal(found: Any, node: ast.expr, dtype: str, span: TirSpan) -> Any:
    """A number that is written without a dtype takes the one that is wanted."""
    plain = node.operand if isinstance(node, ast.UnaryOp) else node
    if not isinstance(plain, ast.Constant) or dtype_of(found) == dtype or build.lanes_of(dtype) > 1:
        return found
    if isinstance(found, tirx.IntImm) and dtype_of(found) != "bool" and dtype != "bool":
        if dtype.startswith(("int", "uint", "float", "bfloat")):
            try:
                return build.const(int(found.value), dtype, span)
            except Exception as error:  # whatever TVM raises for a number out of range
                message = f"{dtype} does not hold {int(found.value)}"
                raise Mistake("TL235", message, node) from error
    if isinstance(found, tirx.FloatImm) and build.is_float(dtype):
        return build.const(float(found.value), dtype, span)
    return found
