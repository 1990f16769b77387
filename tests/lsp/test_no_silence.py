"""Each kernel that somebody complained about gives its finding in the editor, corrected none; and
so does the example of every code's page."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.complaints.cases import CASES, Case
from tests.lsp.asking import PATH
from tests.support.markers import expected_of, kernel_text
from tilelang_diagnostics import CATALOGUE, Diagnostic, Severity, page
from tilelang_diagnostics.pages import Example, Page
from tilelang_lsp.analysis import analyse
from tilelang_lsp.insight import insight
from tilelang_lsp.options import Options

PAGES = [p for p in (page(row.code) for row in CATALOGUE) if p.kind == "kernel"]


def findings(text: str, case: Case) -> list[Diagnostic]:
    """What an editor shows of a text in the end."""
    target = case.options.get("target")
    values = dict(case.options.get("values", {}))
    return shown(text, Options(values, (target,) if target else ()))


def shown(text: str, options: Options, lower: bool = False) -> list[Diagnostic]:
    """The findings of the text, and what looking into its kernels adds if they have no error."""
    analysis = analyse(text, PATH, options)
    found = list(analysis.diagnostics)
    if not any(d.is_error for d in found):
        for kernel in analysis.kernels:
            told = insight(text, PATH, kernel.name, kernel.span.line, options, lower)
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


@pytest.mark.parametrize("one", PAGES, ids=lambda p: p.code)
def test_the_example_of_a_page(one: Page) -> None:
    """Its kernel is looked into where the text alone does not give it away."""
    failing, fixed = (_of_text(example, one.code) for example in (one.failing, one.fixed))
    if not failing:
        failing, fixed = (_of_kernels(example, one.code) for example in (one.failing, one.fixed))
    assert (failing, fixed) == ({one.code}, set())


def _options(example: Example) -> Options:
    select = example.options.get("select")
    target = example.options.get("target", "cpu")
    return Options(targets=(target,), select=(select,) if select else ())


def _of_text(example: Example, code: str) -> set[str]:
    return _counted(analyse(example.text, PATH, _options(example)).diagnostics, code)


def _of_kernels(example: Example, code: str) -> set[str]:
    return _counted(shown(example.text, _options(example), lower=True), code)


def _counted(found: Iterable[Diagnostic], code: str) -> set[str]:
    """The code itself, and all that is no remark on speed."""
    bad = (Severity.ERROR, Severity.WARNING)
    return {d.code for d in found if d.code == code or d.severity in bad}
