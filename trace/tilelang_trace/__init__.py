"""What every pass did to a kernel: `tilelang trace`, and `tilelang_trace.record()` from Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilelang_trace.model import Trace
    from tilelang_trace.resumed import Resumed
    from tilelang_trace.session import Recording, record

__all__ = ["Recording", "Trace", "load", "record", "resume", "save_html", "save_ir"]


def load(path: str) -> Trace:
    """The trace in a file; raises OSError, or TraceFormatError for another file."""
    from tilelang_trace.columns import with_machine_code
    from tilelang_trace.ndjson import load as read

    with open(path, encoding="utf-8") as file:
        return with_machine_code(read(file))


def save_html(trace: Trace, path: str) -> None:
    """Write one self-contained page; raises OSError."""
    from tilelang_trace.files import saved
    from tilelang_trace.html.page import page_of

    saved(path, page_of(trace))


def save_ir(trace: Trace, path: str, before: str | None = None) -> None:
    """Write the IR that the pass `before` was given, or that of the front end, to be edited.

    Raises OSError, ValueError where no pass is called so, and CompileError for IR without a form.
    """
    from tilelang_trace.files import saved
    from tilelang_trace.stages import saved_before

    saved(path, saved_before(trace, before))


def resume(trace: Trace, path: str) -> Resumed:
    """Go on from an edited file of IR or CUDA; `kernel()` of the result is to be called.

    Raises OSError; what is wrong with the file is the result's `error`.
    """
    from tilelang_trace.resuming import resume as go_on

    with open(path, encoding="utf-8") as file:
        return go_on(trace, file.read(), path)


def __getattr__(name: str) -> Any:
    # Importing this package is free; recording loads the compiler.
    if name in ("record", "Recording"):
        from tilelang_trace import session

        return getattr(session, name)
    if name == "Trace":
        from tilelang_trace.model import Trace

        return Trace
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
