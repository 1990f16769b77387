"""Which names do a kernel's sizes hang on that nothing gives a value to?"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.language.frontend import Parsed
from tilelang.program.expr import Expr, Var, walk
from tilelang.program.stmt import Function, walk_statements
from tilelang.program.stmt import Launch as LaunchStatement

_OPEN = ("const", "symbol")


def open_names(parsed: Parsed) -> tuple[str, ...]:
    """Names that a kernel's sizes hang on and nothing gives a value to."""
    if parsed.function is None:
        return ()
    found: dict[str, None] = {}
    for expr in _sizes(parsed.function):
        found.update({v.name: None for v in walk(expr) if isinstance(v, Var) and v.kind in _OPEN})
    return tuple(found)


def _sizes(function: Function) -> Iterator[Expr]:
    for param in (*function.params, *function.outputs):
        yield from (d for d in getattr(param, "shape", ()) if isinstance(d, Expr))
    for stmt in walk_statements(function.body):
        if isinstance(stmt, LaunchStatement):
            yield from (extent for _, extent in (*stmt.blocks, *stmt.threads))
        buffer = getattr(stmt, "buffer", None)
        yield from (d for d in getattr(buffer, "shape", ()) if isinstance(d, Expr))
