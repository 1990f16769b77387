"""Each complaint: the code, the exact span and the help line; silence about the correct variant."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.complaints.cases import CASES, Case
from tests.support.markers import check_clean, check_diagnostics, remarked

FILE = Path(__file__).with_name("cases.py")


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.number)
def test_wrong_kernel_is_told_off(case: Case, update: bool) -> None:
    if update:
        FILE.write_text(FILE.read_text().replace(case.wrong, remarked(case.wrong, **case.options)))
        return
    found = check_diagnostics(case.wrong, **case.options)
    if case.help:
        helps = [d.help or "" for d in found]
        assert any(case.help in h for h in helps), helps


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.number)
def test_correct_kernel_gets_silence(case: Case) -> None:
    check_clean(case.right, **case.options)
