"""How is a TIRX expression written in C?

With the parentheses it needs and no more; mixtures of shifts and bit operations with arithmetic
get them anyway, since compilers warn there. Types follow the IR: narrow integers wrap, formats
without arithmetic go through float.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy

from tilelang.codegen.c_calls import Calls
from tilelang.codegen.c_names import Names
from tilelang.codegen.c_text import (
    BIT_AND,
    BITWISE,
    COMPARISONS,
    EQUALITY,
    LOGICAL,
    OPERATORS,
    OR,
    POSTFIX,
    PRODUCT,
    SHIFT,
    SUM,
    TERNARY,
    UNARY,
    Unsupported,
    c_string,
    enclosed,
)  # fmt: skip
from tilelang.codegen.dialect import BUILTIN, NARROW, PACKED, STORAGE_ONLY, Dialect, parse, per_byte
from tilelang.dtypes import DType
from tilelang.ir import build, tirx
from tilelang.ir.flatten import flat_index


class Expressions:
    """Prints the expressions of one kernel."""

    def __init__(self, dialect: Dialect, names: Names, index_bits: int = 32) -> None:
        self.dialect = dialect
        self.names = names
        self.analyzer = tirx.Analyzer()
        self.index_bits = index_bits
        self.headers: dict[str, None] = {}
        self.defines: dict[str, None] = {}
        # Global buffers: the widest access in bytes, and which are written.
        self.alignment: dict[Any, int] = {}
        self.written: set[Any] = set()
        # Views, with the buffer whose storage each looks at.
        self.storage: dict[Any, Any] = {}
        self.calls = Calls(self)
        # What a load is printed as instead, while a loop is printed lane by lane.
        self.load_hook: Callable[[Any], str | None] | None = None

    def expr(self, e: Any, parent: int = 0) -> str:
        """`e` inside an operator of precedence `parent`."""
        kind = type(e).__name__
        method = getattr(self, f"_{kind}", None)
        if method is not None:
            text: str = method(e, parent)
            return text
        if kind in OPERATORS or kind in ("FloorDiv", "FloorMod", "Min", "Max"):
            return self._binary(e, kind, parent)
        raise Unsupported(f"the expression {kind}", e)

    # --- types ---

    def dtype(self, e: Any) -> DType:
        return parse(build.dtype_of(e))

    def type_name(self, dtype: DType, node: Any) -> str:
        """The type of a value of `dtype`, its header noted; refuses a dtype without one."""
        found = self.dialect.type_name(dtype)
        if found is None:
            raise Unsupported(f"dtype {dtype}", node)
        header = self.dialect.type_headers.get(dtype.base)
        if header is not None:
            self.headers[header] = None
        return found

    def memory_type(self, dtype: DType, node: Any) -> str:
        """The type of an element in memory: bytes for elements that share them."""
        if per_byte(dtype) > 1:
            self.headers["packed.h"] = None
            return self.type_name(parse("uint8"), node)
        return self.type_name(dtype, node)

    # --- memory ---

    def offset(self, buffer: Any, indices: Any, span: Any = None) -> str:
        """The flat offset of an element, as text."""
        places = list(indices)
        if len(places) == 1 and not buffer.strides:
            flat = places[0]
        else:
            flat = flat_index(buffer, places, span, self.index_bits)
        shared = per_byte(parse(str(buffer.dtype)))
        if shared > 1:
            count = build.const(shared, build.dtype_of(flat))
            flat = self.analyzer.simplify(tirx.FloorDiv(flat, count))
        return self.expr(flat)

    def element(self, buffer: Any, indices: Any, node: Any) -> str:
        """An element as something that can be read or assigned."""
        self._touch(buffer, 1)
        if str(buffer.scope()) == "local.var":
            return self.names.use(buffer)
        return f"{self.names.use(buffer)}[{self.offset(buffer, indices, node.span)}]"

    def pointer(self, buffer: Any, indices: Any, node: Any, lanes: int = 1) -> str:
        """The address of an element, through which `lanes` elements are accessed at once."""
        self._touch(buffer, lanes)
        if str(buffer.scope()) == "local.var":
            return f"&{self.names.use(buffer)}"
        return f"&{self.names.use(buffer)}[{self.offset(buffer, indices, node.span)}]"

    def shared_place(self, buffer: Any, indices: Any, node: Any, lanes: int) -> str:
        """Where in shared memory an element lies, for instructions on `lanes` elements.

        Where the version in force begins, the same for all threads, stays apart from the rest,
        which is the same in all iterations.
        """
        self._touch(buffer, lanes)
        base, first = self.names.use(buffer), indices[-1]
        if len(indices) == 1 and isinstance(first, tirx.Add) and isinstance(first.a, tirx.Var):
            if per_byte(parse(str(buffer.dtype))) == 1:
                base, indices = f"{base} + {self.names.use(first.a)}", [first.b]
        return f"tl::at({base}, {self.offset(buffer, indices, node.span)})"

    def packed_element(self, buffer: Any, indices: Any, node: Any) -> tuple[str, str, str]:
        """Tag, storage and element number of a sub-byte element."""
        self._touch(buffer, 1)
        self.headers["packed.h"] = None
        flat = flat_index(buffer, list(indices), node.span, self.index_bits)
        return (f"tl::packed_{buffer.dtype}", self.names.use(buffer), self.expr(flat))

    def _touch(self, buffer: Any, lanes: int) -> None:
        dtype = parse(str(buffer.dtype))
        width = min(16, max(1, dtype.bits * dtype.lanes * lanes // 8))
        self.type_name(dtype, buffer)
        place: Any | None = buffer
        while place is not None:
            self.alignment[place] = max(width, self.alignment.get(place, 1))
            place = self.storage.get(place)

    # --- leaves ---

    def _Var(self, e: Any, parent: int) -> str:
        return self.names.use(e)

    def _IntImm(self, e: Any, parent: int) -> str:
        return self.integer(int(e.value), self.dtype(e), e)

    def integer(self, value: int, dtype: DType, node: Any) -> str:
        """An integer or bool literal."""
        match dtype.base:
            case "bool":
                return "true" if value else "false"
            case "int32":
                return "(-2147483647 - 1)" if value == -(1 << 31) else str(value)
            case "uint32":
                return f"{value & 0xFFFFFFFF}u"
            case "int64":
                smallest = value == -(1 << 63)
                long = self.dialect.long_suffix
                return f"(-9223372036854775807{long} - 1)" if smallest else f"{value}{long}"
            case "uint64":
                return f"{value & 0xFFFFFFFFFFFFFFFF}u{self.dialect.long_suffix}"
            case _:
                return f"{self.type_name(dtype, node)}({value})"

    def _FloatImm(self, e: Any, parent: int) -> str:
        return self.floating(float(e.value), self.dtype(e), e)

    def floating(self, value: float, dtype: DType, node: Any) -> str:
        """A floating-point literal, the shortest text that reads back the same."""
        name = self.type_name(dtype, node)
        if dtype.base == "float64":
            text = repr(value)
            if value != value or value in (float("inf"), float("-inf")):
                text = _special(value, "double")
            return text
        if value != value or value in (float("inf"), float("-inf")):
            text = _special(value, "float")
        else:
            text = f"{numpy.float32(value)!s}f"
        if dtype.base in ("float32", "tfloat32"):
            return text
        if dtype.base in _DIRECT:
            return f"{name}({text})"
        return self.cast_text(text, parse("float32"), dtype, name)

    def _StringImm(self, e: Any, parent: int) -> str:
        return c_string(str(e.value))

    def _TensorLoad(self, e: Any, parent: int) -> str:
        if self.load_hook is not None and (text := self.load_hook(e)) is not None:
            return text
        buffer, indices = e.source, list(e.indices)
        dtype = parse(str(buffer.dtype))
        lanes = build.lanes_of(build.dtype_of(e)) // dtype.lanes
        if lanes > 1:
            return self._vector_load(e, buffer, indices, lanes)
        if per_byte(dtype) > 1:
            tag, storage, index = self.packed_element(buffer, indices, e)
            return f"tl::load_packed<{tag}>({storage}, {index})"
        return self.element(buffer, indices, e)

    def _vector_load(self, e: Any, buffer: Any, indices: list[Any], lanes: int) -> str:
        ramp = indices[-1]
        if not isinstance(ramp, tirx.Ramp) or not build.is_int(ramp.stride, 1):
            raise Unsupported("a vector of elements that are not neighbours", e)
        place = [*indices[:-1], ramp.base]
        aligned = self.is_multiple(ramp.base, lanes)
        function = "load" if aligned else "load_elements"
        return f"tl::{function}<{lanes}>({self.pointer(buffer, place, e, lanes if aligned else 1)})"

    def is_multiple(self, e: Any, divisor: int) -> bool:
        """Whether an integer is certainly a multiple of `divisor`."""
        known = self.analyzer.modular_set(e)
        return int(known.coeff) % divisor == 0 and int(known.base) % divisor == 0

    # --- operators ---

    def _binary(self, e: Any, kind: str, parent: int) -> str:
        dtype = self.dtype(e.a)
        if kind in ("Min", "Max"):
            return self._result(f"tl::{kind.lower()}({self._operands(e)})", kind, dtype, e, parent)
        if kind in ("FloorDiv", "FloorMod"):
            return self._floor(e, kind, dtype, parent)
        if kind == "Mod" and dtype.is_float:
            self.headers["math.h"] = None
            return f"tl::fmod({self._operands(e)})"
        if kind in ("Add", "Sub") and dtype.lanes == 1 and (text := self._signed(e, kind, parent)):
            return text
        if kind == "Mul" and _is_number(e.b, -1) and self._computes(dtype):
            return enclosed(f"-{self.expr(e.a, UNARY)}", UNARY, parent)
        operator, level = OPERATORS[kind]
        return self._infix(e, operator, level, kind, dtype, parent)

    def _infix(
        self, e: Any, operator: str, level: int, kind: str, dtype: DType, parent: int
    ) -> str:
        left, right = level, level + 1
        if kind in BITWISE or kind in LOGICAL:
            # The same operator may repeat on the left; any other mixture is bracketed.
            left = level if type(e.a) is type(e) else (UNARY if kind in BITWISE else EQUALITY)
            right = UNARY if kind in BITWISE else EQUALITY
        elif kind == "Add" and dtype.is_integer and dtype.base not in NARROW:
            right = level  # sums of integers mean the same however they are bracketed
        operands = [self._operand(x, dtype, n) for x, n in ((e.a, left), (e.b, right))]
        if dtype.base == "int64" and kind in ("Add", "Sub", "Mul"):
            operands = self._widened(e, operands, (left, right))
        text = f"{operands[0]} {operator} {operands[1]}"
        if kind in COMPARISONS or kind in LOGICAL:
            return enclosed(text, level, parent)
        return self._result(text, kind, dtype, e, parent, level)

    def _widened(self, e: Any, operands: list[str], levels: tuple[int, int]) -> list[str]:
        """Operands of 64-bit arithmetic: C widens one side when the other is wide already."""
        for one, other in ((1, 0), (0, 1)):
            side, stays = (e.a, e.b)[one], (e.a, e.b)[other]
            if build.int_value(stays) is not None:
                continue
            value = build.int_value(side)
            if value is not None and 0 <= value < 1 << 31:
                operands[one] = str(value)
                break
            if isinstance(side, tirx.Cast) and self.dtype(side.value).base == "int32":
                if one == 1 or not isinstance(stays, tirx.Cast):
                    operands[one] = self.expr(side.value, levels[one])
                    break
        return operands

    def _operand(self, e: Any, dtype: DType, level: int) -> str:
        if dtype.base in STORAGE_ONLY:
            return self.cast_text(self.expr(e), dtype, parse("float32").with_lanes(dtype.lanes))
        return self.expr(e, level)

    def _operands(self, e: Any) -> str:
        return ", ".join(self._operand(x, self.dtype(x), 0) for x in (e.a, e.b))

    def _result(
        self, text: str, kind: str, dtype: DType, e: Any, parent: int, level: int = POSTFIX
    ) -> str:
        """What an operation on operands of `dtype` gives, as a value of `dtype`."""
        if dtype.base in STORAGE_ONLY:
            wide = parse("float32").with_lanes(dtype.lanes)
            return self.cast_text(text, wide, dtype, self.type_name(dtype, e))
        if kind in ("Min", "Max"):
            return text
        if dtype.base in PACKED:
            return f"tl::wrap<{dtype.bits}>(tl::{PACKED[dtype.base]}({text}))"
        if dtype.base in NARROW and dtype.lanes == 1:
            return f"{self.type_name(dtype, e)}({text})"
        return enclosed(text, level, parent)

    def _signed(self, e: Any, kind: str, parent: int) -> str | None:
        """`a` for `a + 0`, `a - 1` for `a + -1`, and `-a` for `0 - a`."""
        if not self._computes(self.dtype(e)) or self.dtype(e).base in (*NARROW, *PACKED):
            return None
        value = build.int_value(e.b)
        if value == 0:
            return self.expr(e.a, parent)
        if kind == "Add" and build.is_int(e.a, 0):
            return self.expr(e.b, parent)
        if value is not None and -(1 << 31) < value < 0 and self.dtype(e).kind == "int":
            other = "-" if kind == "Add" else "+"
            literal = self.integer(-value, self.dtype(e), e)
            return enclosed(f"{self.expr(e.a, SUM)} {other} {literal}", SUM, parent)
        if kind == "Sub" and build.is_int(e.a, 0):
            return enclosed(f"-{self.expr(e.b, UNARY)}", UNARY, parent)
        return None

    def _computes(self, dtype: DType) -> bool:
        return dtype.base not in STORAGE_ONLY

    def _floor(self, e: Any, kind: str, dtype: DType, parent: int) -> str:
        """C truncates; that is the same where nothing is negative."""
        divisor = build.int_value(e.b)
        if dtype.kind == "uint" or (self._not_negative(e.a) and self._positive(e.b)):
            operator = "/" if kind == "FloorDiv" else "%"
            return self._infix(e, operator, PRODUCT, kind, dtype, parent)
        if divisor is not None and divisor > 0 and divisor & (divisor - 1) == 0:
            if kind == "FloorDiv":
                text = f"{self.expr(e.a, UNARY)} >> {divisor.bit_length() - 1}"
                return self._result(text, kind, dtype, e, parent, SHIFT)
            mask = self.integer(divisor - 1, dtype, e)
            return self._result(
                f"{self.expr(e.a, UNARY)} & {mask}", kind, dtype, e, parent, BIT_AND
            )
        function = "floordiv" if kind == "FloorDiv" else "floormod"
        return f"tl::{function}({self.expr(e.a)}, {self.expr(e.b)})"

    def _not_negative(self, e: Any) -> bool:
        return int(self.analyzer.const_int_bound(e).min_value) >= 0

    def _positive(self, e: Any) -> bool:
        return int(self.analyzer.const_int_bound(e).min_value) > 0

    def _Not(self, e: Any, parent: int) -> str:
        return enclosed(f"!{self.expr(e.a, UNARY)}", UNARY, parent)

    def _BitwiseNot(self, e: Any, parent: int) -> str:
        return self._result(f"~{self.expr(e.a, UNARY)}", "", self.dtype(e), e, parent, UNARY)

    def _Select(self, e: Any, parent: int) -> str:
        return self.choice(e.condition, e.true_value, e.false_value, parent)

    def choice(self, condition: Any, true: Any, false: Any, parent: int) -> str:
        """`condition ? true : false`; lane by lane for a vector condition."""
        if self.dtype(condition).lanes > 1:
            parts = ", ".join(self.expr(x) for x in (condition, true, false))
            return f"tl::select({parts})"
        test = self.expr(condition, OR)
        text = f"{test} ? {self.expr(true, TERNARY + 1)} : {self.expr(false, TERNARY)}"
        return enclosed(text, TERNARY, parent)

    # --- conversions ---

    def _Cast(self, e: Any, parent: int) -> str:
        source, target = self.dtype(e.value), self.dtype(e)
        name = self.type_name(target, e)
        if target.lanes == 1 and {source.base, target.base} <= BUILTIN:
            # C++ leaves open what is out of range; the hardware does not, for the commonest pair.
            defined = (source.base, target.base) == ("float32", "int32")
            if not source.is_float or not target.is_integer or defined:
                return f"{name}({self.expr(e.value)})"
        return self.cast_text(self.expr(e.value), source, target, name)

    def cast_text(self, text: str, source: DType, target: DType, name: str | None = None) -> str:
        """`text` of dtype `source` as `target`, called `name`."""
        scalar = target.scalar
        name = self.dialect.type_name(scalar) if name is None or target.lanes > 1 else name
        if target.lanes == 1 and target.base in ("float32",) and source.base in _DIRECT:
            return f"float({text})"
        if target.base in PACKED and target.base != "float4_e2m1fn":
            inner = self.dialect.type_name(parse(PACKED[target.base]))
            return f"tl::wrap<{target.bits}>(tl::cast<{inner}>({text}))"
        return f"tl::cast<{name}>({text})"

    # --- vectors ---

    def _Broadcast(self, e: Any, parent: int) -> str:
        return f"tl::broadcast<{int(e.lanes)}>({self.expr(e.value)})"

    def _Shuffle(self, e: Any, parent: int) -> str:
        vectors, order = list(e.vectors), [build.int_value(i) for i in e.indices]
        if any(self.dtype(v).lanes > 1 for v in vectors):
            if len(vectors) == 1 and len(order) == 1:
                return f"{self.expr(vectors[0], POSTFIX)}[{order[0]}]"
            raise Unsupported("a shuffle of vectors", e)
        lanes = ", ".join(self.expr(vectors[n]) for n in order if n is not None)
        return f"{self.type_name(self.dtype(e), e)}{{{lanes}}}"

    def _Ramp(self, e: Any, parent: int) -> str:
        base, stride = self.expr(e.base), self.expr(e.stride)
        return f"tl::ramp<{int(e.lanes)}>({base}, {stride})"

    # --- calls ---

    def _Call(self, e: Any, parent: int) -> str:
        return self.calls.expression(e, parent)


# Class types that are made from a float, and convert to one, by themselves.
_DIRECT: Final = frozenset({"float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"})


def _special(value: float, name: str) -> str:
    if value != value:
        return f"tl::nan<{name}>()"
    return f"tl::infinity<{name}>()" if value > 0 else f"-tl::infinity<{name}>()"


def _is_number(e: Any, value: float) -> bool:
    return isinstance(e, (tirx.FloatImm, tirx.IntImm)) and float(e.value) == value
