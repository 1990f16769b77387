"""What does each operator call of lowered TIRX become on the CPU?

Mathematics goes to `cpu_math`; atomics are LLVM's where the processor has them and a
compare-and-swap loop for the formats it does not compute with; printing and assertions call out
of the kernel. A call without a meaning here is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from tilelang.codegen import cpu_math
from tilelang.codegen import cpu_types as types
from tilelang.codegen.cpu_atomics import atomic_call
from tilelang.codegen.cpu_builder import Builder, Val, integer
from tilelang.codegen.cpu_element import VOID, Unsupported, attr_of, element_of
from tilelang.dtypes import DType

if TYPE_CHECKING:
    from tilelang.codegen.cpu_expr import Expressions

_SPACES = ("tirx", "prim", "tl")

# Barriers within one block mean nothing once its threads have become loops.
_NO_EFFECT = frozenset(
    {"sync_threads", "sync_warp", "fence_proxy_async", "assume", "annotate", "likely"}
)


class Calls:
    """Emits operator calls; `fail` leaves the kernel with a message, `leave` ends the block."""

    def __init__(
        self,
        b: Builder,
        fail: Callable[[Val, str, Any], None],
        leave: Callable[[], None],
    ) -> None:
        self.b = b
        self._fail = fail
        self._leave = leave

    def value(self, x: Expressions, e: Any) -> Val:
        """The result of call `e`; `VOID` when it has none."""
        name = str(getattr(e.op, "name", e.op))
        space, _, short = name.partition(".")
        method = getattr(self, f"op_{short}", None) if space in _SPACES else None
        if method is not None:
            return method(x, e)
        if short in _NO_EFFECT:
            return VOID
        if short.startswith("atomic_"):
            return atomic_call(x, e, short.removeprefix("atomic_"))
        if cpu_math.knows(short):
            return self._math(x, e, short)
        raise Unsupported(f"T.{short}", e)

    # --- values ---

    def _math(self, x: Expressions, e: Any, name: str) -> Val:
        b, dtype = self.b, types.parse(str(e.ty))
        if not dtype.is_float:
            raise Unsupported(f"T.{name} of {dtype}", e)
        args = [
            types.convert(b, x.value(a), types.parse(str(a.ty)), _computed(dtype)) for a in e.args
        ]
        result = cpu_math.math_call(b, name, args)
        assert result is not None
        return types.from_float(b, result, dtype)

    def op_pow(self, x: Expressions, e: Any) -> Val:
        exponent = getattr(e.args[1], "value", None)
        dtype = types.parse(str(e.ty))
        if dtype.is_float and exponent in (2, 3, 4):
            base = x.as_float(e.args[0])
            square = self.b.binary("fmul", base, base)
            result = {2: square, 3: None, 4: None}[int(exponent)]
            if result is None:
                result = self.b.binary("fmul", square, base if exponent == 3 else square)
            return types.from_float(self.b, result, dtype)
        if dtype.is_integer:
            return self._integer_power(x, e, dtype)
        return self._math(x, e, "pow")

    def _integer_power(self, x: Expressions, e: Any, dtype: DType) -> Val:
        exponent = getattr(e.args[1], "value", None)
        if exponent is None or not 0 <= int(exponent) <= 64:
            raise Unsupported("an integer power with an exponent that is no small constant", e)
        base = x.value(e.args[0])
        result = integer(1, base.base, base.lanes)
        for _ in range(int(exponent)):
            result = self.b.binary("mul", result, base)
        return types.wrap_nibble(self.b, result, dtype) if dtype.bits < 8 else result

    def op_if_then_else(self, x: Expressions, e: Any) -> Val:
        return x.lazy_select(*e.args)

    def op_likely(self, x: Expressions, e: Any) -> Val:
        return x.value(e.args[0])

    def op_isnan(self, x: Expressions, e: Any) -> Val:
        value = x.as_float(e.args[0])
        return self.b.compare("uno", value, value)

    def op_popcount(self, x: Expressions, e: Any) -> Val:
        source, target = types.parse(str(e.args[0].ty)), types.parse(str(e.ty))
        count = self.b.intrinsic("ctpop", x.value(e.args[0]))
        return types.convert(self.b, count, _unsigned(source), target)

    def op_clz(self, x: Expressions, e: Any) -> Val:
        value = x.value(e.args[0])
        lanes = f"v{value.lanes}" if value.lanes > 1 else ""
        name = f"llvm.ctlz.{lanes}{value.base}"
        count = self.b.call(name, value.base, [value, integer(0, "i1")], value.lanes)
        source, target = types.parse(str(e.args[0].ty)), types.parse(str(e.ty))
        return types.convert(self.b, count, _unsigned(source), target)

    def op_reinterpret(self, x: Expressions, e: Any) -> Val:
        value, b = x.value(e.args[0]), self.b
        name = str(e.ty)
        if type(e.ty).__name__ == "PointerType":
            return b.cast("inttoptr", value, "ptr")
        target = types.parse(name)
        base = types.register(target)
        if value.base == "i1":
            value = b.cast("zext", value, "i8")
        if value.lanes == target.lanes:
            return b.bitcast(value, base)
        wide = Val("", base, target.lanes).type
        return b.emit(f"bitcast {value} to {wide}", base, target.lanes)

    def op_extract_lane(self, x: Expressions, e: Any) -> Val:
        return self.b.lane(x.value(e.args[0]), int(e.args[1].value))

    def op_make_vector(self, x: Expressions, e: Any) -> Val:
        return self.b.pack([x.value(a) for a in e.args])

    def op_bfe(self, x: Expressions, e: Any) -> Val:
        """Bits [position, position + length) of an integer."""
        b, dtype = self.b, types.parse(str(e.args[0].ty))
        value = x.value(e.args[0])
        start, length = (
            types.convert(b, x.value(a), types.parse(str(a.ty)), dtype) for a in e.args[1:3]
        )
        shifted = b.binary("ashr" if dtype.kind == "int" else "lshr", value, start)
        one = integer(1, value.base)
        mask = b.binary("sub", b.binary("shl", one, length), one)
        return b.binary("and", shifted, mask)

    def op_dp4a(self, x: Expressions, e: Any) -> Val:
        """The dot product of four packed int8 pairs, added to an int32."""
        b = self.b
        sides = [b.emit(f"bitcast {x.value(a)} to <4 x i8>", "i8", 4) for a in e.args[:2]]
        wide = [b.cast("sext", side, "i32") for side in sides]
        product = b.binary("mul", *wide)
        total = b.call("llvm.vector.reduce.add.v4i32", "i32", [product])
        return b.binary("add", total, x.value(e.args[2])) if len(e.args) > 2 else total

    def op_buffer_data(self, x: Expressions, e: Any) -> Val:
        return x.memory.pointer(e.args[0])

    def op_address_of(self, x: Expressions, e: Any) -> Val:
        view, offset = element_of(x, e.args[0])
        return x.memory.element(view, offset)

    op_access_ptr = op_address_of

    def op_isnullptr(self, x: Expressions, e: Any) -> Val:
        pointer = x.value(e.args[0])
        return self.b.emit(f"icmp eq {pointer}, null", "i1")

    def op_call_extern(self, x: Expressions, e: Any) -> Val:
        name = str(e.args[0].value)
        args = [x.value(a) for a in e.args[1:]]
        if str(e.ty) in ("void", ""):
            callee = self.b.module.declare(name, "void", [a.type for a in args])
            self.b.do(f"call void {callee}({', '.join(map(str, args))})")
            return VOID
        dtype = types.parse(str(e.ty))
        return self.b.call(name, types.register(dtype), args, dtype.lanes)

    op_call_pure_extern = op_call_extern

    # --- effects ---

    def op_thread_return(self, x: Expressions, e: Any) -> Val:
        self._leave()
        return VOID

    def op_device_assert(self, x: Expressions, e: Any) -> Val:
        text = str(e.args[1].value) if len(e.args) > 1 else str(attr_of(e, "msg", ""))
        self._fail(x.condition(e.args[0]), text, e)
        return VOID

    def op_print(self, x: Expressions, e: Any) -> Val:
        message = str(attr_of(e, "msg", ""))
        parts, values = [], []
        for arg in e.args:
            if type(arg).__name__ == "StringImm":
                message = str(arg.value) if not message else message
                continue
            code, value = self._printed(x, arg)
            parts.append(code)
            values.append(value)
        text = " ".join([message.replace("%", "%%"), *parts]).strip()
        self.print_line(text, values)
        return VOID

    def print_line(self, text: str, values: list[Val]) -> None:
        """printf one line and push it out."""
        b = self.b
        printf = b.module.declare("printf", "i32", ["ptr"], vararg=True)
        args = [b.module.string(text + "\n"), *values]
        b.emit(f"call i32 (ptr, ...) {printf}({', '.join(map(str, args))})", "i32")
        flush = b.module.declare("fflush", "i32", ["ptr"])
        b.emit(f"call i32 {flush}(ptr null)", "i32")

    def _printed(self, x: Expressions, e: Any) -> tuple[str, Val]:
        dtype = types.parse(str(e.ty))
        value = x.value(e)
        return printed_form(self.b, value, dtype)


def printed_form(b: Builder, value: Val, dtype: DType) -> tuple[str, Val]:
    """How printf shows a value, and the value as a vararg passes it."""
    if dtype.is_float:
        return "%g", b.cast("fpext", types.to_float(b, value, dtype), "double")
    if dtype.kind == "bool" or dtype.kind == "uint":
        return "%llu", b.cast("zext", value, "i64")
    return "%lld", b.cast("sext", value, "i64")


def _computed(dtype: DType) -> DType:
    """The type arithmetic on `dtype` happens in."""
    name = "float64" if dtype.base == "float64" else "float32"
    return types.parse(name).with_lanes(dtype.lanes)


def _unsigned(dtype: DType) -> DType:
    return types.parse(f"uint{dtype.bits}").with_lanes(dtype.lanes)
