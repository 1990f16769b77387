"""How does one core update memory that other cores update too?

Integers, float32 and float64 use the processor's own read-modify-write instructions; smaller
floats go through a compare-and-swap loop on their bits. Every update is relaxed unless the kernel
asks for an order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilelang.codegen import cpu_types as types
from tilelang.codegen.cpu_builder import Builder, Val, integer
from tilelang.codegen.cpu_element import VOID, Unsupported, attr_of, element_of
from tilelang.dtypes import DType

if TYPE_CHECKING:
    from tilelang.codegen.cpu_expr import Expressions

_ORDERS = {
    "relaxed": "monotonic", "consume": "acquire", "acquire": "acquire", "release": "release",
    "acq_rel": "acq_rel", "seq_cst": "seq_cst",
}  # fmt: skip


def atomic_call(x: Expressions, e: Any, kind: str) -> Val:
    """The call `T.atomic_<kind>`: the old value, which the kernel may drop."""
    return _Atomics(x.b).call(x, e, kind)


class _Atomics:
    def __init__(self, b: Builder) -> None:
        self.b = b

    def call(self, x: Expressions, e: Any, kind: str) -> Val:
        view, offset = element_of(x, e.args[0])
        pointer, dtype = x.memory.element(view, offset), view.dtype
        order = _ORDERS[str(attr_of(e, "memory_order", "relaxed"))]
        if types.is_nibble(dtype):
            raise Unsupported(f"an atomic on packed {dtype}", e)
        if kind == "load":
            return self._atomic_load(pointer, dtype, order)
        if kind in ("addx2", "addx4"):
            return self._vector_add(x, view, offset, e.args[1], int(kind[-1]))
        values = [
            types.convert(self.b, x.value(a), types.parse(str(a.ty)), dtype) for a in e.args[1:]
        ]
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

    def _vector_add(self, x: Expressions, view: Any, offset: Val, source: Any, lanes: int) -> Val:
        """Neighbouring elements one by one: no promise is made about them together."""
        if hasattr(source, "region"):
            from_view, start = element_of(x, source)
            values = x.memory.load(from_view, start, lanes)
        else:
            values = self.b.splat(x.value(source), lanes)
        olds = []
        for i in range(lanes):
            step = self.b.binary("add", offset, integer(i, "i64"))
            pointer = x.memory.element(view, step)
            lane = self.b.lane(values, i)
            old = self.update(pointer, view.dtype, "add", lane, "monotonic")
            assert old is not None
            olds.append(old)
        return self.b.pack(olds)

    def update(self, pointer: Val, dtype: DType, kind: str, value: Val, order: str) -> Val | None:
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


def _stored(b: Builder, value: Val) -> Val:
    return b.cast("zext", value, "i8") if value.base == "i1" else value


def _only(order: str, side: str) -> str:
    """The part of a memory order that a plain load or store can have."""
    allowed = {"load": ("acquire", "seq_cst"), "store": ("release", "seq_cst")}[side]
    if order == "acq_rel":
        return "acquire" if side == "load" else "release"
    return order if order in allowed else "monotonic"
