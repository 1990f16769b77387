"""What the compiler says about a kernel that traced well: one check per file, run in this order.

A check takes the finished program and yields diagnostics; it knows nothing of the others. Checks
must stay silent about every correct kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from tilelang.checks import (
    data_races,
    index_dtypes,
    initialised,
    manual_schedules,
    outside_launch,
    parallel_locals,
    pipelines,
    regions,
    swapped_axes,
    unbound_dims,
    unproved_bounds,
    vector_loops,
)
from tilelang.program.stmt import Function
from tilelang_diagnostics.model import Diagnostic

Check = Callable[[Function], Iterator[Diagnostic]]

CHECKS: tuple[Check, ...] = (
    outside_launch.check,
    unbound_dims.check,
    swapped_axes.check,
    regions.check,
    initialised.check,
    parallel_locals.check,
    data_races.check,
    pipelines.check,
    manual_schedules.check,
    index_dtypes.check,
    vector_loops.check,
)

# What is only worth saying to someone who asks for its code.
ON_REQUEST: dict[str, Check] = {"TL222": unproved_bounds.check}

# These conclude from what a program does not do, so they need all of it.
NEED_COMPLETE = frozenset({initialised.check})


def check_function(
    function: Function, *, complete: bool = True, select: Collection[str] = ()
) -> tuple[Diagnostic, ...]:
    """Everything the checks find; `complete` says that no statement had to be left out.

    `select` names the codes of `ON_REQUEST` that are asked for.
    """
    asked = tuple(check for code, check in ON_REQUEST.items() if code in select)
    found: dict[Diagnostic, None] = {}
    for check in (*CHECKS, *asked):
        if check in NEED_COMPLETE and not complete:
            continue
        found.update(dict.fromkeys(check(function)))
    return tuple(found)
