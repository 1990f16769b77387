"""How do the statements of one launch become a function that runs a range of its blocks?

The function loops over linear block numbers, recovers blockIdx, and runs the body once per block.
Loops marked parallel tell LLVM that their iterations are independent, which is all its
vectoriser needs to know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tilelang.codegen import cpu_types as types
from tilelang.codegen.cpu_bounds import Interval
from tilelang.codegen.cpu_builder import Builder, Val, integer
from tilelang.codegen.cpu_element import Unsupported
from tilelang.codegen.cpu_expr import Expressions, dtype_of
from tilelang.codegen.cpu_memory import row_major
from tilelang.codegen.cpu_vector import vector_form
from tilelang.ir import attrs
from tilelang.ir.spans import from_tir

_SERIAL, _PARALLEL, _VECTORIZED, _UNROLLED = 0, 1, 2, 3  # tirx.ForKind
_UNROLL_LIMIT = 64


@dataclass(frozen=True, slots=True)
class _Loop:
    """Where `continue` and `break` go."""

    latch: str
    exit: str


class Statements:
    """Emits statements into the function of `x`."""

    def __init__(self, x: Expressions, fail: Callable[[Val, str, Any], None]) -> None:
        self.x = x
        self.b: Builder = x.b
        self._fail = fail
        self._loops: list[_Loop] = []
        self.thread_end: str | None = None  # where T.thread_return goes in a loop over threads
        self._rules: dict[str, Callable[[Any], None]] = {
            "SeqStmt": self._seq, "For": self._for, "While": self._while, "IfThenElse": self._if,
            "BufferStore": self._store, "Evaluate": self._evaluate, "Bind": self._bind,
            "AllocBuffer": self._alloc, "DeclBuffer": self._decl, "AttrStmt": self._attr,
            "AssertStmt": self._assert, "Break": self._break, "Continue": self._continue,
        }  # fmt: skip

    def emit(self, stmt: Any) -> None:
        """Append the code of `stmt`."""
        rule = self._rules.get(type(stmt).__name__)
        if rule is None:
            raise Unsupported(f"a statement of kind {type(stmt).__name__}", stmt)
        outer = self.b.at
        self.b.at = from_tir(stmt.span) or outer
        rule(stmt)
        self.b.at = outer

    def _seq(self, s: Any) -> None:
        for inner in s.seq:
            self.emit(inner)

    def _attr(self, s: Any) -> None:
        self.emit(s.body)

    def _bind(self, s: Any) -> None:
        self.x.bind(s.var, s.value)

    def _evaluate(self, s: Any) -> None:
        if type(s.value).__name__ != "IntImm":
            self.x.value(s.value)

    def _assert(self, s: Any) -> None:
        text = "".join(str(p.value) for p in s.message_parts)
        self._fail(self.x.condition(s.condition), text, s)

    # --- memory ---

    def _alloc(self, s: Any) -> None:
        shape = []
        for dim in s.buffer.shape:
            known = self.x.bounds.of(dim).constant
            if known is None:
                raise Unsupported(f"on-chip buffer {s.buffer.name} without a constant shape", s)
            shape.append(known)
        self.x.memory.allocate(s.buffer, shape)

    def _decl(self, s: Any) -> None:
        declare_view(self.x, s.buffer, s.data)

    def _store(self, s: Any) -> None:
        x = self.x
        view = x.memory.view(s.buffer)
        value = x.value(s.value)
        offset, lanes = x.place(view, list(s.indices))
        source, target = dtype_of(s.value), view.dtype
        if source.base != target.base:
            value = types.convert(self.b, value, source, target)
        x.memory.store(view, offset, self.b.splat(value, lanes * target.lanes)
                       if value.lanes == 1 else value)  # fmt: skip

    # --- control flow ---

    def _if(self, s: Any) -> None:
        b = self.b
        then, orelse, done = b.label("if"), b.label("otherwise"), b.label("endif")
        b.branch_if(self.x.condition(s.condition), then, orelse if s.else_case else done)
        b.open(then)
        self.emit(s.then_case)
        b.branch(done)
        if s.else_case:
            b.open(orelse)
            self.emit(s.else_case)
        b.open(done)

    def _while(self, s: Any) -> None:
        b = self.b
        head, body, done = b.label("while"), b.label("do"), b.label("done")
        b.open(head)
        b.branch_if(self.x.condition(s.condition), body, done)
        b.open(body)
        with self._inside(_Loop(head, done)):
            self.emit(s.body)
        b.branch(head)
        b.open(done)

    def _break(self, s: Any) -> None:
        self._jump(s, "break", lambda loop: loop.exit)

    def _continue(self, s: Any) -> None:
        self._jump(s, "continue", lambda loop: loop.latch)

    def _jump(self, s: Any, word: str, where: Callable[[_Loop], str]) -> None:
        if not self._loops:
            raise Unsupported(f"{word} outside a loop", s)
        self.b.branch(where(self._loops[-1]))

    @contextmanager
    def _inside(self, loop: _Loop) -> Iterator[None]:
        self._loops.append(loop)
        try:
            yield
        finally:
            self._loops.pop()

    def _for(self, s: Any) -> None:
        x, b = self.x, self.b
        low, extent = x.bounds.of(s.min), x.bounds.of(s.extent)
        if extent.high <= 0:
            return
        x.bounds.bind(s.loop_var, Interval(low.low, max(low.low, low.high + extent.high - 1)))
        base = types.register(dtype_of(s.loop_var))
        if extent.constant == 1:
            x.values[s.loop_var] = x.value(s.min)
            with self._once():
                self.emit(s.body)
            return
        kind = int(s.kind)
        vector = vector_form(x, s) if kind == _VECTORIZED else None
        if vector is not None:
            vector()
            return
        start = x.value(s.min)
        stop = b.binary("add", start, x.value(s.extent), "nsw ")
        self._counted(s, base, start, stop, kind)

    @contextmanager
    def _once(self) -> Iterator[None]:
        """A loop of one iteration: `continue` and `break` both leave it."""
        done = self.b.label("once")
        with self._inside(_Loop(done, done)):
            yield
        self.b.open(done)

    def _counted(self, s: Any, base: str, start: Val, stop: Val, kind: int) -> None:
        x, b = self.x, self.b
        head, body = b.label("for"), b.label("body")
        latch, done = b.label("next"), b.label("done")
        before = b.block
        b.open(head)
        after = b.label("%i")
        var = b.emit(f"phi {base} [ {start.ref}, %{before} ], [ {after}, %{latch} ]", base)
        b.branch_if(b.compare("slt", var, stop), body, done)
        b.open(body)
        x.values[s.loop_var] = var
        parallel = kind in (_PARALLEL, _VECTORIZED)
        group = x.memory.open_parallel() if parallel else None
        outer, outer_var = self.thread_end, x.loop_var
        x.loop_var = s.loop_var if parallel else None
        if s.annotations and attrs.THREAD_LOOP in s.annotations:
            self.thread_end = latch
        with self._inside(_Loop(latch, done)):
            self.emit(s.body)
        self.thread_end, x.loop_var = outer, outer_var
        if group is not None:
            x.memory.close_parallel()
        b.open(latch)
        b.do(f"{after} = add nsw {base} {var.ref}, 1")
        hints = self._hints(s, kind, group)
        b.branch(head, f", !llvm.loop {hints}" if hints else "")
        b.open(done)

    def _hints(self, s: Any, kind: int, group: str | None) -> str | None:
        """Loop metadata: what LLVM may assume and should do."""
        node = self.b.module.node
        hints = []
        if group is not None:
            hints.append(node(f'!{{!"llvm.loop.parallel_accesses", {group}}}'))
        if kind == _UNROLLED:
            extent = self.x.bounds.of(s.extent).constant
            whole = extent is not None and extent <= _UNROLL_LIMIT
            word = "llvm.loop.unroll.full" if whole else "llvm.loop.unroll.enable"
            hints.append(node(f'!{{!"{word}"}}'))
        return node(f"distinct !{{SELF, {', '.join(hints)}}}") if hints else None


def declare_view(x: Expressions, buffer: Any, data: Any) -> None:
    """Make `buffer` known as a view of other storage, or of an address computed here."""
    shape = tuple(x.index(d) for d in buffer.shape)
    given = list(buffer.strides or [])
    strides = tuple(x.index(s) for s in given) if given else row_major(x.b, shape)
    offset = x.index(buffer.elem_offset) if buffer.elem_offset is not None else integer(0, "i64")
    name = str(getattr(getattr(data, "op", None), "name", ""))
    if name.endswith("buffer_data"):
        x.memory.alias(buffer, data.args[0], shape, strides, offset)
    else:
        x.memory.outside(buffer, x.value(data), shape, strides, offset)
