"""The catalogue is consistent with itself."""

from __future__ import annotations

import pytest

from tilelang_diagnostics import (
    AREAS,
    CATALOGUE,
    Code,
    Label,
    Severity,
    Span,
    code_of,
    diagnose,
    find_code,
)


def test_codes_are_sorted_and_codes_and_names_are_unique() -> None:
    codes = [row.code for row in CATALOGUE]
    assert codes == sorted(set(codes))
    assert len({row.name for row in CATALOGUE}) == len(CATALOGUE)
    assert len({row.summary for row in CATALOGUE}) == len(CATALOGUE)


def test_every_area_has_codes() -> None:
    assert {row.code[:3] for row in CATALOGUE} == set(AREAS)


def test_lookup_by_code_and_name() -> None:
    row = code_of("TL204")
    assert (row.name, row.exception, row.area) == (
        "gemm-k-mismatch", ValueError, "shapes and dtypes",
    )  # fmt: skip
    assert code_of("tl204") is row
    assert code_of("gemm-k-mismatch") is row
    assert find_code("TL299") is None
    with pytest.raises(KeyError, match="did you mean `gemm-k-mismatch`"):
        code_of("gemm-k-missmatch")


def test_diagnose_takes_the_severity_of_the_catalogue() -> None:
    span = Span("k.py", 1, 1, 1, 2)
    found = diagnose("TL240", "race", span, labels=(Label(span, "x"),), help="do")
    assert found.severity is Severity.WARNING
    assert (found.message, found.span, found.labels, found.help) == (
        "race", span, (Label(span, "x"),), "do",
    )  # fmt: skip
    with pytest.raises(KeyError):
        diagnose("TL299", "no such code")


@pytest.mark.parametrize(
    ("code", "name", "summary"),
    [
        ("TL20", "a-name", "fine"),
        ("TL000", "a-name", "fine"),
        ("TL204", "Not_Kebab", "fine"),
        ("TL204", "a-name", "A sentence."),
        ("TL204", "a-name", ""),
    ],
)
def test_a_malformed_row_is_refused(code: str, name: str, summary: str) -> None:
    with pytest.raises(ValueError):
        Code(code, name, summary, Severity.ERROR, ValueError)
