"""How deep may a program nest, so that everything that reads it gets to its bottom?

Passes go down a program call by call, several a level. `deep_recursion` makes room for that;
programs that nest deeper than `MAX_NESTED` and `MAX_OPERATIONS` are refused before (TL148), far
above what a person writes.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from tilelang.program.expr import Expr, children

MAX_NESTED: Final = 200  # statements inside of each other; each `elif` is inside of the one before
MAX_OPERATIONS: Final = 300  # operations inside of each other
_ROOM: Final = 10_000  # calls of Python's
_lock = threading.Lock()
_inside: list[int] = []  # the limits that were found, while somebody is inside


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Python's limit is raised; whoever leaves last puts back what the first one found."""
    with _lock:
        _inside.append(sys.getrecursionlimit())
        sys.setrecursionlimit(max(_ROOM, _inside[0]))
    try:
        yield
    finally:
        with _lock:
            found = _inside.pop()
            if not _inside:
                sys.setrecursionlimit(found)


def is_deeper(roots: Sequence[Expr], most: int) -> bool:
    """Whether an expression nests deeper than `most`."""
    # Nearly all have fewer parts than that.
    waiting, seen = list(roots), 0
    while waiting and seen <= most:
        seen += 1
        waiting += children(waiting.pop())
    return bool(waiting) and _is_deeper(roots, most)


def _is_deeper(roots: Sequence[Expr], most: int) -> bool:
    """Parts that are used twice are looked at once."""
    known: dict[int, int] = {}
    waiting = [(root, False) for root in roots]
    while waiting:
        expr, is_done = waiting.pop()
        if id(expr) in known:
            continue
        inner = children(expr)
        if is_done:
            known[id(expr)] = 1 + max((known[id(e)] for e in inner), default=0)
            if known[id(expr)] > most:
                return True
        else:
            waiting.append((expr, True))
            waiting += [(e, False) for e in inner if id(e) not in known]
    return False
