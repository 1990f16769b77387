"""What of a function was printed before, when one is printed after every pass?

Nodes of the IR never change, and a pass keeps those it has nothing to do with. So a statement that
was printed reads the same again, if the variables in it are still called what they were called:
names are given in order of first appearance, and what stands above decides which are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tilelang.ir.spans import calls_of, from_tir
from tilelang.ir.text_file import Place

L = TypeVar("L")


@dataclass(frozen=True, slots=True)
class Printed(Generic[L]):
    """The lines of a statement, the variables it names in order of appearance, and what its calls
    are called. The node is kept, since another could get its address."""

    node: Any
    lines: tuple[L, ...]
    names: tuple[tuple[Any, str], ...]
    operators: frozenset[str]


class TextMemory(Generic[L]):
    """Statements that were printed, by their address and how deep they stood; places, by that of
    their span."""

    def __init__(self) -> None:
        self._printed: dict[tuple[int, int], Printed[L]] = {}
        self._places: dict[int, tuple[Any, Place]] = {}

    def find(self, node: Any, depth: int, name: Callable[[Any], str]) -> Printed[L] | None:
        """What was printed of a statement, if it would read the same.

        `name` is asked in the order in which printing would ask it: where the answer is no, nothing
        has changed.
        """
        found = self._printed.get((hash(node), depth))
        if found is None or any(name(var) != text for var, text in found.names):
            return None
        return found

    def keep(
        self, node: Any, depth: int, lines: Iterable[L],
        names: Iterable[tuple[Any, str]], operators: Iterable[str],
    ) -> None:  # fmt: skip
        """Remember what was printed of a statement."""
        once: dict[int, tuple[Any, str]] = {}
        for named in names:
            once.setdefault(hash(named[0]), named)
        self._printed[hash(node), depth] = Printed(
            node, tuple(lines), tuple(once.values()), frozenset(operators)
        )

    def place(self, span: Any) -> Place:
        """The place a node of TVM says."""
        found = self._places.get(hash(span))
        if found is None:
            found = span, Place(from_tir(span), calls_of(span))
            self._places[hash(span)] = found
        return found[1]
