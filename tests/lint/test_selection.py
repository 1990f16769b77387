"""Which codes --select and --ignore mean."""

from __future__ import annotations

import pytest

from tilelang_diagnostics import diagnose
from tilelang_lint.selection import Selection


@pytest.mark.parametrize(
    ("select", "ignore", "wanted"),
    [
        ((), (), {"TL110", "TL204", "TL306", "TL900"}),
        (("TL2",), (), {"TL204", "TL900"}),
        (("TL",), ("TL3",), {"TL110", "TL204", "TL900"}),
        (("unknown-name", "TL306"), (), {"TL110", "TL306", "TL900"}),
        ((), ("bank-conflicts", "tl110"), {"TL204", "TL900"}),
        (("TL204",), ("TL2", "TL9"), {"TL900"}),
    ],
)
def test_select_narrows_and_ignore_removes(
    select: tuple[str, ...], ignore: tuple[str, ...], wanted: set[str]
) -> None:
    found = [diagnose(c, "wrong") for c in ("TL110", "TL204", "TL306", "TL900")]
    assert {d.code for d in Selection(select, ignore).keep(found)} == wanted


@pytest.mark.parametrize("selector", ["TL999", "bank-conflict", "E501", "", "T"])
def test_unknown_selectors_are_refused(selector: str) -> None:
    with pytest.raises(ValueError, match="no diagnostic is called"):
        Selection(select=(selector,))


def test_a_slip_is_recognised() -> None:
    with pytest.raises(ValueError, match="did you mean `bank-conflicts`"):
        Selection(ignore=("bank-conflict",))
