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
from tilelang.codegen.cpu_builder import Builder, Val, integer
from tilelang.dtypes import DType

if TYPE_CHECKING:
    from tilelang.codegen.cpu_expr import Expressions

VOID: Final = Val("void", "void")

_SPACES = ("tirx", "prim", "tl")
_ORDERS = {
    "relaxed": "monotonic", "consume": "acquire", "acquire": "acquire", "release": "release",
    "acq_rel": "acq_rel", "seq_cst": "seq_cst",
}  # fmt: skip

# Barriers within one block mean nothing once its threads have become loops.
_NO_EFFECT = frozenset(
    {"sync_threads", "sync_warp", "fence_proxy_async", "assume", "annotate", "likely"}
)


class Unsupported(Exception):
    """Something the CPU backend has no meaning for; `node` says where."""

    def __init__(self, what: str, node: Any) -> None:
        super().__init__(what)
        self.what = what
        self.node = node


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
            return self._atomic(x, e, short.removeprefix("atomic_"))
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
        view, offset = self._element(x, e.args[0])
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

    # --- atomics ---

    def _element(self, x: Expressions, region: Any) -> tuple[Any, Val]:
        """The view and element offset of an operand passed by reference."""
        if hasattr(region, "region"):
            view = x.memory.view(region.source)
            return view, x.memory.offset(view, [x.index(r.min) for r in region.region])
        if hasattr(region, "indices"):
            view = x.memory.view(region.source)
            return view, x.memory.offset(view, [x.index(i) for i in region.indices])
        view = x.memory.view(region)
        return view, x.memory.offset(view, [integer(0, "i64") for _ in view.shape])

    def _atomic(self, x: Expressions, e: Any, kind: str) -> Val:
        view, offset = self._element(x, e.args[0])
        pointer, dtype = x.memory.element(view, offset), view.dtype
        order = _ORDERS[str(_attr(e, "memory_order", "relaxed"))]
        if types.is_nibble(dtype):
            raise Unsupported(f"an atomic on packed {dtype}", e)
        if kind == "load":
            return self._atomic_load(pointer, dtype, order)
        values = [
            types.convert(self.b, x.value(a), types.parse(str(a.ty)), dtype) for a in e.args[1:]
        ]
        if kind in ("addx2", "addx4"):
            return self._vector_add(x, view, offset, values[0], int(kind[-1]))
        if kind == "store":
            self.b.do(
                f"store atomic {_stored(self.b, values[0])}, {pointer} "
                f"{_only(order, 'store')}, align {types.width(dtype)}"
            )
            return VOID
        if kind == "cas":
            return self._compare_and_swap(pointer, values[0], values[1], order)
        old = self.update(pointer, dtype, kind, values[0], order)
        if old is None:
            raise Unsupported(f"T.atomic_{kind} of {dtype}", e)
        return old

    def _atomic_load(self, pointer: Val, dtype: DType, order: str) -> Val:
        b = self.b
        base = types.memory(dtype)
        text = f"load atomic {base}, {pointer} {_only(order, 'load')}, align {types.width(dtype)}"
        value = b.emit(text, base)
        return b.compare("ne", value, integer(0, "i8")) if dtype.kind == "bool" else value

    def _vector_add(
        self, x: Expressions, view: Any, offset: Val, values: Val, lanes: int
    ) -> Val:
        olds = []
        for i in range(lanes):
            step = self.b.binary("add", offset, integer(i, "i64"))
            pointer = x.memory.element(view, step)
            lane = self.b.lane(values, i) if values.lanes > 1 else values
            old = self.update(pointer, view.dtype, "add", lane, "monotonic")
            assert old is not None
            olds.append(old)
        return self.b.pack(olds)

    def update(
        self, pointer: Val, dtype: DType, kind: str, value: Val, order: str
    ) -> Val | None:
        """Atomically `*pointer = kind(*pointer, value)`; the old value, None if impossible."""
        b = self.b
        if kind == "exch":
            stored = _stored(b, value)
            old = b.emit(f"atomicrmw xchg {pointer}, {stored} {order}", stored.base)
            return b.compare("ne", old, integer(0, "i8")) if dtype.kind == "bool" else old
        if dtype.is_float:
            op = {"add": "fadd", "sub": "fsub", "max": "fmax", "min": "fmin"}.get(kind)
        else:
            sign = "" if dtype.kind == "int" else "u"
            op = {
                "add": "add", "sub": "sub", "max": f"{sign}max", "min": f"{sign}min",
                "and": "and", "or": "or", "xor": "xor",
            }.get(kind)  # fmt: skip
        if op is None or dtype.kind == "bool":
            return None
        if not dtype.is_float or types.is_wide_float(dtype):
            return b.emit(f"atomicrmw {op} {pointer}, {value} {order}", value.base)
        return self._update_narrow(pointer, dtype, op, value, order)

    def _update_narrow(self, pointer: Val, dtype: DType, op: str, value: Val, order: str) -> Val:
        """A float the processor has no atomics for, through compare-and-swap of its bits."""
        b = self.b
        bits = f"i{8 * types.width(dtype)}"
        operand = types.to_float(b, value, dtype)
        first = b.emit(f"load atomic {bits}, {pointer} monotonic, align {types.width(dtype)}", bits)
        head, done, before = b.label("cas"), b.label("swapped"), b.block
        b.open(head)
        # The value of the next attempt is only known below; its name is reserved here.
        seen = b.label("%seen")
        old = b.emit(f"phi {bits} [ {first.ref}, %{before} ], [ {seen}, %{head} ]", bits)
        real = types.to_float(b, b.bitcast(old, types.register(dtype)), dtype)
        if op in ("fmax", "fmin"):
            combined = types.extremum(b, op.removeprefix("f"), real, operand)
        else:
            combined = b.binary(op, real, operand)
        new = b.bitcast(types.from_float(b, combined, dtype), bits)
        failure = _only(order, "load")
        pair = f"cmpxchg {pointer}, {old}, {new} {order} {failure}"
        swapped = b.emit(pair, "pair")
        b.do(f"{seen} = extractvalue {{ {bits}, i1 }} {swapped.ref}, 0")
        success = b.emit(f"extractvalue {{ {bits}, i1 }} {swapped.ref}, 1", "i1")
        b.branch_if(success, done, head)
        b.open(done)
        return b.bitcast(old, types.register(dtype))

    def _compare_and_swap(self, pointer: Val, expected: Val, new: Val, order: str) -> Val:
        b = self.b
        bits = {"float": "i32", "double": "i64", "half": "i16"}.get(expected.base, expected.base)
        old, wanted = b.bitcast(expected, bits), b.bitcast(new, bits)
        text = f"cmpxchg {pointer}, {old}, {wanted} {order} {_only(order, 'load')}"
        pair = b.emit(text, "pair")
        found = b.emit(f"extractvalue {{ {bits}, i1 }} {pair.ref}, 0", bits)
        return b.bitcast(found, expected.base)

    # --- effects ---

    def op_thread_return(self, x: Expressions, e: Any) -> Val:
        self._leave()
        return VOID

    def op_device_assert(self, x: Expressions, e: Any) -> Val:
        text = str(e.args[1].value) if len(e.args) > 1 else str(_attr(e, "msg", ""))
        self._fail(x.condition(e.args[0]), text, e)
        return VOID

    def op_print(self, x: Expressions, e: Any) -> Val:
        message = str(_attr(e, "msg", ""))
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


def _stored(b: Builder, value: Val) -> Val:
    return b.cast("zext", value, "i8") if value.base == "i1" else value


def _only(order: str, side: str) -> str:
    """The part of a memory order that a plain load or store can have."""
    allowed = {"load": ("acquire", "seq_cst"), "store": ("release", "seq_cst")}[side]
    if order == "acq_rel":
        return "acquire" if side == "load" else "release"
    return order if order in allowed else "monotonic"


def _attr(e: Any, key: str, default: Any) -> Any:
    attrs = e.attrs
    if attrs is None:
        return default
    try:
        return attrs[key] if key in attrs else default
    except TypeError:
        return default
