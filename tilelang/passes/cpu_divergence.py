"""Which values differ between the threads of a block, and which statements must run per thread?

A value is divergent when it comes from the thread index, from an exchange between threads, from
memory at a divergent place, or from a private buffer written under a divergent condition.
Everything else is uniform: computing it once gives what every thread would have computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from tilelang.ir import tirx
from tilelang.ir.tile_op import called_op, op_of
from tilelang.ir.visit import collect, statements, walk
from tilelang.program.tile_ops import SCHEMAS

BLOCK_BARRIERS: Final = frozenset({"sync_threads"})
WARP_BARRIERS: Final = frozenset({"sync_warp"})
BLOCK_EXCHANGES: Final = frozenset({"syncthreads_and", "syncthreads_or", "syncthreads_count"})
SHUFFLES: Final = frozenset({"shfl_sync", "shfl_xor", "shfl_up", "shfl_down"})
VOTES: Final = frozenset({"any_sync", "all_sync", "ballot_sync", "ballot", "activemask"})
MATCHES: Final = frozenset({"match_any_sync", "match_all_sync"})
WARP_REDUCTIONS: Final = frozenset(
    f"warp_reduce_{kind}" for kind in ("sum", "max", "min", "bitand", "bitor", "bitxor")
)
WARP_EXCHANGES: Final = SHUFFLES | VOTES | MATCHES | WARP_REDUCTIONS
EXCHANGES: Final = WARP_EXCHANGES | BLOCK_EXCHANGES
POSITIONS: Final = frozenset(
    {"get_lane_idx", "get_warp_idx", "get_warp_idx_sync", "get_warp_group_idx", "shuffle_elect"}
)
PRIVATE_SCOPES: Final = ("local", "local.var")

# Tile operations a single thread can do on its own memory.
_SOLO_OPS: Final = frozenset({"copy", "fill", "reduce", "scan", "transpose", "atomic"})


def is_private(buffer: Any) -> bool:
    """Whether every thread has its own copy of `buffer`."""
    return str(buffer.scope()) in PRIVATE_SCOPES


def calls_named(node: Any, names: frozenset[str]) -> list[Any]:
    """The calls of operators in `names` below `node`, outermost first."""
    return [c for c in collect(node, tirx.Call) if op_of(c) in names]


def mentions_threads(body: Any, variables: Sequence[Any]) -> bool:
    """Whether running `body` once is not enough: it knows its thread or acts per thread."""
    wanted = set(variables)
    for node in walk(body):
        if isinstance(node, tirx.Var) and node in wanted:
            return True
        if isinstance(node, tirx.Call):
            name = op_of(node) or ""
            if name in EXCHANGES or name in POSITIONS:
                return True
    return bool(_thread_atomics(body))


def _thread_atomics(body: Any) -> list[Any]:
    """Atomics on elements outside T.Parallel: every thread of the block performs them."""
    found: list[Any] = []

    def visit(stmt: Any) -> None:
        if isinstance(stmt, tirx.For) and is_parallel(stmt):
            return
        if isinstance(stmt, (tirx.For, tirx.While, tirx.AttrStmt)):
            visit(stmt.body)
        elif isinstance(stmt, tirx.SeqStmt):
            for inner in stmt.seq:
                visit(inner)
        elif isinstance(stmt, tirx.IfThenElse):
            visit(stmt.then_case)
            if stmt.else_case is not None:
                visit(stmt.else_case)
        elif called_op(stmt) not in SCHEMAS:
            found.extend(c for c in collect(stmt, tirx.Call) if _is_atomic(c))

    visit(body)
    return found


def _is_atomic(call: Any) -> bool:
    return (op_of(call) or "").startswith("atomic_")


def is_parallel(loop: Any) -> bool:
    """Whether `loop` is a T.Parallel loop: its iterations are shared out among the threads."""
    return int(loop.kind) == int(tirx.ForKind.PARALLEL)


def operands(expr: Any) -> list[Any]:
    """The direct sub-expressions of `expr`."""
    if isinstance(expr, tirx.TensorLoad):
        return list(expr.indices)
    if isinstance(expr, tirx.TensorRegion):
        return [bound for r in expr.region for bound in (r.min, r.extent)]
    if isinstance(expr, (tirx.Call,)):
        return list(expr.args)
    if isinstance(expr, tirx.Select):
        return [expr.condition, expr.true_value, expr.false_value]
    if isinstance(expr, (tirx.Cast, tirx.Broadcast)):
        return [expr.value]
    if isinstance(expr, tirx.Shuffle):
        return list(expr.vectors)
    if isinstance(expr, tirx.Ramp):
        return [expr.base, expr.stride]
    if isinstance(expr, (tirx.Not, tirx.BitwiseNot)):
        return [expr.a]
    if hasattr(expr, "a") and hasattr(expr, "b"):
        return [expr.a, expr.b]
    return []


class Divergence:
    """The divergent variables and private buffers of one launch, found by iteration."""

    def __init__(self, body: Any, thread_vars: Iterable[Any], threads: int) -> None:
        self.threads = threads
        self.variables: set[Any] = set(thread_vars)
        self.buffers: set[Any] = set()
        self.expanded: set[Any] = set()  # private buffers with one copy per thread
        self._views: dict[Any, Any] = {
            d.buffer: d.data.args[0]
            for d in collect(body, tirx.DeclBuffer)
            if isinstance(d.data, tirx.Call) and str(d.data.op.name).endswith("buffer_data")
        }
        size = -1
        while size != self._size():
            size = self._size()
            self._visit(body, False)
            self._visit_units(body)

    def _size(self) -> int:
        return len(self.variables) + len(self.buffers) + len(self.expanded)

    def root(self, buffer: Any) -> Any:
        """The allocation `buffer` is a view of, or itself."""
        while buffer in self._views:
            buffer = self._views[buffer]
        return buffer

    # --- expressions ---

    def expr(self, e: Any) -> bool:
        """Whether threads may see different values of `e`."""
        if isinstance(e, tirx.Var) and not tirx.is_buffer_var(e):
            return e in self.variables
        if isinstance(e, (tirx.TensorLoad, tirx.TensorRegion)):
            if self.root(e.source) in self.buffers:
                return True
        if isinstance(e, tirx.Call):
            name = op_of(e) or ""
            if name in BLOCK_EXCHANGES:
                return False
            if name in VOTES or name in MATCHES:
                return self.threads > 32
            if name in EXCHANGES or name in POSITIONS or name.startswith("atomic_"):
                return self.threads > 1
        if tirx.is_buffer_var(e):
            return self.root(e) in self.buffers
        return any(self.expr(part) for part in operands(e))

    # --- where divergence comes from ---

    def _visit(self, s: Any, under: bool) -> None:
        """Spread divergence through `s`, which runs `under` a divergent condition or not."""
        if isinstance(s, tirx.SeqStmt):
            for inner in s.seq:
                self._visit(inner, under)
        elif isinstance(s, tirx.Bind):
            if under or self.expr(s.value):
                self.variables.add(s.var)
        elif isinstance(s, tirx.BufferStore):
            parts = [s.value, *s.indices]
            if is_private(self.root(s.buffer)) and (under or any(map(self.expr, parts))):
                self.buffers.add(self.root(s.buffer))
        elif isinstance(s, tirx.Evaluate):
            self._visit_call(s, under)
        elif isinstance(s, tirx.IfThenElse):
            inner = under or self.expr(s.condition)
            self._visit(s.then_case, inner)
            if s.else_case is not None:
                self._visit(s.else_case, inner)
        elif isinstance(s, tirx.For) and is_parallel(s):
            return  # what it names belongs to its iterations, not to threads
        elif isinstance(s, tirx.For):
            varies = self.expr(s.min) or self.expr(s.extent)
            if varies:
                self.variables.add(s.loop_var)
            self._visit(s.body, under or varies or self.leaves_unevenly(s.body))
        elif isinstance(s, tirx.While):
            self._visit(s.body, under or self.expr(s.condition) or self.leaves_unevenly(s.body))
        elif isinstance(s, tirx.AttrStmt):
            self._visit(s.body, under)

    def _visit_call(self, s: Any, under: bool) -> None:
        if called_op(s) not in SCHEMAS:
            return
        regions = list(s.value.args)
        if under or any(self.expr(a) for a in regions):
            for region in regions:
                buffer = getattr(region, "source", None)
                if buffer is not None and is_private(self.root(buffer)):
                    self.buffers.add(self.root(buffer))

    def leaves_unevenly(self, body: Any) -> bool:
        """Whether some thread may break out of, or skip the rest of, a loop with this body."""
        for branch in collect(body, tirx.IfThenElse):
            if self.expr(branch.condition) and has_jump(branch):
                return True
        return False

    # --- what runs per thread ---

    def _visit_units(self, s: Any) -> None:
        for inner in statements(s):
            if self.is_simple(inner):
                if self.is_unit(inner):
                    self._expand_written(inner)
            elif isinstance(inner, tirx.IfThenElse):
                self._visit_units(inner.then_case)
                if inner.else_case is not None:
                    self._visit_units(inner.else_case)
            elif hasattr(inner, "body"):
                self._visit_units(inner.body)
            elif self.has_exchange(inner):
                self._expand_written(inner)

    def _expand_written(self, s: Any) -> None:
        inside = {a.buffer for a in collect(s, tirx.AllocBuffer)}
        for buffer in _may_write(s):
            root = self.root(buffer)
            if is_private(root) and root not in inside:
                self.expanded.add(root)

    def has_exchange(self, s: Any) -> bool:
        return bool(calls_named(s, EXCHANGES))

    def has_barrier(self, s: Any) -> bool:
        return bool(calls_named(s, BLOCK_BARRIERS | WARP_BARRIERS))

    def is_collective(self, s: Any) -> bool:
        """Whether the threads of the block do `s` together: a tile operation, a T.Parallel."""
        if isinstance(s, tirx.For) and is_parallel(s):
            return True
        if called_op(s) not in SCHEMAS:
            return False
        if called_op(s) not in _SOLO_OPS:
            return True
        return not self._is_solo(s)

    def _is_solo(self, s: Any) -> bool:
        """Whether a tile operation is each thread's own: on private memory or its own place."""
        for region in s.value.args:
            if isinstance(region, tirx.TensorRegion):
                root = self.root(region.source)
                if root in self.expanded or root in self.buffers:
                    return True
                if any(self.expr(part) for part in operands(region)):
                    return True
        return False

    def is_simple(self, s: Any) -> bool:
        """Whether no thread needs another one within `s`."""
        if self.has_barrier(s) or self.has_exchange(s):
            return False
        return not any(self.is_collective(inner) for inner in collect(s, tirx.Stmt))

    def is_unit(self, s: Any) -> bool:
        """Whether simple statement `s` must run once per thread."""
        inside = {a.buffer for a in collect(s, tirx.AllocBuffer)}
        for buffer in _may_write(s):
            if self.root(buffer) in self.expanded and buffer not in inside:
                return True
        for node in walk(s):
            if isinstance(node, tirx.Var) and not tirx.is_buffer_var(node):
                if node in self.variables:
                    return True
            elif isinstance(node, (tirx.TensorLoad, tirx.TensorRegion)):
                if self.root(node.source) in self.buffers:
                    return True
            elif isinstance(node, tirx.Call):
                name = op_of(node) or ""
                if name in POSITIONS or name.startswith("atomic_"):
                    return True
        return False


def has_jump(s: Any) -> bool:
    """Whether `s` may break out of or skip the rest of a loop around it."""
    if isinstance(s, (tirx.For, tirx.While)):
        return False
    if isinstance(s, (tirx.Break, tirx.Continue)):
        return True
    if isinstance(s, tirx.SeqStmt):
        return any(has_jump(inner) for inner in s.seq)
    if isinstance(s, tirx.IfThenElse):
        return has_jump(s.then_case) or (s.else_case is not None and has_jump(s.else_case))
    return isinstance(s, tirx.AttrStmt) and has_jump(s.body)


def _may_write(s: Any) -> list[Any]:
    """The buffers `s` may write."""
    found = [store.buffer for store in collect(s, tirx.BufferStore)]
    for stmt in collect(s, tirx.Evaluate):
        if called_op(stmt) in SCHEMAS:
            found += [a.source for a in stmt.value.args if isinstance(a, tirx.TensorRegion)]
    for call in collect(s, tirx.Call):
        if _is_atomic(call):
            target = call.args[0]
            if hasattr(target, "source"):
                found.append(target.source)
    return found
