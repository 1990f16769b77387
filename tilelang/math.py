"""Integer helpers for sizing grids and tiles on the host."""

from __future__ import annotations


def cdiv(a: int, b: int) -> int:
    """`a / b`, rounded up.

    >>> cdiv(10, 4)
    3
    """
    return -(-a // b)


def next_power_of_2(x: int) -> int:
    """The smallest power of two that is at least `x`.

    >>> next_power_of_2(100)
    128
    """
    return 1 << max(0, x - 1).bit_length()
