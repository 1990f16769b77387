"""What does each operator call of lowered TIRX become on the CPU?

Mathematics goes to `cpu_math`; atomics are LLVM's where the processor has them and a
compare-and-swap loop for the formats it does not compute with; printing and assertions call out
of the kernel. A call without a meaning here is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilelang.codegen import cpu_math
from tilelang.codegen import cpu_types as types
from tilelang.codegen.cpu_atomics import atomic_call
from tilelang.codegen.cpu_builder import Builder, Val, integer
from tilelang.codegen.cpu_element import VOID, Unsupported, attr_of, element_of
from tilelang.codegen.cpu_print import print_buffer, print_values
from tilelang.codegen.cpu_regions import any_element
from tilelang.dtypes import DType
from tilelang.ir import build

if TYPE_CHECKING:
    from tilelang.codegen.cpu_expr import Expressions

_SPACES = ("tirx", "prim", "tl")

# Barriers within one block mean nothing once its threads have become loops.
_NO_EFFECT = frozenset({"sync_threads", "sync_warp", "assume", "prefetch_slot"})


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
        """The result of call `e`: of one made for its effect, 0, should anyone ask."""
        result = self._result(x, e)
        if result is VOID and str(e.ty) not in ("void", ""):
            return types.constant(0, types.parse(str(e.ty)))
        return result

    def _result(self, x: Expressions, e: Any) -> Val:
        name = str(getattr(e.op, "name", e.op))
        space, _, short = name.partition(".")
        method = getattr(self, f"op_{short}", None) if space in _SPACES else None
        if method is not None:
            result: Val = method(x, e)
            return result
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
        exponent = build.constant_number(e.args[1])
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
        exponent = build.constant_number(e.args[1])
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
        return self.b.lane(x.value(e.args[0]), int(attr_of(e, "lane", 0)))

    def op_ldexp(self, x: Expressions, e: Any) -> Val:
        b, dtype = self.b, types.parse(str(e.ty))
        value = x.as_float(e.args[0])
        source = types.parse(str(e.args[1].ty))
        steps = types.convert(b, x.value(e.args[1]), source, types.parse("int32"))
        lanes = f"v{value.lanes}" if value.lanes > 1 else ""
        width = "f64" if value.base == "double" else "f32"
        name = f"llvm.ldexp.{lanes}{width}.{lanes}i32"
        scaled = b.call(name, value.base, [value, b.splat(steps, value.lanes)], value.lanes)
        return types.from_float(b, scaled, dtype)

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
        """`C += dot(A, B)` of four int8 each, all passed by reference."""
        b = self.b
        wide = []
        for operand in e.args[:2]:
            view, offset = element_of(x, operand)
            wide.append(b.cast("sext", x.memory.load(view, offset, 4), "i32"))
        product = b.binary("mul", wide[0], wide[1])
        total = b.call("llvm.vector.reduce.add.v4i32", "i32", [product])
        view, offset = element_of(x, e.args[2])
        x.memory.store(view, offset, b.binary("add", total, x.memory.load(view, offset)))
        return VOID

    # --- addresses and foreign functions ---

    def op_buffer_data(self, x: Expressions, e: Any) -> Val:
        return x.memory.pointer(e.args[0])

    def op_address_of(self, x: Expressions, e: Any) -> Val:
        view, offset = element_of(x, e.args[0])
        if len(e.args) > 1:
            offset = self.b.binary("add", offset, x.index(e.args[1]))
        return self._handle(x.memory.element(view, offset), e)

    def op_prefetch(self, x: Expressions, e: Any) -> Val:
        """Bring a line into the second cache level: the first is busy with current tiles."""
        view, offset = element_of(x, e.args[0])
        pointer = x.memory.element(view, offset)
        name = self.b.module.declare("llvm.prefetch.p0", "void", ["ptr", "i32", "i32", "i32"])
        self.b.do(f"call void {name}({pointer}, i32 0, i32 2, i32 1)")
        return VOID

    op_access_ptr = op_address_of
    op_flat_access_ptr = op_address_of

    def _handle(self, pointer: Val, e: Any) -> Val:
        """A pointer as the IR types it: an int64 where it has no pointer type."""
        if type(e.ty).__name__ == "PointerType":
            return pointer
        return self.b.cast("ptrtoint", pointer, "i64")

    def op_isnullptr(self, x: Expressions, e: Any) -> Val:
        pointer = x.value(e.args[0])
        return self.b.emit(f"icmp eq {pointer}, null", "i1")

    def op_call_extern(self, x: Expressions, e: Any) -> Val:
        name = str(attr_of(e, "function", ""))
        args = [self.b.module.string(str(text)) for text in attr_of(e, "strings", ())]
        for arg in e.args:
            if hasattr(arg, "region"):
                view, offset = element_of(x, arg)
                args.append(x.memory.element(view, offset))
            else:
                args.append(x.value(arg))
        dtype = types.parse(str(e.ty))
        return self.b.call(name, types.register(dtype), args, dtype.lanes)

    # --- effects ---

    def op_thread_return(self, x: Expressions, e: Any) -> Val:
        self._leave()
        return VOID

    def op_device_assert(self, x: Expressions, e: Any) -> Val:
        text = str(e.args[1].value) if len(e.args) > 1 else str(attr_of(e, "msg", ""))
        self._fail(x.condition(e.args[0]), text, e)
        return VOID

    def op_print(self, x: Expressions, e: Any) -> Val:
        print_values(x, e)
        return VOID

    def op_print_buffer(self, x: Expressions, e: Any) -> Val:
        print_buffer(x, e)
        return VOID

    def op_any_of(self, x: Expressions, e: Any) -> Val:
        return any_element(x, e.args[0], every=False)

    def op_all_of(self, x: Expressions, e: Any) -> Val:
        return any_element(x, e.args[0], every=True)

    def op_annotate(self, x: Expressions, e: Any) -> Val:
        if str(getattr(e.args[0], "value", "")) == "import_source":
            raise Unsupported("T.import_source", e)
        return VOID


def _computed(dtype: DType) -> DType:
    """The type arithmetic on `dtype` happens in."""
    name = "float64" if dtype.base == "float64" else "float32"
    return types.parse(name).with_lanes(dtype.lanes)


def _unsigned(dtype: DType) -> DType:
    return types.parse(f"uint{dtype.bits}").with_lanes(dtype.lanes)
