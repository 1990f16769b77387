"""What is said in a file that could not be analysed? What is shown there is of an earlier text."""

from __future__ import annotations

from collections.abc import Iterable

from tilelang_diagnostics import Diagnostic, Span, diagnose
from tilelang_lsp.worker import WorkerFailed

NOT_ANALYSED = "TL819"
_SHOWN = "what is shown here is of an earlier text, if there is anything"


def not_analysed(path: str, error: WorkerFailed) -> Diagnostic:
    """The finding at the top of a file whose analysis gave no answer."""
    if error.after is not None:
        message = f"this file took longer than {error.after:.0f} s to analyse"
        advice = (
            "make what Python computes for its kernels smaller, or give each of its large kernels "
            "a file of its own; the next change is analysed anew"
        )
    else:
        message = "the process that analyses this file ended without an answer"
        advice = "change the file or open it again: a new process analyses it then"
    return diagnose(
        NOT_ANALYSED, message, Span(path, 1, 1, 1, 1), notes=(_SHOWN,), help=advice
    )  # fmt: skip


def of_an_analysis(found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """`found` without that."""
    return tuple(d for d in found if d.code != NOT_ANALYSED)
