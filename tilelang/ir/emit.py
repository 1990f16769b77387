"""How does a tile program become a TIRX function?

Emission is one straight translation: nothing is analysed or rewritten.

Contract of the result
- Parameters in call order, then outputs: buffer variables (alignment = one element, strides
  kept) and scalar variables. Runtime dimensions are free variables bound by buffer shapes.
- `T.Kernel` -> nested `thread_extent` attributes, blockIdx z, y, x outside threadIdx z, y, x.
- allocations -> `AllocBuffer`; views and `make_tensor` -> `DeclBuffer`; lets -> `Bind`.
- tile operations -> `Evaluate(Call("tl.<name>", regions and expressions, literals as attrs))`.
- `T.Parallel` -> nested PARALLEL loops annotated with their position in the nest; `T.Pipelined`
  -> a serial loop with its schedule as annotations; steps are normalised to 1.
- annotations and assumptions -> calls of `tl.annotate` / `tl.assume` in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

from tilelang.ir import attrs, build, tirx
from tilelang.ir.emit_expr import ExprEmitter, literal_attrs
from tilelang.ir.extents import with_matched_extents
from tilelang.ir.spans import TirSpan, to_tir
from tilelang.program import buffer as bf
from tilelang.program import expr as ex
from tilelang.program import stmt as st


def emit(function: st.Function) -> tirx.PrimFunc:
    """The PrimFunc that means what `function` means."""
    return _Emitter().function(function)


class _Emitter:
    """One emission: the expression emitter holds which program value became which IR value."""

    def __init__(self) -> None:
        self.exprs = ExprEmitter()

    def function(self, function: st.Function) -> tirx.PrimFunc:
        span = to_tir(function.span)
        params = [self._param(p) for p in (*function.params, *function.outputs)]
        body = self.block(function.body, span)
        found: dict[str, Any] = {
            attrs.GLOBAL_SYMBOL: function.name,
            attrs.NUM_OUTPUTS: len(function.outputs),
            attrs.STAGE: "tile",
        }
        nullable = [p.name for p in function.params if isinstance(p, bf.Buffer) and p.nullable]
        if nullable:
            found[attrs.NULLABLE] = nullable
        for key, value in literal_attrs(function.attrs).items():
            found[attrs.FUNCTION_PREFIX + key] = value
        return tirx.PrimFunc(params, body, span=span).with_attr(found)

    def _param(self, param: bf.Buffer | ex.Var) -> tirx.Var:
        if isinstance(param, bf.Buffer):
            return self.exprs.declare_buffer(param)
        return self.exprs.declare_var(param)

    def block(self, block: st.Block, span: TirSpan) -> tirx.Stmt:
        with self.exprs.block():
            return build.seq([s for stmt in block for s in self._located(stmt)], span)

    def _located(self, stmt: st.Stmt) -> Sequence[tirx.Stmt]:
        """The statements of one program statement; its expressions inherit its calls.

        Views that no statement declares (`T.make_tensor` in an expression) are declared before
        the first statement of a block that uses them.
        """
        span = to_tir(stmt.span, stmt.calls)
        with self.exprs.inside(stmt.span, stmt.calls):
            emitted = self.statement(stmt, span)
            return [*self.exprs.take_views(), *emitted]

    def statement(self, stmt: st.Stmt, span: TirSpan) -> Sequence[tirx.Stmt]:
        match stmt:
            case st.Allocate():
                return self._allocate(stmt, span)
            case st.Let(var=var, value=value):
                emitted = self.exprs.expr(value)
                return [tirx.Bind(self.exprs.declare_var(var), emitted, span)]
            case st.Store(buffer=buffer, indices=indices, value=value):
                places = [self.exprs.expr(i) for i in indices]
                return [
                    build.store(self.exprs.buffer(buffer), places, self.exprs.expr(value), span)
                ]
            case st.TileOp():
                return [self._tile_op(stmt, span)]
            case st.Evaluate(value=value):
                return [build.evaluate(self.exprs.expr(value), span)]
            case st.For():
                return [self._for(stmt, span)]
            case st.While(condition=condition, body=body):
                return [tirx.While(self.exprs.expr(condition), self.block(body, span), span)]
            case st.If(condition=condition, then=then, orelse=orelse):
                otherwise = self.block(orelse, span) if orelse else None
                test = self.exprs.expr(condition)
                return [tirx.IfThenElse(test, self.block(then, span), otherwise, span)]
            case st.Assert(condition=condition, message=message):
                parts = [tirx.StringImm(message, span)]
                kind = tirx.StringImm("AssertionError", span)
                return [build.assertion(kind, self.exprs.expr(condition), parts, span)]
            case st.Assume(condition=condition):
                fact = build.call("assume", [self.exprs.expr(condition)], span=span)
                return [build.evaluate(fact, span)]
            case st.Jump(kind=kind):
                return [self._jump(kind, span)]
            case st.Annotate(key=key, value=value):
                return [self._annotate(key, value, span)]
            case st.Scoped():
                return [self._scoped(stmt, span)]
            case st.Launch():
                return [self._launch(stmt, span)]
            case _:
                assert_never(stmt)

    def _allocate(self, stmt: st.Allocate, span: TirSpan) -> Sequence[tirx.Stmt]:
        buffer = stmt.buffer
        if buffer.source is not None or buffer.pointer is not None:
            return [self.exprs.view(buffer, span)]
        declared = self.exprs.declare_buffer(buffer)
        found = {attrs.ALLOC_PREFIX + k: v for k, v in literal_attrs(buffer.attrs).items()}
        allocate = build.allocate(declared, found, span)
        if stmt.init is None:
            return [allocate]
        zeros = [build.const(0, "int32", span) for _ in buffer.shape]
        return [allocate, build.store(declared, zeros, self.exprs.expr(stmt.init), span)]

    def _tile_op(self, stmt: st.TileOp, span: TirSpan) -> tirx.Stmt:
        tirx.ensure_op(stmt.name)
        args = [self.exprs.operand(a) for a in with_matched_extents(stmt.name, stmt.args)]
        call = build.call(stmt.name, args, attrs=literal_attrs(stmt.attrs), span=span)
        return build.evaluate(call, span)

    def _jump(self, kind: str, span: TirSpan) -> tirx.Stmt:
        if kind == "break":
            return tirx.Break(span)
        if kind == "continue":
            return tirx.Continue(span)
        return build.evaluate(build.call("thread_return", [], span=span), span)

    def _for(self, stmt: st.For, span: TirSpan) -> tirx.Stmt:
        opened = [self._open_loop(v) for v in stmt.loop_vars]
        body = self.block(stmt.body, span)
        kind, annotations = _loop_form(stmt)
        for position, (var, low, extent) in reversed(list(enumerate(opened))):
            found = dict(annotations)
            if stmt.kind == "parallel":
                found[attrs.PARALLEL] = position
                found[attrs.PARALLEL_RANK] = len(opened)
            body = build.loop(var, extent, body, kind=kind, low=low, annotations=found, span=span)
        return body

    def _open_loop(self, loop_var: st.LoopVar) -> tuple[tirx.Var, tirx.Expr, tirx.Expr]:
        """The IR loop of one variable: the variable, its first value and its trip count."""
        start = self.exprs.expr(loop_var.start)
        extent = self.exprs.expr(loop_var.extent)
        step = None if loop_var.step is None else self.exprs.expr(loop_var.step)
        dtype = build.tir_dtype(loop_var.var.dtype)
        start, extent = build.cast(start, dtype), build.cast(extent, dtype)
        if step is None or build.is_int(step, 1):
            return self.exprs.declare_var(loop_var.var), start, extent
        span = to_tir(loop_var.var.span)
        counter = tirx.Var(loop_var.var.name, dtype, span)
        scaled = build.mul(counter, build.cast(step, dtype), span)
        self.exprs.bind(loop_var.var, build.add(start, scaled, span))
        return counter, build.const(0, dtype, span), extent

    def _annotate(self, key: str, value: Any, span: TirSpan) -> tirx.Stmt:
        """`key` and the buffers it is about as operands; what is said of them as attributes."""
        operands: list[Any] = [tirx.StringImm(key, span)]
        if not isinstance(value, dict):
            found = literal_attrs((("value", value),))
            return build.evaluate(build.call("annotate", operands, attrs=found, span=span), span)
        said = []
        for subject, content in value.items():
            operands.append(self.exprs.buffer(subject))
            if key == attrs.SAFE_VALUE:
                operands.append(self.exprs.constant(content, subject.dtype))
            else:
                said.append(content)
        found = literal_attrs((("values", tuple(said)),)) if said else {}
        return build.evaluate(build.call("annotate", operands, attrs=found, span=span), span)

    def _scoped(self, stmt: st.Scoped, span: TirSpan) -> tirx.Stmt:
        said = literal_attrs((("args", stmt.args),))
        body = self.block(stmt.body, span)
        zero = build.const(0, "int32", span)
        return tirx.AttrStmt(said, attrs.SCOPED + stmt.kind, zero, body, span)

    def _launch(self, stmt: st.Launch, span: TirSpan) -> tirx.Stmt:
        # z outermost, x innermost; blocks outside threads.
        blocks = list(zip(stmt.blocks, attrs.BLOCK_TAGS, strict=False))
        threads = list(zip(stmt.threads, attrs.THREAD_TAGS, strict=False))
        axes = [*reversed(blocks), *reversed(threads)]
        opened = []
        for (var, extent), tag in axes:
            size = build.cast(self.exprs.expr(extent), build.tir_dtype(var.dtype), span)
            opened.append((self.exprs.declare_var(var), size, tag))
        body = self.block(stmt.body, span)
        for var, size, tag in reversed(opened):
            domain = tirx.Range.from_min_extent(build.const(0, build.dtype_of(var)), size)
            axis = tirx.IterVar(domain, var, tirx.IterVar.ThreadIndex, tag, span)
            body = tirx.AttrStmt(axis, attrs.THREAD_EXTENT, size, body, span)
        if stmt.attrs:
            zero = build.const(0, "int32", span)
            body = tirx.AttrStmt(literal_attrs(stmt.attrs), attrs.LAUNCH, zero, body, span)
        return body


def _loop_form(stmt: st.For) -> tuple[str, dict[str, Any]]:
    """The loop kind of TIRX, and the annotations that say the rest."""
    said = literal_attrs(stmt.attrs)
    match stmt.kind:
        case "serial":
            return "SERIAL", _prefixed(said)
        case "unroll":
            return "UNROLLED", _prefixed(said)
        case "vectorized":
            return "VECTORIZED", _prefixed(said)
        case "parallel":
            return "PARALLEL", _prefixed(said)
        case "cpu_parallel":
            return "PARALLEL", {attrs.CPU_PARALLEL: True, **_prefixed(said)}
        case "pipelined":
            known = {
                "num_stages": attrs.NUM_STAGES,
                "order": attrs.ORDER,
                "stage": attrs.LOOP_STAGE,
            }
            found = {known[k]: v for k, v in said.items() if k in known and v is not None}
            rest = {k: v for k, v in said.items() if k not in known}
            return "SERIAL", {attrs.PIPELINED: True, **found, **_prefixed(rest)}
        case _:
            assert_never(stmt.kind)


def _prefixed(said: dict[str, Any]) -> dict[str, Any]:
    return {attrs.LOOP_ATTR_PREFIX + k: v for k, v in said.items() if v is not None}
