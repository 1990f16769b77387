"""From where to where does a launch use each buffer of shared memory?

Statements are numbered in order. A buffer that lives longer than a loop is used throughout it;
what only some threads do is one statement to the others, and so is every branch here. Memory that
something asynchronous works on is in use until the last wait of the launch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from tilelang.ir import attrs, build, tirx
from tilelang.ir.device_ops import op_of_call
from tilelang.ir.visit import collect, storage_roots

_OPAQUE: Final = ("access_ptr", "address_of", "tvm_access_ptr")


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Numbers of the first and last statement that use a buffer; `outer` counts the whole of the
    loops around them."""

    buffer: Any
    stmt: Any
    first: int
    last: int
    outer: tuple[int, int]

    def meets(self, other: Lifetime, in_loops: bool) -> bool:
        """Whether both are in use at once; not `in_loops`: or within the same loop."""
        if in_loops:
            return self.first <= other.last and other.first <= self.last
        return self.outer[0] <= other.outer[1] and other.outer[0] <= self.outer[1]


def shared_lifetimes(launch: Any, *scopes: str) -> list[Lifetime]:
    """The lifetimes of the buffers of `scopes` that a launch allocates, in order of allocation."""
    reader = _Reader(storage_roots(launch), scopes)
    reader.statement(launch)
    return list(reader.lifetimes())


@dataclass(slots=True)
class _Uses:
    stmt: Any
    loops: tuple[int, ...]
    places: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    asynchronous: bool = False
    always: bool = False


class _Reader:
    def __init__(self, views: dict[Any, Any], scopes: tuple[str, ...]) -> None:
        self._views, self._scopes = views, scopes
        self._uses: dict[Any, _Uses] = {}
        self._at = 0
        self._around: tuple[int, ...] = ()
        self._ranges: dict[int, tuple[int, int]] = {}
        self._loops: set[int] = set()
        self._last_wait: int | None = None
        self._signals = False
        self._drained: set[Any] = set()
        self._role = False

    def lifetimes(self) -> Iterator[Lifetime]:
        for buffer, uses in self._uses.items():
            spans = [self._span(place, around, uses.loops) for place, around in uses.places]
            if not spans:
                continue
            first, last = min(s[0] for s in spans), max(s[1] for s in spans)
            if uses.asynchronous:
                last = max(last, self._at if self._last_wait is None else self._last_wait)
            outers = [self._outer(place, around) for place, around in uses.places]
            outer = min(o[0] for o in outers), max(last, *(o[1] for o in outers))
            if uses.always or self._signals:
                # Threads that signal to each other are not in step with the text.
                first, last, outer = 0, self._at, (0, self._at)
            yield Lifetime(buffer, uses.stmt, first, last, outer)

    def _span(self, place: int, around: tuple[int, ...], own: tuple[int, ...]) -> tuple[int, int]:
        """The widest of: the statement, a loop the buffer outlives, a branch."""
        inside = [self._ranges[n] for n in around if n not in own]
        return inside[0] if inside else (place, place)

    def _outer(self, place: int, around: tuple[int, ...]) -> tuple[int, int]:
        inside = [self._ranges[n] for n in around]
        return inside[0] if inside else (place, place)

    def statement(self, s: Any) -> None:
        if isinstance(s, tirx.SeqStmt):
            for stmt in s.seq:
                self.statement(stmt)
            return
        if isinstance(s, tirx.AttrStmt):
            self.statement(s.body)
            return
        self._at += 1
        if isinstance(s, tirx.AllocBuffer):
            if s.annotations.get(attrs.DRAINED):
                self._drained.add(s.buffer)
            if str(s.buffer.scope()) in self._scopes:
                self._uses[s.buffer] = _Uses(s, self._around)
        elif isinstance(s, (tirx.For, tirx.While)):
            self._touch([s.condition] if isinstance(s, tirx.While) else [s.min, s.extent])
            self._nested([s.body])
        elif isinstance(s, tirx.IfThenElse):
            self._touch([s.condition])
            bodies = [b for b in (s.then_case, s.else_case) if b is not None]
            if self._drained and not self._around and not self._role:
                # The warps of one role: those that compute wait for all that is loaded.
                self._role = True
                for body in bodies:
                    self.statement(body)
                self._role = False
                return
            self._nested(bodies)
        else:
            self._touch([s])

    def _nested(self, bodies: list[Any]) -> None:
        number, start = self._at, self._at
        outer = self._around
        self._around = (*outer, number)
        for body in bodies:
            self.statement(body)
        self._around = outer
        self._at += 1
        self._ranges[number] = (start, self._at)

    def _touch(self, nodes: list[Any]) -> None:
        for node in nodes:
            if isinstance(node, tirx.BufferStore):
                self._use(node.buffer)
            for load in collect(node, tirx.TensorLoad):
                self._use(load.source)
            for call in collect(node, tirx.Call):
                self._call(call)

    def _call(self, call: Any) -> None:
        op = op_of_call(call)
        name = str(getattr(call.op, "name", "")).rpartition(".")[2]
        if op is not None and op.waits is not None:
            self._last_wait = self._at
        if op is not None and any(o.space == "barrier" for o in op.operands):
            self._signals |= any(self._is_authors(arg) for arg in call.args)
        for position, arg in enumerate(call.args):
            if not isinstance(arg, tirx.TensorRegion):
                continue
            row = op.operands[position] if op and position < len(op.operands) else None
            # An address that is given away may be used at any time.
            self._use(arg.source, row is not None and row.asynchronous, name in _OPAQUE)

    def _is_authors(self, arg: Any) -> bool:
        """Whether it is a barrier of which only its author knows what it orders."""
        if not isinstance(arg, tirx.TensorRegion) or "barrier" not in str(arg.source.scope()):
            return False
        return arg.source not in self._drained

    def _use(self, buffer: Any, asynchronous: bool = False, always: bool = False) -> None:
        uses = self._uses.get(self._views.get(buffer, buffer))
        if uses is not None:
            uses.places.append((self._at, self._around))
            uses.asynchronous = uses.asynchronous or asynchronous
            uses.always = uses.always or always


def elements(buffer: Any) -> int:
    """How many elements a buffer of constant shape has."""
    total = 1
    for extent in buffer.shape:
        size = build.int_value(extent)
        if size is None:
            raise ValueError(f"the extents of {buffer.name} are not constants")
        total *= size
    return total
