"""What is said of a result that differs from the reference, with a number where there is one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilelang.cli.reference import compare, mismatches

ONES = np.ones((2, 3), np.float32)


def with_one(value: float) -> Any:
    made = ONES.copy()
    made[1, 2] = value
    return made


CASES = (
    (ONES, ONES, None, ()),
    (ONES, np.ones((3, 2)), "its shape is (2, 3), that of the reference (3, 2)", ()),
    (ONES, np.ones(6), "its shape is (2, 3), that of the reference (6)", ()),
    (ONES, 1.0, "its shape is (2, 3), that of the reference ()", ()),
    (with_one(2.0), ONES, "relative error 0.41, allowed 1e-05",
     ("first at C[1, 2]: 2 instead of 1",)),
    (with_one(np.nan), ONES, "NaN or infinity stand at other places",
     ("first at C[1, 2]: nan instead of 1",)),
    (ONES, with_one(np.inf), "NaN or infinity stand at other places",
     ("first at C[1, 2]: 1 instead of inf",)),
)  # fmt: skip


@pytest.mark.parametrize(("got", "want", "says", "notes"), CASES)
def test_what_differs(got: Any, want: Any, says: str | None, notes: tuple[str, ...]) -> None:
    found = mismatches(compare(lambda A: want, [ONES], [("C", got)], {}), "reference")
    assert [(d.message, d.notes) for d in found] == (
        [] if says is None else [(f"`C` differs from `reference`: {says}", notes)]
    )
