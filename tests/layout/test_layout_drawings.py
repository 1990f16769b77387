"""Drawings: exact text, well-formed SVG, the same every time."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from tilelang.layout import Fragment, Layout
from tilelang.layout.draw import draw_svg, draw_text

XOR = Layout((32, 32), lambda i, j: (i, j ^ i))
MMA_C = Fragment((8, 8), lambda i, j: (i * 4 + j // 2, j % 2))


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (
            Layout((2, 4), lambda i, j: (i, j ^ i)),
            """
                0  1  2  3
             0  0  1  2  3
             1  5  4  7  6
            """,
        ),
        (
            Fragment((2, 4), lambda i, j: (i * 2 + j // 2, j % 2)),
            """
                  0    1    2    3
             0  0:0  0:1  1:0  1:1
             1  2:0  2:1  3:0  3:1
            """,
        ),
        (
            Fragment((2, 4), lambda i, j: (i * 2 + j // 2, j % 2)).reduce(1),
            """
                  0    1
             0  0:0  2:0
            each element in 2 threads, the first is shown
            """,
        ),
        (
            XOR.expand((2,)),
            """
                 0   1   2   …
             0   0   1   2   …
             1  33  32  35   …
             …
            slice [0] of (2, 32, 32)
            2 of 32 rows, 3 of 32 columns
            """,
        ),
    ],
)
def test_text(layout: Layout | Fragment, expected: str) -> None:
    rows, columns = (2, 3) if len(layout.shape) == 3 else (16, 16)
    lines = expected.strip("\n").split("\n")[:-1]
    drawn = draw_text(layout, max_rows=rows, max_columns=columns)
    assert drawn.split("\n") == [line[12:] for line in lines]


def test_colour_only_adds_escapes() -> None:
    painted = draw_text(MMA_C, color=True)
    assert painted != draw_text(MMA_C)
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == draw_text(MMA_C)


@pytest.mark.parametrize("layout", [XOR, MMA_C, MMA_C.reduce(0), XOR.expand((2,))], ids=str)
def test_svg(layout: Layout | Fragment) -> None:
    image = draw_svg(layout, title="acc <8x8>", max_rows=8, max_columns=8)
    assert image == draw_svg(layout, title="acc <8x8>", max_rows=8, max_columns=8)
    root = ElementTree.fromstring(image)
    name = "{http://www.w3.org/2000/svg}"
    texts = [element.text for element in root.iter(f"{name}text")]
    rows = min(8, layout.shape[-2]) if len(layout.shape) > 1 else 1
    assert len(list(root.iter(f"{name}rect"))) == rows * 8 + 1
    assert "acc <8x8>" in texts
    first = layout(*(0,) * len(layout.shape))
    assert ("0:0" if isinstance(layout, Fragment) else "0") in texts
    assert first is not None
    assert len(image) < 200 * rows * 8 + 2000
