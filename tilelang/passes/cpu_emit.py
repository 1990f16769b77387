"""How does a split block become statements again: thread loops, and what lives across them?

A private buffer used in one group only is allocated in that group's loop, so it can stay in
registers; one that lives across groups gets a leading dimension of one element per thread. A
variable bound in one group and used in another is computed again there when that is free, and
kept in such an array when it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tilelang.ir import attrs, build, tirx
from tilelang.ir.tile_op import op_of
from tilelang.ir.visit import Rewriter, collect, walk
from tilelang.passes.cpu_divergence import Divergence
from tilelang.passes.cpu_split import Control, Group, NeedsThreads, Node, Once

Indices = Callable[[Any], dict[Any, Any]]


def emit_skeleton(
    nodes: list[Node], divergence: Divergence, thread: Any, indices: Indices, span: Any
) -> Any:
    """The statements of a whole block; `thread` is what the skeleton calls the thread."""
    return _Emitter(nodes, divergence, thread, indices, span).whole()


class _Emitter:
    def __init__(
        self, nodes: list[Node], divergence: Divergence, thread: Any, indices: Indices, span: Any
    ) -> None:
        self.nodes = nodes
        self.divergence = divergence
        self.thread = thread
        self.indices = indices
        self.span = span
        self.expanded: dict[Any, Any] = {}  # private buffer -> its array of copies
        self.sunk: dict[int, list[Any]] = {}  # group -> allocations that move into it
        self.kept: dict[Any, Any] = {}  # variable -> the array it is kept in
        self.inlined: dict[Any, Any] = {}  # variable -> its value, computed where it is used
        self.alive: Any = None  # which threads have not returned

    def whole(self) -> Any:
        self._place_buffers(self.nodes)
        self._place_variables()
        if any(_returns(s) for g in _groups(self.nodes) for s in g.stmts):
            self.alive = self._array("alive", "bool")
        body = self._block(self.nodes)
        first = [tirx.AllocBuffer(b, None, self.span) for b in self.kept.values()]
        if self.alive is not None:
            t = tirx.Var("t", "int32", self.span)
            true = build.const(True, "bool", self.span)
            first += [
                tirx.AllocBuffer(self.alive, None, self.span),
                self._over_threads(t, build.store(self.alive, [t], true, self.span)),
            ]
        return build.seq([*first, *body], self.span)

    # --- what lives across groups ---

    def _place_buffers(self, nodes: list[Node]) -> None:
        for node in list(nodes):
            if isinstance(node, Control):
                self._place_buffers(node.body)
                self._place_buffers(node.orelse)
            elif isinstance(node, Once) and isinstance(node.stmt, tirx.AllocBuffer):
                buffer = node.stmt.buffer
                if buffer in self.divergence.expanded:
                    self._place_buffer(node, buffer, nodes)
            elif isinstance(node, Once) and isinstance(node.stmt, tirx.DeclBuffer):
                if self.divergence.root(node.stmt.buffer) in self.expanded:
                    self.expanded[node.stmt.buffer] = self._copies(node.stmt.buffer)

    def _place_buffer(self, node: Once, buffer: Any, siblings: list[Node]) -> None:
        users = [n for n in _all(self.nodes) if n is not node and _mentions(n, buffer)]
        only = users[0] if len(users) == 1 else None
        if isinstance(only, Group) and any(n is only for n in siblings):
            self.sunk.setdefault(id(only), []).append(node.stmt)
            siblings.remove(node)
        else:
            self.expanded[buffer] = self._copies(buffer)

    def _copies(self, buffer: Any) -> Any:
        shape = [build.const(self.divergence.threads, "int32"), *buffer.shape]
        return tirx.decl_buffer(
            shape, str(buffer.dtype), name=buffer.name, scope="shared", data_alignment=64,
            span=buffer.span, layout=None,
        )  # fmt: skip

    def _place_variables(self) -> None:
        groups = list(_groups(self.nodes))
        for group in groups:
            for s in group.stmts:
                if not isinstance(s, tirx.Bind):
                    continue
                if not any(n is not group and _mentions(n, s.var) for n in _all(self.nodes)):
                    continue
                if _is_free(s.value):
                    self.inlined[s.var] = s.value
                else:
                    self.kept[s.var] = self._array(s.var.name, build.dtype_of(s.value))

    def _array(self, name: str, dtype: str) -> Any:
        return tirx.decl_buffer(
            [build.const(self.divergence.threads, "int32")], dtype, name=name, scope="shared",
            data_alignment=64, span=self.span, layout=None,
        )  # fmt: skip

    # --- statements ---

    def _block(self, nodes: Sequence[Node]) -> list[Any]:
        return [s for node in nodes for s in self._node(node)]

    def _node(self, node: Node) -> Iterator[Any]:
        if isinstance(node, Group):
            if node.stmts:
                yield self._group(node)
        elif isinstance(node, Once):
            yield self._once(node.stmt)
        else:
            yield self._control(node)

    def _once(self, s: Any) -> Any:
        if isinstance(s, tirx.AllocBuffer):
            found = self.expanded.get(s.buffer)
            return s if found is None else tirx.AllocBuffer(found, None, s.span)
        if isinstance(s, tirx.DeclBuffer):
            found = self.expanded.get(s.buffer)
            if found is None:
                return s
            data = tirx.buffer_data(self.expanded[s.data.args[0]])
            return tirx.DeclBuffer(found, data=data, span=s.span)
        return self._uniform().any(s)

    def _uniform(self) -> _ForThread:
        """Rewrites what runs once: any thread's view will do, so it takes that of the first."""
        return _ForThread(self, build.const(0, "int32"), once=True)

    def _control(self, node: Control) -> Any:
        s = node.stmt
        body = build.seq(self._block(node.body), s.span)
        if isinstance(s, tirx.For):
            rewrite = self._uniform()
            return tirx.For(
                s.loop_var, rewrite.any(s.min), rewrite.any(s.extent), s.kind, body,
                s.thread_binding, s.annotations, s.step, s.span,
            )  # fmt: skip
        condition = self._uniform().any(node.condition)
        if isinstance(s, tirx.IfThenElse):
            orelse = build.seq(self._block(node.orelse), s.span) if node.orelse else None
            return tirx.IfThenElse(condition, body, orelse, s.span)
        if not node.orelse:
            return tirx.While(condition, body, s.span)
        # The condition itself takes an exchange, made anew before every iteration.
        leave = tirx.IfThenElse(tirx.Not(condition, s.span), tirx.Break(s.span), None, s.span)
        again = build.seq([*self._block(node.orelse), leave, body], s.span)
        return tirx.While(build.const(True, "bool", s.span), again, s.span)

    def _group(self, group: Group) -> Any:
        t = tirx.Var("t", "int32", self.span)
        rewrite = _ForThread(self, t)
        parts: list[Any] = list(self.sunk.get(id(group), []))
        for s in group.stmts:
            parts.append(rewrite.any(s))
            if isinstance(s, tirx.Bind) and s.var in self.kept:
                parts.append(build.store(self.kept[s.var], [t], s.var, s.span))
        body = build.seq(parts, group.stmts[0].span)
        conditions = [] if self.alive is None else [build.load(self.alive, [t], self.span)]
        for guard in group.guards:
            taken = build.load(guard.buffer, [t], self.span)
            conditions.append(tirx.Not(taken, self.span) if guard.negated else taken)
        condition = build.all_of(conditions, self.span)
        if condition is not None:
            body = tirx.IfThenElse(condition, body, None, body.span)
        return self._over_threads(t, body)

    def _over_threads(self, t: Any, body: Any) -> Any:
        """Threads between two barriers must not depend on each other's order."""
        ordered = any(_is_effect(c) for c in collect(body, tirx.Call)) or bool(
            collect(body, tirx.While)
        )
        return build.loop(
            t, build.const(self.divergence.threads, "int32"), body,
            kind="SERIAL" if ordered else "PARALLEL", annotations={attrs.THREAD_LOOP: True},
            span=body.span,
        )  # fmt: skip


class _ForThread(Rewriter):
    """Rewrites code of the skeleton for thread `t`."""

    def __init__(self, owner: _Emitter, t: Any, once: bool = False) -> None:
        self.owner = owner
        self.t = t
        self.once = once
        self._indices = owner.indices(t)
        self._bound: set[Any] = set()

    def bind(self, s: Any) -> Any:
        self._bound.add(s.var)
        return super().bind(s)

    def var(self, e: Any) -> Any:
        owner = self.owner
        if e.same_as(owner.thread):
            return self.t
        if e in self._indices:
            return self._indices[e]
        if e in self._bound:
            return e
        if e in owner.inlined:
            return self.any(owner.inlined[e])
        if e in owner.kept:
            self._check_first_thread(e.name, e)
            return build.load(owner.kept[e], [self.t], e.span)
        return e

    def _check_first_thread(self, name: str, node: Any) -> None:
        if self.once and self.owner.alive is not None:
            raise NeedsThreads(
                f"`{name}` is used by the whole block after some threads have returned",
                node.span or self.owner.span,
                help="replace T.thread_return by a branch around the rest",
            )

    def load(self, e: Any) -> Any:
        found = self.owner.expanded.get(e.source)
        indices, changed = self.many(e.indices)
        if found is None:
            return tirx.BufferLoad(e.source, indices, e.span) if changed else e
        self._check_first_thread(e.source.name, e)
        return build.load(found, [self.t, *indices], e.span)

    def store(self, s: Any) -> Any:
        found = self.owner.expanded.get(s.buffer)
        if found is None:
            return super().store(s)
        indices, _ = self.many(s.indices)
        return tirx.BufferStore(found, self.any(s.value), [self.t, *indices], s.span)

    def region(self, e: Any) -> Any:
        found = self.owner.expanded.get(e.source)
        if found is None:
            return super().region(e)
        pairs = [(self.any(r.min), self.any(r.extent)) for r in e.region]
        return build.region(found, [(self.t, build.const(1, "int32")), *pairs], e.span)

    def call(self, e: Any) -> Any:
        name = op_of(e)
        if name == "get_lane_idx":
            return tirx.FloorMod(self.t, _warp_size(e), e.span)
        if name in ("get_warp_idx", "get_warp_idx_sync"):
            return tirx.FloorDiv(self.t, _warp_size(e), e.span)
        if name == "get_warp_group_idx":
            warps = build.const(int(_said(e, "warps_per_group") or 4), "int32")
            size = tirx.Mul(_warp_size(e), warps, e.span)
            return tirx.FloorDiv(self.t, size, e.span)
        if name == "shuffle_elect":
            group = int(_said(e, "thread_extent") or self.owner.divergence.threads)
            own = tirx.FloorMod(self.t, build.const(group, "int32"), e.span)
            return tirx.EQ(own, build.const(0, "int32"), e.span)
        return super().call(e)

    def evaluate(self, s: Any) -> Any:
        if op_of(s.value) == "thread_return" and not self.once:
            gone = build.store(
                self.owner.alive, [self.t], build.const(False, "bool", s.span), s.span
            )
            return build.seq([gone, s], s.span)
        return super().evaluate(s)


def _warp_size(e: Any) -> Any:
    return build.const(int(_said(e, "warp_size") or 32), "int32")


def _said(e: Any, key: str) -> Any:
    return e.attrs[key] if e.attrs is not None and key in e.attrs else None


def _returns(s: Any) -> bool:
    return any(op_of(c) == "thread_return" for c in collect(s, tirx.Call))


def _is_effect(call: Any) -> bool:
    """Whether a call does more than yield a value."""
    name = op_of(call)
    return name is not None and name not in ("truncdiv", "truncmod", "erf", "sigmoid", "bfe")


def _is_free(value: Any) -> bool:
    """Whether computing `value` again costs next to nothing and gives the same."""
    for node in walk(value):
        if isinstance(node, tirx.TensorLoad):
            return False
        if isinstance(node, tirx.Call):
            name = op_of(node)
            if name is not None and not name.startswith(("get_", "shuffle_elect", "trunc")):
                return False
    return True


def _groups(nodes: Sequence[Node]) -> Iterator[Group]:
    for node in _all(nodes):
        if isinstance(node, Group):
            yield node


def _all(nodes: Sequence[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        if isinstance(node, Control):
            yield from _all(node.body)
            yield from _all(node.orelse)


def _mentions(node: Node, var: Any) -> bool:
    """Whether a node itself (not what it encloses) uses `var`."""
    if isinstance(node, Group):
        parts: list[Any] = list(node.stmts)
    elif isinstance(node, Once):
        parts = [node.stmt]
    elif isinstance(node.stmt, tirx.For):
        parts = [node.stmt.min, node.stmt.extent]
    else:
        parts = [node.condition]
    return any(v.same_as(var) for part in parts for v in _variables(part))


def _variables(part: Any) -> Iterator[Any]:
    for node in walk(part):
        if isinstance(node, tirx.Var):
            yield node
        elif isinstance(node, (tirx.TensorLoad, tirx.TensorRegion)):
            yield node.source
        elif isinstance(node, tirx.BufferStore):
            yield node.buffer
        elif isinstance(node, tirx.DeclBuffer):
            yield from (a for a in node.data.args if isinstance(a, tirx.Var))
