"""Who watches the compilations of this process, and what do they see?

A tool that traces puts a function into `WATCHERS`; it is called once for each compilation and gives
a `Watch`, an observer of the pipeline that also sees what comes before and after the passes. With
TILELANG_TRACE set, `tilelang_trace` is loaded by name and watches everything. Nobody watches
otherwise, and then nothing is done but this asking.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

from tilelang import options as settings
from tilelang.nested import listening
from tilelang.options import CompileOptions
from tilelang.program.stmt import Function
from tilelang.target import Target


@runtime_checkable
class Watch(Protocol):
    """Sees one compilation. `before` and `after` are those of a pipeline observer."""

    def before(self, name: str, func: Any, context: Any) -> None: ...

    def after(self, name: str, func: Any, context: Any, seconds: float) -> None: ...

    def began(self, name: str) -> None:
        """A part that is no pass has begun: `infer_layouts`, `emit`, `generate`; or one inside of
        a pass or part (`tilelang.nested`)."""

    def ended(self, name: str, seconds: float, result: Any = None) -> None:
        """It has ended, with this result."""

    def finished(self, artifact: Any, diagnostics: Sequence[Any]) -> None:
        """The compilation is over, and this is what it gave."""

    def failed(self, error: BaseException) -> None:
        """The compilation is over, because of `error`."""


Watcher: TypeAlias = Callable[[Function, Target, CompileOptions], Watch]
WATCHERS: list[Watcher] = []
# Those of them that processes started by this one have as well.
INHERITED: list[Watcher] = []
# What registers itself for TILELANG_TRACE. Named, not imported: the compiler imports no tool.
_ALWAYS: Final = "tilelang_trace.always"


def is_watched() -> bool:
    """Whether compilations are to be seen, and not found in a cache."""
    if settings.TRACE.is_set() and settings.TRACE.get():
        importlib.import_module(_ALWAYS)
    return bool(WATCHERS)


def is_watched_only_here() -> bool:
    """Whether somebody watches this process whom one that it starts would not know."""
    return is_watched() and any(watcher not in INHERITED for watcher in WATCHERS)


@contextmanager
def watched(
    function: Function, target: Target, options: CompileOptions
) -> Iterator[tuple[Watch, ...]]:
    """The watches of one compilation; they are told how it ends where `finished` is not called."""
    if not is_watched():
        yield ()
        return
    watches = tuple(start(function, target, options) for start in WATCHERS)
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
    made: list[Any] = []
    for watch in watches:
        watch.began(name)
    started = time.perf_counter()
    with listening(watches):
        yield made
    elapsed = time.perf_counter() - started
    for watch in watches:
        watch.ended(name, elapsed, made[0] if made else None)
