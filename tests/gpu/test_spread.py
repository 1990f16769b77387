"""The closed form of a fragment's inverse says what its table says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilelang.layout.atoms import ATOMS, find_atoms
from tilelang.layout.expr import evaluate
from tilelang.layout.fragment import Fragment
from tilelang.layout.gemm import accumulator, operand_a, operand_b, partition_warps
from tilelang.layout.index_map import unflatten
from tilelang.layout.loops import loop_layout, ordinary, replicated
from tilelang.layout.slots import closed_slots, owners_reached, seen_as, slots_of
from tilelang.layout.spread import Spread, thread_ranges

GRID = partition_warps(64, 64, 4)
ATOM = find_atoms("float16", "float32", 80)[0]
LAYOUTS: dict[str, Fragment] = {
    "even": loop_layout((128, 64), 128, 8),
    "ragged rounds": loop_layout((100, 8), 128, 4),
    "fewer elements than threads": loop_layout((100,), 128),
    "odd sizes": loop_layout((37, 53), 128),
    "column major": loop_layout((64, 16), 128, 8, 0),
    "one element": Fragment((1,), lambda i: (i * 0, i * 0)),
    "everywhere": replicated((3, 5), 128),
    "three dimensions": ordinary((4, 6, 40), 96, 32),
    "accumulator": accumulator(64, 64, GRID, ATOM),
    "rows of an accumulator": accumulator(64, 64, GRID, ATOM).reduce(1),
    "columns of an accumulator": accumulator(64, 64, GRID, ATOM).reduce(0),
    "operand A": operand_a(64, 32, GRID, ATOM),
    "operand B transposed": operand_b(32, 64, GRID, ATOM, True),
    **{f"{atom} C": atom.c for atom in ATOMS},
}


def holds(alternatives: Any, at: tuple[Any, ...]) -> Any:
    found: Any = False
    for conditions in alternatives:
        one: Any = True
        for c in conditions:
            value = evaluate(c.value, at)
            one = one & (value >= c.low) & (value < c.limit)
        found = found | one
    return found


@pytest.mark.parametrize("limit", [1, 4, 16])
@pytest.mark.parametrize("name", LAYOUTS)
def test_closed_form_is_the_table(name: str, limit: int) -> None:
    layout, threads = LAYOUTS[name], 128
    spread = Spread.of(layout, threads, limit)
    assert spread is not None
    shape = (threads, spread.rounds, spread.lanes)
    at = tuple(np.arange(n).reshape([-1 if d == k else 1 for d in range(3)])
               for k, n in enumerate(shape))  # fmt: skip
    inside = np.broadcast_to(holds((spread.inside,), at), shape)
    assert np.array_equal(inside, spread.elements >= 0)
    number: Any = 0
    for coordinate, extent in zip(spread.coordinates, layout.shape, strict=True):
        number = number * extent + evaluate(coordinate, at)
    assert np.array_equal(np.broadcast_to(number, shape)[inside], spread.elements[inside])
    # One thread acts for each element.
    first = np.broadcast_to(holds(spread.first, at), shape) & inside
    assert sorted(spread.elements[first].tolist()) == list(range(layout.size))
    # Lanes are neighbours along one dimension.
    if spread.lanes > 1:
        places = unflatten(np.maximum(spread.elements, 0).reshape(threads, -1), layout.shape)
        lanes = places[spread.dim].reshape(shape)
        assert ((np.diff(lanes, axis=2) == 1) | ~inside[:, :, 1:]).all()


def test_threads_without_a_closed_inverse_have_no_spread() -> None:
    rng = np.random.default_rng(0)
    order = rng.permutation(64)
    shuffled = Fragment.of_owners((64,), order.reshape(64, 1))
    assert Spread.of(shuffled, 64) is None
    assert Spread.of(loop_layout((256,), 256), 128) is None


@pytest.mark.parametrize("seed", range(20))
def test_ranges_hold_for_the_wanted_threads(seed: int) -> None:
    rng = np.random.default_rng(seed)
    threads = int(rng.choice([32, 96, 128]))
    wanted = rng.random(threads) < rng.random()
    matters = wanted | (rng.random(threads) < 0.5)
    found = holds(thread_ranges(wanted, matters), (np.arange(threads), 0, 0))
    assert np.array_equal(np.broadcast_to(found, threads)[matters], wanted[matters])


def test_slots_are_those_of_the_fragment() -> None:
    layout = accumulator(64, 64, GRID, ATOM)
    spread = Spread.of(layout, 128, 2)
    assert spread is not None
    held = slots_of(layout, spread.elements)
    slot = closed_slots(held)
    assert slot is not None
    assert [evaluate(slot, (t, 3, 1)) for t in (0, 77)] == [7, 7]
    # A thread does not hold the elements of its neighbour.
    assert (slots_of(layout, np.roll(spread.elements, 1, axis=0)) < 0).all()


def test_all_copies_of_an_element_have_to_be_reached() -> None:
    layout = replicated((4,), 32)
    every = np.broadcast_to(np.arange(4), (32, 4))
    assert owners_reached(layout, every)
    assert not owners_reached(layout, np.where(np.arange(32)[:, None] < 16, every, -1))
    # An element that nobody who holds it works on.
    apart = loop_layout((32,), 32)
    assert not owners_reached(apart, (np.arange(32)[:, None] + 1) % 32)


def test_registers_seen_as_wider_and_narrower_elements() -> None:
    halves = loop_layout((16, 64), 64, 8)
    words = seen_as(halves, 16, 32, (16, 32))
    assert words is not None
    assert words.owners(3, 5) == ((halves.owners(3, 10)[0][0], halves.owners(3, 10)[0][1] // 2),)
    back = seen_as(words, 32, 16, (16, 64))
    assert back == halves
    assert seen_as(loop_layout((16, 64), 64, 1), 16, 32, (16, 32)) is None
