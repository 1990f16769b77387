"""How does a trace look on a terminal? Per pass its time, what it did and changed, by Python line.

── lower_tile_ops · 3.1 ms · 2 T.copy · +12 −3  everything below sees only loops and elements
@@ -9,7 +9,16 @@
         for k in T.Pipelined(8):
   gemm.py:31  T.copy(A[by * 64, k * 32], A_shared)
-            T.copy(A[by * 64:by * 64 + 64, k * 32:k * 32 + 32], A_shared)
+            for i, j in T.Parallel(64, 32):
+                A_shared[i, j] = A[by * 64 + i, k * 32 + j]

`<` and `>` mark what moved, `~` what was renamed, `⇤` and `⇥` what is the same but for what was
around it; the words that differ stand out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from tilelang_diagnostics import SourceMap, Span
from tilelang_trace.did import decisions_in_short
from tilelang_trace.diff import QUIET, Difference, Row, difference
from tilelang_trace.model import Decision, Step, Trace
from tilelang_trace.plain import plain

STYLES: Final = {
    " ": "", "-": "red", "+": "green", "<": "magenta", ">": "cyan", "~": "yellow", "⇤": "dim",
    "⇥": "dim", "·": "italic",
}  # fmt: skip
_WORDS: Final = {"-": "bold reverse red", "+": "bold reverse green", "~": "bold reverse yellow"}


def print_trace(
    console: Console,
    trace: Trace,
    *,
    passes: Sequence[str] = (),
    changed_only: bool = False,
    context: int = 3,
    grep: re.Pattern[str] | None = None,
) -> None:
    """Print the differences of a trace; `passes` narrows to these."""
    for text in trace_text(
        trace, passes=passes, changed_only=changed_only, context=context, grep=grep
    ):
        console.print(text, no_wrap=True, overflow="ellipsis", crop=True)


def trace_text(
    trace: Trace,
    *,
    passes: Sequence[str] = (),
    changed_only: bool = False,
    context: int = 3,
    grep: re.Pattern[str] | None = None,
) -> Iterator[Text]:
    """The lines that `print_trace` prints."""
    sources = SourceMap(dict(trace.sources))
    yield _title(trace)
    shown = 0
    for before, after in _wanted(trace, passes):
        changes = difference(before, after, context, by_structure=True)
        if changed_only and not changes:
            continue
        if grep is not None and not _matches(after, changes, sources, grep):
            continue
        shown += 1
        yield Text()
        yield _header(after, changes)
        yield from _inside(after)
        yield from (_decision(d) for d in after.decisions)
        yield from _changes(changes, sources, grep)
    if not shown and grep is not None:
        yield Text()
        yield Text(plain(f"no pass has a change, a decision or Python that matches {grep.pattern}"),
                   "yellow")  # fmt: skip
    elif not shown and changed_only and passes:
        yield Text()
        yield Text("none of these passes changed anything", "yellow")
    if trace.failure is not None:
        yield Text()
        yield Text.assemble(
            ("── ", "dim"), (plain(trace.failure.step), "bold red"), " did not finish: ",
            plain(trace.failure.message),
        )  # fmt: skip
    yield Text()
    yield _summary(trace)


def _wanted(trace: Trace, passes: Sequence[str]) -> Iterator[tuple[Step, Step]]:
    if not passes:
        yield from trace.pairs
        return
    # The front end was given no program: all of its own is new.
    for step in trace.steps[:1]:
        if step.name in passes:
            yield Step("", ()), step
    yield from ((before, after) for before, after in trace.nested if after.name in passes)


def _title(trace: Trace) -> Text:
    values = ", ".join(f"{name}={value}" for name, value in trace.values)
    return Text.assemble(
        (plain(trace.kernel), "bold"),
        plain(f" from {_short(trace.file)} for {trace.target}"),
        (f"  {plain(values)}", "dim") if values else "",
    )  # fmt: skip


def _header(step: Step, changes: Difference) -> Text:
    decided = decisions_in_short(step)
    became = changes.structure.summary() if changes and changes.structure else "no change"
    return Text.assemble(
        ("── ", "dim"), (plain(step.name), "bold" if changes else "dim"),
        f" · {duration(step.seconds)} · ", (f"{plain(decided)} · " if decided else "", "bold"),
        plain(became), (f"  {plain(step.reason)}", "dim italic"),
    )  # fmt: skip


def _inside(step: Step) -> Iterator[Text]:
    """What ran inside of a pass, the same things together."""
    spent: dict[str, list[float]] = {}
    for one in step.inner:
        spent.setdefault(one.name, []).append(one.seconds)
    said = [
        f"{plain(name)} {duration(sum(times))}" + (f" (× {len(times)})" if len(times) > 1 else "")
        for name, times in spent.items()
    ]  # fmt: skip
    if said:
        yield Text(f"   ▸ {', '.join(said)}", "dim")


def _decision(found: Decision) -> Text:
    place = "" if found.span is None else f"{_short(found.span.file)}:{found.span.line}  "
    return Text.assemble(
        ("   ● ", "bold blue"), (f"{found.kind}: ", "bold"), plain(f"{place}{found.said}")
    )


def _changes(
    changes: Difference, sources: SourceMap, grep: re.Pattern[str] | None
) -> Iterator[Text]:
    for hunk in changes.hunks:
        yield Text(hunk.header, "cyan")
        shown: tuple[str, int] | None = None
        for row in hunk.rows:
            place = _place(row)
            if place is not None and place != shown:
                yield _origin(place, sources)
                shown = place
            yield _row(row, grep)


def _row(row: Row, grep: re.Pattern[str] | None) -> Text:
    text = Text(f"{row.sign} {row.line.text}", STYLES[row.sign])
    for start, end in row.words:
        text.stylize(_WORDS.get(row.sign, ""), start + 2, end + 2)
    if grep is not None and row.sign not in QUIET:
        for found in grep.finditer(row.line.text):
            text.stylize("bold underline", found.start() + 2, found.end() + 2)
    if plain(text.plain) != text.plain:
        return Text(plain(text.plain), STYLES[row.sign])
    return text


def _matches(step: Step, changes: Difference, sources: SourceMap, grep: re.Pattern[str]) -> bool:
    """Whether a changed line, its Python, a decision or the name of the pass matches."""
    if grep.search(step.name) or any(grep.search(d.text) for d in step.decisions):
        return True
    for row in (row for hunk in changes.hunks for row in hunk.rows if row.sign not in QUIET):
        if grep.search(row.line.text):
            return True
        place = _place(row)
        if place is not None and grep.search(sources.line(*place) or ""):
            return True
    return False


def _place(row: Row) -> tuple[str, int] | None:
    """The Python line a changed row comes from; unchanged rows need none."""
    span: Span | None = row.line.span
    return None if row.sign in QUIET or span is None else (span.file, span.line)


def _origin(place: tuple[str, int], sources: SourceMap) -> Text:
    file, number = place
    source = (sources.line(file, number) or "").strip()
    return Text(plain(f"   {_short(file)}:{number}  {source}"), "blue")


def _summary(trace: Trace) -> Text:
    changed = sum(a.lines != b.lines and a.text != b.text for a, b in trace.pairs)
    count = len(trace.pairs)
    slowest = max(trace.steps, key=lambda s: s.seconds, default=None)
    text = f"{count} passes, {changed} changed something, {duration(trace.seconds)}"
    if slowest is not None and slowest.seconds:
        text += f"; the slowest was {plain(slowest.name)} with {duration(slowest.seconds)}"
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
