"""What is done within a pass, or within a part of a compilation?

    with nested("drop_unused") as result:
        body = dropped(body)
        result.append(with_body(func, body))        # where there is a program to show

Whoever records a compilation listens while it runs (`listening`), and sees such parts inside of the
pass around them. Nobody listens otherwise, and then nothing is done but this asking.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Protocol


class Listener(Protocol):
    """Is told of parts as they begin and end."""

    def began(self, name: str) -> None:
        """A part has begun, inside of those that have not ended."""

    def ended(self, name: str, seconds: float, result: Any = None) -> None:
        """It has ended, with this result."""


_LISTENERS: Final[ContextVar[tuple[Listener, ...]]] = ContextVar("tilelang_listeners", default=())


@contextmanager
def listening(listeners: Sequence[Listener]) -> Iterator[None]:
    """Tell `listeners` of what is nested inside."""
    if not listeners:
        yield
        return
    token = _LISTENERS.set(tuple(listeners))
    try:
        yield
    finally:
        _LISTENERS.reset(token)


def is_heard() -> bool:
    """Whether somebody listens: for what costs something to find out."""
    return bool(_LISTENERS.get())


@contextmanager
def told(listeners: Sequence[Listener], name: str) -> Iterator[list[Any]]:
    """A part that these listeners are told of, and of what is nested inside; what it makes is put
    into the list. One that ends in an exception does not end."""
    made: list[Any] = []
    for listener in listeners:
        listener.began(name)
    started = time.perf_counter()
    with listening(listeners):
        yield made
    elapsed = time.perf_counter() - started
    for listener in listeners:
        listener.ended(name, elapsed, made[0] if made else None)


@contextmanager
def nested(name: str) -> Iterator[list[Any]]:
    """A part of what runs now; a program that it made is put into the list."""
    listeners = _LISTENERS.get()
    if not listeners:
        yield []
        return
    with told(listeners, name) as made:
        yield made


def measured(name: str, seconds: float) -> None:
    """A part that has told its time itself, such as a phase of a compiler."""
    for listener in _LISTENERS.get():
        listener.began(name)
        listener.ended(name, seconds)
