"""How does a trace look on a terminal? Per pass its time, and what it changed, by Python line.

── lower_tile_ops · 3.1 ms · +12 −3 ── everything below sees only loops and elements
@@ -9,7 +9,16 @@
         for k in T.Pipelined(8):
   gemm.py:31  T.copy(A[by * 64, k * 32], A_shared)
-            T.copy(A[by * 64:by * 64 + 64, k * 32:k * 32 + 32], A_shared)
+            for i, j in T.Parallel(64, 32):
+                A_shared[i, j] = A[by * 64 + i, k * 32 + j]
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from tilelang_diagnostics import SourceMap, Span
from tilelang_trace.diff import Difference, Row, difference
from tilelang_trace.model import Step, Trace

STYLES = {" ": "", "-": "red", "+": "green"}


def print_trace(
    console: Console,
    trace: Trace,
    *,
    passes: Sequence[str] = (),
    changed_only: bool = False,
    context: int = 3,
) -> None:
    """Print the differences of a trace; `passes` narrows to these."""
    for text in trace_text(trace, passes=passes, changed_only=changed_only, context=context):
        console.print(text, no_wrap=True, overflow="ellipsis", crop=True)


def trace_text(
    trace: Trace, *, passes: Sequence[str] = (), changed_only: bool = False, context: int = 3
) -> Iterator[Text]:
    """The lines that `print_trace` prints."""
    sources = SourceMap(dict(trace.sources))
    yield _title(trace)
    for before, after in zip(trace.steps, trace.steps[1:], strict=False):
        if passes and after.name not in passes:
            continue
        changes = difference(before, after, context)
        if changed_only and not changes:
            continue
        yield Text()
        yield _header(after, changes)
        yield from _changes(changes, sources)
    if trace.failure is not None:
        yield Text()
        yield Text.assemble(
            ("── ", "dim"), (trace.failure.step, "bold red"), " did not finish: ",
            trace.failure.message,
        )  # fmt: skip
    yield Text()
    yield _summary(trace)


def _title(trace: Trace) -> Text:
    values = ", ".join(f"{name}={value}" for name, value in trace.values)
    return Text.assemble(
        (trace.kernel, "bold"), f" from {_short(trace.file)} for {trace.target}",
        (f"  {values}", "dim") if values else "",
    )  # fmt: skip


def _header(step: Step, changes: Difference) -> Text:
    counts = f"+{changes.added} −{changes.removed}" if changes else "no change"
    return Text.assemble(
        ("── ", "dim"), (step.name, "bold" if changes else "dim"),
        (f" · {duration(step.seconds)} · {counts}", ""), (f"  {step.reason}", "dim italic"),
    )  # fmt: skip


def _changes(changes: Difference, sources: SourceMap) -> Iterator[Text]:
    for hunk in changes.hunks:
        yield Text(hunk.header, "cyan")
        shown: tuple[str, int] | None = None
        for row in hunk.rows:
            place = _place(row)
            if place is not None and place != shown:
                yield _origin(place, sources)
                shown = place
            yield Text(f"{row.sign} {row.line.text}", STYLES[row.sign])


def _place(row: Row) -> tuple[str, int] | None:
    """The Python line a changed row comes from; unchanged rows need none."""
    span: Span | None = row.line.span
    return None if row.sign == " " or span is None else (span.file, span.line)


def _origin(place: tuple[str, int], sources: SourceMap) -> Text:
    file, number = place
    source = (sources.line(file, number) or "").strip()
    return Text(f"   {_short(file)}:{number}  {source}", "blue")


def _summary(trace: Trace) -> Text:
    changed = sum(
        bool(difference(a, b, 0)) for a, b in zip(trace.steps, trace.steps[1:], strict=False)
    )
    count = max(len(trace.steps) - 1, 0)
    slowest = max(trace.steps, key=lambda s: s.seconds, default=None)
    text = f"{count} passes, {changed} changed something, {duration(trace.seconds)}"
    if slowest is not None and slowest.seconds:
        text += f"; the slowest was {slowest.name} with {duration(slowest.seconds)}"
    return Text(text, "bold")


def duration(seconds: float) -> str:
    """`0.4 ms`, `31 ms`, `1.25 s`."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    milliseconds = seconds * 1e3
    return f"{milliseconds:.1f} ms" if milliseconds < 10 else f"{milliseconds:.0f} ms"


def _short(file: str) -> str:
    """A path as one would type it here."""
    try:
        relative = os.path.relpath(file)
    except ValueError:  # another drive
        return file
    return file if relative.startswith("..") else relative
