"""What the compiler says about a kernel that traced well: one check per file, run in this order.

A check takes the finished program and yields diagnostics; it knows nothing of the others. Checks
must stay silent about every correct kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tilelang.checks import (
    data_races,
    initialised,
    pipelines,
    regions,
    swapped_axes,
    unbound_dims,
)
from tilelang.program.stmt import Function
from tilelang_diagnostics.model import Diagnostic

Check = Callable[[Function], Iterator[Diagnostic]]

CHECKS: tuple[Check, ...] = (
    unbound_dims.check,
    swapped_axes.check,
    regions.check,
    initialised.check,
    data_races.check,
    pipelines.check,
)


# These conclude from what a program does not do, so they need all of it.
NEED_COMPLETE = frozenset({initialised.check})


def check_function(function: Function, *, complete: bool = True) -> tuple[Diagnostic, ...]:
    """Everything the checks find; `complete` says that no statement had to be left out."""
    found: dict[Diagnostic, None] = {}
    for check in CHECKS:
        if check in NEED_COMPLETE and not complete:
            continue
        found.update(dict.fromkeys(check(function)))
    return tuple(found)
