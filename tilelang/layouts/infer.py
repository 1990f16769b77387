"""Which layout does each tile and each loop of a kernel get, and why? TVM-free: tools ask it too.

    found = infer_layouts(function, "cuda:sm_80")

Each launch is read once (`collect`), fragments and loops of each group of threads are solved
together (`tilelang.layout.solve`), then every shared tile is laid out for the ways it is used
(`shared`), and what is wrong or costly becomes diagnostics (`findings`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from tilelang.layout.constraints import (
    AnyLayout,
    Problem,
    Variable,
    variables_of,
)
from tilelang.layout.solution import Solution
from tilelang.layout.solve import solve
from tilelang.layout.wgmma import swizzle_of
from tilelang.layouts import findings
from tilelang.layouts.addresses import known_shape
from tilelang.layouts.builder import Builder
from tilelang.layouts.collect import Collected, collect
from tilelang.layouts.demands import EngineUse, Product, SharedUse
from tilelang.layouts.layout_map import LaunchLayouts, LayoutMap
from tilelang.layouts.machine import Machine, machine_of
from tilelang.layouts.shared import SharedLayout, choose_layout, count_conflicts
from tilelang.layouts.solved import Solved
from tilelang.program.accesses import storage
from tilelang.program.buffer import Buffer
from tilelang.program.stmt import Function, Launch, walk_statements
from tilelang.target import Target
from tilelang_diagnostics.model import Diagnostic


def infer_layouts(
    function: Function, target: str | Target = "cuda:sm_80", warp_groups: bool = True
) -> LayoutMap:
    """The layouts of every launch of a kernel; for a CPU, those of a nominal GPU.

    `warp_groups` says whether `T.gemm` may use the instructions of warp groups. Raises for a target
    that does not exist, never for what the kernel does."""
    machine = machine_of(target)
    return _infer(function, machine if warp_groups else replace(machine, has_wgmma=False))


@lru_cache(maxsize=16)
def _infer(function: Function, machine: Machine) -> LayoutMap:
    launches: list[LaunchLayouts] = []
    found: dict[Diagnostic, None] = {}
    for stmt in walk_statements(function.body):
        if isinstance(stmt, Launch):
            solved = _solve(stmt, machine)
            launches.append(solved.layouts())
            found.update(dict.fromkeys(findings.of_launch(solved)))
    return LayoutMap(function.name, machine, tuple(launches), tuple(found))


def _solve(launch: Launch, machine: Machine) -> Solved:
    """With warp groups for the gemms whose tiles then lie as they need them, and for no others."""
    plain: frozenset[int] = frozenset()
    while True:
        solved = _solve_all(collect(launch, machine, plain), machine)
        failed = {
            id(p.op)
            for b, solution in solved.groups
            for p in b.products
            if not _lies(p, b, solution, solved)
        }
        if failed <= plain:
            return solved
        plain |= failed


def _lies(product: Product, b: Builder, solution: Solution, solved: Solved) -> bool:
    """Whether the tiles of a gemm lie as warp groups need them; where its author waits for it,
    lowering refuses what does not."""
    groups = product.groups
    if groups is None or product.is_async:
        return True
    for buffer, wanted in ((product.c.buffer, groups.c), (product.a.buffer, groups.a)):
        if wanted is not None:
            variable = b.variables.get(buffer)
            if variable is None or solution.layouts.get(variable) != wanted:
                return False
    for region, modes in groups.shared:
        buffer = storage(region.buffer)
        known = solved.shared.get(buffer)
        if known is None or swizzle_of(known.layout, buffer.dtype.bits) not in modes:
            return False
    return True


def _solve_all(collected: Collected, machine: Machine) -> Solved:
    groups = tuple((b, _solve_group(b)) for b in collected.groups)
    layouts: dict[Variable, AnyLayout] = {}
    for _, solution in groups:
        layouts.update(solution.layouts)
    uses: dict[Buffer, list[SharedUse]] = {}
    engines: dict[Buffer, list[EngineUse]] = {}
    for b, _ in groups:
        for use in b.shared_uses:
            uses.setdefault(use.buffer, []).append(use)
        for engine in b.engine_uses:
            engines.setdefault(engine.buffer, []).append(engine)
    shared: dict[Buffer, SharedLayout] = {}
    for buffer in collected.buffers:
        if buffer.is_shared and buffer.source is None and known_shape(buffer) is not None:
            found = uses.get(buffer, []), tuple(engines.get(buffer, ()))
            shared[buffer] = _shared(collected, buffer, *found, layouts, machine)
    return Solved(collected, machine, groups, shared)


def _solve_group(b: Builder) -> Solution:
    """Everything but what concerns fragments that are left alone."""
    left_alone = {var for buffer, var in b.variables.items() if buffer in b.unknown}
    kept = [c for c in b.constraints if not left_alone.intersection(variables_of(c))]
    extra = [v for v in b.variables.values() if v not in left_alone]
    extra += [nest.variable for nest in b.nests]
    return solve(Problem(b.threads, tuple(kept), tuple(extra), b.machine.warp))


def _shared(
    collected: Collected, buffer: Buffer, uses: list[SharedUse], engines: tuple[EngineUse, ...],
    layouts: dict[Variable, AnyLayout], machine: Machine,
) -> SharedLayout:  # fmt: skip
    for b in collected.groups:
        if buffer in b.fixed_shared:
            layout, origin = b.fixed_shared[buffer]
            if layout.shape == known_shape(buffer):
                return count_conflicts(buffer, layout, origin, uses, layouts, machine)
    pinned = collected.reasons.get(buffer)
    return choose_layout(buffer, uses, layouts, machine, pinned, engines)
