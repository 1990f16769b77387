"""Who watches the compilations of this process, and what do they see?

A tool that traces gives a function to `watching`; it is called once for each compilation and gives
a `Watch`, an observer of the pipeline that also sees what comes before and after the passes. With
TILELANG_TRACE set, `tilelang_trace` is loaded by name and watches everything. Nobody watches
otherwise, and then nothing is done but this asking.

A thread, or task, that has watchers of its own is seen by these and not by those of others; one
that has none, such as one of a pool, is seen by all.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

from tilelang import options as settings
from tilelang.nested import Listener, told
from tilelang.options import CompileOptions
from tilelang.program.stmt import Function
from tilelang.target import Target


@runtime_checkable
class Watch(Listener, Protocol):
    """Sees one compilation. `before` and `after` are those of a pipeline observer; as a listener
    it is told of what is no pass, such as `infer_layouts`, `emit` and `generate`, and of what is
    nested in these and in passes."""

    def before(self, name: str, func: Any, context: Any) -> None: ...

    def after(self, name: str, func: Any, context: Any, seconds: float) -> None: ...

    def finished(self, artifact: Any, diagnostics: Sequence[Any]) -> None:
        """The compilation is over, and this is what it gave."""

    def failed(self, error: BaseException) -> None:
        """The compilation is over, because of `error`."""


Watcher: TypeAlias = Callable[[Function, Target, CompileOptions], Watch]
WATCHERS: list[Watcher] = []
# Those of them that processes started by this one have as well.
INHERITED: list[Watcher] = []
# Those of this thread or task, where it has any; without others where it has just one.
_HERE: Final[ContextVar[tuple[Watcher, ...]]] = ContextVar("tilelang_watchers", default=())
_ALONE: Final[ContextVar[Watcher | None]] = ContextVar("tilelang_only_watcher", default=None)
# What registers itself for TILELANG_TRACE. Named, not imported: the compiler imports no tool.
_ALWAYS: Final = "tilelang_trace.always"


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """`watcher` sees what is compiled here, and in threads that nobody watches otherwise."""
    WATCHERS.append(watcher)
    here = _HERE.set((*_HERE.get(), watcher))
    try:
        yield
    finally:
        _HERE.reset(here)
        with suppress(ValueError):
            WATCHERS.remove(watcher)


@contextmanager
def watched_by(watcher: Watcher) -> Iterator[None]:
    """`watcher` alone sees what is compiled here."""
    alone = _ALONE.set(watcher)
    try:
        yield
    finally:
        _ALONE.reset(alone)


def _watchers() -> tuple[Watcher, ...]:
    """Those that see what is compiled now."""
    alone, here = _ALONE.get(), _HERE.get()
    if alone is not None:
        return (alone,)
    if settings.TRACE.is_set() and settings.TRACE.get():
        importlib.import_module(_ALWAYS)
    return (*INHERITED, *here) if here else tuple(WATCHERS)


def is_watched() -> bool:
    """Whether compilations are to be seen, and not found in a cache."""
    return bool(_watchers())


def is_watched_only_here() -> bool:
    """Whether somebody watches this process whom one that it starts would not know."""
    return any(watcher not in INHERITED for watcher in _watchers())


@contextmanager
def watched(
    function: Function, target: Target, options: CompileOptions
) -> Iterator[tuple[Watch, ...]]:
    """The watches of one compilation; they are told how it ends where `finished` is not called."""
    watches = tuple(start(function, target, options) for start in _watchers())
    try:
        yield watches
    except BaseException as error:
        for watch in watches:
            watch.failed(error)
        raise


@contextmanager
def part(name: str, observers: Sequence[Any]) -> Iterator[list[Any]]:
    """Tells those of `observers` that are watches about a part of a compilation; what it makes is
    put into the list."""
    watches = [x for x in observers if isinstance(x, Watch)]
    if not watches:
        yield []
        return
    with told(watches, name) as made:
        yield made
