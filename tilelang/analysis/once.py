"""Which stores outside of parallel loops has one thread to do for its block?

    B[0] = B[0] + 1

All threads come here, and all would store the same number, were it not that one may read what
another has just stored. Such a store, and every other one to the same buffer that all threads
would do alike, is for one thread. A store that reads nothing of what is written so may be done by
all: two threads that write the same value are no race.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tilelang.analysis.uniform import Uniformity
from tilelang.ir import attrs, tirx
from tilelang.ir.tile_op import op_of
from tilelang.ir.visit import collect, statements, storage_roots

_SHARED_BY_THREADS: Final = ("global", "shared", "shared.dyn")
Memories = frozenset[Any]


@dataclass(frozen=True, slots=True, eq=False)
class _Store:
    """A store that all threads would do alike, and the memory that decides what it does."""

    stmt: Any
    root: Any
    reads: Memories


def stores_for_one_thread(body: Any) -> frozenset[Any]:
    """The stores below `body`, at a stage that still has parallel loops, that must happen once."""
    if not collect(body, tirx.BufferStore):
        return frozenset()
    if _returns(body):
        return frozenset()  # who is left by then is not known
    finder = _Finder(Uniformity(body), storage_roots(body))
    alike = list(finder.block(body, frozenset()))
    written = {store.root for store in alike}
    single = {store.root for store in alike if store.reads & written}
    return frozenset(store.stmt for store in alike if store.root in single)


@dataclass(slots=True)
class _Finder:
    uniform: Uniformity
    roots: Mapping[Any, Any]
    names: dict[Any, Memories] = field(default_factory=dict)  # what bound names were computed from

    def block(self, s: Any, guards: Memories) -> Iterator[_Store]:
        """Stores in code that no thread is kept from; `guards` decide whether it runs."""
        for stmt in statements(s):
            yield from self._statement(stmt, guards)

    def _statement(self, s: Any, guards: Memories) -> Iterator[_Store]:
        match type(s).__name__:
            case "SeqStmt":
                yield from self.block(s, guards)
            case "AttrStmt":
                yield from self.block(s.body, guards)
            case "For":
                if attrs.PARALLEL not in s.annotations and self._alike(s.min, s.extent):
                    inner = guards | self._reads(s.min, s.extent)
                    if not self._left_by_some(s.body):
                        yield from self.block(s.body, inner)
            case "While":
                if self._alike(s.condition) and not self._left_by_some(s.body):
                    yield from self.block(s.body, guards | self._reads(s.condition))
            case "IfThenElse":
                if self._alike(s.condition):
                    inner = guards | self._reads(s.condition)
                    yield from self.block(s.then_case, inner)
                    if s.else_case is not None:
                        yield from self.block(s.else_case, inner)
            case "Bind":
                self.names[s.var] = self._reads(s.value)
            case "BufferStore":
                root = self.roots.get(s.buffer, s.buffer)
                shared = str(root.scope()) in _SHARED_BY_THREADS
                if shared and self._alike(s.value, *s.indices):
                    yield _Store(s, root, guards | self._reads(s.value, *s.indices))

    def _alike(self, *exprs: Any) -> bool:
        return not any(self.uniform.diverges(e) for e in exprs)

    def _reads(self, *exprs: Any) -> Memories:
        found: set[Any] = set()
        for e in exprs:
            for load in collect(e, tirx.TensorLoad):
                found.add(self.roots.get(load.source, load.source))
            for var in collect(e, tirx.Var):
                found |= self.names.get(var, frozenset())
        return frozenset(found)

    def _left_by_some(self, body: Any) -> bool:
        """Whether a thread may leave a loop with this body that others stay in."""
        return any(
            not self._alike(branch.condition) and _jumps(branch)
            for branch in collect(body, tirx.IfThenElse)
        )


def _jumps(s: Any) -> bool:
    return bool(collect(s, tirx.Break) or collect(s, tirx.Continue)) or _returns(s)


def _returns(s: Any) -> bool:
    return any(op_of(call) == "thread_return" for call in collect(s, tirx.Call))
