"""Ask a feature about a text: `$0` in the text is where the cursor stands."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from functools import cache
from typing import Any

from tests.support.markers import kernel_text
from tilelang_lsp.analysis import Analyser, analyse
from tilelang_lsp.assembly import Reading
from tilelang_lsp.catalogue import read_catalogue
from tilelang_lsp.features.base import Feature, Request
from tilelang_lsp.features.inlay_hints import hints
from tilelang_lsp.insight import insight
from tilelang_lsp.insights import FileInsights, Insights, digests, keys_of
from tilelang_lsp.model import Analysis, Catalogue, Hint
from tilelang_lsp.moves import Placed
from tilelang_lsp.options import Options

PATH = "kernel.py"


def in_launch(body: str, grid: str = "n", threads: str = "128") -> str:
    """`body` in a launch of a kernel over `A` (float16) and `C` (float32), 128×64 both, and `n`."""
    head = (
        '@T.prim_func\ndef main(A: T.Tensor((128, 64), "float16"), '
        'C: T.Tensor((128, 64), "float32"), n: T.int32):\n'
        f"    with T.Kernel({grid}, threads={threads}) as bx:\n"
    )
    return head + textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8) + "\n"


@cache
def catalogue() -> Catalogue:
    """The catalogue, read once."""
    return read_catalogue()


def without_cursor(text: str) -> tuple[str, int, int]:
    """The text without its `$0`, and where that stood (1-based)."""
    before, mark, after = text.partition("$0")
    assert mark, "the text has no $0"
    line = before.count("\n") + 1
    return before + after, line, len(before) - (before.rfind("\n") + 1) + 1


def ask(feature: Feature, text: str, analysed: str | None = None, **more: Any) -> Any:
    """The answer of a feature at the `$0` of a kernel text.

    `analysed`: the text the analysis is of, where it lags behind what is being typed.
    """
    source, line, column = without_cursor(kernel_text(text))
    request = request_for(analysis_of(source if analysed is None else kernel_text(analysed)))
    place = {"line": line, "column": column, "end_line": line, "end_column": column}
    return feature.answer(replace(request, text=source, **{**place, **more}))


def request_for(analysis: Analysis) -> Request:
    """A request about an analysed text."""
    return Request(analysis.text, read_as(analysis), catalogue(), hints=hints(analysis))


def read_as(analysis: Analysis) -> Reading:
    """A reading that says what `analysis` does."""
    reading = Reading(analysis.path, analysis.text)
    vars(reading)["analysis"] = analysis
    return reading


def analysis_of(source: str, target: str | None = None, **options: Any) -> Analysis:
    """The analysis of a whole file."""
    return analyse(source, PATH, Options(targets=(target,) if target else (), **options))


def looked_into(source: str, target: str | None = None, **values: Any) -> FileInsights:
    """What is known of the kernels of a whole file beyond its text."""
    options = Options(values, (target,) if target else ())
    reading, kept = Analyser().analyse(source, PATH, options), Insights()
    digest = digests(reading, options)
    for key, kernel in keys_of(reading.kernels).items():
        found = insight(source, PATH, kernel.name, kernel.span.line, options)
        kept.put(digest[key], Placed(found, reading.head.tops))
    known = FileInsights()
    known.update(reading, digest, kept)
    return known


def with_all_hints(text: str, target: str | None = None, **values: Any) -> str:
    """As `with_hints`, with what layouts and lowering say."""
    source = kernel_text(text)
    return drawn(
        source, hints(analysis_of(source, target, values=values),
                      looked_into(source, target, **values).facts),
    )  # fmt: skip


def with_hints(text: str, **options: Any) -> str:
    """A kernel text with its hints drawn in as ⟨hint⟩, only the lines that have some."""
    analysis = analysis_of(kernel_text(text), **options)
    return drawn(analysis.text, hints(analysis))


def drawn(text: str, found: tuple[Hint, ...]) -> str:
    """A text with hints drawn in, only the lines that have some."""
    lines = text.split("\n")
    touched = set()
    for hint in reversed(found):
        line = lines[hint.line - 1]
        lines[hint.line - 1] = f"{line[: hint.column - 1]}⟨{hint.label}⟩{line[hint.column - 1 :]}"
        touched.add(hint.line)
    return "\n".join(lines[n - 1].strip() for n in sorted(touched))


def lines_of(text: str) -> str:
    """An expected text as `with_hints` writes it."""
    return "\n".join(line.strip() for line in textwrap.dedent(text).strip().split("\n"))
