"""How does a compilation go on from IR that somebody has edited?

The file says after which pass it was written; the passes that are left run on what it holds, and
what is wrong is told at its place in the file. The kernel of FILE gives the rest: its options, and
its layouts where `apply_layouts` is still to come.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from tilelang.codegen.artifacts import Artifact
from tilelang.compiler import Start
from tilelang.options import CompileOptions
from tilelang.pipeline import BEGINNING, marks, passes_after
from tilelang.program.stmt import Function
from tilelang.runtime.crash import guarded
from tilelang.target import Target
from tilelang_diagnostics import CompileError, did_you_mean, error_for, failure
from tilelang_diagnostics.codes import diagnose
from tilelang_diagnostics.model import Diagnostic, Severity, Span
from tilelang_trace.edits import Edit, edits_of, guilty, line_span, place_in
from tilelang_trace.model import Trace
from tilelang_trace.recorder import Recorder, watch
from tilelang_trace.resumed import Resumed
from tilelang_trace.stages import position_of, saved_after

if TYPE_CHECKING:
    from tilelang.ir.verify import Problem

_HEAD: Final = re.compile(r"^# tilelang IR (\d+):", re.MULTILINE)
_OURS: Final = ("TL806", "TL9")  # what is the fault of the IR, where somebody edited that
_MOST_TOLD: Final = 10


def is_ir(text: str, file: str) -> bool:
    """Whether a file holds IR, and not generated source."""
    return _HEAD.search(text) is not None or file.endswith(".py")


def target_said(text: str) -> str | None:
    """The target that a file of IR was written for."""
    found = re.search(r"^# attrs .*'tl\.target': '([^']+)'", text, re.MULTILINE)
    return None if found is None else found[1]


def resume_ir(trace: Trace, text: str, file: str, *, code: bool = True) -> Resumed:
    """Go on from the IR in `text`, which `file` holds; what is wrong is told at its lines.

    `trace` is that of the kernel as it was; the steps before come from it.
    """
    from tilelang_trace.replay import unpack

    function, target, options = unpack(trace.program)
    return _Resume(trace, text, file, function, target, options, code).run()


@dataclass
class _Resume:
    was: Trace
    text: str
    file: str
    function: Function
    target: Target
    options: CompileOptions
    code: bool

    def run(self) -> Resumed:
        try:
            start = self._start(self.text)
        except CompileError as error:
            return Resumed(self.was, error=error)
        recorder = self._recorder()
        try:
            made = self._compiled(recorder, start)
        except CompileError as error:
            return Resumed(self._joined(recorder.trace), start=start, error=error)
        return Resumed(self._joined(recorder.trace), made, start)

    def _compiled(self, recorder: Recorder, start: Start) -> Artifact | None:
        made = None
        try:
            made = watch(recorder, self.function, self.target, self.options, self.code, start)
        except Exception as error:
            if not recorder.is_closed:
                recorder.failed(error)
            if recorder.failure is not None:  # else there is only no compiler for the source
                self._refuse(error, recorder)
        told = [d for d in recorder.remarks if d.severity is Severity.ERROR]
        if told:  # what generating code would have ended with
            raise error_for([self._placed(d) for d in told])
        self._check_device(recorder)
        return made

    def _recorder(self) -> Recorder:
        return Recorder(
            self.function, self.target, self.options, file=self.was.file,
            values=dict(self.was.values), code=self.code,
            first=(self._after.partition(":")[0], "as it stands in the file"),
        )  # fmt: skip

    # --- what the file says ---

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def _comments(self) -> Any:
        from tilelang.ir.text_file import comments_of

        return comments_of(self.text)

    @cached_property
    def _after(self) -> str:
        """The pass after which the file was written; TL190 for one that there is not."""
        from tilelang.ir.text_file import VERSION

        version = _HEAD.search(self.text)
        if version is not None and int(version[1]) > VERSION:
            raise self._unfit(
                f"the text is of version {version[1]}, and this reads version {VERSION}",
                version[0], "write it with this version: --ir OUT",
            )  # fmt: skip
        found = re.search(r"^# after (\S*)", self.text, re.MULTILINE)
        known = [BEGINNING, *marks()]
        if found is None:
            raise self._unfit(
                "the file does not say after which pass it was written",
                "",
                "add a line `# after PASS`, as --ir writes it",
            )
        if found[1] not in known:
            hint = did_you_mean(found[1], known).removeprefix("; ") or "tilelang trace names them"
            raise self._unfit(f"no pass is called `{found[1]}`", found[1], hint)
        return found[1]

    def _unfit(self, message: str, at: str, help: str) -> CompileError:
        number = next((n for n, line in enumerate(self._lines, 1) if at and at in line), 1)
        line = self._lines[number - 1] if self._lines else ""
        column = line.find(at) + 1 if at else 1
        span = Span(self.file, number, column, number, column + max(len(at), 1))
        return failure("TL190", message, span, help=help)

    def _start(self, text: str) -> Start:
        """The program of the file and the passes that are left."""
        from tilelang.ir import attrs
        from tilelang.ir.read import read_function
        from tilelang.ir.verify import STAGES, problems_of

        passes = passes_after(self._after)
        func = read_function(text, self.file).func
        said = dict(func.attrs)
        own = str(said.get(attrs.TARGET, self.target))
        if own != str(self.target):
            raise self._unfit(
                f"the IR was written for {own}, and this compiles for {self.target}", own,
                f"name the target it is for: --target {own}",
            )  # fmt: skip
        name = str(said.get(attrs.GLOBAL_SYMBOL, ""))
        if name != self.function.name:
            raise self._unfit(
                f"the IR is that of `{name}`, and the kernel is `{self.function.name}`",
                f"def {name}", "name the kernel that the IR is of: FILE::KERNEL",
            )  # fmt: skip
        stage = str(said.get(attrs.STAGE, STAGES[0]))
        if stage not in STAGES:
            raise self._unfit(
                f"there is no stage `{stage}`", stage, f"there are {', '.join(STAGES)}"
            )
        if problems_of(func):
            here = read_function(text, self.file, here=True).func
            raise error_for([
                self._unsound(p, self._after) for p in problems_of(here)[:_MOST_TOLD]
            ])  # fmt: skip
        return Start(func.with_attr(attrs.TARGET, str(self.target)), passes)

    def _unsound(self, problem: Problem, after: str) -> Diagnostic:
        return diagnose(
            "TL191", f"the IR is not sound after {after}: {problem.sentence}", problem.span,
            help=f"`--ir OUT` writes IR that is: compare `{PurePath(self.file).name}` with it",
        )  # fmt: skip

    # --- what is wrong ---

    @cached_property
    def _original(self) -> str | None:
        """The file as it was before somebody edited it; None if the kernel does not get there."""
        try:
            return saved_after(self.was, self._after)
        except (CompileError, ValueError):
            return None

    @cached_property
    def _edits(self) -> tuple[Edit, ...]:
        return () if self._original is None else edits_of(self._original, self.text, self.file)

    def _fails(self, text: str, code: bool) -> bool:
        """Whether another text does not get through either."""
        recorder = self._recorder()
        try:
            watch(recorder, self.function, self.target, self.options, code, self._start(text))
        except Exception as error:
            if not recorder.is_closed:
                recorder.failed(error)
        return recorder.failure is not None

    def _refuse(self, error: Exception, recorder: Recorder) -> None:
        """Raise what is wrong at its place in the file; what is wrong without any edit as ever."""
        told = getattr(error, "diagnostics", ())
        ours = not told or any(d.code.startswith(_OURS) for d in told)
        assert recorder.failure is not None
        step = recorder.failure.step
        coded = step == "generate"
        with guarded(f"lowering {self.function.name} for {self.target}", self.function.span):
            known = self._original
            if known is not None and not self._edits:
                raise error
            self._check_device(recorder)
            if not ours:
                raise error_for([self._placed(d) for d in told]) from error
            endless = isinstance(error, MemoryError)  # and not to be tried again
            if known is not None and not endless and self._fails(known, coded):
                raise error
        edit = guilty(self._edits, lambda text: endless or self._fails(text, coded))
        what = "the code generator" if coded else f"`{step}`"
        raise failure(
            "TL192", f"{what} cannot take this IR: {_reason(error)}",
            self._head_span if edit is None else edit.span,
            help="without this change it goes on: what depends on it may have to change too"
            if edit is not None else "`--ir OUT` writes IR that it takes",
        ) from None  # fmt: skip

    @property
    def _head_span(self) -> Span:
        number = next((n for n, x in enumerate(self._lines, 1) if x.startswith("def ")), 1)
        return line_span(self._lines[number - 1], self.file, number)

    def _placed(self, found: Diagnostic) -> Diagnostic:
        """A diagnostic about Python at the line of the file that stands for it."""
        span = place_in(found.span, self._comments, self._lines, self.file, self._edits)
        if span is None or found.span is None or span == found.span:
            return found
        labels = tuple(
            replace(label, span=place) for label in found.labels
            if (place := place_in(label.span, self._comments, self._lines, self.file, self._edits))
        )  # fmt: skip
        note = f"the line is from {found.span.file}:{found.span.line}"
        return replace(found, span=span, labels=labels, calls=(), fixes=(),
                       notes=(*found.notes, note))  # fmt: skip

    def _check_device(self, recorder: Recorder) -> None:
        """TL191 for device operations that came out of the passes and cannot be."""
        from tilelang.ir.verify import problems_of

        ended = recorder.failure is None or recorder.failure.step == "generate"
        if self.target.kind != "cuda" or recorder.program is None or not ended:
            return
        found = problems_of(recorder.program, "device")
        if found and (self._original is None or self._edits):
            raise error_for([
                self._placed(self._unsound(p, "the last pass"))
                for p in found[:_MOST_TOLD]
            ])  # fmt: skip

    # --- what came of it ---

    def _joined(self, made: Trace) -> Trace:
        """The trace with the steps before the file."""
        position = position_of(self.was, self._after)
        if position is None:
            return made
        before = self.was.steps[:position]
        attempt = self.was.steps[position].attempt
        steps = (*before, *(replace(s, attempt=s.attempt + attempt) for s in made.steps))
        layouts = made.layouts or self.was.layouts
        return replace(made, steps=steps, layouts=layouts, sources=self.was.sources)


def _reason(error: Exception) -> str:
    """What an exception says, in one line."""
    told: Sequence[Diagnostic] = getattr(error, "diagnostics", ())
    if told:
        return told[0].message
    return next(_sentences(error), type(error).__name__)


def _sentences(error: Exception) -> Iterator[str]:
    text = str(error).strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines:
        yield f"{type(error).__name__}: {lines[0][:200]}"
