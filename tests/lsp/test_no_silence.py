"""Each kernel that somebody complained about gives its finding in the editor, corrected none."""

from __future__ import annotations

import pytest

from tests.complaints.cases import CASES, Case
from tests.lsp.asking import PATH
from tests.support.markers import expected_of, kernel_text
from tilelang_diagnostics import Diagnostic
from tilelang_lsp.analysis import analyse
from tilelang_lsp.insight import insight
from tilelang_lsp.options import Options


def findings(text: str, case: Case) -> list[Diagnostic]:
    """What an editor shows of a text in the end."""
    target = case.options.get("target")
    options = Options(
        dict(case.options.get("values", {})), (target,) if target else (), select=(),
    )  # fmt: skip
    analysis = analyse(text, PATH, options)
    found = list(analysis.diagnostics)
    if not any(d.is_error for d in found):
        for kernel in analysis.kernels:
            told = insight(text, PATH, kernel.name, kernel.span.line, options, lower=False)
            found += told.diagnostics
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.number} {c.about}")
def test_what_is_wrong_is_said_where_it_is(case: Case) -> None:
    text = kernel_text(case.wrong)
    found = {(d.span.line, d.code) for d in findings(text, case) if d.span is not None}
    asked = set(case.options.get("select", ()))
    expected = {(e.line, e.code) for e in expected_of(text) if e.code not in asked}
    assert expected <= found


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.number} {c.about}")
def test_what_is_right_is_left_alone(case: Case) -> None:
    found = findings(kernel_text(case.right), case)
    assert [d for d in found if d.severity.value in ("error", "warning")] == []
