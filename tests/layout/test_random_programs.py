"""Inference on random programs, checked by plain sets: no demand is lost, no blame is idle."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from tilelang.layout import Fragment, Layout
from tilelang.layout.constraints import (
    Access,
    Constraint,
    Fixed,
    Mode,
    Origin,
    Problem,
    Variable,
    fragment,
    loop,
)
from tilelang.layout.loops import loop_layout
from tilelang.layout.solution import Solution
from tilelang.layout.solve import solve
from tilelang_diagnostics.model import Span


def op(text: str, line: int) -> Origin:
    return Origin(text, Span("k.py", line, 1, line, 20))


@st.composite
def programs(draw: st.DrawFn) -> Problem:
    """A few loops over a few fragments with random affine indices, some layouts pinned."""
    threads = draw(st.sampled_from([4, 8]))
    tiles = [fragment(f"f{k}", draw(st.sampled_from([(4, 4), (8,), (8, 2)])), 32) for k in range(3)]
    constraints: list[Constraint] = []
    for k in range(draw(st.integers(1, 3))):
        nest = loop(f"l{k}", draw(st.sampled_from([(8,), (4, 4), (8, 2)])))
        for n in range(draw(st.integers(1, 3))):
            tile = draw(st.sampled_from(tiles))
            a, b, c = (draw(st.integers(0, 3)) for _ in range(3))

            def index(
                *x: int, tile: Variable = tile, a: int = a, b: int = b, c: int = c
            ) -> tuple[int, ...]:
                mixed = sum(v * w for v, w in zip(x, (a, b), strict=False)) + c
                same = len(tile.shape) == len(x)
                return x if same and a else tuple(mixed % n for n in tile.shape)

            mode = draw(st.sampled_from(list(Mode)))
            origin = op(f"{tile} in {nest}", 10 * k + n + 1)
            mapped = Layout(nest.shape, index)
            constraints.append(Access(nest, tile, mapped, mode, origin, draw(st.booleans())))
    for tile in tiles:
        if draw(st.integers(0, 2)) == 0:
            copies = draw(st.sampled_from([1, 2]))
            half = loop_layout(tile.shape, threads // copies)
            pinned = half.replicate(copies)
            constraints.append(Fixed(tile, pinned, op(f"pin {tile}", 90)))
    return Problem(threads, tuple(constraints), tuple(tiles))


def blamed_in(solution: Solution) -> list[Constraint]:
    conversions = [c.constraint for c in solution.conversions]
    return conversions + [c.constraint for c in solution.conflicts]


def holds(access: Access, solution: Solution) -> bool:
    """The rule of `Access`, in plain sets."""
    nest, tile = solution.layouts[access.loop], solution.layouts[access.buffer]
    assert isinstance(nest, Fragment)
    assert isinstance(tile, Fragment)
    assert access.index is not None
    for x in itertools.product(*(range(n) for n in access.loop.shape)):
        element = access.index.map_forward_index(x)
        if any(e >= n for e, n in zip(element, access.buffer.shape, strict=True)):
            continue
        runs = {thread for thread, _ in nest.owners(*x)}
        lives = {thread for thread, _ in tile.owners(*element)}
        if access.mode is not Mode.WRITE and not runs <= lives:
            return False
        if access.mode is not Mode.READ and not lives <= runs:
            return False
    return True


@settings(deadline=None)
@given(programs())
def test_every_demand_is_met_converted_or_reported(problem: Problem) -> None:
    solution = solve(problem)
    assert set(solution.layouts) == set(problem.variables)
    excused = blamed_in(solution)
    for constraint in problem.constraints:
        if isinstance(constraint, Access):
            assert holds(constraint, solution) != (constraint in excused)
        elif isinstance(constraint, Fixed):
            assert (solution.layouts[constraint.var] == constraint.layout) != (
                constraint in excused
            )
    for var, layout in solution.layouts.items():
        assert isinstance(layout, Fragment)
        assert layout.shape == var.shape
        assert layout.thread_extent <= problem.threads
        assert layout.clash() is None


@settings(deadline=None)
@given(programs())
def test_conflicts_name_a_set_that_cannot_shrink(problem: Problem) -> None:
    for conflict in solve(problem).conflicts:
        blamed = [c for c in problem.constraints if c.origin in conflict.origins]
        still = solve(Problem(problem.threads, tuple(blamed)))
        assert conflict.constraint in [c.constraint for c in still.conflicts]
        for leave_out in conflict.origins:
            if leave_out == conflict.constraint.origin:
                continue
            rest = tuple(c for c in blamed if c.origin != leave_out)
            without = solve(Problem(problem.threads, rest))
            assert conflict.constraint not in blamed_in(without)


@settings(deadline=None)
@given(programs())
def test_solving_twice_gives_the_same(problem: Problem) -> None:
    first, second = solve(problem), solve(problem)
    assert dict(first.layouts) == dict(second.layouts)
    assert [str(c) for c in first.conversions] == [str(c) for c in second.conversions]
