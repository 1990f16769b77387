"""Expected diagnostics written under the code they belong to.

    A[i] = A[i] / 2
    #      ^^^^^^^^ error[TL232] `/` between two integers

A marker line is a comment whose first word is carets; it speaks of the nearest code line above.
`check_diagnostics` compares the full set of (line, columns, severity, code) and, where a marker
goes on, that its text is part of the message, or of the help if it begins with `help: `.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from typing import Any

from tilelang.language.frontend import parse_static
from tilelang_diagnostics import SourceMap, render_text
from tilelang_diagnostics.model import Diagnostic

_MARKER = re.compile(
    r"^(?P<lead>\s*#\s*)(?P<carets>\^+)\s+(?P<severity>\w+)\[(?P<code>TL\d+)\]\s*(?P<text>.*)$"
)
_HELP = "help: "
PRELUDE = "import tilelang\nimport tilelang.language as T\n\n"


@dataclass(frozen=True)
class Expected:
    """One marker."""

    line: int
    column: int
    end_column: int
    severity: str
    code: str
    text: str

    @property
    def key(self) -> tuple[int, int, int, str, str]:
        return self.line, self.column, self.end_column, self.severity, self.code


def kernel_text(text: str) -> str:
    """A dedented kernel with the usual imports in front."""
    return PRELUDE + textwrap.dedent(text).strip("\n") + "\n"


def expected_of(text: str) -> list[Expected]:
    """The markers of a text, with the positions they point at."""
    out: list[Expected] = []
    code_line = 0
    for number, line in enumerate(text.split("\n"), 1):
        match = _MARKER.match(line)
        if match is None:
            code_line = number
            continue
        column = len(match["lead"]) + 1
        out.append(
            Expected(code_line, column, column + len(match["carets"]), match["severity"],
                     match["code"], match["text"].strip())
        )  # fmt: skip
    return out


def diagnostics_of(text: str, **options: Any) -> tuple[Diagnostic, ...]:
    """What the static front end says about a kernel text; options are those of `parse_static`."""
    return parse_static(text, "kernel.py", **options).all_diagnostics


def check_diagnostics(text: str, **options: Any) -> tuple[Diagnostic, ...]:
    """Assert that the text gives exactly the diagnostics its markers name."""
    source = kernel_text(text)
    found = diagnostics_of(source, **options)
    expected = expected_of(source)
    rendered = render_text(found, SourceMap({"kernel.py": source}))
    keys = [
        (d.span.line, d.span.column, d.span.end_column, d.severity.value, d.code)
        for d in found
        if d.span is not None
    ]
    assert sorted(keys) == sorted(e.key for e in expected), rendered
    assert all(d.span is not None for d in found), rendered
    for e in expected:
        here = [d for d in found if d.span and (d.span.line, d.code) == (e.line, e.code)]
        said = [d.help or "" if e.text.startswith(_HELP) else d.message for d in here]
        text = e.text.removeprefix(_HELP)
        assert any(text in m for m in said), f"{text!r} not in {said}"
    return found


def check_clean(text: str, **options: Any) -> None:
    """Assert that the text gives no diagnostic at all."""
    source = kernel_text(text)
    found = diagnostics_of(source, **options)
    assert not found, render_text(found, SourceMap({"kernel.py": source}))


def remarked(text: str, **options: Any) -> str:
    """`text` (as written in a test, indented) with its markers moved to what is found now.

    Messages keep the marker's own words where those are still part of the message.
    """
    indent = min(
        len(line) - len(line.lstrip()) for line in text.split("\n") if line.strip()
    )  # dedent's rule
    source = kernel_text(text)
    found = diagnostics_of(source, **options)
    words = {(e.line, e.code): e.text for e in expected_of(source)}
    out: list[str] = []
    for number, line in enumerate(source.split("\n"), 1):
        if _MARKER.match(line):
            continue
        out.append(line)
        for d in found:
            if d.span is None or d.span.line != number:
                continue
            said = words.get((number, d.code), "")
            about = (d.help or "") if said.startswith(_HELP) else d.message
            said = said if said.removeprefix(_HELP) in about else ""
            width = (
                max(1, d.span.end_column - d.span.column)
                if d.span.end_line == number
                else (len(line) + 1 - d.span.column)
            )
            hash_at = max(0, d.span.column - 3)
            marker = " " * hash_at + "#" + " " * (d.span.column - hash_at - 2) + "^" * width
            out.append(f"{marker} {d.severity.value}[{d.code}] {said}".rstrip())
    body = "\n".join(out).removeprefix(PRELUDE).strip("\n")
    return (
        "\n"
        + "\n".join(" " * indent + line if line else line for line in body.split("\n"))
        + ("\n" + text.split("\n")[-1])
    )
