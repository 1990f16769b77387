"""`Layout`: evaluation, algebra, equality and text."""

from __future__ import annotations

import itertools
import math
import pickle
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilelang.layout import Layout
from tilelang.layout.digits import Digit, DigitMap, Output, Xor, recognise
from tilelang.layout.index_map import IndexMap

XOR_TILE = Layout((32, 32), lambda i, j: (i, j ^ i))
CHUNKS = Layout((64, 64), lambda i, j: i * 64 + ((j // 8) ^ (i % 8)) * 8 + j % 8)


def indices(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    return list(itertools.product(*(range(n) for n in shape)))


@st.composite
def bijections(draw: st.DrawFn) -> Layout:
    """A random bijective layout: mixed-radix digits in any order, sometimes xor-swizzled."""
    factors = draw(
        st.lists(
            st.lists(st.sampled_from([1, 2, 2, 3, 4]), min_size=1, max_size=3),
            min_size=1,
            max_size=3,
        )
    )
    shape = tuple(math.prod(f) for f in factors)
    pieces = []
    for dim, extents in enumerate(factors):
        div = 1
        for extent in extents:
            pieces.append((dim, div, extent))
            div *= extent
    order = draw(st.permutations(pieces))
    digits, stride = [], 1
    for dim, div, extent in order:
        digits.append(Digit(dim, div, extent, stride))
        stride *= extent
    bits = stride.bit_length() - 1
    xors: tuple[Xor, ...] = ()
    if stride == 1 << bits and bits >= 2 and draw(st.booleans()):
        width = draw(st.integers(1, bits // 2))
        low = draw(st.integers(0, bits - 2 * width))
        high = draw(st.integers(low + width, bits - width))
        if draw(st.booleans()):
            low, high = high, low
        xors = (Xor(0, 0, 1 << high, 1 << width, 1 << low),)
    return Layout.from_digits(shape, digits, xors=xors)


@settings(deadline=None)
@given(bijections())
def test_inverse_after_layout_is_identity(layout: Layout) -> None:
    back = layout.inverse()
    for index in indices(layout.shape):
        there = layout.map_forward_index(index)
        assert back.map_forward_index(there) == index
    assert back.inverse() == layout


SHAPES = st.lists(st.integers(1, 6), min_size=1, max_size=3).map(tuple)


@st.composite
def chains(draw: st.DrawFn) -> tuple[Layout, Layout, Layout]:
    """Three maps, each into the domain of the one before; traced, tabulated, one to one or not."""
    shapes = [draw(SHAPES) for _ in range(4)]
    maps = []
    for target, source in itertools.pairwise(shapes):
        a, b = draw(st.integers(0, 7)), draw(st.integers(0, 7))

        def fn(*x: Any, target: Any = target, a: int = a, b: int = b) -> tuple[Any, ...]:
            return tuple((sum(x) * a + (x[0] ^ k) + b) % n for k, n in enumerate(target))

        layout = Layout(source, fn, out_shape=target)
        if draw(st.booleans()):
            layout = Layout(source, Layout.from_table(layout.map.table).map, out_shape=target)
        maps.append(layout)
    return maps[0], maps[1], maps[2]


@settings(deadline=None)
@given(chains())
def test_composition_is_associative(chain: tuple[Layout, Layout, Layout]) -> None:
    a, b, c = chain
    left, right = a.compose(b).compose(c), a.compose(b.compose(c))
    assert left == right
    for index in indices(c.shape):
        assert left.map_forward_index(index) == a.map_forward_index(
            b.map_forward_index(c.map_forward_index(index))
        )


@settings(deadline=None)
@given(bijections())
def test_printed_is_evaluated(layout: Layout) -> None:
    for part in (layout, layout.inverse()):
        names = tuple(f"x{k}" for k in range(len(part.shape)))
        code = compile(part.formula(names), "formula", "eval")
        for index in indices(part.shape):
            assert eval(code, dict(zip(names, index, strict=True))) == part(*index)


@settings(deadline=None)
@given(bijections())
def test_a_table_is_recognised_as_its_digits(layout: Layout) -> None:
    digits = recognise(layout.map.table)
    assert digits is not None
    assert IndexMap.of_digits(digits).equals(layout.map)
    again = Layout.from_table(layout.map.table)
    assert again == layout
    assert hash(again) == hash(layout)


@settings(deadline=None)
@given(bijections())
def test_vector_width_is_the_widest_aligned_run(layout: Layout) -> None:
    for dim, extent in enumerate(layout.shape):
        width = layout.vector_width(dim)
        assert extent % width == 0
        assert is_run(layout, dim, width)
        assert extent % (2 * width) or not is_run(layout, dim, 2 * width)


def is_run(layout: Layout, dim: int, width: int) -> bool:
    for index in indices(layout.shape):
        start = index[dim] - index[dim] % width
        first = layout.offset(*index[:dim], start, *index[dim + 1 :])
        if first % width or layout.offset(*index) != first + index[dim] % width:
            return False
    return True


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (Layout.row_major((128, 32)), "row-major 128x32"),
        (Layout((8, 4), lambda i, j: j * 8 + i), "column-major 8x4"),
        (Layout((16,), lambda i: i), "i"),
        (XOR_TILE, "(i, j ^ i)"),
        (CHUNKS, "(i*64 + j) ^ i%8*8"),
        (Layout((32, 32), lambda i, j: i * 33 + j), "i*33 + j"),
        (
            Layout((64, 64), lambda i, j: [i // 32, j // 32, i % 32, j % 32]),
            "(i//32, j//32, i%32, j%32)",
        ),
        (Layout((4, 4), lambda i, j: 0 if i > j else i * 4 + j), "overlapping 4x4, 1 wide"),
        (CHUNKS.product(Layout.row_major((2, 2))), "permuted 128x128, 8 wide"),
    ],
)
def test_short_form(layout: Layout, expected: str) -> None:
    assert str(layout) == expected
    assert len(expected) <= 43


def test_evaluation_over_ints_arrays_and_symbols() -> None:
    class Symbol:
        """Records what was done to it, as a compiler's expression would."""

        def __init__(self, text: str) -> None:
            self.text = text

        def _with(self, op: str, other: Any) -> Symbol:
            return Symbol(f"({self.text} {op} {getattr(other, 'text', other)})")

        def __add__(self, other: Any) -> Symbol:
            return self._with("+", other)

        def __mul__(self, other: Any) -> Symbol:
            return self._with("*", other)

        def __mod__(self, other: Any) -> Symbol:
            return self._with("%", other)

        def __xor__(self, other: Any) -> Symbol:
            return self._with("^", other)

    layout = Layout((64, 64), lambda i, j: (i * 64 + j) ^ (i % 8 * 8))
    assert layout(3, 5) == 221
    rows = np.arange(64)
    assert layout(rows, 5).tolist() == [layout(int(i), 5) for i in rows]
    assert layout(Symbol("a"), Symbol("b")).text == "(((a * 64) + b) ^ ((a % 8) * 8))"
    table = Layout.from_table(layout.map.table)
    assert table(Symbol("a"), Symbol("b")).text == "(((a * 64) + b) ^ ((a % 8) * 8))"


def test_a_lambda_with_control_flow_is_tabulated() -> None:
    layout = Layout((4, 4), lambda i, j: i * 4 + (j if i < 2 else 3 - j))
    assert [layout(2, j) for j in range(4)] == [11, 10, 9, 8]
    assert eval(layout.formula(("a", "b")), {"a": 2, "b": 1}) == 10
    assert layout.is_bijective


def test_a_table_without_closed_form_takes_numbers_only() -> None:
    triangle = Layout((4, 4), lambda i, j: 0 if i > j else i * 4 + j)
    assert eval(triangle.formula(("a", "b")), {"a": 1, "b": 2}) == triangle(1, 2) == 6
    assert triangle(np.array([0, 3]), 1).tolist() == [1, 0]
    with pytest.raises(TypeError, match="without a closed form"):
        triangle(object(), 0)


def test_a_column_may_be_reversed() -> None:
    layout = Layout((4, 4), lambda i, j: i * 4 + 3 - j)
    assert layout.inverse()(4) == (1, 3)
    assert layout.inverse().compose(layout) == Layout((4, 4), lambda i, j: (i, j))
    assert layout.vector_width() == 1


def test_equality_ignores_how_a_map_was_written() -> None:
    other = Layout((64, 64), lambda a, b: (a << 6 | b) ^ ((a & 7) << 3))
    assert other == CHUNKS
    assert other.is_equal(CHUNKS)
    assert hash(other) == hash(CHUNKS)
    assert Layout.row_major((64, 64)) != CHUNKS
    assert Layout.row_major((4, 16)) != Layout.row_major((8, 8))
    assert Layout((4, 4), lambda i, j: (i, j)) != Layout((4, 4), lambda i, j: i * 4 + j)


def test_repeat_expand_reshape() -> None:
    tile = Layout((2, 4), lambda i, j: i * 4 + j)
    assert tile.repeat(1, 3).map_forward_index((1, 9)) == (2, 5)
    assert tile.repeat(1, 3).get_output_shape() == (3, 8)
    assert tile.repeat(0, 2).shape == (4, 4)
    assert tile.expand((5,)).map_forward_index((3, 1, 2)) == (3, 6)
    assert tile.expand(5) == tile.expand((5,))
    assert tile.reshape((8,)) == Layout.row_major((8,))
    assert tile.reshape((4, 2))(3, 1) == 7
    assert tile.product(Layout.row_major((2, 1)))(3, 3) == 15


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Layout((4,), lambda i: i - 1), ValueError, "this one gives -1"),
        (lambda: Layout((4, 0), lambda i, j: i), ValueError, "must be positive"),
        (lambda: Layout(("n",), lambda i: i), TypeError, "must be integers"),
        (lambda: Layout((4,), lambda i: "x"), TypeError, "returns integers"),
        (lambda: Layout((4,), cast(Any, 3)), TypeError, "needs a function"),
        (lambda: XOR_TILE(1), ValueError, "expected 2 indices"),
        (lambda: XOR_TILE.repeat(2, 2), ValueError, "no dimension 2"),
        (lambda: XOR_TILE.repeat(0, 0), ValueError, "at least once"),
        (lambda: XOR_TILE.repeat(0, cast(Any, 1.5)), TypeError, "integer"),
        (lambda: XOR_TILE.reshape((5,)), ValueError, "the sizes differ"),
        (lambda: XOR_TILE.compose(CHUNKS), ValueError, "cannot feed 1 indices"),
        (lambda: Layout((4,), lambda i: i // 2).inverse(), ValueError, r"\(0,\) and \(1,\) share"),
        (
            lambda: Layout((4,), lambda i: i * 2).inverse(),
            ValueError,
            "4 elements leave holes in 7",
        ),
        (lambda: XOR_TILE.formula(("i",)), ValueError, "expected 2 names"),
        (lambda: Xor(0, 0, 1, 4, 2), ValueError, "may not flip the bits it reads"),
        (lambda: Xor(0, 0, 3, 4, 64), ValueError, "powers of two"),
        (lambda: Digit(0, 0, 2, 1), ValueError, "div >= 1"),
        (lambda: DigitMap((4,), (Output((Digit(1, 1, 2, 1),)),)), ValueError, "does not have"),
    ],
)
def test_refusals(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_collision_names_two_elements() -> None:
    clash = Layout((4, 4), lambda i, j: i + j)
    assert not clash.is_injective
    pair = clash.collision()
    assert pair is not None
    assert pair[0] != pair[1]
    assert clash(*pair[0]) == clash(*pair[1])
    assert XOR_TILE.collision() is None


def test_layouts_travel_between_processes() -> None:
    for layout in (XOR_TILE, CHUNKS.inverse()):
        assert pickle.loads(pickle.dumps(layout)) == layout
