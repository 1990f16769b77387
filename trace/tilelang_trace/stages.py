"""What was the program after each pass, as a file that a compilation can go on from?

A trace keeps the text of its stages and not the programs. They come from compiling once more, from
the tile program in the trace, up to where that ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from tilelang.compiler import Start, lower_function
from tilelang.options import CompileOptions
from tilelang.pipeline import BEGINNING, PIPELINE, marks
from tilelang.program.stmt import Function
from tilelang.target import Target
from tilelang_trace.model import Trace


class Stages:
    """An observer of the pipeline that keeps the program of every stage, by the mark of the pass
    that made it. Of a pipeline that is run again the last run counts; it may begin at `start`."""

    def __init__(self, start: Start | None = None) -> None:
        self.made: list[tuple[str, Any]] = []
        self._first = 0 if start is None else len(PIPELINE) - len(start.passes)
        self._position = 0

    def before(self, name: str, func: Any, context: Any) -> None:
        """Part of the observer protocol."""
        names = [step.name for step in PIPELINE]
        if not self.made or name not in names[self._position :]:
            self._position = self._first
            self.made = [([BEGINNING, *marks()][self._first], func)]
        self._position += names[self._position :].index(name) + 1

    def after(self, name: str, func: Any, context: Any, seconds: float) -> None:
        """Part of the observer protocol."""
        self.made.append((marks()[self._position - 1], func))


def stages_of(
    function: Function, target: Target, options: CompileOptions, start: Start | None = None
) -> Sequence[tuple[str, Any]]:
    """Mark and program of each stage, as far as the passes get."""
    kept = Stages(start)
    with suppress(Exception):  # whoever compiles it tells what is wrong
        lower_function(function, target, options, [kept], start=start)
    return kept.made


def saved_before(trace: Trace, name: str | None = None, start: Start | None = None) -> str:
    """What the pass `name` was given, or the first one, as a file to go on from.

    ValueError if no pass is called so, or the trace holds no program; CompileError for what has no
    form in a file.
    """
    made = _made(trace, start)
    mark, func = made[0] if name is None else _before(made, name)
    return _saved(trace, func, mark, f"before {name or 'the first pass'}")


def saved_after(trace: Trace, mark: str) -> str:
    """The program after the pass of a mark; the same errors."""
    for known, func in _made(trace, None):
        if known == mark:
            return _saved(trace, func, mark, f"after {mark}")
    raise ValueError(f"{mark} was not reached")


def position_of(trace: Trace, name: str) -> int | None:
    """Where the step of a mark is in the last attempt, or the last one of a pass; None if it is
    not there. A trace may begin in the middle of the passes."""
    last = trace.steps[-1].attempt if trace.steps else 0
    found = [(n, step.name) for n, step in enumerate(trace.steps) if step.attempt == last]
    known = [BEGINNING, *marks()]
    positions: dict[str, int] = {}
    for n, ran in found:
        at = next((at for at, mark in enumerate(known) if is_called(mark, ran)), None)
        mark = ran if at is None else known[at]
        known = known if at is None else known[at + 1 :]
        positions[ran] = positions[mark] = n
    return positions.get(name, positions.get(name.partition(":")[0]))


def _made(trace: Trace, start: Start | None) -> Sequence[tuple[str, Any]]:
    from tilelang_trace.replay import unpack

    if not trace.program:
        raise ValueError("this trace holds no program to start from")
    made = stages_of(*unpack(trace.program), start)
    if not made:
        raise ValueError("no pass was reached")
    return made


def _saved(trace: Trace, func: Any, mark: str, where: str) -> str:
    from tilelang.ir.save import saved_function

    return saved_function(func, f"{trace.kernel} for {trace.target}, {where}", mark)


def _before(made: Sequence[tuple[str, Any]], name: str) -> tuple[str, Any]:
    """The stage before a pass: the last one of a name that several have."""
    known = [mark for mark, _ in made]
    for position in reversed(range(1, len(known))):
        if is_called(known[position], name):
            return made[position - 1]
    if any(is_called(mark, name) for mark in marks()):  # the one that did not finish
        return made[-1]
    raise ValueError(f"no pass is called {name!r}")


def is_called(mark: str, name: str) -> bool:
    """Whether `name` is a mark, or the name of its pass."""
    return name in (mark, mark.partition(":")[0])
