"""The exception of a diagnostic is a CompileError and the catalogue's class."""

from __future__ import annotations

import pickle
import traceback

import pytest

from tilelang_diagnostics import (
    CATALOGUE,
    Code,
    CompileError,
    Diagnostic,
    Severity,
    SourceMap,
    Span,
    error_for,
    exit_status,
    raise_for,
)

SOURCES = SourceMap({"k.py": "x = A[1, 2]\n"})
SPAN = Span("k.py", 1, 5, 1, 12)


def found(code: str, severity: Severity = Severity.ERROR) -> Diagnostic:
    return Diagnostic(code, severity, "what happened", SPAN, label="here")


@pytest.mark.parametrize("row", CATALOGUE, ids=str)
def test_both_classes_catch_it_and_it_survives_a_pickle(row: Code) -> None:
    error = error_for([found(row.code)], SOURCES)
    assert isinstance(error, CompileError)
    assert isinstance(error, row.exception)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert copy.diagnostics == error.diagnostics
    assert str(copy) == str(error)
    assert any("what happened" in line for line in traceback.format_exception(error))


def test_str_is_the_rendering() -> None:
    assert str(error_for([found("TL203")], SOURCES)) == (
        "error[TL203]: what happened\n --> k.py:1:5\n  |\n1 | x = A[1, 2]\n  |     ^^^^^^^ here"
    )


def test_several_are_counted() -> None:
    assert str(error_for([found("TL203"), found("TL110")])).endswith("\n\nfound 2 errors")


def test_the_first_error_decides() -> None:
    both = [found("TL231", Severity.WARNING), found("TL203"), found("TL110")]
    error = error_for(both)
    assert isinstance(error, IndexError)
    assert not isinstance(error, NameError)
    assert error.diagnostics == tuple(both)


def test_one_class_per_base() -> None:
    assert type(error_for([found("TL201")])) is type(error_for([found("TL202")]))
    assert type(error_for([found("TL201")])).__name__ == "CompileValueError"


def test_a_code_outside_the_catalogue_still_raises() -> None:
    assert isinstance(error_for([found("TL999")]), RuntimeError)
    assert isinstance(error_for([]), CompileError)


def test_raise_for() -> None:
    raise_for([])
    raise_for([found("TL231", Severity.WARNING), found("TL601", Severity.REMARK)])
    with pytest.raises(IndexError, match="what happened") as caught:
        raise_for([found("TL203")], SOURCES)
    assert isinstance(caught.value, CompileError)


@pytest.mark.parametrize(
    ("severities", "least", "status"),
    [
        ("", "error", 0), ("warning remark", "error", 0), ("remark error", "error", 1),
        ("warning", "warning", 1), ("remark hint", "warning", 0), ("error internal", "error", 3),
        ("internal", "warning", 3),
    ],
)  # fmt: skip
def test_the_exit_status_of_what_was_found(severities: str, least: str, status: int) -> None:
    found = [
        Diagnostic("TL900" if s == "internal" else "TL204",
                   Severity("error" if s == "internal" else s), "")
        for s in severities.split()
    ]  # fmt: skip
    assert exit_status(found, Severity(least)) == status
