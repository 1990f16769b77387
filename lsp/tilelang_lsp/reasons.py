"""Why is there no more to tell of a kernel whose lowering ended early? In words for its author."""

from __future__ import annotations

import logging

from tilelang.dtypes import dtype as find_dtype
from tilelang.program.buffer import Buffer
from tilelang.program.stmt import Allocate, Function, walk_statements

log = logging.getLogger(__name__)


def why_not_lowered(function: Function, open_sizes: tuple[str, ...], error: Exception) -> str:
    """What the kernel leaves open, or else that the compiler is at fault; never the exception,
    which is for those who develop the compiler."""
    log.debug("%s is not lowered", function.name, exc_info=error)
    names = dict.fromkeys((*open_sizes, *_open_dtypes(function)))
    if names:
        return f"{', '.join(names)} open; `# tilelang: set` gives a value"
    return "the compiler cannot do it yet"


def _open_dtypes(function: Function) -> tuple[str, ...]:
    """The names of dtypes that stand for what a caller will pass."""
    buffers = [p for p in (*function.params, *function.outputs) if isinstance(p, Buffer)]
    buffers += [s.buffer for s in walk_statements(function.body) if isinstance(s, Allocate)]
    return tuple({str(b.dtype): None for b in buffers if not _known(str(b.dtype))})


def _known(name: str) -> bool:
    try:
        find_dtype(name)
    except ValueError:
        return False
    return True
