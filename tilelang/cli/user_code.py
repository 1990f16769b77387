"""What did the user's own code raise, and where? A diagnostic with its line, never our failure."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tilelang_diagnostics import CompileError, diagnose, error_for
from tilelang_diagnostics.model import Diagnostic, Span

_MOST_LINES = 12  # of the text of an exception


def call(
    function: Callable[..., Any], keywords: Mapping[str, Any], *given: Any,
    of: Callable[..., Any] | None = None,
) -> Any:  # fmt: skip
    """Call a function of the user's file; TL183 with its line for what it raises.

    `of` is the user's function where `function` is one of ours that calls it.
    """
    try:
        return function(*given, **keywords)
    except CompileError:
        raise
    except Exception as error:
        code = getattr(of or function, "__code__", None)
        name = getattr(of or function, "__name__", "a function")
        path = Path(code.co_filename) if code is not None else None
        raise error_for((raised(error, "TL183", f"`{name}`", path),)) from error


def raised(
    error: BaseException, code: str, what: str, path: Path | None, help: str | None = None
) -> Diagnostic:
    """A diagnostic for what `what` raised, at the innermost line of the file at `path`."""
    text, *more = f"{type(error).__name__}: {error}".rstrip(": ").splitlines()
    notes: list[str] = []
    span = None
    for frame in traceback.extract_tb(error.__traceback__):
        if path is not None and is_same_file(frame.filename, path) and frame.lineno:
            span = _span(path, frame)
            notes.clear()
        elif span is not None and frame.filename and not frame.filename.startswith("<"):
            notes.append(f"raised in {frame.filename}:{frame.lineno}, in {frame.name}")
    listed = ("\n".join(more[:_MOST_LINES]),) if more else ()
    return diagnose(code, f"{what} raised {text}", span, notes=(*notes[-1:], *listed), help=help)


def is_same_file(name: str | None, path: Path) -> bool:
    """Whether two names are those of one file."""
    return name is not None and os.path.realpath(name) == os.path.realpath(path)


def _span(path: Path, frame: traceback.FrameSummary) -> Span:
    first = frame.colno or 0
    last = frame.end_colno or first + 1
    line = frame.lineno or 1
    end_line = frame.end_lineno or line
    wide = last > first or end_line > line
    return Span(str(path), line, first + 1, end_line, last + 1 if wide else first + 2)
