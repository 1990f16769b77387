"""How are the statements of a kernel written in C?

One statement a line, in the user's names, each line with the place in the user's Python it comes
from. A dialect that needs more than words overrides a method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from tilelang.analysis.ranges import may_wrap_around
from tilelang.codegen.c_expr import Expressions
from tilelang.codegen.c_names import Names
from tilelang.codegen.c_text import OPERATORS, PRODUCT, SUM, Unsupported, c_string
from tilelang.codegen.c_vector import print_vector_loop
from tilelang.codegen.dialect import (
    NARROW,
    STORAGE_ONLY,
    Dialect,
    element_bytes,
    parse,
    per_byte,
)  # fmt: skip
from tilelang.codegen.source_map import Line
from tilelang.ir import attrs, build, tirx
from tilelang.ir.device_ops import DEVICE_OPS, SHARED_ALIGNMENT, SHARED_OFFSET
from tilelang.ir.device_support import lacking
from tilelang.ir.spans import calls_of, from_tir
from tilelang.ir.visit import collect, contains
from tilelang_diagnostics.model import Span

_INDENT: Final = "  "
# Alignment of shared and local storage: enough for every vector access.
SHARED_ALIGN: Final = 128
LOCAL_ALIGN: Final = 16


class CPrinter:
    """Prints the body of one kernel; `lines`, `arena_bytes` and `x` hold what came out.

    `arena` is the name of the dynamic shared memory, "" if none is used: whoever prints the head of
    the kernel declares it.
    """

    def __init__(self, dialect: Dialect, index_bits: int = 32) -> None:
        self.dialect = dialect
        self.names = Names(dialect.reserved)
        self.x = Expressions(dialect, self.names, index_bits)
        self.lines: list[Line] = []
        self.arena_bytes = 0
        self.static_bytes = 0
        self.arena = ""
        self._depth = 1
        self._rules: dict[str, Callable[[Any], None]] = {
            "SeqStmt": self._seq, "For": self._for, "While": self._while, "IfThenElse": self._if,
            "BufferStore": self._store, "Evaluate": self._evaluate, "Bind": self._bind,
            "AllocBuffer": self._alloc, "DeclBuffer": self._decl, "AttrStmt": self._attr,
            "AssertStmt": self._assert, "Break": self._jump, "Continue": self._jump,
            "Return": self._jump,
        }  # fmt: skip

    # --- lines ---

    def line(self, text: str, node: Any = None) -> None:
        """One line that stands for `node`."""
        spans = spans_of(node)
        calls = calls_of(node.span) if node is not None else ()
        self.lines.append(Line(_INDENT * self._depth + text, spans, calls))

    @contextmanager
    def block(self, head: str, node: Any) -> Iterator[None]:
        """A block in braces around what is printed inside."""
        self.line(f"{head} {{", node)
        with self._inner():
            yield
        self.line("}", node)

    @contextmanager
    def _inner(self) -> Iterator[None]:
        self._depth += 1
        with self.names.scope():
            yield
        self._depth -= 1

    def statement(self, s: Any) -> None:
        """Any statement."""
        rule = self._rules.get(type(s).__name__)
        if rule is None:
            raise Unsupported(f"the statement {type(s).__name__}", s)
        rule(s)

    def _seq(self, s: Any) -> None:
        for stmt in s.seq:
            self.statement(stmt)

    # --- control flow ---

    def _for(self, s: Any) -> None:
        kind = int(s.kind)
        if kind == int(tirx.ForKind.PARALLEL):
            raise Unsupported("a parallel loop", s)
        self.x.analyzer.bind(
            s.loop_var, tirx.Range.from_min_extent(s.min, s.extent), allow_override=True
        )
        if kind == int(tirx.ForKind.VECTORIZED) and print_vector_loop(self, s):
            return
        if kind != int(tirx.ForKind.SERIAL):
            self.line(self._unroll(s), s)
        low, high = self.x.expr(s.min), self._end(s)
        with self.names.scope():
            var = self.names.declare(s.loop_var)
            type_ = self.x.type_name(parse(build.dtype_of(s.loop_var)), s)
            with self.block(f"for ({type_} {var} = {low}; {var} < {high}; ++{var})", s):
                self.statement(s.body)

    def _unroll(self, s: Any) -> str:
        factor = s.annotations.get(attrs.LOOP_ATTR_PREFIX + "unroll_factor")
        if factor is None:
            return self.dialect.unroll
        return self.dialect.unroll_by.format(factor=int(factor))

    def _end(self, s: Any) -> str:
        low, extent = build.int_value(s.min), build.int_value(s.extent)
        if low is not None and extent is not None:
            return self.x.integer(low + extent, parse(build.dtype_of(s.loop_var)), s)
        return self.x.expr(build.add(s.min, s.extent, s.span), SUM)

    def _while(self, s: Any) -> None:
        with self.block(f"while ({self.x.expr(s.condition)})", s):
            self.statement(s.body)

    def _if(self, s: Any) -> None:
        self.line(f"if ({self.x.expr(s.condition)}) {{", s)
        with self._inner():
            self.statement(s.then_case)
        orelse = s.else_case
        while isinstance(orelse, tirx.IfThenElse):
            self.line(f"}} else if ({self.x.expr(orelse.condition)}) {{", orelse)
            with self._inner():
                self.statement(orelse.then_case)
            orelse = orelse.else_case
        if orelse is not None:
            self.line("} else {", orelse if orelse.span is not None else s)
            with self._inner():
                self.statement(orelse)
        self.line("}", s)

    def _jump(self, s: Any) -> None:
        self.line(f"{type(s).__name__.lower()};", s)

    def _assert(self, s: Any) -> None:
        reason = lacking(DEVICE_OPS["device_assert"], self.dialect.name)
        if reason is not None:
            raise Unsupported(f"an assertion ({reason})", s)
        self.x.headers["debug.h"] = None
        message = "".join(str(p.value) for p in s.message_parts)
        place = ", ".join(self.x.calls.position(s))
        test = self.x.expr(s.condition)
        self.line(f"tl::device_assert({test}, {c_string(message)}, {place});", s)

    def _attr(self, s: Any) -> None:
        if str(s.attr_key) == attrs.THREAD_EXTENT:
            raise Unsupported("a launch inside a launch", s)
        self.statement(s.body)

    # --- values ---

    def _bind(self, s: Any) -> None:
        value = s.value
        if isinstance(s.var.ty, tirx.PointerType) or _is_handle(value):
            if self.dialect.spaces:
                raise Unsupported(f"an address in a variable ({s.var.name})", s)
            self.line(f"auto* {self.names.declare(s.var)} = {self.x.expr(value)};", s)
            return
        text = self.x.expr(value)
        self._remember(s.var, value)
        type_ = self.x.type_name(parse(build.dtype_of(s.var)), s)
        self.line(f"const {type_} {self.names.declare(s.var)} = {text};", s)

    def _remember(self, var: Any, value: Any) -> None:
        """Bounds of a bound name; what depends on memory has none."""
        dtype = build.dtype_of(value)
        if not dtype.startswith(("int", "uint")) or build.lanes_of(dtype) > 1:
            return
        if collect(value, tirx.TensorLoad) or collect(value, tirx.Call):
            return
        if not contains(value, may_wrap_around):
            self.x.analyzer.bind(var, value, allow_override=True)

    def _store(self, s: Any) -> None:
        lanes = build.lanes_of(build.dtype_of(s.value))
        buffer = s.buffer
        dtype = parse(str(buffer.dtype))
        if lanes > dtype.lanes:
            self._vector_store(s, lanes // dtype.lanes)
        else:
            self.assign(s)

    def assign(self, s: Any) -> None:
        """`place = value;` for one element; `place += b` where the value is `place + b`."""
        buffer = s.buffer
        dtype = parse(str(buffer.dtype))
        self.x.written.add(buffer)
        if per_byte(dtype) > 1:
            value = self.x.expr(s.value)
            tag, storage, index = self.x.packed_element(buffer, s.indices, s)
            # Neighbours in a byte may belong to other threads, and to other blocks.
            among = "" if str(buffer.scope()).startswith("local") else "_among"
            self.line(f"tl::store_packed{among}<{tag}>({storage}, {index}, {value});", s)
            return
        operator, value = self._compound(s)
        place = self.x.element(buffer, s.indices, s)
        self.line(f"{place} {operator}= {value};", s)

    def _compound(self, s: Any) -> tuple[str, str]:
        value, dtype = s.value, parse(str(s.buffer.dtype))
        kind = type(value).__name__
        if kind in ("Add", "Sub", "Mul") and dtype.base not in (*STORAGE_ONLY, *NARROW):
            first = value.a
            if (
                isinstance(first, tirx.TensorLoad)
                and first.source.same_as(s.buffer)
                and tirx.structural_equal(list(first.indices), list(s.indices))
            ):
                return OPERATORS[kind][0], self.x.expr(value.b)
        return "", self.x.expr(value)

    def _vector_store(self, s: Any, lanes: int) -> None:
        ramp = list(s.indices)[-1]
        if not isinstance(ramp, tirx.Ramp) or not build.is_int(ramp.stride, 1):
            raise Unsupported("a vector store to elements that are not neighbours", s)
        place = [*list(s.indices)[:-1], ramp.base]
        aligned = self.x.is_multiple(ramp.base, lanes)
        function = "store" if aligned else "store_elements"
        self.x.written.add(s.buffer)
        pointer = self.x.pointer(s.buffer, place, s, lanes if aligned else 1)
        self.line(f"tl::{function}({pointer}, {self.x.expr(s.value)});", s)

    def _evaluate(self, s: Any) -> None:
        if build.is_nothing(s) or not isinstance(s.value, tirx.Call):
            return
        text = self.x.calls.statement(s.value)
        if text is not None:
            self.line(f"{text};", s)

    # --- storage ---

    def _alloc(self, s: Any) -> None:
        buffer, scope = s.buffer, str(s.buffer.scope())
        dtype = parse(str(buffer.dtype))
        type_ = self.x.memory_type(dtype, s)
        count = elements(buffer)
        if count is None:
            raise Unsupported(f"buffer {buffer.name} of an extent known only at run time", s)
        count = -(-count // per_byte(dtype))
        match scope:
            case "local.var":
                self.line(f"{type_} {self.names.declare(buffer)};", s)
            case "local":
                self._declare(self.dialect.local, buffer, type_, count, LOCAL_ALIGN, s)
            case "local.matrix" if self.dialect.matrices:
                self._declare(self.dialect.matrices, buffer, type_, count, LOCAL_ALIGN, s)
            case "shared" if not self.dialect.static_shared:
                self._dynamic_shared(buffer, type_, count * element_bytes(dtype), s)
            case "shared" | "shared.barrier" | "shared.cluster_barrier":
                self._static_shared(buffer, type_, count, dtype, s)
            case "shared.dyn":
                self._dynamic_shared(buffer, type_, count * element_bytes(dtype), s)
            case _:
                raise Unsupported(f"memory of scope {scope} (buffer {buffer.name})", s)

    def _declare(
        self, form: str, buffer: Any, type_: str, count: int, align: int, node: Any
    ) -> None:
        name = self.names.declare(buffer)
        self.line(form.format(type=type_, name=name, count=count, align=align), node)

    def _static_shared(self, buffer: Any, type_: str, count: int, dtype: Any, s: Any) -> None:
        is_barrier = str(buffer.scope()) != "shared"
        align = int(s.annotations.get(SHARED_ALIGNMENT, SHARED_ALIGN))
        if is_barrier:
            self.x.headers["mbarrier.h"] = None
            type_, align = "tl::mbarrier", 8
        self.static_bytes = _rounded(self.static_bytes, align) + count * element_bytes(dtype)
        self._declare(self.dialect.static_shared, buffer, type_, count, align, s)

    def _dynamic_shared(self, buffer: Any, type_: str, size: int, s: Any) -> None:
        planned = s.annotations.get(SHARED_OFFSET)
        align = int(s.annotations.get(SHARED_ALIGNMENT, SHARED_ALIGN))
        start = _rounded(self.arena_bytes, align) if planned is None else int(planned)
        self.arena_bytes = max(self.arena_bytes, start + size)
        self.arena = self.arena or self.names.fresh("shared_memory")
        name = self.names.declare(buffer)
        place = f"({self.arena})" if start == 0 else f"({self.arena} + {start})"
        pointer = self.dialect.pointer(type_, str(buffer.scope()))
        self.line(f"{pointer} {name} = {self.dialect.cast(pointer, place)};", s)

    def _decl(self, s: Any) -> None:
        """A view: a pointer to the storage of another buffer, or to an address."""
        buffer = s.buffer
        type_ = self.x.memory_type(parse(str(buffer.dtype)), s)
        data = self.x.expr(s.data, PRODUCT)
        source = storage_of(s)
        pointer = self.dialect.pointer(type_, str(buffer.scope()))
        if source is not None:
            self.x.written.add(source)
            self.x.storage[buffer] = source
            same = parse(str(source.dtype)) == parse(str(buffer.dtype))
            data = data if same else self.dialect.cast(pointer, data)
        self.line(f"{pointer} {self.names.declare(buffer)} = {data};", s)


def spans_of(node: Any) -> tuple[Span, ...]:
    """The place of a statement, then places of its loads and calls that lie elsewhere."""
    if node is None:
        return ()
    own = from_tir(node.span)
    if own is None:
        return ()
    found: dict[Span, None] = {own: None}
    for part in _expressions(node):
        for inner in (*collect(part, tirx.TensorLoad), *collect(part, tirx.Call)):
            span = from_tir(inner.span)
            if span is not None and not _inside(span, own):
                found[span] = None
    return tuple(found)


def _expressions(node: Any) -> Sequence[Any]:
    """The expressions of a statement itself, not those of statements inside it."""
    if isinstance(node, tirx.BufferStore):
        return [node.value, *node.indices]
    if isinstance(node, (tirx.Evaluate, tirx.Bind)):
        return [node.value]
    if isinstance(node, (tirx.IfThenElse, tirx.While, tirx.AssertStmt)):
        return [node.condition]
    if isinstance(node, tirx.For):
        return [node.min, node.extent]
    return []


def _inside(span: Span, outer: Span) -> bool:
    return (
        span.file == outer.file
        and (outer.line, outer.column) <= (span.line, span.column)
        and (span.end_line, span.end_column) <= (outer.end_line, outer.end_column)
    )


def elements(buffer: Any) -> int | None:
    """How many elements a buffer of constant shape has."""
    total = 1
    for extent in buffer.shape:
        size = build.int_value(extent)
        if size is None:
            return None
        total *= size
    return total


def storage_of(view: Any) -> Any | None:
    """The buffer whose storage a DeclBuffer looks at; None for an address."""
    data = view.data
    if isinstance(data, tirx.Call) and str(getattr(data.op, "name", "")) == "tirx.buffer_data":
        return data.args[0]
    return None


def _is_handle(value: Any) -> bool:
    name = str(getattr(getattr(value, "op", None), "name", "")).rpartition(".")[2]
    return name in ("address_of", "access_ptr", "flat_access_ptr", "buffer_data")


def _rounded(size: int, align: int) -> int:
    return -(-size // align) * align
