"""How is a call of lowered TIRX written in C: device operations, maths, pointers, foreign code?

A device operation is printed from its row: template arguments from its constants, regions as
pointers, values as they are. A call without a meaning in the dialect is refused by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tilelang.codegen.c_text import POSTFIX, SUM, Unsupported, c_string
from tilelang.codegen.dialect import PACKED, STORAGE_ONLY, parse
from tilelang.ir import build, tirx
from tilelang.ir.attrs import short_name
from tilelang.ir.device_op import DeviceOp, Operand
from tilelang.ir.device_ops import constants_of, op_of_call
from tilelang.ir.device_support import lacking_in_call
from tilelang.ir.intrinsics import FAST
from tilelang.ir.spans import from_tir

if TYPE_CHECKING:
    from tilelang.codegen.c_expr import Expressions

# What only tells the compiler something.
_SILENT: Final = frozenset({"assume", "annotate"})
_MAX_POWER: Final = 16
MASK_LANES: Final = 32  # the bits of a mask of lanes
# Headers whose functions take places in shared memory, not pointers.
_BY_PLACE: Final = frozenset({"copy_async.h", "mma.h"})


class Calls:
    """Prints calls; `x` prints their operands."""

    def __init__(self, x: Expressions) -> None:
        self.x = x
        self.cooperative = False
        self.threads: int | None = None  # of a block, where that is known

    def expression(self, e: Any, parent: int) -> str:
        """A call whose value is used."""
        name = str(getattr(e.op, "name", e.op))
        short = name.rpartition(".")[2]
        method = getattr(self, f"_op_{short}", None)
        if method is not None:
            text: str = method(e, parent)
            return text
        op = op_of_call(e)
        if op is not None:
            return self.device_op(op, e)
        function = self.x.dialect.maths.get(short)
        if function is not None:
            return self._math(e, function)
        raise self._unsupported(f"T.{short}", e)

    def statement(self, e: Any) -> str | None:
        """A call for its effect, without the semicolon; None for one that does nothing."""
        name = str(getattr(e.op, "name", e.op))
        short = name.rpartition(".")[2]
        if short in _SILENT:
            return None
        if short == "thread_return":
            return "return"
        if short == "loop_break":
            return "break"
        return self.expression(e, 0)

    # --- device operations ---

    def device_op(self, op: DeviceOp, e: Any) -> str:
        """`tl::function<constants>(operands)`."""
        x = self.x
        x.headers[op.header] = None
        self.cooperative = self.cooperative or op.group == "grid"
        attrs = constants_of(e)
        refused = self._refused(op, e, attrs)
        if refused is not None:
            raise self._unsupported(f"T.{op.name} {refused}", e)
        problems = op.problems(len(e.args), attrs)
        if problems:
            raise self._unsupported("; ".join(problems), e)
        operands = [
            self._operand(op, row, arg, e)
            for row, arg in zip(op.operands, e.args, strict=False)
        ]  # fmt: skip
        operands += [self._literal(v) for v in op.literal_arguments(attrs)]
        if op.queue == "wgmma":
            x.defines[f"TL_WGMMA_N{attrs['n']}"] = None
        special = getattr(self, f"_arguments_{op.name}", None)
        if special is not None:
            operands = special(e, operands)
        constants = op.template_arguments(attrs, x.dialect.warp)
        template = ", ".join(self._template(v) for v in constants)
        brackets = f"<{template}>" if template else ""
        return f"tl::{op.function}{brackets}({', '.join(operands)})"

    def _refused(self, op: DeviceOp, e: Any, attrs: dict[str, Any]) -> str | None:
        """What the dialect has not of an operation it has otherwise, or why it has none of it."""
        dialect = self.x.dialect
        warp = dialect.warp
        reason = lacking_in_call(op, dialect.name, len(e.args))
        if reason is not None:
            return f"({reason})"
        if dialect.refuses is not None and (less := dialect.refuses(op, e)) is not None:
            return less
        if op.name in dialect.narrow_maths and self.x.dtype(e).base == "float64":
            return "of float64"
        wide = op.too_wide(attrs, warp)
        if wide is not None:
            return f"with {wide}, where a warp has {warp} lanes,"
        if warp <= MASK_LANES:
            return None
        if _names_some_lanes(op, e):
            return f"with a mask of {MASK_LANES} lanes, where a warp has {warp},"
        whole = op.name.startswith("warp_reduce_") and attrs.get("logical_width") is None
        # Lanes of the last warp that are not there have no value to give.
        if whole and self.threads is not None and self.threads % warp:
            return f"over {warp} lanes in a block of {self.threads} threads"
        return None

    def _operand(self, op: DeviceOp, row: Operand, arg: Any, e: Any) -> str:
        x = self.x
        if not row.by_reference:
            return self._by_value(arg)
        buffer, indices, extent = place_of(arg)
        if row.access != "read":
            x.written.add(buffer)
        if row.space == "barrier":
            return x.element(buffer, indices, arg)
        width = 1
        if row.space in ("shared", "global") and op_moves_whole_vectors(e):
            width = extent
        if row.space == "shared" and op.header in _BY_PLACE:
            return x.shared_place(buffer, indices, arg, width)
        return x.pointer(buffer, indices, arg, width)

    def _by_value(self, arg: Any) -> str:
        """A value; neighbouring elements passed by reference become a vector of them."""
        if not isinstance(arg, tirx.TensorRegion):
            return self.x.expr(arg)
        buffer, indices, extent = place_of(arg)
        return f"tl::load_elements<{extent}>({self.x.pointer(buffer, indices, arg)})"

    def _literal(self, value: Any) -> str:
        return c_string(value) if isinstance(value, str) else str(int(value))

    def _template(self, value: Any) -> str:
        if isinstance(value, str):
            return f"tl::{_WORDS.get(value, value)}"
        return str(int(value))

    def _arguments_device_assert(self, e: Any, operands: list[str]) -> list[str]:
        return [*operands, *self.position(e)]

    def _arguments_print(self, e: Any, operands: list[str]) -> list[str]:
        # Message first, as it reads.
        return [operands[-1], *operands[:-1]]

    def _arguments_print_buffer(self, e: Any, operands: list[str]) -> list[str]:
        buffer, _, extent = place_of(e.args[0])
        return [operands[-1], self._literal(str(buffer.name)), operands[0], str(extent)]

    def _arguments_wgmma_fence_operand(self, e: Any, operands: list[str]) -> list[str]:
        return [*operands, str(place_of(e.args[0])[2])]

    def position(self, node: Any) -> list[str]:
        """File and line of a node, as literals."""
        span = from_tir(node.span)
        file, line = ("", 0) if span is None else (span.file, span.line)
        return [self._literal(file), str(line)]

    # --- maths ---

    def _math(self, e: Any, function: str) -> str:
        x, dtype = self.x, self.x.dtype(e)
        if dtype.base == "float64" and function in x.dialect.narrow_maths:
            raise self._unsupported(f"T.{function} of float64", e)
        x.headers["math.h"] = None
        args = [x.expr(a) for a in e.args]
        if dtype.base in STORAGE_ONLY:
            wide = parse("float32").with_lanes(dtype.lanes)
            args = [x.cast_text(t, x.dtype(a), wide) for t, a in zip(args, e.args, strict=True)]
            text = f"tl::{function}({', '.join(args)})"
            return x.cast_text(text, wide, dtype, x.type_name(dtype, e))
        if dtype.base in PACKED:
            raise self._unsupported(f"T.{function} of {dtype}", e)
        if e.attrs is not None and FAST in e.attrs:
            function = f"fast_{function}"
        return f"tl::{function}({', '.join(args)})"

    def _op_pow(self, e: Any, parent: int) -> str:
        value = build.constant_number(e.args[1])
        dtype = self.x.dtype(e)
        if value is not None and float(value) == int(value) and 0 <= int(value) <= _MAX_POWER:
            if dtype.base not in STORAGE_ONLY:
                self.x.headers["math.h"] = None
                return f"tl::power<{int(value)}>({self.x.expr(e.args[0])})"
        if not dtype.is_float:
            raise self._unsupported(
                "an integer power with an exponent that is no small constant", e
            )
        return self._math(e, "pow")

    def _op_popcount(self, e: Any, parent: int) -> str:
        return self._counted("popcount", e)

    def _op_clz(self, e: Any, parent: int) -> str:
        return self._counted("clz", e)

    def _counted(self, function: str, e: Any) -> str:
        x = self.x
        x.headers["math.h"] = None
        text = f"tl::{function}({x.expr(e.args[0])})"
        target = x.dtype(e)
        return text if target.base == "int32" else f"{x.type_name(target, e)}({text})"

    def _op_isnan(self, e: Any, parent: int) -> str:
        x = self.x
        x.headers["math.h"] = None
        source = x.dtype(e.args[0])
        text = x.expr(e.args[0])
        if source.base in STORAGE_ONLY:
            text = x.cast_text(text, source, parse("float32"))
        return f"tl::isnan({text})"

    # --- choices, bits ---

    def _op_if_then_else(self, e: Any, parent: int) -> str:
        condition, true, false = e.args
        return self.x.choice(condition, true, false, parent)

    def _op_likely(self, e: Any, parent: int) -> str:
        return self.x.expr(e.args[0], parent)

    def _op_reinterpret(self, e: Any, parent: int) -> str:
        x = self.x
        inner = x.expr(e.args[0])
        if isinstance(e.ty, tirx.PointerType):
            return f"({x.memory_type(parse(str(e.ty.element_type.dtype)), e)}*)({inner})"
        target = x.dtype(e)
        return f"tl::bit_cast<{x.type_name(target, e)}>({inner})"

    def _op_extract_lane(self, e: Any, parent: int) -> str:
        lane = build.int_value(e.args[1]) if len(e.args) > 1 else int(e.attrs["lane"])
        vector = e.args[0]
        return f"{self.x.expr(vector, POSTFIX)}[{lane}]"

    # --- addresses and foreign functions ---

    def _op_buffer_data(self, e: Any, parent: int) -> str:
        return self.x.names.use(e.args[0])

    def _op_address_of(self, e: Any, parent: int) -> str:
        buffer, indices, _ = place_of(e.args[0])
        self.x.written.add(buffer)
        pointer = self.x.pointer(buffer, indices, e)
        if len(e.args) > 1:
            pointer = f"{pointer} + {self.x.expr(e.args[1], SUM + 1)}"
        return pointer

    _op_access_ptr = _op_address_of
    _op_flat_access_ptr = _op_address_of

    def _op_isnullptr(self, e: Any, parent: int) -> str:
        return f"({self.x.expr(e.args[0])} == nullptr)"

    def _op_call_extern(self, e: Any, parent: int) -> str:
        attrs = e.attrs
        if not self.x.dialect.externs:
            raise self._unsupported(f"T.call_extern of {attrs['function']}", e)
        args = [self._literal(str(s)) for s in attrs.get("strings", ())]
        for arg in e.args:
            if isinstance(arg, tirx.TensorRegion) or tirx.is_buffer_var(arg):
                buffer, indices, _ = place_of(arg)
                self.x.written.add(buffer)
                args.append(self.x.pointer(buffer, indices, e))
            else:
                args.append(self.x.expr(arg))
        return f"{attrs['function']}({', '.join(args)})"

    _op_call_intrin = _op_call_extern

    def _op_any_of(self, e: Any, parent: int) -> str:
        return self._over_elements("any_of", e)

    def _op_all_of(self, e: Any, parent: int) -> str:
        return self._over_elements("all_of", e)

    def _over_elements(self, function: str, e: Any) -> str:
        region = e.args[0]
        buffer, indices, extent = place_of(region)
        ranges = list(region.region)
        if any(not build.is_int(r.extent, 1) for r in ranges[:-1]):
            raise self._unsupported(f"T.{function} of a region with more than one dimension", e)
        self.x.headers["memory.h"] = None
        return f"tl::{function}({self.x.pointer(buffer, indices, e)}, {extent})"

    def _unsupported(self, what: str, node: Any) -> Exception:
        return Unsupported(what, node)


def _names_some_lanes(op: DeviceOp, e: Any) -> bool:
    """Whether a call says which lanes take part, and not that all do."""
    return any(
        row.name == "mask" and build.int_value(arg) != (1 << MASK_LANES) - 1
        for row, arg in zip(op.operands, e.args, strict=False)
    )


# Constants whose value is a word: the enumerator that stands for it.
_WORDS: Final = {
    "relaxed": "memory_order::relaxed", "consume": "memory_order::consume",
    "acquire": "memory_order::acquire", "release": "memory_order::release",
    "acq_rel": "memory_order::acq_rel", "seq_cst": "memory_order::seq_cst",
    "": "cache::automatic", "ca": "cache::ca", "cg": "cache::cg",
    "normal": "eviction::normal", "evict_first": "eviction::first", "evict_last": "eviction::last",
}  # fmt: skip


def place_of(arg: Any) -> tuple[Any, list[Any], int]:
    """Buffer, first element and constant number of elements of an operand by reference."""
    if isinstance(arg, tirx.TensorRegion):
        ranges = list(arg.region)
        extent = build.int_value(ranges[-1].extent) if ranges else 1
        return arg.source, [r.min for r in ranges], extent or 1
    if isinstance(arg, tirx.TensorLoad):
        return arg.source, list(arg.indices), 1
    return arg, [build.const(0, "int32", arg.span) for _ in arg.shape], 1


def op_moves_whole_vectors(e: Any) -> bool:
    """Whether the device accesses an operand with the full width of its region."""
    name = short_name(str(e.op.name))
    return name == "cp_async" or name.startswith(("ldg", "stg", "lds", "sts", "bulk_load"))
