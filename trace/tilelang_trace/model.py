"""What is a trace? The text of a kernel after each pass, with the Python place of each line."""

from __future__ import annotations

from dataclasses import dataclass

from tilelang_diagnostics import Diagnostic, Span


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the printed program and the place in the user's Python it comes from."""

    text: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """The program after one pass. `reason` says why the pass stands where it does."""

    name: str
    lines: tuple[Line, ...]
    seconds: float = 0.0
    reason: str = ""

    @property
    def text(self) -> str:
        """The whole program."""
        return "".join(f"{line.text}\n" for line in self.lines)


@dataclass(frozen=True, slots=True)
class Failure:
    """The pass that did not finish. What it was given is the last step of the trace."""

    step: str
    message: str


@dataclass(frozen=True, slots=True)
class Trace:
    """One compilation, pass by pass. `steps[0]` is what the front end made of the Python.

    `values` are those the kernel was specialised with, as text. `sources` hold the Python files
    that spans point into, so that a saved trace can be read elsewhere.
    """

    kernel: str
    file: str
    target: str
    steps: tuple[Step, ...]
    values: tuple[tuple[str, str], ...] = ()
    sources: tuple[tuple[str, str], ...] = ()
    remarks: tuple[Diagnostic, ...] = ()
    failure: Failure | None = None

    @property
    def seconds(self) -> float:
        """The time of all passes."""
        return sum(step.seconds for step in self.steps)

    def step(self, name: str) -> Step:
        """The step called `name`; KeyError when there is none."""
        for step in self.steps:
            if step.name == name:
                return step
        raise KeyError(name)
