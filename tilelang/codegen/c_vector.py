"""How is a vectorised loop printed?

    for v in T.vectorized(8): B[i + v] = A[j + v]           tl::store(&B[i], tl::load<8>(&A[j]));
    for v in T.vectorized(8): B[i + v] = f(A[j + v], C[v])  one vector load for A, a loop over lanes
                                                            into a vector, one vector store

`passes/vectorize_accesses` has made sure that what moves with the loop variable is contiguous and
aligned. Registers are indexed lane by lane, except in plain copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tilelang.analysis.ranges import linear_step
from tilelang.codegen.dialect import PACKED, parse, per_byte
from tilelang.dtypes import DType
from tilelang.ir import build, tirx
from tilelang.ir.flatten import terms
from tilelang.ir.visit import statements, substitute, uses

if TYPE_CHECKING:
    from tilelang.codegen.c_printer import CPrinter

_MEMORY: Final = ("global", "shared", "shared.dyn")


def print_vector_loop(printer: CPrinter, loop: Any) -> bool:
    """Print `loop` with vector accesses; False when it has to be printed as a plain loop."""
    lanes = build.int_value(loop.extent)
    if lanes is None or lanes < 2:
        return False
    start = {loop.loop_var: loop.min}
    return _Vector(printer, loop, lanes, start).block(statements(loop.body))


@dataclass(frozen=True, slots=True)
class _Vector:
    printer: CPrinter
    loop: Any
    lanes: int
    start: dict[Any, Any]

    def block(self, stmts: Sequence[Any]) -> bool:
        """All statements or none: a loop is not torn apart."""
        if not all(self._fits(s) for s in stmts):
            return False
        for stmt in stmts:
            self._statement(stmt)
        return True

    def _fits(self, s: Any) -> bool:
        if isinstance(s, tirx.IfThenElse):
            inner = statements(s.then_case)
            if s.else_case is not None or uses(s.condition, [self.loop.loop_var]):
                return False
            return all(self._fits(i) for i in inner)
        if not isinstance(s, tirx.BufferStore):
            return False
        step = self._step(s.buffer, s.indices)
        return step == 1 or str(s.buffer.scope()) in ("local", "local.var")

    def _statement(self, s: Any) -> None:
        printer = self.printer
        if isinstance(s, tirx.IfThenElse):
            with printer.block(f"if ({printer.x.expr(s.condition)})", s):
                for inner in statements(s.then_case):
                    self._statement(inner)
            return
        value = self._vector_value(s.value)
        target = self._step(s.buffer, s.indices) == 1
        if target and value is not None and (self._in_memory(s.buffer) or self._is_copy(s)):
            self._store(s, value)
        else:
            self._lane_by_lane(s, target and self._in_memory(s.buffer))

    # --- whole vectors ---

    def _vector_value(self, e: Any) -> str | None:
        """`e` as one vector expression: a load, its conversion, or the same value in all lanes."""
        x = self.printer.x
        if not uses(e, [self.loop.loop_var]) and x.dtype(e).base not in PACKED:
            return f"tl::broadcast<{self.lanes}>({x.expr(e)})"
        if isinstance(e, tirx.TensorLoad):
            return self._load(e) if self._step(e.source, e.indices) == 1 else None
        if isinstance(e, tirx.Cast):
            inner = self._vector_value(e.value)
            if inner is None or {x.dtype(e).base, x.dtype(e.value).base} & set(PACKED):
                return None
            return f"tl::cast<{x.type_name(x.dtype(e).scalar, e)}>({inner})"
        if _is_lazy(e) and not uses(e.args[0], [self.loop.loop_var]):
            sides = [self._vector_value(a) for a in e.args[1:]]
            if all(side is not None for side in sides):
                return f"({x.expr(e.args[0], 2)} ? {sides[0]} : {sides[1]})"
        return None

    def _load(self, e: Any) -> str:
        x = self.printer.x
        indices = [substitute(i, self.start) for i in e.indices]
        count = self.lanes // per_byte(x.dtype(e))
        return f"tl::load<{count}>({x.pointer(e.source, indices, e, self.lanes)})"

    def _store(self, s: Any, value: str) -> None:
        x = self.printer.x
        indices = [substitute(i, self.start) for i in s.indices]
        pointer = x.pointer(s.buffer, indices, s, self.lanes)
        x.written.add(s.buffer)
        self.printer.line(f"tl::store({pointer}, {_unwrapped(value)});", s)

    def _is_copy(self, s: Any) -> bool:
        """Whether a store to registers only moves bytes: then they may be written as a vector."""
        value = s.value
        if _is_lazy(value):
            value = value.args[1]
        return isinstance(value, tirx.TensorLoad) and self._in_memory(value.source)

    # --- lanes ---

    def _lane_by_lane(self, s: Any, gathers: bool) -> None:
        """Vector loads into named vectors, a loop over the lanes, a vector store."""
        printer, x = self.printer, self.printer.x
        hoisted = self._hoist_loads(s)
        result = ""
        if gathers:
            result = x.names.fresh(f"{s.buffer.name}_lanes")
            printer.line(self._declaration(parse(str(s.buffer.dtype)), result, s), s)
        printer.line(x.dialect.unroll, s)
        with x.names.scope():
            var = x.names.declare(self.loop.loop_var)
            with printer.block(f"for (int {var} = 0; {var} < {self.lanes}; ++{var})", s):
                x.load_hook = lambda e: self._hoisted_lane(e, hoisted, var)
                if gathers:
                    printer.line(self._set_lane(s, result, var), s)
                else:
                    printer.assign(s)
                x.load_hook = None
        if gathers:
            self._store(s, result)

    def _declaration(self, dtype: DType, name: str, node: Any) -> str:
        """A vector to fill; one of packed elements is filled byte by byte, so it begins zeroed."""
        vector = self._vector_type(dtype, node)
        return f"{vector} {name} = {{}};" if per_byte(dtype) > 1 else f"{vector} {name};"

    def _vector_type(self, dtype: DType, node: Any) -> str:
        element = self.printer.x.memory_type(dtype, node)
        return f"tl::vec<{element}, {self.lanes // per_byte(dtype)}>"

    def _set_lane(self, s: Any, result: str, var: str) -> str:
        value, dtype = self.printer.x.expr(s.value), parse(str(s.buffer.dtype))
        if per_byte(dtype) > 1:
            return f"tl::store_packed<tl::packed_{dtype}>({result}.lanes, {var}, {value});"
        return f"{result}[{var}] = {value};"

    def _hoist_loads(self, s: Any) -> list[tuple[Any, str]]:
        """Each distinct vector load of the value, with the name of the vector it went into."""
        found: list[tuple[Any, str]] = []
        x = self.printer.x
        for e in unconditional_loads(s.value):
            moves = self._in_memory(e.source) and self._step(e.source, e.indices) == 1
            if not moves or any(tirx.structural_equal(e, known) for known, _ in found):
                continue
            name = x.names.fresh(f"{e.source.name}_lanes")
            vector = self._vector_type(parse(str(e.source.dtype)), e)
            self.printer.line(f"const {vector} {name} = {self._load(e)};", s)
            found.append((e, name))
        return found

    def _hoisted_lane(self, e: Any, hoisted: list[tuple[Any, str]], var: str) -> str | None:
        for known, name in hoisted:
            if not tirx.structural_equal(e, known):
                continue
            dtype = parse(str(e.source.dtype))
            if per_byte(dtype) > 1:
                return f"tl::load_packed<tl::packed_{dtype}>({name}.lanes, {var})"
            return f"{name}[{var}]"
        return None

    def _step(self, buffer: Any, indices: Any) -> int | None:
        places = list(indices)
        if str(buffer.scope()) == "local.var":
            return 0
        return element_step(self.printer.x.analyzer, buffer, places, self.loop.loop_var)

    def _in_memory(self, buffer: Any) -> bool:
        return str(buffer.scope()) in _MEMORY


def element_step(analyzer: Any, buffer: Any, indices: Sequence[Any], var: Any) -> int | None:
    """How many elements the place of an access moves per step of `var`, if constant."""
    total = 0
    for index, stride in terms(buffer, indices):
        step = linear_step(analyzer, index, var)
        if step is None:
            return None
        if step:
            size = build.int_value(stride)
            if size is None:
                return None
            total += step * size
    return total


def unconditional_loads(e: Any) -> list[Any]:
    """The loads an expression always performs: not those in a side that may not be taken."""
    if isinstance(e, tirx.TensorLoad):
        return [e]
    if _is_lazy(e):
        return unconditional_loads(e.args[0])
    if isinstance(e, tirx.Call):
        parts = list(e.args)
    elif isinstance(e, tirx.Select):
        parts = [e.condition, e.true_value, e.false_value]
    elif isinstance(e, (tirx.Cast, tirx.Broadcast)):
        parts = [e.value]
    else:
        parts = [p for p in (getattr(e, "a", None), getattr(e, "b", None)) if p is not None]
    return [load for part in parts for load in unconditional_loads(part)]


def _is_lazy(e: Any) -> bool:
    return (
        isinstance(e, tirx.Call)
        and str(getattr(e.op, "name", "")) == "prim.if_then_else"
    )  # fmt: skip


def _unwrapped(text: str) -> str:
    """A value without the brackets it does not need as the last argument."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for position, char in enumerate(text):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth == 0 and position < len(text) - 1:
            return text
    return text[1:-1]
