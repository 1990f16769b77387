"""Row-major positions as indices, whatever NumPy makes of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilelang
from tilelang.layout import Layout
from tilelang.layouts.addresses import unravel


@pytest.mark.parametrize("shape", [(16384, 1), (1, 16384), (4, 8192, 1), (9000, 1, 1), (30000,)])
def test_a_last_axis_of_one(shape: tuple[int, ...]) -> None:
    """NumPy 2.4 gives wrong indices above 8192 elements when the last axis is 1."""
    found = unravel(np.arange(np.prod(shape)).reshape(-1, 1), shape)
    want = np.indices(shape).reshape(len(shape), -1, 1)
    assert np.array_equal(found, want)


def test_the_inverse_of_a_tall_layout() -> None:
    turned = Layout((16384, 1), lambda i, j: 16383 - i + j).inverse()
    assert turned(0) == (16383, 0)
    assert turned(16383) == (0, 0)


def test_nothing_else_asks_numpy() -> None:
    root = Path(tilelang.__file__).parent
    users = [p for p in root.rglob("*.py") if "unravel_index(" in p.read_text()]
    assert not users
