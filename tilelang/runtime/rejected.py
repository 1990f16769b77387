"""What is said when the compiler of a dialect rejects source that we generated?

TL806 names the first error, at the Python lines that the lines of the source came from; the source
and all messages are kept in a folder.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from tilelang.codegen.device_source import DeviceSource
from tilelang_diagnostics import code_of, error_for
from tilelang_diagnostics.errors import CompileError
from tilelang_diagnostics.model import Diagnostic, Label, Span

_SHOWN = 5


def rejected(
    device: DeviceSource, said: Sequence[tuple[str, int | None]], compiler: str, arch: str,
    file_name: str, log: str,
) -> CompileError:  # fmt: skip
    """The error for what a compiler `said`: texts, and lines of the source."""
    (text, number), *others = said
    span, label = None, ""
    line = device.source.at(number) if number else None
    if line is not None and line.span is not None:
        span, label = line.span, f"became `{line.text.strip()}`"
    labels = []
    for other, where in others[:_SHOWN]:
        there = device.source.at(where) if where else None
        if there is not None and there.span is not None and there.span != span:
            labels.append(Label(there.span, other))
    kept = keep(device.text, file_name, log)
    return error_for(
        (
            Diagnostic(
                "TL806",
                code_of("TL806").severity,
                f"{compiler} rejected the generated source for {arch}: {text}",
                span=span if span is not None else any_span(device),
                label=label,
                labels=tuple(labels),
                notes=(f"the source and all messages are in {kept}" if kept else log,),
                help="the source is ours: please report it with that file, unless the kernel "
                "brings C code of its own (T.import_source, T.call_extern)",
            ),
        )
    )


def any_span(device: DeviceSource) -> Span | None:
    """The first place of the kernel."""
    return next((line.span for line in device.source.lines if line.span is not None), None)


def keep(text: str, file_name: str, log: str) -> Path | None:
    """Save a rejected source where it outlives the process."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="tilelang-rejected-"))
        (folder / "messages.txt").write_text(log, encoding="utf-8")
        path = folder / file_name
        path.write_text(text, encoding="utf-8")
    except OSError:
        return None
    return path
