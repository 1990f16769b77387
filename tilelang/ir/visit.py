"""How does a pass walk over a function, and how does it rewrite one?

`walk`, `find` and `collect` look; `substitute` and `map_nodes` rewrite locally. A pass that needs
to know where it is (loops around, conditions in force) subclasses `Rewriter`, which rebuilds only
what changed and gives every rebuilt node the span of the node it replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tilelang.ir import attrs, build, tirx

_BINARY = (
    "Add", "Sub", "Mul", "Div", "Mod", "FloorDiv", "FloorMod", "Min", "Max", "EQ", "NE", "LT",
    "LE", "GT", "GE", "And", "Or", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "LShift", "RShift",
)  # fmt: skip

# Node class -> method of Rewriter; classes without an entry are leaves.
_STMT_METHODS = {
    "Bind": "bind", "AssertStmt": "assert_", "For": "for_", "While": "while_",
    "BufferStore": "store", "AllocBuffer": "alloc", "DeclBuffer": "decl", "AttrStmt": "attr",
    "SeqStmt": "seq", "IfThenElse": "if_", "Evaluate": "evaluate",
}  # fmt: skip
_EXPR_METHODS = {
    **dict.fromkeys(_BINARY, "binary"),
    "Not": "unary", "BitwiseNot": "unary", "Cast": "cast", "Select": "select", "Call": "call",
    "TensorLoad": "load", "TensorRegion": "region", "Ramp": "ramp", "Broadcast": "broadcast",
    "Shuffle": "shuffle", "Var": "var",
}  # fmt: skip

_dispatch: dict[type, str] = {}


def _method_of(node: Any) -> str | None:
    if not _dispatch:
        for table in (_STMT_METHODS, _EXPR_METHODS):
            _dispatch.update({getattr(tirx, cls): method for cls, method in table.items()})
    return _dispatch.get(type(node))


def walk(node: Any) -> Iterator[Any]:
    """`node` and all statements and expressions below it, outermost first."""
    found: list[Any] = []
    tirx.structural_walk(node, [(tirx.Stmt, found.append), (tirx.Expr, found.append)], order="pre")
    return iter(found)


def collect(node: Any, kind: Any) -> list[Any]:
    """All nodes of class `kind` (`tirx.For`, `tirx.TensorLoad` …), outermost first."""
    found: list[Any] = []
    tirx.structural_walk(node, [(kind, found.append)], order="pre")
    return found


def contains(node: Any, predicate: Callable[[Any], bool]) -> bool:
    """Whether any node below `node`, itself included, satisfies `predicate`."""
    return any(predicate(n) for n in walk(node))


def uses(node: Any, variables: Sequence[tirx.Var]) -> bool:
    """Whether `node` mentions any of `variables`."""
    if not variables:
        return False
    wanted = set(variables)
    return any(v in wanted for v in collect(node, tirx.Var))


def substitute(node: Any, values: Mapping[tirx.Var, tirx.Expr]) -> Any:
    """`node` with scalar variables replaced; binders and buffer shapes are left alone."""
    return _Substitute(values).any(node) if values else node


def renewed(stmt: Any) -> Any:
    """A copy of `stmt` whose loop variables and names are its own."""
    return _Renew().any(stmt)


def storage_roots(node: Any) -> dict[tirx.Buffer, tirx.Buffer]:
    """Each view declared in `node`, with the buffer whose storage it looks at."""
    roots: dict[tirx.Buffer, tirx.Buffer] = {}
    for view in collect(node, tirx.DeclBuffer):
        data = view.data
        if isinstance(data, tirx.Call) and str(data.op.name) == "tirx.buffer_data":
            source = data.args[0]
            roots[view.buffer] = roots.get(source, source)
    return roots


def statements(stmt: tirx.Stmt) -> list[tirx.Stmt]:
    """The statements of a block in order: those of a sequence, or the statement itself."""
    return list(stmt.seq) if isinstance(stmt, tirx.SeqStmt) else [stmt]


def with_body(func: tirx.PrimFunc, body: tirx.Stmt) -> tirx.PrimFunc:
    """`func` around another body."""
    if body is func.body:
        return func
    made = tirx.PrimFunc(func.params, body, func.ret_type, span=func.span)
    return made.with_attr(dict(func.attrs)) if func.attrs else made


def map_launches(stmt: Any, rewrite: Callable[[Any], Any]) -> Any:
    """`stmt` with each launch, from its first thread axis on, as `rewrite` makes it."""
    if isinstance(stmt, tirx.SeqStmt):
        return build.seq([map_launches(s, rewrite) for s in stmt.seq], stmt.span)
    if not isinstance(stmt, tirx.AttrStmt):
        return stmt
    if str(stmt.attr_key) == attrs.THREAD_EXTENT:
        return rewrite(stmt)
    body = map_launches(stmt.body, rewrite)
    return tirx.AttrStmt(stmt.node, stmt.attr_key, stmt.value, body, stmt.span)


class Rewriter:
    """Rebuilds statements and expressions bottom-up; override the method of a node class."""

    def any(self, node: Any) -> Any:
        """A statement or expression, rewritten."""
        method = _method_of(node)
        return node if method is None else getattr(self, method)(node)

    stmt = any
    expr = any

    def many(self, nodes: Sequence[Any]) -> tuple[list[Any], bool]:
        """Each of `nodes` rewritten, and whether any changed."""
        old = list(nodes)
        new = [self.any(n) for n in old]
        return new, any_changed(old, new)

    # Statements.

    def bind(self, s: Any) -> Any:
        value = s.value
        new = self.any(value)
        return s if new is value else tirx.Bind(s.var, new, s.span)

    def assert_(self, s: Any) -> Any:
        condition = s.condition
        new = self.any(condition)
        if new is condition:
            return s
        return build.assertion(s.error_kind, new, s.message_parts, s.span)

    def for_(self, s: Any) -> Any:
        low, extent, body = s.min, s.extent, s.body
        new = self.any(low), self.any(extent), self.any(body)
        if new[0] is low and new[1] is extent and new[2] is body:
            return s
        return tirx.For(
            s.loop_var, new[0], new[1], s.kind, new[2],
            s.thread_binding, s.annotations, s.step, s.span,
        )  # fmt: skip

    def while_(self, s: Any) -> Any:
        condition, body = s.condition, s.body
        new = self.any(condition), self.any(body)
        if new[0] is condition and new[1] is body:
            return s
        return tirx.While(*new, s.span)

    def store(self, s: Any) -> Any:
        value = s.value
        new = self.any(value)
        indices, changed = self.many(s.indices)
        if new is value and not changed:
            return s
        return tirx.BufferStore(s.buffer, new, indices, s.span)

    def alloc(self, s: Any) -> Any:
        return s

    def decl(self, s: Any) -> Any:
        data = s.data
        new = self.any(data)
        return s if new is data else tirx.DeclBuffer(s.buffer, data=new, span=s.span)

    def attr(self, s: Any) -> Any:
        value, body = s.value, s.body
        new = self.any(value), self.any(body)
        if new[0] is value and new[1] is body:
            return s
        return tirx.AttrStmt(s.node, s.attr_key, new[0], new[1], s.span)

    def seq(self, s: Any) -> Any:
        new, changed = self.many(s.seq)
        return build.seq(new, s.span) if changed else s

    def if_(self, s: Any) -> Any:
        condition, then, orelse = s.condition, s.then_case, s.else_case
        new = self.any(condition), self.any(then), None if orelse is None else self.any(orelse)
        if new[0] is condition and new[1] is then and new[2] is orelse:
            return s
        return tirx.IfThenElse(*new, s.span)

    def evaluate(self, s: Any) -> Any:
        value = s.value
        new = self.any(value)
        return s if new is value else tirx.Evaluate(new, s.span)

    # Expressions.

    def binary(self, e: Any) -> Any:
        a, b = e.a, e.b
        new = self.any(a), self.any(b)
        if new[0] is a and new[1] is b:
            return e
        return type(e)(new[0], new[1], e.span)

    def unary(self, e: Any) -> Any:
        a = e.a
        new = self.any(a)
        return e if new is a else type(e)(new, e.span)

    def cast(self, e: Any) -> Any:
        value = e.value
        new = self.any(value)
        return e if new is value else tirx.Cast(str(e.ty.dtype), new, e.span)

    def select(self, e: Any) -> Any:
        old = [e.condition, e.true_value, e.false_value]
        new = [self.any(x) for x in old]
        return tirx.Select(*new, e.span) if any_changed(old, new) else e

    def call(self, e: Any) -> Any:
        new, changed = self.many(e.args)
        if not changed:
            return e
        return tirx.Call(e.op, new, attrs=e.attrs, ty_args=e.ty_args, span=e.span, ret_ty=e.ty)

    def load(self, e: Any) -> Any:
        indices, changed = self.many(e.indices)
        return tirx.BufferLoad(e.source, indices, e.span) if changed else e

    def region(self, e: Any) -> Any:
        old = [bound for r in e.region for bound in (r.min, r.extent)]
        new = [self.any(x) for x in old]
        if not any_changed(old, new):
            return e
        boxes = [tirx.Range.from_min_extent(new[n], new[n + 1]) for n in range(0, len(new), 2)]
        return tirx.TensorRegion(e.source, boxes, e.ty, e.span)

    def ramp(self, e: Any) -> Any:
        base, stride = e.base, e.stride
        new = self.any(base), self.any(stride)
        if new[0] is base and new[1] is stride:
            return e
        return tirx.Ramp(new[0], new[1], e.lanes, e.span)

    def broadcast(self, e: Any) -> Any:
        value = e.value
        new = self.any(value)
        return e if new is value else tirx.Broadcast(new, e.lanes, e.span)

    def shuffle(self, e: Any) -> Any:
        vectors, changed = self.many(e.vectors)
        return tirx.Shuffle(vectors, list(e.indices), e.span) if changed else e

    def var(self, e: Any) -> Any:
        return e


def any_changed(old: Sequence[Any], new: Sequence[Any]) -> bool:
    """Whether rewriting replaced any element (identity of the Python objects handed out)."""
    return any(a is not b for a, b in zip(old, new, strict=True))


class _Substitute(Rewriter):
    def __init__(self, values: Mapping[tirx.Var, tirx.Expr]) -> None:
        self._values = dict(values)

    def var(self, e: Any) -> Any:
        return self._values.get(e, e)


class _Renew(Rewriter):
    def __init__(self) -> None:
        self._names: dict[Any, Any] = {}

    def for_(self, s: Any) -> Any:
        var = self._names[s.loop_var] = _like(s.loop_var)
        new = super().for_(s)
        return tirx.For(
            var, new.min, new.extent, new.kind, new.body, new.thread_binding, new.annotations,
            new.step, new.span,
        )  # fmt: skip

    def bind(self, s: Any) -> Any:
        value = self.any(s.value)
        var = self._names[s.var] = _like(s.var)
        return tirx.Bind(var, value, s.span)

    def var(self, e: Any) -> Any:
        return self._names.get(e, e)


def _like(var: Any) -> Any:
    return tirx.Var(str(var.name), build.dtype_of(var), var.span)
