"""Where must the code of a block be cut, so that threads can run one after the other?

The result is a skeleton: groups of statements to run per thread, statements to run once, and
control flow around both that all threads take together. Cuts are at barriers, exchanges between
threads, and around what a block does as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tilelang.ir import build, tirx
from tilelang.ir.tile_op import called_op, op_of
from tilelang.ir.visit import Rewriter, collect, statements
from tilelang.passes.cpu_divergence import (
    BLOCK_BARRIERS,
    BLOCK_EXCHANGES,
    WARP_BARRIERS,
    Divergence,
    calls_named,
    has_jump,
)
from tilelang.passes.cpu_exchange import Exchange, Exchanger, innermost_exchange


class NeedsThreads(Exception):
    """The kernel needs threads that really run side by side."""

    def __init__(self, message: str, span: Any, help: str, code: str = "TL413") -> None:
        super().__init__(message)
        self.span = span
        self.help = help
        self.code = code


@dataclass
class Group:
    """Statements each thread runs in turn, if all of its `guards` hold for it."""

    stmts: list[Any]
    guards: tuple[Guard, ...] = ()


@dataclass
class Once:
    """A statement the block runs once."""

    stmt: Any


@dataclass
class Control:
    """A loop or branch all threads take together, around further nodes."""

    stmt: Any  # the For, While or IfThenElse it was
    condition: Any | None = None
    body: list[Node] = field(default_factory=list)
    orelse: list[Node] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Guard:
    """A condition kept per thread in `buffer`; `negated` for the other branch."""

    buffer: Any
    negated: bool = False


Node: TypeAlias = "Group | Once | Control"


class Splitter:
    """Cuts the code of one block; `thread` stands for the linear index of a thread."""

    def __init__(self, divergence: Divergence) -> None:
        self.divergence = divergence
        self.thread = tirx.Var("t", "int32")
        divergence.variables.add(self.thread)
        self._exchanger = Exchanger(divergence.threads, self.thread)
        self._guards: tuple[Guard, ...] = ()

    def split(self, stmt: Any) -> list[Node]:
        """The skeleton of `stmt`."""
        nodes: list[Node] = []
        for s in statements(stmt):
            self._statement(s, nodes)
        return nodes

    # --- one statement ---

    def _statement(self, s: Any, out: list[Node]) -> None:
        divergence = self.divergence
        if isinstance(s, (tirx.AllocBuffer, tirx.DeclBuffer)):
            out.append(Once(s))
        elif self._is_barrier(s):
            self._barrier(s, out)
        elif divergence.is_simple(s):
            if divergence.is_unit(s) or (self._guards and not isinstance(s, tirx.Bind)):
                self._check_jump(s)
                self._per_thread(s, out)
            else:
                out.append(Once(s))
        elif isinstance(s, (tirx.Bind, tirx.BufferStore, tirx.Evaluate)) and not (
            divergence.is_collective(s)
        ):
            self._with_exchange(s, out)
        elif isinstance(s, tirx.IfThenElse):
            self._branch(s, out)
        elif isinstance(s, (tirx.For, tirx.While)):
            self._loop(s, out)
        elif isinstance(s, tirx.AttrStmt):
            out.extend(self.split(s.body))
        else:
            self._collective(s, out)

    def _per_thread(self, s: Any, out: list[Node]) -> None:
        last = out[-1] if out else None
        if isinstance(last, Group) and last.guards == self._guards:
            last.stmts.append(s)
        else:
            out.append(Group([s], self._guards))

    def _cut(self, out: list[Node]) -> None:
        """What comes next must not join the group before."""
        out.append(Group([], ()))

    def _is_barrier(self, s: Any) -> bool:
        return called_op(s) in BLOCK_BARRIERS | WARP_BARRIERS

    def _barrier(self, s: Any, out: list[Node]) -> None:
        if self._guards and called_op(s) in BLOCK_BARRIERS:
            raise self._divergent_barrier(s)
        self._cut(out)

    def _divergent_barrier(self, s: Any) -> NeedsThreads:
        return NeedsThreads(
            "`T.sync_threads` stands under a condition that differs between threads",
            s.span,
            help="move the barrier out of the branch, or make the condition the same for all",
            code="TL510",
        )

    def _collective(self, s: Any, out: list[Node]) -> None:
        """A tile operation or T.Parallel: the block does it as a whole."""
        if self._guards:
            raise NeedsThreads(
                f"{_named(s)} stands under a condition that differs between threads",
                s.span,
                help="all threads take part in it: move it out of the branch",
            )
        divergent = next((v for v in collect(s, tirx.Var) if v in self.divergence.variables), None)
        if divergent is not None:
            raise NeedsThreads(
                f"{_named(s)} uses `{divergent.name}`, which differs between threads",
                s.span,
                help="which thread runs which iteration is not fixed on the CPU; "
                "index with the loop variables, or use T.serial",
            )
        for load in collect(s, tirx.TensorLoad):
            if self.divergence.root(load.source) in self.divergence.buffers:
                raise NeedsThreads(
                    f"{_named(s)} reads `{load.source.name}`, whose value differs between threads",
                    s.span,
                    help="keep per-thread values out of what the whole block does",
                )
        out.append(Once(s))

    # --- exchanges ---

    def _with_exchange(self, s: Any, out: list[Node]) -> None:
        """Take the exchanges out of a statement, innermost first."""
        while (call := innermost_exchange(s)) is not None:
            s = _Replace(call, self._take(call, s, out)).any(s)
        if self.divergence.is_unit(s) or (self._guards and not isinstance(s, tirx.Bind)):
            self._per_thread(s, out)
        else:
            out.append(Once(s))

    def _take(self, call: Any, s: Any, out: list[Node]) -> Any:
        """Emit what `call` exchanges; returns what stands for its value."""
        if self._guards and op_of(call) in BLOCK_EXCHANGES:
            raise self._divergent_barrier(s)
        found: Exchange = self._exchanger.exchange(call)
        out.extend(Once(tirx.AllocBuffer(b, None, s.span)) for b in found.buffers)
        self._cut(out)
        self._per_thread(found.give, out)
        self._cut(out)
        out.extend(Once(stmt) for stmt in found.settle)
        return found.result

    def _condition(self, condition: Any, s: Any, out: list[Node]) -> Any:
        """`condition` without exchanges."""
        while (call := innermost_exchange(condition)) is not None:
            condition = _Replace(call, self._take(call, s, out)).any(condition)
        return condition

    # --- control flow ---

    def _branch(self, s: Any, out: list[Node]) -> None:
        condition = self._condition(s.condition, s, out)
        if not self.divergence.expr(condition):
            if self._guards:
                self._guarded_branch(s, condition, out)
                return
            node = Control(s, condition)
            node.body = self.split(s.then_case)
            node.orelse = [] if s.else_case is None else self.split(s.else_case)
            out.append(node)
            return
        self._check_jump(s)
        self._guarded_branch(s, condition, out)

    def _guarded_branch(self, s: Any, condition: Any, out: list[Node]) -> None:
        """Run both sides, each thread only the one its condition names."""
        kept = tirx.decl_buffer(
            [build.const(self.divergence.threads, "int32")], "bool", name="taken",
            scope="shared", data_alignment=64, span=s.span, layout=None,
        )  # fmt: skip
        out.append(Once(tirx.AllocBuffer(kept, None, s.span)))
        self._per_thread(build.store(kept, [self.thread], condition, s.span), out)
        outer = self._guards
        for case, negated in ((s.then_case, False), (s.else_case, True)):
            if case is not None:
                self._guards = (*outer, Guard(kept, negated))
                self._cut(out)
                out.extend(self.split(case))
        self._guards = outer
        self._cut(out)

    def _loop(self, s: Any, out: list[Node]) -> None:
        divergence = self.divergence
        if divergence.is_collective(s):
            self._collective(s, out)
            return
        if isinstance(s, tirx.While):
            self._while(s, out)
            return
        if divergence.expr(s.min) or divergence.expr(s.extent):
            raise self._uneven_loop(s)
        if divergence.leaves_unevenly(s.body):
            raise self._uneven_loop(s)
        out.append(Control(s, body=self.split(s.body)))

    def _while(self, s: Any, out: list[Node]) -> None:
        before: list[Node] = []
        condition = self._condition(s.condition, s, before)
        if self.divergence.expr(condition) or self.divergence.leaves_unevenly(s.body):
            raise self._uneven_loop(s)
        out.append(Control(s, condition, body=self.split(s.body), orelse=before))

    def _uneven_loop(self, s: Any) -> NeedsThreads:
        waits = calls_named(s, BLOCK_BARRIERS | BLOCK_EXCHANGES)
        if waits:
            return NeedsThreads(
                "`T.sync_threads` stands in a loop that threads leave at different times",
                waits[0].span or s.span,
                help="give the loop the same number of iterations in every thread",
                code="TL510",
            )
        return NeedsThreads(
            "threads exchange values in a loop that they leave at different times",
            s.span,
            help="give the loop the same number of iterations in every thread",
        )

    def _check_jump(self, s: Any) -> None:
        if has_jump(s):
            raise NeedsThreads(
                "threads leave a loop at different times, but wait for each other inside it",
                s.span,
                help="make the condition of the jump the same for all threads",
            )


def _named(s: Any) -> str:
    name = called_op(s)
    return f"`T.{name}`" if name else "`T.Parallel`"


class _Replace(Rewriter):
    def __init__(self, old: Any, new: Any) -> None:
        self._old, self._new = old, new

    def call(self, e: Any) -> Any:
        return self._new if e.same_as(self._old) else super().call(e)
