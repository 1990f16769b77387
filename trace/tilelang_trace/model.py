"""What is a trace? The text of a kernel after each pass and in each language it was written in.

Every line knows the place in the user's Python it comes from, so that the same statement can be
found in all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from tilelang.choices import Rejected, said
from tilelang_diagnostics import Diagnostic, Frame, Span

CodeKind = Literal["source", "ptx", "sass"]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a program or of code and the place in the user's Python it comes from.

    `calls` is the way from the kernel to inlined code. `origin` is the line of the generated source
    that a line of PTX or machine code is from.
    """

    text: str
    span: Span | None = None
    calls: tuple[Frame, ...] = ()
    origin: int | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """Something the compiler chose, and why: a barrier and its hazard, a copy instruction, a guard
    that stays, memory that is shared.

    `rejected` are the faster ways, each with the condition that failed first; `places` are others
    it has to do with, and what is there.
    """

    kind: str
    text: str
    why: str = ""
    span: Span | None = None
    rejected: tuple[tuple[str, str], ...] = ()
    places: tuple[tuple[Span, str], ...] = ()

    @property
    def said(self) -> str:
        """All of it in one line, as everywhere else."""
        return said(self.text, self.why, tuple(Rejected(*pair) for pair in self.rejected))


@dataclass(frozen=True, slots=True)
class Symbol:
    """A buffer of the program at one stage; `said` is what passes have attached to it: its layout,
    how many versions there are, where it lies."""

    name: str
    scope: str
    dtype: str
    shape: tuple[str, ...]
    said: tuple[tuple[str, str], ...] = ()
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Inner:
    """What ran inside of a pass or part, and what ran inside of that. `start` counts from the
    beginning of what is around it; `lines` are the program it made, () where that is none."""

    name: str
    seconds: float
    start: float = 0.0
    resident: int = 0
    lines: tuple[Line, ...] = ()
    inner: tuple[Inner, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """The program after one pass. `reason` says why the pass stands where it does.

    `seconds` are those of the pass alone, `resident` the memory of the process after it, in bytes.
    Passes that run again, without roles or for want of shared memory, have steps of several
    attempts.
    """

    name: str
    lines: tuple[Line, ...]
    seconds: float = 0.0
    reason: str = ""
    phase: str = ""
    attempt: int = 0
    resident: int = 0
    decisions: tuple[Decision, ...] = ()
    remarks: tuple[Diagnostic, ...] = ()
    symbols: tuple[Symbol, ...] = ()
    inner: tuple[Inner, ...] = ()

    @property
    def text(self) -> str:
        """The whole program."""
        return "".join(f"{line.text}\n" for line in self.lines)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the compilation that is no pass: checking, code generation, assembling."""

    name: str
    seconds: float
    phase: str = ""
    position: int = 0  # how many steps there were before it
    resident: int = 0
    inner: tuple[Inner, ...] = ()


@dataclass(frozen=True, slots=True)
class Code:
    """The kernel in one of the languages below the IR, line by line."""

    kind: CodeKind
    language: str
    lines: tuple[Line, ...]
    note: str = ""

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(f"{line.text}\n" for line in self.lines)


@dataclass(frozen=True, slots=True)
class Binary:
    """A CUDA binary whose machine code nobody has looked at. `file` is the generated source by the
    name it was compiled under."""

    file: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Resources:
    """What one kernel takes; sizes in bytes of a thread, shared memory of a block."""

    kernel: str
    threads: int
    registers: int
    spills: int
    stack: int
    shared: int
    blocks: int | None = None
    counts: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class LayoutShot:
    """One layout the compiler chose: in short, why, and drawn."""

    name: str
    kind: str
    shape: tuple[str, ...]
    dtype: str
    short: str
    why: str
    span: Span | None = None
    drawing: str = ""  # SVG
    cost: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """The pass that did not finish. What it was given is the last step of the trace; `inner` is
    what had finished inside of it, and `within` what had not."""

    step: str
    message: str
    exception: str = ""  # the traceback
    code: str = ""
    within: str = ""
    inner: tuple[Inner, ...] = ()


@dataclass(frozen=True, repr=False)
class Trace:
    """One compilation, pass by pass. `steps[0]` is what the front end made of the Python.

    `values` are those the kernel was specialised with, as text. `sources` hold the Python files
    that spans point into, so that a saved trace can be read elsewhere. `program` is the tile
    program and its options as a replay takes them, opaque here.
    """

    kernel: str
    file: str
    target: str
    steps: tuple[Step, ...]
    values: tuple[tuple[str, str], ...] = ()
    sources: tuple[tuple[str, str], ...] = ()
    remarks: tuple[Diagnostic, ...] = ()
    failure: Failure | None = None
    parts: tuple[Part, ...] = ()
    codes: tuple[Code, ...] = ()
    resources: tuple[Resources, ...] = ()
    layouts: tuple[LayoutShot, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    version: str = ""
    program: str = field(default="", repr=False)
    binary: Binary | None = None

    def __repr__(self) -> str:
        # All of it is hundreds of kilobytes, which nobody wants on a terminal.
        failed = f", failed in {self.failure.step}" if self.failure is not None else ""
        return f"<Trace {self.kernel} for {self.target}: {len(self.steps)} steps{failed}>"

    @property
    def seconds(self) -> float:
        """The time of all passes."""
        return sum(step.seconds for step in self.steps)

    def step(self, name: str) -> Step:
        """The last step called `name`; KeyError when there is none."""
        for step in reversed(self.steps):
            if step.name == name:
                return step
        raise KeyError(name)

    def code(self, kind: CodeKind) -> Code | None:
        """The kernel in that language, if it got there."""
        return next((code for code in self.codes if code.kind == kind), None)

    @cached_property
    def pairs(self) -> tuple[tuple[Step, Step], ...]:
        """Each step with the one before; a new attempt starts over."""
        return tuple(
            (a, b) for a, b in zip(self.steps, self.steps[1:], strict=False)
            if a.attempt == b.attempt
        )  # fmt: skip

    @property
    def nested(self) -> tuple[tuple[Step, Step], ...]:
        """`pairs`, and after each those of the passes inside of it, which are called by their way
        from the outside: `tidy/drop_unused`. Those that made no program are left out."""
        found: list[tuple[Step, Step]] = []
        for before, after in self.pairs:
            found.append((before, after))
            found += inside(before, after, after.name, after.inner)
        return tuple(found)


def inside(
    before: Step, around: Step, name: str, inner: tuple[Inner, ...]
) -> Iterator[tuple[Step, Step]]:
    """The pairs of what ran inside of `around` and made a program, from `before` on."""
    for one in inner:
        if not one.lines:
            continue
        after = Step(
            f"{name}/{one.name}", one.lines, one.seconds, "", around.phase, around.attempt,
            one.resident,
        )  # fmt: skip
        yield before, after
        yield from inside(before, around, after.name, one.inner)
        before = after
