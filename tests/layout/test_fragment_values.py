"""`Fragment`: owners, slots, replication and algebra."""

from __future__ import annotations

import itertools
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilelang.layout import Fragment
from tilelang.layout.loops import full_extents, loop_layout, replicated, vector_widths

MMA_C = Fragment((8, 8), lambda i, j: (i * 4 + j // 2, j % 2))


def indices(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    return list(itertools.product(*(range(n) for n in shape)))


@st.composite
def fragments(draw: st.DrawFn) -> Fragment:
    """A bijective fragment, grown from one instruction tile by repeating and replicating."""
    base = draw(
        st.sampled_from(
            [
                MMA_C,
                Fragment((4, 2), lambda i, j: (i, j)),
                Fragment((6, 2), lambda i, j: (j * 3 + i % 3, i // 3)),
            ]
        )
    )
    fragment = base
    for _ in range(draw(st.integers(0, 3))):
        step = draw(st.sampled_from(["slots", "threads", "copies", "transpose"]))
        counts = draw(st.tuples(st.integers(1, 2), st.integers(1, 3)))
        first = draw(st.booleans())
        match step:
            case "slots":
                fragment = fragment.repeat(counts, lower_dim_first=first)
            case "threads":
                fragment = fragment.repeat(counts, repeat_on_thread=True, lower_dim_first=first)
            case "copies":
                fragment = fragment.replicate(counts[0])
            case _:
                fragment = fragment.permute((1, 0))
    return fragment


@settings(deadline=None)
@given(fragments())
def test_bijective_modulo_replication(fragment: Fragment) -> None:
    assert fragment.is_bijective
    assert fragment.clash() is None
    places = [place for index in indices(fragment.shape) for place in fragment.owners(*index)]
    assert len(places) == len(set(places)) == fragment.thread_extent * fragment.slots
    back = fragment.inverse()
    for index in indices((*fragment.shape, fragment.replicas)):
        assert back.map_forward_index(fragment(*index)) == index


@settings(deadline=None)
@given(fragments())
def test_owners_and_elements_agree(fragment: Fragment) -> None:
    for thread in range(0, fragment.thread_extent, 5):
        held = fragment.elements(thread)
        assert len(held) == fragment.slots
        for slot, index in enumerate(held):
            assert (thread, slot) in fragment.owners(*index)
            assert fragment.element(thread, slot) == index


@settings(deadline=None)
@given(fragments())
def test_printed_is_evaluated(fragment: Fragment) -> None:
    code = compile(fragment.formula(("i", "j", "rep")), "formula", "eval")
    for i, j, rep in indices((*fragment.shape, fragment.replicas)):
        assert eval(code, {"i": i, "j": j, "rep": rep}) == fragment(i, j, rep)


@settings(deadline=None)
@given(fragments(), st.integers(-2, 1), st.booleans())
def test_a_reduction_lives_where_its_row_lived(fragment: Fragment, dim: int, keep: bool) -> None:
    result = fragment.reduce(dim, keepdim=keep)
    assert result.clash() is None
    for kept in range(fragment.shape[1 - dim % 2]):
        row = [(kept, x) if dim % 2 else (x, kept) for x in range(fragment.shape[dim])]
        took_part = {thread for index in row for thread, _ in fragment.owners(*index)}
        at = ((kept, 0) if dim % 2 else (0, kept)) if keep else (kept,)
        assert {thread for thread, _ in result.owners(*at)} == took_part


@settings(deadline=None)
@given(fragments(), st.integers(1, 3))
def test_condensing_keeps_owners(fragment: Fragment, copies: int) -> None:
    twice = Fragment(
        fragment.shape,
        lambda i, j, rep: fragment(i, j, rep % fragment.replicas),
        replicate=fragment.replicas * copies,
    )
    condensed = twice.condense_rep_var()
    assert condensed.replicas == fragment.replicas
    for index in indices(fragment.shape):
        assert condensed.owners(*index) == fragment.owners(*index)


def test_three_ways_to_write_one() -> None:
    both = Fragment((8, 8), forward_fn=lambda i, j: (i * 4 + j // 2, j % 2))
    split = Fragment(
        (8, 8),
        forward_thread_fn=lambda i, j: i * 4 + j // 2,
        forward_index_fn=lambda i, j: [j % 2],
    )
    counted = Fragment((8, 8), forward_thread_fn=lambda i, j: i * 4 + j // 2)
    assert both == split == counted == MMA_C
    assert hash(both) == hash(counted)
    assert pickle.loads(pickle.dumps(counted)) == both
    nested = Fragment((4, 4), lambda i, j: (i, [j // 2, j % 2]))
    assert nested == Fragment((4, 4), lambda i, j: (i, j))


def test_equality_sees_threads_slots_and_copies() -> None:
    swapped = Fragment((8, 8), lambda i, j: (i * 4 + j // 2, 1 - j % 2))
    assert swapped != MMA_C
    assert MMA_C.replicate(2) != MMA_C
    assert MMA_C.replicate(1) == MMA_C
    assert MMA_C.is_equal(Fragment((8, 8), lambda a, b: ((a * 8 + b) // 2, b & 1)))


def test_repeat_orders() -> None:
    tile = Fragment((2, 2), lambda i, j: (i, j))
    last = tile.repeat((2, 2))
    first = tile.repeat((2, 2), lower_dim_first=False)
    assert [last.slot(0, 2), last.slot(2, 0)] == [2, 4]
    assert [first.slot(0, 2), first.slot(2, 0)] == [4, 2]
    threads = tile.repeat((2, 2), repeat_on_thread=True)
    assert [threads.thread(0, 2), threads.thread(2, 0)] == [2, 4]
    assert (threads.thread_extent, threads.slots) == (8, 2)


def test_replication() -> None:
    four = Fragment((8,), lambda i, rep: (i * 4 + rep, 0), replicate=4)
    assert four.owners(1) == ((4, 0), (5, 0), (6, 0), (7, 0))
    assert four.replicate(2).thread(1, rep=5) == 32 + 5
    everyone = replicated((4,), 128)
    assert everyone.replicas == 128
    assert everyone.registers(16) == 2
    total = Fragment((128,), lambda i: (i, 0)).reduce(0)
    assert (total.shape, total.replicas) == ((1,), 128)


def test_padding_is_counted_and_found() -> None:
    ragged = loop_layout((192,), threads=128)
    assert ragged.slots == 2
    assert ragged.holes(128) == 64
    assert ragged.element(63, 1) == (191,)
    assert ragged.element(64, 1) is None
    assert not ragged.is_bijective
    with pytest.raises(ValueError, match="does not fill its threads"):
        ragged.inverse()
    assert loop_layout((100,), threads=128).holes(128) == 28
    assert full_extents(192, 128) == (128, 256)
    assert full_extents(229, 128) == (128, 256)


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (MMA_C, "thread=i*4 + j//2, slot=j%2"),
        (MMA_C.repeat((2, 2)), "thread=i%8*4 + j//2%4"),
        (MMA_C.reduce(1), "thread=i*4 + rep, slot=0"),
        (loop_layout((128, 64), 128, 8), "thread=i%16*8 + j//8, slot=i//16*8 + j%8"),
        (loop_layout((3, 229), 128), "thread=(i*229 + j)%128"),
        (Fragment((4, 4), lambda i, j: (0 if i > j else i, j)), "4x4 on 4 threads, 4 each"),
    ],
)
def test_short_form(layout: Fragment, expected: str) -> None:
    assert str(layout) == expected
    assert len(expected) <= 43


@pytest.mark.parametrize(
    ("threads", "vector", "fastest", "width"),
    [(32, 1, -1, 1), (32, 4, -1, 4), (16, 8, -1, 8), (32, 4, 0, 4)],
)
def test_loops_keep_their_vectors(threads: int, vector: int, fastest: int, width: int) -> None:
    layout = loop_layout((16, 32), threads, vector, fastest)
    assert layout.is_bijective
    assert layout.vector_width(fastest) == width
    assert layout.thread_extent == threads


def test_neighbouring_vectors_go_to_neighbouring_threads() -> None:
    layout = loop_layout((16, 32), threads=64, vector=4)
    assert [layout.thread(0, j) for j in range(0, 32, 4)] == list(range(8))
    assert layout.thread(1, 0) == 8


def test_vector_widths() -> None:
    assert vector_widths(64, 16) == (8, 4, 2, 1)
    assert vector_widths(12, 16) == (4, 2, 1)
    assert vector_widths(64, 16, limit=3) == (2, 1)
    assert vector_widths(7, 32) == (1,)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Fragment((4,)), "either forward_fn or forward_thread_fn"),
        (lambda: Fragment((4,), lambda i: i), r"returns \(thread, slot\)"),
        (lambda: Fragment((4,), lambda i: (i - 1, 0)), "count from 0 up, got -1"),
        (lambda: Fragment((4,), lambda i: (i, 0), replicate=0), "must be positive"),
        (lambda: MMA_C.repeat((2,)), "needs as many repeats"),
        (lambda: MMA_C.permute((0, 0)), "no permutation"),
        (lambda: MMA_C.reduce(2), "no dimension 2"),
        (lambda: loop_layout((6,), 4, 4), "vectors of 4 do not divide 6"),
        (lambda: loop_layout((6,), 0), "needs threads"),
    ],
)
def test_refusals(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=message):
        make()
