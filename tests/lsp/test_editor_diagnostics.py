"""How findings look in an editor, and what can be done about them."""

from __future__ import annotations

from pathlib import Path

from tests.lsp.asking import analysis_of, ask, in_launch, read_as
from tests.support.markers import expected_of, kernel_text
from tilelang_diagnostics import (
    Applicability,
    Diagnostic,
    Edit,
    Fix,
    Frame,
    Label,
    Severity,
    Span,
    apply_edits,
)
from tilelang_lsp.features import code_actions
from tilelang_lsp.features.base import Request
from tilelang_lsp.features.diagnostics import Related, editor_diagnostic
from tilelang_lsp.model import Analysis, Catalogue

HERE, THERE = Span("kernel.py", 3, 5, 3, 9), Span("kernel.py", 1, 1, 1, 4)
OTHER = Span("helpers.py", 7, 1, 7, 4)


def test_findings_stand_where_the_compiler_puts_them() -> None:
    text = kernel_text(
        in_launch("""
            T.cpoy(A, C)
            #^^^^ error[TL111] no attribute
            T.copy(missing, C)
            #      ^^^^^^^ error[TL110] missing
        """)
    )
    analysis = analysis_of(text)
    found = [editor_diagnostic(d, analysis.path) for d in analysis.diagnostics]
    assert {(d.span.line, d.code) for d in found} == {(e.line, e.code) for e in expected_of(text)}
    assert all(d.span.column < d.span.end_column for d in found)


def test_an_editor_gets_one_message() -> None:
    diagnostic = Diagnostic(
        "TL204", Severity.ERROR, "K differs", HERE, label="K = 64 here",
        labels=(Label(THERE, "K = 32 here"),), notes=("seen twice",), help="use 64",
    )  # fmt: skip
    found = editor_diagnostic(diagnostic, "kernel.py")
    assert found.message == "K differs\nK = 64 here\nnote: seen twice\nhelp: use 64"
    assert found.related == (Related(THERE, "K = 32 here"),)


def test_the_code_leads_to_its_page() -> None:
    found = editor_diagnostic(Diagnostic("TL110", Severity.ERROR, "m", HERE), "kernel.py")
    assert Path(found.page).read_text().startswith("# TL110 ")
    assert editor_diagnostic(Diagnostic("TL199", Severity.ERROR, "m"), "kernel.py").page == ""


def test_a_finding_elsewhere_is_shown_at_the_call() -> None:
    calls = (Frame("outer", THERE), Frame("relu", HERE), Frame("inner", OTHER))
    diagnostic = Diagnostic("TL110", Severity.ERROR, "no `x`", OTHER, calls=calls)
    found = editor_diagnostic(diagnostic, "kernel.py")
    assert found.span == HERE
    assert Related(OTHER, "no `x`") in found.related
    assert Related(THERE, "in `outer`, called here") in found.related


def test_a_finding_without_a_place_stands_at_the_top() -> None:
    found = editor_diagnostic(Diagnostic("TL110", Severity.ERROR, "m"), "kernel.py")
    assert (found.span.line, found.span.column) == (1, 1)


def test_suppressed_findings_are_not_shown() -> None:
    text = in_launch("T.copy(missing, C)  # tilelang: ignore[unknown-name] on purpose")
    assert analysis_of(kernel_text(text)).diagnostics == ()


def actions_for(diagnostic: Diagnostic, text: str) -> tuple[code_actions.Action, ...]:
    analysis = Analysis("kernel.py", text, (diagnostic,))
    request = Request(text, read_as(analysis), Catalogue(), 3, 6, 3, 6)
    found: tuple[code_actions.Action, ...] = code_actions.FEATURE.answer(request)
    return found


def test_fixes_become_quick_fixes() -> None:
    text = "\n\nT.  cpoy(A)\n"
    edits = (Edit(HERE, "copy"),)
    fix = Fix("use `copy`", edits, Applicability.SAFE)
    (action,) = actions_for(Diagnostic("TL111", Severity.ERROR, "m", HERE, fixes=(fix,)), text)
    assert (action.title, action.edits, action.preferred) == ("use `copy`", edits, True)


def test_a_fix_of_the_compiler_resolves_its_finding() -> None:
    text = kernel_text(in_launch("T.cpoy(A[0, 0], C)"))
    (diagnostic,) = analysis_of(text).diagnostics
    fixed = apply_edits(text, diagnostic.fixes[0].edits)
    assert "T.copy(A[0, 0], C)" in fixed
    assert analysis_of(fixed).diagnostics == ()


def test_a_warning_can_be_switched_off_in_its_line() -> None:
    text = "\n\nx = T.symbolic('x')   \n"
    diagnostic = Diagnostic("TL118", Severity.WARNING, "m", HERE)
    action = next(a for a in actions_for(diagnostic, text) if a.title.endswith("this line"))
    assert action.title == "Ignore deprecated-name on this line"
    assert apply_edits(text, action.edits) == (
        "\n\nx = T.symbolic('x')  # tilelang: ignore[deprecated-name]\n"
    )


def test_an_error_cannot() -> None:
    assert actions_for(Diagnostic("TL110", Severity.ERROR, "m", HERE), "\n\nxxxx\n") == ()


def test_findings_outside_the_range_offer_nothing() -> None:
    elsewhere = Diagnostic("TL118", Severity.WARNING, "m", THERE)
    assert actions_for(elsewhere, "a\nb\nc\n") == ()


def test_actions_are_offered_where_the_finding_is() -> None:
    (fix, *_) = ask(code_actions.FEATURE, in_launch("T.cp$0oy(A[0, 0], C)"))
    assert fix.title == "write `copy`"
