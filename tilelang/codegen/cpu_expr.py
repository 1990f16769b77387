"""How does a scalar or vector expression of lowered TIRX become LLVM instructions?

Floats narrower than float32 are computed in float32 and rounded after every operation. int32
arithmetic that feeds an address, a comparison or a loop bound is done in 64 bits unless it is
proved to fit: a value the user stores wraps as their dtype does, an index never does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilelang.codegen import cpu_types as types
from tilelang.codegen.cpu_bounds import INT32, Bounds, Interval
from tilelang.codegen.cpu_builder import CONTRACT, Builder, Val, floating, integer
from tilelang.codegen.cpu_calls import Calls
from tilelang.codegen.cpu_division import divide_by_invariant
from tilelang.codegen.cpu_element import Unsupported
from tilelang.codegen.cpu_memory import Memory, View
from tilelang.dtypes import DType

_FLOAT_OPS = {"Add": "fadd", "Sub": "fsub", "Mul": "fmul", "Div": "fdiv"}
_INT_OPS = {"Add": "add", "Sub": "sub", "Mul": "mul"}
_BIT_OPS = {"BitwiseAnd": "and", "BitwiseOr": "or", "BitwiseXor": "xor"}
_COMPARE = {"EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge"}


def dtype_of(expr: Any) -> DType:
    """The dtype of a TIRX expression."""
    return types.parse(str(expr.ty))


def mentions(e: Any, var: Any) -> bool:
    """Whether variable `var` occurs in expression `e`."""
    match type(e).__name__:
        case "Var":
            return bool(e.same_as(var))
        case "TensorLoad":
            parts = tuple(e.indices)
        case "Call":
            parts = tuple(e.args)
        case "Cast" | "Broadcast":
            parts = (e.value,)
        case "Select":
            parts = (e.condition, e.true_value, e.false_value)
        case "Ramp":
            parts = (e.base, e.stride)
        case "Shuffle":
            parts = tuple(e.vectors)
        case _:
            parts = (getattr(e, "a", None), getattr(e, "b", None))
    return any(mentions(p, var) for p in parts if p is not None)


class Expressions:
    """Emits expressions of one function; knows the values and ranges of variables in scope."""

    def __init__(self, b: Builder, memory: Memory, calls: Calls) -> None:
        self.b = b
        self.memory = memory
        self.bounds = Bounds()
        self.values: dict[Any, Val] = {}
        self.loop_var: Any = None  # of the innermost parallel loop, while inside it
        self.load_hook: Callable[[Any], Val] | None = None  # loads while a loop is one vector
        self._calls = calls
        self._rules: dict[str, Callable[[Any], Val]] = {
            "IntImm": self._literal, "FloatImm": self._literal, "Var": self._var,
            "Cast": self._cast, "Select": self._select, "TensorLoad": self._load,
            "Not": self._not, "BitwiseNot": self._bitnot, "And": self._and, "Or": self._or,
            "Ramp": self._ramp, "Broadcast": self._broadcast, "Shuffle": self._shuffle,
            "Let": self._let, "Call": self._call,
            **dict.fromkeys(("Add", "Sub", "Mul", "Div"), self._arithmetic),
            **dict.fromkeys(("FloorDiv", "FloorMod", "Mod"), self._division),
            **dict.fromkeys(("Min", "Max"), self._extremum),
            **dict.fromkeys(_BIT_OPS, self._bitwise),
            **dict.fromkeys(("LShift", "RShift"), self._shift),
            **dict.fromkeys(_COMPARE, self._compare),
        }  # fmt: skip

    # --- entry points ---

    def value(self, expr: Any) -> Val:
        """`expr` in the register form of its dtype."""
        rule = self._rules.get(type(expr).__name__)
        if rule is None:
            raise Unsupported(f"an expression of kind {type(expr).__name__}", expr)
        return rule(expr)

    def as_float(self, expr: Any) -> Val:
        """A float expression as float32 or float64."""
        return types.to_float(self.b, self.value(expr), dtype_of(expr))

    def index(self, expr: Any) -> Val:
        """An integer expression as i64, computed so that it cannot overflow."""
        b = self.b
        kind = type(expr).__name__
        if kind == "IntImm":
            return integer(int(expr.value), "i64")
        dtype = dtype_of(expr)
        if dtype.bits >= 64 or dtype.kind == "uint":
            return b.cast("zext" if dtype.kind == "uint" else "sext", self.value(expr), "i64")
        if kind == "Ramp":
            lanes = int(expr.lanes)
            steps = b.pack([integer(i, "i64") for i in range(lanes)])
            scaled = b.binary("mul", steps, self.index(expr.stride))
            return b.binary("add", scaled, self.index(expr.base))
        if kind == "Broadcast":
            return b.splat(self.index(expr.value), int(expr.lanes))
        if dtype.lanes == 1 and not self.bounds.fits_int32(expr):
            wide = self._wide(kind, expr)
            if wide is not None:
                return wide
        return b.cast("zext" if dtype.kind == "bool" else "sext", self.value(expr), "i64")

    def condition(self, expr: Any) -> Val:
        """`expr` as i1."""
        return types.convert(self.b, self.value(expr), dtype_of(expr), types.parse("bool"))

    def _wide(self, kind: str, e: Any) -> Val | None:
        b = self.b
        if kind in _INT_OPS:
            return b.binary(_INT_OPS[kind], self.index(e.a), self.index(e.b), "nsw ")
        if kind in ("Min", "Max"):
            return b.intrinsic(f"s{kind.lower()}", self.index(e.a), self.index(e.b))
        if kind in ("FloorDiv", "FloorMod"):
            return self._divide(kind, e, self.index(e.a), self.index(e.b))
        return None

    # --- leaves ---

    def _literal(self, e: Any) -> Val:
        dtype = dtype_of(e)
        if dtype.is_float and types.register(dtype) not in ("half", "float", "double"):
            return types.from_float(self.b, floating(float(e.value), "float"), dtype)
        return types.constant(e.value, dtype)

    def _var(self, e: Any) -> Val:
        found = self.values.get(e)
        if found is None:
            raise Unsupported(f"variable {e.name}, which nothing binds", e)
        return found

    def _let(self, e: Any) -> Val:
        self.bind(e.var, e.value)
        return self.value(e.body)

    def bind(self, var: Any, expr: Any) -> None:
        """From here on `var` has the value `expr` has now."""
        dtype = dtype_of(expr)
        if (dtype.is_integer or dtype.kind == "bool") and dtype.lanes == 1:
            self.bounds.bind(var, self.bounds.of(expr))
        self.values[var] = self.value(expr)

    # --- memory ---

    def place(self, view: View, indices: Sequence[Any]) -> tuple[Val, int]:
        """The element offset of an access, and how many consecutive elements it covers."""
        last: Any = indices[-1] if indices else None
        if type(last).__name__ == "Ramp" and type(last.stride).__name__ == "IntImm":
            plain = all(dtype_of(i).lanes == 1 for i in indices[:-1])
            if plain and int(last.stride.value) == 1 and view.strides[-1].ref == "1":
                starts = [self.index(i) for i in indices[:-1]] + [self.index(last.base)]
                return self.memory.offset(view, starts), int(last.lanes)
        return self.memory.offset(view, [self.index(i) for i in indices]), 1

    def _load(self, e: Any) -> Val:
        if self.load_hook is not None:
            return self.load_hook(e)
        view = self.memory.view(e.source)
        offset, lanes = self.place(view, list(e.indices))
        return self.memory.load(view, offset, lanes)

    # --- arithmetic ---

    def _is_invariant(self, divisor: Any) -> bool:
        """Whether all iterations of the innermost parallel loop divide by the same value."""
        if self.loop_var is None or not self.b.module.has_fma:
            return False
        if type(divisor).__name__ == "FloatImm":
            return False
        return not mentions(divisor, self.loop_var)

    def _arithmetic(self, e: Any) -> Val:
        kind, dtype = type(e).__name__, dtype_of(e)
        b = self.b
        if dtype.is_float:
            x, y = self.as_float(e.a), self.as_float(e.b)
            if kind == "Div" and y.base == "float" and self._is_invariant(e.b):
                result = divide_by_invariant(b, x, y)
            else:
                result = b.binary(_FLOAT_OPS[kind], x, y, CONTRACT)
            return types.from_float(b, result, dtype)
        if kind == "Div":
            return self._divide("Div", e, self.value(e.a), self.value(e.b))
        proved = dtype.base == "int32" and dtype.lanes == 1 and self.bounds.of(e).within(INT32)
        flags = "nsw " if proved else ""
        result = b.binary(_INT_OPS[kind], self.value(e.a), self.value(e.b), flags)
        return types.wrap_nibble(b, result, dtype) if dtype.bits < 8 else result

    def _division(self, e: Any) -> Val:
        dtype = dtype_of(e)
        if dtype.is_float:
            b = self.b
            result = b.binary("frem", self.as_float(e.a), self.as_float(e.b))
            return types.from_float(b, result, dtype)
        return self._divide(type(e).__name__, e, self.value(e.a), self.value(e.b))

    def _divide(self, kind: str, e: Any, x: Val, y: Val) -> Val:
        """Integer division by what may be zero: never traps, and yields 0 or x there."""
        b, dtype = self.b, dtype_of(e)
        floor, quotient = kind.startswith("Floor"), kind.endswith("Div")
        divisor = self.bounds.of(e.b) if dtype.lanes == 1 else Interval(-1, 1)
        constant = divisor.constant
        if floor and constant and constant > 0 and constant & (constant - 1) == 0:
            if dtype.kind == "int" and quotient:
                return b.binary("ashr", x, integer(constant.bit_length() - 1, x.base))
            if not quotient:
                return b.binary("and", x, integer(constant - 1, x.base))
        if not constant:
            zero = integer(0, y.base, y.lanes)
            safe = b.select(b.compare("eq", y, zero), integer(1, y.base, y.lanes), y)
        else:
            safe = y
        dividend = self.bounds.of(e.a) if dtype.lanes == 1 else Interval(-1, 1)
        if dtype.kind == "uint" or (dividend.low >= 0 and divisor.low >= 0):
            return b.binary("udiv" if quotient else "urem", x, safe)
        return self._divide_signed(x, safe, floor, quotient, constant)

    def _divide_signed(
        self, x: Val, y: Val, floor: bool, quotient: bool, constant: int | None
    ) -> Val:
        b, base = self.b, x.base
        if constant is None:
            # The one quotient that does not fit, lowest / -1, traps; widen, or dodge it.
            if base == "i64":
                minus = b.compare("eq", y, integer(-1, base, y.lanes))
                low = b.compare("eq", x, integer(-(1 << 63), base, x.lanes))
                y = b.select(b.binary("and", minus, low), integer(1, base, y.lanes), y)
            else:
                x, y = b.cast("sext", x, "i64"), b.cast("sext", y, "i64")
        q, r = b.binary("sdiv", x, y), b.binary("srem", x, y)
        if floor:
            lanes = q.lanes
            zero = integer(0, r.base, lanes)
            uneven = b.compare("ne", r, zero)
            differ = b.compare("slt", b.binary("xor", r, y), zero)
            fix = b.binary("and", uneven, differ)
            q = b.binary("add", q, b.cast("sext", fix, q.base))
            r = b.binary("add", r, b.select(fix, b.splat(y, lanes), zero))
        return b.cast("trunc", q if quotient else r, base)

    def _extremum(self, e: Any) -> Val:
        b, dtype = self.b, dtype_of(e)
        name = type(e).__name__.lower()
        if dtype.is_float:
            x, y = b.same_lanes(self.as_float(e.a), self.as_float(e.b))
            return types.from_float(b, types.extremum(b, name, x, y), dtype)
        sign = "s" if dtype.kind == "int" else "u"
        x, y = b.same_lanes(self.value(e.a), self.value(e.b))
        if dtype.kind == "bool":
            return b.binary("and" if name == "min" else "or", x, y)
        return b.intrinsic(sign + name, x, y)

    def _bitwise(self, e: Any) -> Val:
        return self.b.binary(_BIT_OPS[type(e).__name__], self.value(e.a), self.value(e.b))

    def _shift(self, e: Any) -> Val:
        b, dtype = self.b, dtype_of(e)
        x, y = self.value(e.a), self.value(e.b)
        if type(e.b).__name__ != "IntImm":
            y = b.binary("and", y, integer(int(x.base[1:]) - 1, y.base))
        if type(e).__name__ == "LShift":
            result = b.binary("shl", x, y)
            return types.wrap_nibble(b, result, dtype) if dtype.bits < 8 else result
        return b.binary("ashr" if dtype.kind == "int" else "lshr", x, y)

    def _compare(self, e: Any) -> Val:
        b, dtype = self.b, dtype_of(e.a)
        name = _COMPARE[type(e).__name__]
        if dtype.is_float:
            predicate = "une" if name == "ne" else "o" + name
            return b.compare(predicate, self.as_float(e.a), self.as_float(e.b))
        narrow = dtype.base == "int32" and dtype.lanes == 1
        if narrow and not (self.bounds.fits_int32(e.a) and self.bounds.fits_int32(e.b)):
            x, y = self.index(e.a), self.index(e.b)
        else:
            x, y = self.value(e.a), self.value(e.b)
        if name not in ("eq", "ne"):
            name = ("s" if dtype.kind == "int" else "u") + name
        return b.compare(name, x, y)

    # --- logic and selection ---

    def _not(self, e: Any) -> Val:
        return self.b.binary("xor", self.condition(e.a), integer(1, "i1"))

    def _bitnot(self, e: Any) -> Val:
        x = self.value(e.a)
        result = self.b.binary("xor", x, integer(-1, x.base))
        dtype = dtype_of(e)
        return types.wrap_nibble(self.b, result, dtype) if dtype.bits < 8 else result

    def _and(self, e: Any) -> Val:
        return self._short_circuit(e, "and")

    def _or(self, e: Any) -> Val:
        return self._short_circuit(e, "or")

    def _short_circuit(self, e: Any, op: str) -> Val:
        b = self.b
        first = self.condition(e.a)
        if dtype_of(e).lanes > 1 or self.is_safe(e.b):
            return b.binary(op, first, self.condition(e.b))
        other = integer(op == "or", "i1")
        if op == "and":
            return self.choose(first, lambda: self.condition(e.b), lambda: other)
        return self.choose(first, lambda: other, lambda: self.condition(e.b))

    def choose(self, condition: Val, then: Callable[[], Val], orelse: Callable[[], Val]) -> Val:
        """The value of one of two computations, only that one being made."""
        b = self.b
        yes, no, done = b.label("then"), b.label("else"), b.label("join")
        b.branch_if(condition, yes, no)
        b.open(yes)
        x = then()
        from_yes = b.block
        b.branch(done)
        b.open(no)
        y = orelse()
        from_no = b.block
        b.open(done)
        text = f"phi {x.type} [ {x.ref}, %{from_yes} ], [ {y.ref}, %{from_no} ]"
        return b.emit(text, x.base, x.lanes)

    def _select(self, e: Any) -> Val:
        x, y = self.value(e.true_value), self.value(e.false_value)
        return self.b.select(self.condition(e.condition), x, y)

    def lazy_select(self, condition: Any, true: Any, false: Any) -> Val:
        """`true if condition else false`, evaluating one side when the other could fault."""
        test = self.condition(condition)
        if test.lanes > 1 or (self.is_safe(true) and self.is_safe(false)):
            return self.b.select(test, self.value(true), self.value(false))
        return self.choose(test, lambda: self.value(true), lambda: self.value(false))

    def is_safe(self, expr: Any) -> bool:
        """Whether evaluating `expr` needlessly does no harm and costs little."""
        kind = type(expr).__name__
        match kind:
            case "IntImm" | "FloatImm" | "Var":
                return True
            case "TensorLoad":
                view = self.memory.view(expr.source)
                return all(
                    extent and dtype_of(i).lanes == 1
                    and self.bounds.of(i).within(Interval(0, extent - 1))
                    for i, extent in zip(expr.indices, view.extents, strict=True)
                )  # fmt: skip
            case "Cast" | "Broadcast":
                return self.is_safe(expr.value)
            case "Not" | "BitwiseNot":
                return self.is_safe(expr.a)
            case "Select":
                parts = (expr.condition, expr.true_value, expr.false_value)
                return all(self.is_safe(p) for p in parts)
            case "Call":
                cheap = str(expr.op.name) in ("tirx.fabs", "tirx.isnan", "prim.if_then_else")
                return cheap and all(self.is_safe(a) for a in expr.args)
            case "Ramp" | "Shuffle" | "Let":
                return False
            case _:
                return self.is_safe(expr.a) and self.is_safe(expr.b)

    # --- conversions and vectors ---

    def _cast(self, e: Any) -> Val:
        return types.convert(self.b, self.value(e.value), dtype_of(e.value), dtype_of(e))

    def _ramp(self, e: Any) -> Val:
        b, lanes = self.b, int(e.lanes)
        base = self.value(e.base)
        steps = b.pack([integer(i, base.base) for i in range(lanes)])
        return b.binary("add", b.binary("mul", steps, self.value(e.stride)), base)

    def _broadcast(self, e: Any) -> Val:
        return self.b.splat(self.value(e.value), int(e.lanes))

    def _shuffle(self, e: Any) -> Val:
        b = self.b
        vectors = [self.value(v) for v in e.vectors]
        lanes = [b.lane(v, i) for v in vectors for i in range(v.lanes)]
        return b.pack([lanes[int(i.value)] for i in e.indices])

    def _call(self, e: Any) -> Val:
        return self._calls.value(self, e)
