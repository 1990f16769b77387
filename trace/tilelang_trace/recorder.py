"""How does a trace come about? An observer of the compilation writes down what each part made."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tilelang.codegen.artifacts import Artifact
from tilelang.compiler import Start, compile_function, effective_options, lower_function
from tilelang.nested import listening
from tilelang.options import CompileOptions
from tilelang.program.stmt import Function
from tilelang.runtime.crash import guarded
from tilelang.target import Target
from tilelang.version import VERSION
from tilelang.watching import watched_by
from tilelang_diagnostics import CompileError, Diagnostic, Severity, SourceMap
from tilelang_trace.columns import (
    binary_of,
    columns_of,
    layout_shots,
    resources_of,
    source_alone,
)
from tilelang_trace.decisions import Decisions
from tilelang_trace.model import (
    Binary,
    Code,
    Failure,
    Inner,
    LayoutShot,
    Line,
    Part,
    Resources,
    Step,
    Symbol,
    Trace,
)
from tilelang_trace.phases import phase_of
from tilelang_trace.programs import ProgramText
from tilelang_trace.replay import pack
from tilelang_trace.symbols import SymbolTable
from tilelang_trace.writer import Writer

if TYPE_CHECKING:
    from tilelang.cli.specialise import Specialised

FIRST = "emit"
_START = "infer_layouts"  # every attempt to lower a program begins with it
_NO_COMPILER = "TL807"


@dataclass(slots=True)
class _Frame:
    """What is running: since when, how long the recorder had worked by then, and what has run
    inside."""

    name: str
    started: float = 0.0
    spent: float = 0.0
    inner: list[Inner] = field(default_factory=list)


class Recorder:
    """A `tilelang.watching.Watch` that keeps the text of every stage, and streams it to `sink`.

    Printing costs more than most passes, and is not part of any step's time. `first` is the name
    of the step that the pipeline begins with, and what it is. Without `disassembled` the trace
    keeps a binary in place of machine code.
    """

    def __init__(
        self,
        function: Function,
        target: Target,
        options: CompileOptions,
        sink: Callable[[str], object] | None = None,
        *,
        file: str = "",
        values: Mapping[str, str] | None = None,
        code: bool = True,
        first: tuple[str, str] = (FIRST, "what the front end understood"),
        disassembled: bool = True,
    ) -> None:
        self.steps: list[Step] = []
        self.parts: list[Part] = []
        self.codes: list[Code] = []
        self.resources: list[Resources] = []
        self.layouts: list[LayoutShot] = []
        self.remarks: list[Diagnostic] = []
        self.failure: Failure | None = None
        self._frames: list[_Frame] = []  # what has begun and not ended, from the outside
        self.spent = 0.0  # by the recording itself
        self._code, self._first = code, first
        self._closed = False
        self._disassembled = disassembled
        self._binary: Binary | None = None
        self._function, self._target, self._options = function, target, options
        self._sources = SourceMap()
        self._program = pack(function, target, options)
        self._attempt = -1
        self._text = ProgramText()
        self._buffers = SymbolTable()
        self._printed: tuple[Any, tuple[Line, ...]] = (None, ())
        self._listed: tuple[Any, tuple[Symbol, ...]] = (None, ())
        own = function.span.file if function.span is not None else ""
        self._head = Trace(
            function.name, file or own, str(target), (), tuple((values or {}).items()),
            options=tuple((k, repr(v)) for k, v in options.changed), version=VERSION,
            program=self._program,
        )  # fmt: skip
        self._decisions = Decisions(self._head.file)
        self._writer = None if sink is None else Writer(sink, self._sources.text)
        if self._writer is not None:
            self._writer.header(self._head)
            if self._program:
                self._writer.program(self._program)

    @property
    def program(self) -> Any:
        """The program after the last pass that ran, a TIRX PrimFunc; None before the first."""
        return self._printed[0]

    @property
    def trace(self) -> Trace:
        """What was recorded so far."""
        return replace(
            self._head, steps=tuple(self.steps), sources=self._texts(),
            remarks=tuple(self.remarks), failure=self.failure, parts=tuple(self.parts),
            codes=tuple(self.codes), resources=tuple(self.resources), layouts=tuple(self.layouts),
            binary=self._binary,
        )  # fmt: skip

    # --- passes ---

    def before(self, name: str, func: Any, context: Any) -> None:
        """Part of the observer protocol."""
        self._begin(name)

    def after(self, name: str, func: Any, context: Any, seconds: float) -> None:
        """Part of the observer protocol."""
        started = time.perf_counter()
        inner, recording = self._end()
        decided, remarks = self._decisions.since(context)
        lines = self._lines(func)
        self._add(Step(
            name, lines, seconds - recording, _reason(name), phase_of(name), self._attempt,
            _resident(), decided, remarks, self._symbols, inner,
        ))  # fmt: skip
        self.spent += time.perf_counter() - started

    # --- everything else ---

    def began(self, name: str) -> None:
        """Part of the watch protocol."""
        if name == _START:
            self._frames.clear()  # another attempt: the one before ended within a pass
        self._begin(name)

    def ended(self, name: str, seconds: float, result: Any = None) -> None:
        """Part of the watch protocol."""
        started = time.perf_counter()
        told = started - self._frames[-1].started < seconds / 2  # by itself, after it ran
        inner, recording = self._end()
        seconds -= recording
        if self._frames:
            self._ended_within(name, seconds, result, inner, told)
            self.spent += time.perf_counter() - started
            return
        self._part(Part(name, seconds, phase_of(name), len(self.steps), _resident(), inner))
        if name == _START and result is not None:
            shots = layout_shots(result, self._head.file)
            self._keep(self.layouts, shots, lambda w, x: w.layout(x))
        elif name == "emit" and result is not None:
            # Another attempt, without roles or with fewer stages, starts from the same program.
            self._attempt += 1
            self._decisions = Decisions(self._head.file)
            self._add(Step(
                self._first[0], self._lines(result), seconds, self._first[1], "front end",
                self._attempt, _resident(), symbols=self._symbols,
            ))  # fmt: skip
        self.spent += time.perf_counter() - started

    def finished(self, artifact: Any, diagnostics: Sequence[Any]) -> None:
        """Part of the watch protocol."""
        started = time.perf_counter()
        if self._code and self._disassembled:
            self._begin("disassemble")
            with listening([self]):
                self._show_columns(artifact)
            inner, recording = self._end()
            self._part(Part(
                "disassemble", time.perf_counter() - started - recording, phase_of("disassemble"),
                len(self.steps), _resident(), inner,
            ))  # fmt: skip
        elif self._code:
            self._show_columns(artifact)
            self._binary = binary_of(artifact, self._target)
            if self._writer is not None and self._binary is not None:
                self._writer.binary(self._binary)
        self.close(tuple(diagnostics))
        self.spent += time.perf_counter() - started

    def failed(self, error: BaseException) -> None:
        """Part of the watch protocol."""
        found = getattr(error, "diagnostics", ())
        if self._frames and self._frames[0].name == "generate" and self._printed[0] is not None:
            self._show_source(found)
            if found and found[0].code == _NO_COMPILER:
                # Nothing is wrong with the kernel: there is only less to show of it.
                self.close((replace(found[0], severity=Severity.WARNING),))
                return
        message = found[0].message if found else f"{type(error).__name__}: {error}"
        cause = error.__cause__ or error
        outer, *within = self._frames or [_Frame(self._last())]
        self.failure = Failure(
            outer.name, message, "".join(traceback.format_exception(cause)),
            found[0].code if found else "TL900", "/".join(frame.name for frame in within),
            tuple(outer.inner),
        )  # fmt: skip
        self.close(tuple(found))

    def _show_columns(self, artifact: Any) -> None:
        codes = columns_of(artifact, self._target, self._disassembled)
        self._keep(self.codes, codes, lambda w, x: w.code(x))
        used = resources_of(artifact, self._target, codes)
        self._keep(self.resources, used, lambda w, x: w.resources(x))

    def _show_source(self, why: Sequence[Diagnostic]) -> None:
        note = why[0].message if why else ""
        codes = source_alone(self._printed[0], self._target, self._options, note)
        self._keep(self.codes, codes, lambda w, x: w.code(x))

    @property
    def is_closed(self) -> bool:
        """Whether the end was written."""
        return self._closed

    def close(self, remarks: tuple[Diagnostic, ...]) -> None:
        """Write the end."""
        self._closed = True
        self.remarks = list(remarks)
        if self._writer is not None:
            for remark in remarks:
                self._writer.remark(remark)
            self._writer.end(self.failure)
            self._writer = None

    def _lines(self, func: Any) -> tuple[Line, ...]:
        """The text of a program; a pass that changed nothing gives the same object."""
        known, lines = self._printed
        if known is None or not _is_same(func, known):
            lines = self._text.lines(func)
            self._printed = func, lines
        return lines

    @property
    def _symbols(self) -> tuple[Symbol, ...]:
        """The buffers of the program that was printed last."""
        func = self._printed[0]
        if self._listed[0] is not func:
            self._listed = func, self._buffers.of(func)
        return self._listed[1]

    def _last(self) -> str:
        return self.steps[-1].name if self.steps else FIRST

    def _begin(self, name: str) -> None:
        self._frames.append(_Frame(name, time.perf_counter(), self.spent))
        if self._writer is not None:
            self._writer.begin(name, len(self._frames) - 1)

    def _end(self) -> tuple[tuple[Inner, ...], float]:
        """What ran inside of what ends now, and how long this recorder worked meanwhile."""
        frame = self._frames.pop()
        return tuple(frame.inner), self.spent - frame.spent

    def _ended_within(
        self, name: str, seconds: float, result: Any, inner: tuple[Inner, ...], told: bool
    ) -> None:
        around = self._frames[-1]
        start = time.perf_counter() - around.started - (self.spent - around.spent) - seconds
        if told:
            start = sum(one.seconds for one in around.inner)
        lines = () if result is None else self._lines(result)
        made = Inner(name, seconds, max(0.0, start), _resident(), lines, inner)
        around.inner.append(made)
        if self._writer is not None:
            self._writer.inner(made, len(self._frames))

    def _part(self, part: Part) -> None:
        self.parts.append(part)
        if self._writer is not None:
            self._writer.part(part)

    def _add(self, step: Step) -> None:
        self.steps.append(step)
        if self._writer is not None:
            self._writer.step(step)

    def _keep(
        self, kept: list[Any], new: Sequence[Any], write: Callable[[Writer, Any], object]
    ) -> None:
        kept[:] = new
        if self._writer is not None:
            for one in new:
                write(self._writer, one)

    def _texts(self) -> tuple[tuple[str, str], ...]:
        """The text of every Python file a line comes from."""
        spans = (
            span for step in self.steps for line in step.lines
            for span in (line.span, *(f.span for f in line.calls)) if span is not None
        )  # fmt: skip
        files = dict.fromkeys(span.file for span in spans)
        return tuple((f, text) for f in files if (text := self._sources.text(f)) is not None)


def record(
    special: Specialised,
    target: Target,
    file: str,
    sink: Callable[[str], object] | None = None,
    code: bool = False,
) -> tuple[Trace, CompileError | None]:
    """The trace of one kernel, and the error that ended it early, if one did.

    `code`: go on to generated code, PTX and machine code, where there are compilers for them.
    """
    options = effective_options(special.function, special.options)
    values = {name: repr(v.value) for name, v in {**special.values, **special.sizes}.items()}
    recorder = Recorder(
        special.function, target, options, sink, file=file, values=values, code=code
    )
    error = recorded(recorder, special.function, target, options, code)
    return recorder.trace, error


def recorded(
    recorder: Recorder, function: Function, target: Target, options: CompileOptions, code: bool
) -> CompileError | None:
    """Compile once, watched by `recorder`; the error that ended it."""
    try:
        with guarded(f"lowering {function.name} for {target}", function.span):
            watch(recorder, function, target, options, code)
    except CompileError as raised:
        if not recorder.is_closed:
            recorder.failed(raised)
        return None if recorder.failure is None else raised
    return None


def watch(
    recorder: Recorder, function: Function, target: Target, options: CompileOptions, code: bool,
    start: Start | None = None,
) -> Artifact | None:  # fmt: skip
    """Compile once, watched by `recorder`, from `start` on if there is one; what came of it where
    code was made."""
    if not code or not _has_backend(target):
        lowered = lower_function(function, target, options, [recorder], start=start)
        recorder.close(lowered.diagnostics)
        return None
    with watched_by(lambda *_: recorder):
        return compile_function(function, target, options, start=start).artifact


def _has_backend(target: Target) -> bool:
    from tilelang.backends import KINDS_WITH_BACKEND

    return target.kind in KINDS_WITH_BACKEND


def _reason(name: str) -> str:
    from tilelang.pipeline import PIPELINE

    return next((step.reason for step in PIPELINE if step.name == name), "")


def _is_same(func: Any, other: Any) -> bool:
    """Whether two programs are one, perhaps wrapped anew."""
    if func.same_as(other):
        return True
    return bool(func.body.same_as(other.body) and func.attrs.same_as(other.attrs))


def _resident() -> int:
    """Memory of this process, in bytes; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096
    except (OSError, ValueError, IndexError):
        return 0
