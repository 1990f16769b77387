"""What the compiler says about a kernel that traced well: one check per file, run in this order.

A check takes the finished program and yields diagnostics; it knows nothing of the others. Checks
must stay silent about every correct kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from tilelang.checks import (
    async_waits,
    data_races,
    deep_nesting,
    divergent_barriers,
    empty_pipelines,
    endless_loops,
    explicit_layouts,
    index_dtypes,
    initialised,
    layouts,
    manual_schedules,
    narrow_results,
    opaque_code,
    outside_launch,
    parallel_locals,
    pipelines,
    reducers,
    regions,
    scopes,
    small_grids,
    swapped_axes,
    target_limits,
    thread_races,
    unbound_dims,
    unproved_bounds,
    unused_promises,
    vector_loops,
    warp_registers,
    wasted_tiles,
)
from tilelang.program.depth import deep_recursion
from tilelang.program.stmt import Function
from tilelang_diagnostics.model import Diagnostic

Check = Callable[[Function], Iterator[Diagnostic]]

CHECKS: tuple[Check, ...] = (
    outside_launch.check,
    scopes.check,
    unbound_dims.check,
    swapped_axes.check,
    regions.check,
    initialised.check,
    parallel_locals.check,
    reducers.check,
    unused_promises.check,
    narrow_results.check,
    data_races.check,
    thread_races.check,
    endless_loops.check,
    pipelines.check,
    manual_schedules.check,
    index_dtypes.check,
    vector_loops.check,
    explicit_layouts.check,
)

# These also know the target.
TARGET_CHECKS: tuple[Callable[[Function, str], Iterator[Diagnostic]], ...] = (
    target_limits.check,
    empty_pipelines.check,
    opaque_code.check,
    divergent_barriers.check,
    async_waits.check,
    warp_registers.check,
    wasted_tiles.check,
    layouts.check,
)

# What is only worth saying to someone who asks for its code.
ON_REQUEST: dict[str, Check] = {"TL222": unproved_bounds.check}
TARGET_ON_REQUEST = {"TL609": small_grids.check}

# These conclude from what a program does not do, so they need all of it.
NEED_COMPLETE: frozenset[Callable[..., Iterator[Diagnostic]]] = frozenset(
    {initialised.check, endless_loops.check, empty_pipelines.check, async_waits.check}
)


def check_function(
    function: Function,
    *,
    complete: bool = True,
    select: Collection[str] = (),
    target: str | None = None,
    with_layouts: bool = True,
) -> tuple[Diagnostic, ...]:
    """Everything the checks find; `complete` says that no statement had to be left out.

    `select` names the codes of what is only said on request. Layouts take longer than everything
    else together: an editor asks for them later.
    """
    too_deep = tuple(deep_nesting.check(function))
    if too_deep:
        return too_deep
    with deep_recursion():
        return _checked(function, complete, select, target, with_layouts)


def _checked(
    function: Function, complete: bool, select: Collection[str], target: str | None,
    with_layouts: bool,
) -> tuple[Diagnostic, ...]:  # fmt: skip
    asked = tuple(check for code, check in ON_REQUEST.items() if code in select)
    found: dict[Diagnostic, None] = {}
    for check in (*CHECKS, *asked):
        if check in NEED_COMPLETE and not complete:
            continue
        found.update(dict.fromkeys(check(function)))
    if target is not None:
        late = () if with_layouts else (layouts.check,)
        found.update(
            dict.fromkeys(check_for_target(function, target, select, complete=complete, skip=late))
        )
    return tuple(found)


def check_for_target(
    function: Function, target: str, select: Collection[str] = (), *, complete: bool = True,
    skip: Collection[Callable[..., Iterator[Diagnostic]]] = (),
) -> tuple[Diagnostic, ...]:  # fmt: skip
    """What only the target decides: for kernels traced before one was chosen."""
    asked = tuple(check for code, check in TARGET_ON_REQUEST.items() if code in select)
    checks = (c for c in (*TARGET_CHECKS, *asked) if complete or c not in NEED_COMPLETE)
    return tuple(d for check in checks if check not in skip for d in check(function, target))
