"""Which elements of shared memory does each statement of one thread touch, and in which order?

Shared memory is that of the block, and each tensor that a launch both writes and reads.

`launch_tree` reads the body of a launch, at stage `device`, into a tree of small Python values:
leaves with their accesses and what they do to order, loops, branches. Places are byte offsets
from the start of the memory a buffer lives in: the buffer itself, or the dynamic arena once
`plan_shared` has placed it there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from tilelang.dtypes import dtype as find_dtype
from tilelang.ir import attrs, build, tirx
from tilelang.ir.device_op import DeviceOp, Operand, Queue
from tilelang.ir.device_ops import SHARED_OFFSET, constants_of, op_of_call
from tilelang.ir.flatten import flat_index
from tilelang.ir.visit import collect, statements, storage_roots, substitute

Kind = Literal["read", "write", "atomic"]
SHARED_SCOPES: Final = ("shared", "shared.dyn")
_PREPARING: Final = ("wgmma_fence", "wgmma_fence_operand")
ARENA: Final = "the dynamic arena"


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """`width` bytes of `memory` from `start` on, by every thread whose `guards` hold.

    `inner` are the loops in which it is repeated with nothing in between, outermost first.
    `queue` is set while an asynchronous access may be under way. `home` are the bytes of the buffer
    in the arena, from the first one to the one after the last, where that is what `memory` is.
    """

    memory: Any
    buffer: Any
    kind: Kind
    start: Any
    width: int
    span: Any
    guards: tuple[Any, ...] = ()
    inner: tuple[Inner, ...] = ()
    queue: Queue | None = None
    home: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        """The buffer, as the author called it."""
        return str(self.buffer.name)

    @property
    def is_tensor(self) -> bool:
        """Whether other blocks reach it, too."""
        return str(self.buffer.scope()) == "global"


@dataclass(frozen=True, slots=True, eq=False)
class Inner:
    """A loop around an access: `extent` is None when it is not a small constant."""

    var: Any
    low: Any
    extent: int | None


@dataclass(frozen=True, slots=True)
class Event:
    """What a statement does to order besides touching memory.

    `block` and `warp` are barriers of those threads; `commit` closes and `wait` waits for groups of
    `queue`, `groups` of which may stay under way.
    """

    kind: Literal["block", "warp", "commit", "wait"]
    queue: Queue | None = None
    groups: int = 0


@dataclass(slots=True, eq=False)
class Leaf:
    """A statement that contains no other."""

    stmt: Any
    accesses: tuple[Access, ...] = ()
    event: Event | None = None
    jumps: bool = False
    # It signals to some threads only, or waits for them: the author orders what is around it.
    signals: bool = False
    # How many threads meet at the named barrier that it is.
    meets: int = 0
    # It only says something of registers, for the products after it.
    prepares: bool = False
    # The end of the body of a loop, where its condition is looked at again.
    closes: bool = False


@dataclass(slots=True, eq=False)
class Loop:
    """A loop; `var` is None for `while`. `free` says its iterations are independent."""

    stmt: Any
    var: Any
    low: Any
    extent: Any
    body: tuple[Node, ...]
    condition: tuple[Access, ...] = ()
    free: bool = False
    # Names bound inside to what cannot be written out: each iteration has its own.
    own: frozenset[Any] = frozenset()


@dataclass(slots=True, eq=False)
class Branch:
    """An `if`: what its condition reads comes before either side."""

    stmt: Any
    condition: Any
    reads: tuple[Access, ...]
    then: tuple[Node, ...]
    orelse: tuple[Node, ...]


Node: TypeAlias = "Leaf | Loop | Branch"


@dataclass(slots=True, eq=False)
class LaunchTree:
    """One launch: its statements, threads by axis (x first), and the values of names, written out
    in terms of loops and indices."""

    body: tuple[Node, ...]
    threads: tuple[tuple[Any, int], ...]
    values: Mapping[Any, Any]

    @property
    def count(self) -> int:
        """How many threads a block has."""
        total = 1
        for _, extent in self.threads:
            total *= extent
        return total


def launch_tree(launch: Any) -> LaunchTree:
    """The tree of a nest of `thread_extent` attributes."""
    threads: list[tuple[Any, int]] = []
    body = launch
    while isinstance(body, tirx.AttrStmt) and str(body.attr_key) == attrs.THREAD_EXTENT:
        if str(body.node.thread_tag) in attrs.THREAD_TAGS:
            extent = build.int_value(body.value)
            if extent is None:
                raise ValueError(f"the extent of {body.node.thread_tag} is no constant")
            threads.insert(0, (body.node.var, extent))
        body = body.body
    reader = _Reader(body)
    return LaunchTree(reader.block(body), tuple(threads), reader.values)


def block_tree(
    body: Any, threads: tuple[tuple[Any, int], ...], together: Callable[[Any], bool]
) -> LaunchTree:
    """The tree of a block whose threads do some statements `together`, waiting before and after."""
    reader = _Reader(body, together)
    return LaunchTree(reader.block(body), threads, reader.values)


def leaves(nodes: tuple[Node, ...]) -> Iterator[Leaf]:
    """Every leaf below `nodes`, in program order."""
    for node in nodes:
        match node:
            case Leaf():
                yield node
            case Loop():
                yield from leaves(node.body)
            case Branch():
                yield from leaves(node.then)
                yield from leaves(node.orelse)


@dataclass(slots=True)
class _Reader:
    root: Any
    together: Callable[[Any], bool] = lambda _: False
    values: dict[Any, Any] = field(default_factory=dict)
    _opaque: set[Any] = field(default_factory=set)
    _views: Mapping[Any, Any] = field(default_factory=dict)
    _offsets: dict[Any, int] = field(default_factory=dict)
    _memories: dict[Any, Any] = field(default_factory=dict)
    _tensors: frozenset[Any] = frozenset()

    def __post_init__(self) -> None:
        self._views = storage_roots(self.root)
        self._tensors = self._read_and_written()
        for stmt in collect(self.root, tirx.AllocBuffer):
            offset = stmt.annotations.get(SHARED_OFFSET)
            if offset is not None:
                self._offsets[stmt.buffer] = int(offset)

    def _read_and_written(self) -> frozenset[Any]:
        """The tensors through which threads may hand each other numbers."""
        read = {load.source for load in collect(self.root, tirx.TensorLoad)}
        written = {stmt.buffer for stmt in collect(self.root, tirx.BufferStore)}
        for call in collect(self.root, tirx.Call):
            for arg, access in _regions(call):
                if access != "write":
                    read.add(arg.source)
                if access != "read":
                    written.add(arg.source)
        roots = [{self._views.get(b, b) for b in buffers} for buffers in (read, written)]
        return frozenset(b for b in roots[0] & roots[1] if str(b.scope()) == "global")

    def block(self, stmt: Any) -> tuple[Node, ...]:
        found: list[Node] = []
        for s in statements(stmt):
            found += self.statement(s)
        return tuple(found)

    def statement(self, s: Any) -> list[Node]:
        if isinstance(s, tirx.SeqStmt):
            return list(self.block(s))
        if isinstance(s, tirx.AttrStmt):
            return list(self.block(s.body))
        if self.together(s):
            return [Leaf(s, event=Event("block"))]
        if isinstance(s, tirx.For):
            free = attrs.ROUNDS in s.annotations or _is_vector(s)
            head = self._reads(s.min, s.span) + self._reads(s.extent, s.span)
            body, own = self._repeated(s.body)
            body = (*body, *_looked_at_again(s.extent, self._reads(s.extent, s.span)))
            return [Loop(s, s.loop_var, s.min, s.extent, body, head, free, own)]
        if isinstance(s, tirx.While):
            body, own = self._repeated(s.body)
            test = self._reads(s.condition, s.span)
            body = (*body, *_looked_at_again(s.condition, test))
            return [Loop(s, None, None, None, body, test, False, own)]
        if isinstance(s, tirx.IfThenElse):
            orelse = () if s.else_case is None else self.block(s.else_case)
            reads = self._reads(s.condition, s.span)
            condition = self.expanded(s.condition)
            return [Branch(s, condition, reads, self.block(s.then_case), orelse)]
        return [self._leaf(s)]

    def _repeated(self, body: Any) -> tuple[tuple[Node, ...], frozenset[Any]]:
        before = set(self._opaque)
        found = self.block(body)
        return found, frozenset(self._opaque - before)

    def expanded(self, e: Any) -> Any:
        """`e` with names replaced by their values, where those are integer arithmetic."""
        return substitute(e, self.values)

    def _bind(self, s: Any) -> None:
        dtype = build.dtype_of(s.value)
        plain = dtype.startswith(("int", "uint", "bool")) and build.lanes_of(dtype) == 1
        if plain and not collect(s.value, tirx.TensorLoad) and not _calls(s.value):
            self.values[s.var] = self.expanded(s.value)
        else:
            self._opaque.add(s.var)

    def _leaf(self, s: Any) -> Leaf:
        if isinstance(s, tirx.Bind):
            reads = self._reads(s.value, s.span)
            self._bind(s)
            return Leaf(s, reads)
        if isinstance(s, tirx.BufferStore):
            found = self._reads(s.value, s.span)
            for index in s.indices:
                found += self._reads(index, s.span)
            lanes = build.lanes_of(build.dtype_of(s.value))
            element = build.lanes_of(str(s.buffer.dtype))
            stored = self._element(s.buffer, s.indices, "write", s, lanes // element)
            return Leaf(s, (*found, *stored))
        if isinstance(s, tirx.AssertStmt):
            return Leaf(s, self._reads(s.condition, s.span))
        if isinstance(s, tirx.Evaluate) and isinstance(s.value, tirx.Call):
            return self._call(s)
        return Leaf(s, jumps=isinstance(s, (tirx.Break, tirx.Continue)))

    def _call(self, s: Any) -> Leaf:
        op = op_of_call(s.value)
        name = str(getattr(s.value.op, "name", ""))
        jumps = name.rpartition(".")[2] in ("thread_return", "loop_break")
        event = None if op is None else _event(op, s.value)
        prepares = op is not None and op.name in _PREPARING
        return Leaf(
            s, self._reads(s.value, s.span), event, jumps, _signals(op, s.value),
            _meets(op, s.value), prepares,
        )  # fmt: skip

    def _reads(self, e: Any, span: Any) -> tuple[Access, ...]:
        """What evaluating an expression touches, calls of device operations included."""
        found: list[Access] = []
        for load in collect(e, tirx.TensorLoad):
            lanes = build.lanes_of(build.dtype_of(load)) // build.lanes_of(str(load.source.dtype))
            found += self._element(load.source, load.indices, "read", load, lanes)
        for call in collect(e, tirx.Call):
            found += self._operands(call, span)
        # All reads happen before what an operation writes.
        return tuple(sorted(found, key=lambda a: a.kind != "read"))

    def _operands(self, call: Any, span: Any) -> Iterator[Access]:
        op = op_of_call(call)
        for position, arg in enumerate(call.args):
            if not isinstance(arg, tirx.TensorRegion) or self._memory(arg.source) is None:
                continue
            row = _operand(op, position)
            queue = op.queue if op and row and row.asynchronous else None
            mins = [r.min for r in arg.region]
            extent = _extent_of(arg)
            atomic = op is not None and op.name.startswith("atomic_")
            access = "update" if row is None else row.access
            kinds: list[Kind]
            if atomic:
                kinds = ["atomic"]
            elif access == "update":
                kinds = ["read", "write"]
            else:
                kinds = ["read" if access == "read" else "write"]
            for kind in kinds:
                yield from self._place(arg.source, mins, kind, extent, arg.span or span, queue)

    def _element(
        self, buffer: Any, indices: Any, kind: Kind, node: Any, lanes: int
    ) -> Iterator[Access]:
        places, count = list(indices), max(1, lanes)
        if places and isinstance(places[-1], tirx.Ramp):
            ramp = places[-1]
            if build.is_int(ramp.stride, 1):
                places[-1] = ramp.base
            else:
                count = -1  # scattered
        yield from self._place(buffer, places, kind, count, node.span, None)

    def _place(
        self, buffer: Any, indices: list[Any], kind: Kind, count: int, span: Any,
        queue: Queue | None,
    ) -> Iterator[Access]:  # fmt: skip
        memory = self._memory(buffer)
        if memory is None:
            return
        root = self._views.get(buffer, buffer)
        bits = find_dtype(str(buffer.dtype)).bits
        start = None
        if count >= 0 and not any(_is_mutable(i) for i in indices):
            start = _bytes(flat_index(buffer, indices, span), bits, span)
            offset = self._offsets.get(root, 0)
            if offset:
                start = build.add(start, build.const(offset, build.dtype_of(start)), span)
            start = self.expanded(start)
        width = -(-max(count, 1) * bits // 8)
        yield Access(memory, root, kind, start, width, span, queue=queue, home=self._home(root))

    def _home(self, root: Any) -> tuple[int, int] | None:
        extents = [build.int_value(n) for n in root.shape]
        if root not in self._offsets or None in extents:
            return None
        bits = find_dtype(str(root.dtype)).bits * math.prod(n for n in extents if n is not None)
        return self._offsets[root], self._offsets[root] + -(-bits // 8)

    def _memory(self, buffer: Any) -> Any:
        """What a buffer of shared memory is a part of, None for other memory."""
        root = self._views.get(buffer, buffer)
        if str(root.scope()) not in SHARED_SCOPES and root not in self._tensors:
            return None
        # One Python object per memory: nodes handed out twice are two objects.
        return ARENA if root in self._offsets else self._memories.setdefault(root, root)


def _looked_at_again(condition: Any, reads: tuple[Access, ...]) -> tuple[Leaf, ...]:
    return (Leaf(condition, reads, closes=True),) if reads else ()


def _operand(op: DeviceOp | None, position: int) -> Operand | None:
    return op.operands[position] if op and position < len(op.operands) else None


def _regions(call: Any) -> Iterator[tuple[Any, str]]:
    """The regions a call touches, and how."""
    op = op_of_call(call)
    for position, arg in enumerate(call.args):
        if isinstance(arg, tirx.TensorRegion):
            row = _operand(op, position)
            yield arg, "update" if row is None else row.access


def _event(op: DeviceOp, call: Any) -> Event | None:
    if op.closes == "cp_async":
        return Event("commit", op.closes)
    if op.waits == "cp_async":
        return Event("wait", op.waits, int(constants_of(call)["groups"]))
    if op.waits in ("wgmma", "bulk"):
        return Event("wait", op.waits, int(constants_of(call)["groups"]))
    if op.closes in ("wgmma", "bulk"):
        return Event("commit", op.closes)
    if op.orders in ("block", "cluster", "grid"):
        # A named barrier is one of some threads: whoever writes it knows which.
        partial = op.name == "sync_threads" and len(call.args) > 0
        return None if partial or op.group == "thread" else Event("block")
    return Event("warp") if op.orders == "warp" and not call.args else None


def _meets(op: DeviceOp | None, call: Any) -> int:
    """The threads of a named barrier, where they are said."""
    if op is None or op.name != "sync_threads" or len(call.args) < 2:
        return 0
    return build.int_value(call.args[1]) or 0


def named_barriers(leaf: Leaf) -> Iterator[int]:
    """The numbers of the named barriers that a statement of the author's uses."""
    call: Any = getattr(leaf.stmt, "value", None)
    op = op_of_call(call) if isinstance(leaf.stmt, tirx.Evaluate) else None
    if op is not None and op.name in ("sync_threads", "named_barrier_arrive") and call.args:
        number = build.int_value(call.args[0])
        yield from range(16) if number is None else (number,)


def _signals(op: DeviceOp | None, call: Any) -> bool:
    if op is None:
        return False
    named = op.name == "named_barrier_arrive" or (op.name == "sync_threads" and len(call.args) > 0)
    return named or any(o.space == "barrier" for o in op.operands)


def _extent_of(region: Any) -> int:
    """How many neighbouring elements a region of an operation has; -1 when it is a box."""
    sizes = [build.int_value(r.extent) for r in region.region]
    if any(size is None for size in sizes) or any(size != 1 for size in sizes[:-1]):
        return -1
    return sizes[-1] or 0


def _bytes(index: Any, bits: int, span: Any) -> Any:
    dtype = build.dtype_of(index)
    if bits % 8 == 0:
        return build.mul(index, build.const(bits // 8, dtype, span), span)
    return tirx.FloorDiv(index, build.const(8 // bits, dtype, span), span)


def _is_mutable(index: Any) -> bool:
    """Whether an index depends on memory that the kernel itself changes on the way."""
    return any(str(x.source.scope()) != "global" for x in collect(index, tirx.TensorLoad))


def _calls(e: Any) -> bool:
    return any(str(getattr(c.op, "name", "")) != "prim.if_then_else" for c in collect(e, tirx.Call))


def _is_vector(s: Any) -> bool:
    return int(s.kind) == int(tirx.ForKind.VECTORIZED)
