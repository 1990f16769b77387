"""The trace in progress on this thread: where we are in the user's file, and where code goes.

The language's functions are ordinary Python callables. Called while a kernel is being traced
they add to the innermost open block of the active `Trace`; called outside they are rejected.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from tilelang_diagnostics import diagnose, error_for
from tilelang_diagnostics.model import Diagnostic, Fix, Frame, Label, Severity, Span

if TYPE_CHECKING:
    from tilelang.program.stmt import Block, Stmt


class Reject(Exception):
    """Ends the statement being traced; the front end reports `diagnostic` and goes on."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


@dataclass(frozen=True, slots=True)
class CallSite:
    """Where the language call in progress and its arguments stand in the user's text."""

    positional: tuple[Span, ...] = ()
    keywords: tuple[tuple[str, Span], ...] = ()
    function: Span | None = None
    names: tuple[str, ...] = ()  # the parameters that positions stand for
    keyword_names: tuple[tuple[str, Span], ...] = ()  # where the names of keywords stand


class Trace:
    """Open blocks, diagnostics so far, and the current position in the user's source."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.blocks: list[list[Stmt]] = [[]]
        self.span: Span | None = None
        self.calls: tuple[Frame, ...] = ()
        self.names: set[str] = set()
        self.renamed: dict[str, str] = {}  # the author's name of what `unique` called otherwise
        self.launch: Any = None  # the open LaunchFrame, see language.kernel
        self.target: str | None = None
        self.facts: dict[str, Any] = {}  # per-kernel state of language functions, by name
        # The Python name a value is being assigned to, so that a buffer is called what its
        # author calls it.
        self.target_name: str | None = None
        self.call_site = CallSite()
        # How many branches that the text alone does not decide are open: what stands in them may
        # never happen.
        self.speculative = 0
        # Whether every statement of the user is in the program: false once something unknown was
        # left out, so that no check concludes from what is missing.
        self.complete = True

    def emit(self, stmt: Stmt) -> None:
        """Append `stmt` to the innermost open block."""
        self.blocks[-1].append(stmt)

    @contextmanager
    def block(self) -> Iterator[list[Stmt]]:
        """Collect the statements emitted inside into a new block."""
        opened: list[Stmt] = []
        self.blocks.append(opened)
        try:
            yield opened
        finally:
            popped = self.blocks.pop()
            assert popped is opened

    @contextmanager
    def at(self, span: Span | None) -> Iterator[None]:
        """Everything built inside comes from `span` (kept when None)."""
        previous = self.span
        self.span = span or previous
        try:
            yield
        finally:
            self.span = previous

    @contextmanager
    def inlined(self, function: str, span: Span | None) -> Iterator[None]:
        """Everything built inside was inlined from `function`, called at `span`."""
        previous = self.calls
        if span is not None:
            self.calls = (*previous, Frame(function, span))
        try:
            yield
        finally:
            self.calls = previous

    def report(self, diagnostic: Diagnostic) -> None:
        """Record a finding, once per place and code."""
        if self.calls and not diagnostic.calls:
            diagnostic = replace(diagnostic, calls=self.calls)
        if diagnostic not in self.diagnostics:
            self.diagnostics.append(diagnostic)

    def unique(self, name: str) -> str:
        """`name`, or `name_1` … when the kernel already has it."""
        candidate, count = name, 0
        while candidate in self.names:
            count += 1
            candidate = f"{name}_{count}"
        self.names.add(candidate)
        if count:
            self.renamed[candidate] = name
        return candidate

    def in_users_names(self, diagnostic: Diagnostic, source: str) -> Diagnostic:
        """The same with `i` for an `i_1` of ours, but where that would make two names one."""

        def shown(text: str) -> str:
            words = set(re.findall(r"\w+", text))
            for ours, users in self.renamed.items():
                if ours in words and users not in words and ours not in written():
                    text = re.sub(rf"\b{ours}\b", users, text)
                    words.add(users)
            return text

        @cache
        def written() -> set[str]:
            return set(re.findall(r"\w+", source))

        return replace(
            diagnostic,
            message=shown(diagnostic.message),
            label=shown(diagnostic.label),
            labels=tuple(replace(x, text=shown(x.text)) for x in diagnostic.labels),
            notes=tuple(map(shown, diagnostic.notes)),
            help=None if diagnostic.help is None else shown(diagnostic.help),
        )

    def position(self) -> dict[str, Any]:
        """`span` and `calls` of a statement built now."""
        return {"span": self.span, "calls": self.calls}


class _Active(threading.local):
    def __init__(self) -> None:
        self.stack: list[Trace] = []


_active = _Active()


def active_trace() -> Trace | None:
    """The innermost trace of this thread, or None outside tracing."""
    return _active.stack[-1] if _active.stack else None


@contextmanager
def tracing(trace: Trace) -> Iterator[Trace]:
    """Make `trace` the active one."""
    _active.stack.append(trace)
    try:
        yield trace
    finally:
        _active.stack.pop()


def current_span() -> Span | None:
    """The span the active trace is at."""
    trace = active_trace()
    return trace.span if trace else None


def argument_span(keyword: str, position: int | None = None) -> Span | None:
    """The span of one argument of the language call in progress, or of the whole call.

    `position` is needed for a variadic parameter only: the others are found by name.
    """
    trace = active_trace()
    if trace is None:
        return None
    for name, span in trace.call_site.keywords:
        if name == keyword:
            return span
    if position is None and keyword in trace.call_site.names:
        position = trace.call_site.names.index(keyword)
    if position is not None and position < len(trace.call_site.positional):
        return trace.call_site.positional[position]
    return trace.span


def keyword_span(keyword: str) -> Span | None:
    """The span of the name of a keyword argument of the call in progress."""
    trace = active_trace()
    return None if trace is None else dict(trace.call_site.keyword_names).get(keyword)


def called_name_span(name: str) -> Span | None:
    """The span of `name` in the call in progress, `T.name(…)`."""
    trace = active_trace()
    function = None if trace is None else trace.call_site.function
    if function is None:
        return None
    end = function.end_column
    return Span(function.file, function.end_line, end - len(name), function.end_line, end)


def make_diagnostic(
    code: str,
    message: str,
    *,
    span: Span | None = None,
    label: str = "",
    labels: tuple[Label, ...] = (),
    notes: tuple[str, ...] = (),
    help: str | None = None,
    fixes: tuple[Fix, ...] = (),
    severity: Severity | None = None,
) -> Diagnostic:
    """A diagnostic at `span`, or where the trace is; severity from the catalogue."""
    return diagnose(
        code,
        message,
        span or current_span(),
        label=label,
        labels=labels,
        notes=notes,
        help=help,
        fixes=fixes,
        severity=severity,
    )


def reject(code: str, message: str, **details: Any) -> NoReturn:
    """Give up on the current statement with a diagnostic (see `make_diagnostic`).

    Where nothing is being traced there is no statement to give up: the caller gets the error,
    at the line of theirs that made the call.
    """
    diagnostic = make_diagnostic(code, message, **details)
    if active_trace() is not None:
        raise Reject(diagnostic)
    if diagnostic.span is None:
        diagnostic = replace(diagnostic, span=users_place())
    raise error_for((diagnostic,))


_PACKAGE = str(Path(__file__).parents[1])
# Stands between a kernel and its caller once `torch.compile` has been used (runtime/dynamo.py).
_WRAPPER = "torch._dynamo"


def users_place() -> Span | None:
    """What the innermost frame outside of this package is executing."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (
        frame.f_code.co_filename.startswith(_PACKAGE)
        or frame.f_globals.get("__name__", "").startswith(_WRAPPER)
    ):
        frame = frame.f_back
    if frame is None:
        return None
    code = frame.f_code
    positions = next(islice(code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    line, end_line, column, end_column = positions
    if line is None or end_line is None or column is None or end_column is None:
        return None
    return Span(code.co_filename, line, column + 1, end_line, end_column + 1)


def warn(code: str, message: str, **details: Any) -> None:
    """Report a finding of the catalogue's severity and go on."""
    trace = active_trace()
    if trace is not None:
        trace.report(make_diagnostic(code, message, **details))


def emitted(block: list[Stmt]) -> Block:
    """A finished block as the immutable value statements hold."""
    return tuple(block)
