"""Loops of straight text: `label: op -> target?`, a `?` where the next line may follow too."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tilelang.inspection.flow import loops_of


@dataclass(frozen=True)
class Op:
    labels: tuple[str, ...]
    jumps_to: str | None
    falls_through: bool


def ops(text: str) -> list[Op]:
    found = []
    for line in text.split(";"):
        *labels, rest = line.split(":")
        word, _, target = rest.strip().partition(" ")
        may = target.endswith("?") or word != "jump"
        found.append(Op(tuple(x.strip() for x in labels), target.rstrip("?") or None,
                        may and word != "end"))  # fmt: skip
    return found


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        ("a; b; end", []),
        ("a; L: b; jump L?; end", [([1, 2], 0)]),
        ("L: a; jump L?; M: b; jump M?; end", [([0, 1], 0), ([2, 3], 0)]),
        # One in the other; the inner one first jumps past itself.
        ("L: a; jump N?; M: b; jump M?; N: c; jump L?; end",
         [([0, 1, 2, 3, 4, 5], 0), ([2, 3], 1)]),
        # Two jumps back to one place are one loop.
        ("L: a; jump L?; b; jump L?; end", [([0, 1, 2, 3], 0)]),
        # Part of the loop stands behind the end.
        ("L: a; jump C?; M: b; jump L?; end; C: c; jump M", [([0, 1, 2, 3, 5, 6], 0)]),
        # What nothing leads to is no loop: padding after the end.
        ("a; end; L: jump L", []),
        # A jump into the middle of a cycle leaves no header that dominates it.
        ("a; jump M?; L: b; M: c; jump L?; end", []),
    ],
)  # fmt: skip
def test_loops(text: str, loops: list[tuple[list[int], int]]) -> None:
    found = loops_of(ops(text))
    assert [(sorted(loop.members), loop.depth) for loop in found] == loops


def test_no_instructions() -> None:
    assert loops_of([]) == ()


def test_jumps_back() -> None:
    (loop,) = loops_of(ops("L: a; jump L?; b; jump L?; end"))
    assert loop.jumps == (1, 3)
