"""What do the integer operations of an index mean over whole NumPy arrays?

One table for the tile program and for the IR, which name the same operations differently.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tilelang.layout.lazy import np


def _truncdiv(a: Any, b: Any) -> Any:
    return np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))


# Those for which a divisor of 0 has no value.
DIVISIONS: Final = ("//", "%", "truncdiv", "truncmod")
OPERATIONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "//": lambda a, b: a // b, "%": lambda a, b: a % b, "truncdiv": _truncdiv,
    "truncmod": lambda a, b: a - b * _truncdiv(a, b),
    "^": lambda a, b: a ^ b, "&": lambda a, b: a & b, "|": lambda a, b: a | b,
    "<<": lambda a, b: a << b, ">>": lambda a, b: a >> b,
    "min": lambda a, b: np.minimum(a, b), "max": lambda a, b: np.maximum(a, b),
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
    "and": lambda a, b: np.logical_and(a, b), "or": lambda a, b: np.logical_or(a, b),
}  # fmt: skip
