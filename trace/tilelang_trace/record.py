"""How does a trace come about? An observer of the pipeline prints the program after each pass."""

from __future__ import annotations

from typing import Any

from tilelang.cli.specialise import Specialised
from tilelang.compiler import effective_options, lower_function
from tilelang.runtime.crash import guarded
from tilelang.target import Target
from tilelang_diagnostics import CompileError, Diagnostic, SourceMap
from tilelang_trace.model import Failure, Line, Step, Trace

FIRST = "emit"


class Recorder:
    """A pipeline observer that keeps the text of every stage.

    Printing costs more than most passes, and is not part of any step's time.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.running: str | None = None  # the pass that has begun and not ended

    def before(self, name: str, func: Any, context: Any) -> None:
        """Part of the observer protocol."""
        if not self.steps:
            self.steps.append(Step(FIRST, _lines(func), 0.0, "what the front end understood"))
        self.running = name

    def after(self, name: str, func: Any, context: Any, seconds: float) -> None:
        """Part of the observer protocol."""
        self.running = None
        self.steps.append(Step(name, _lines(func), seconds, _reason(name)))


def record(special: Specialised, target: Target, file: str) -> tuple[Trace, CompileError | None]:
    """The trace of one kernel, and the error that ended it early, if one did."""
    recorder = Recorder()
    options = effective_options(special.function, special.options)
    remarks: tuple[Diagnostic, ...] = ()
    error: CompileError | None = None
    try:
        with guarded(f"lowering {special.function.name} for {target}", special.function.span):
            remarks = lower_function(special.function, target, options, [recorder]).diagnostics
    except CompileError as raised:
        error = raised
        remarks = raised.diagnostics
    failure = None
    if error is not None:
        message = remarks[0].message if remarks else str(error)
        failure = Failure(recorder.running or FIRST, message)
    steps = tuple(recorder.steps)
    values = {**special.values, **special.sizes}
    trace = Trace(
        special.function.name,
        file,
        str(target),
        steps,
        tuple((name, repr(value.value)) for name, value in values.items()),
        _sources(steps),
        remarks,
        failure,
    )
    return trace, error


def _lines(func: Any) -> tuple[Line, ...]:
    from tilelang.ir.text import print_function

    return tuple(Line(line.text, line.span) for line in print_function(func).lines)


def _reason(name: str) -> str:
    from tilelang.pipeline import PIPELINE

    return next((step.reason for step in PIPELINE if step.name == name), "")


def _sources(steps: tuple[Step, ...]) -> tuple[tuple[str, str], ...]:
    """The text of every Python file a line comes from."""
    texts = SourceMap()
    files = dict.fromkeys(
        line.span.file for step in steps for line in step.lines if line.span is not None
    )
    return tuple((file, text) for file in files if (text := texts.text(file)) is not None)
