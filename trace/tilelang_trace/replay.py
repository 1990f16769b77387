"""How is a compilation done again, from a chosen pass on? From the tile program kept in its trace.

A reproducer is one Python file: the program, the target, the options, and the IR that the chosen
pass was given. It runs what comes before silently, says whether that gives the same text, and goes
on from the IR in the file, which may be edited.
"""

from __future__ import annotations

import base64
import hashlib
import pickle
import sys
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tilelang.options import CompileOptions
from tilelang.program.stmt import Function
from tilelang.target import Target, parse_target
from tilelang_diagnostics import CompileError, exit_status
from tilelang_trace.model import Step, Trace
from tilelang_trace.plain import plain

if TYPE_CHECKING:
    from tilelang.compiler import Start


def pack(function: Function, target: Target, options: CompileOptions) -> str:
    """The program as text; "" for one that holds what cannot be kept, such as open files."""
    try:
        data = pickle.dumps((function, str(target), options))
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError):
        return ""
    return base64.b85encode(zlib.compress(data, 9)).decode("ascii")


def unpack(program: str) -> tuple[Function, Target, CompileOptions]:
    """What `pack` was given. Only for a program of your own: reading it may run code."""
    data = zlib.decompress(base64.b85decode(program))
    function, target, options = pickle.loads(data)
    return function, parse_target(target), options


def digest(text: str) -> str:
    """A short mark of a program's text."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def write_reproducer(trace: Trace, name: str, start: Start | None = None) -> str:
    """A Python file that replays `trace` from the pass `name` on; ValueError says why not.

    It holds the IR that the pass was given, or its text alone where that is no file to go on from.
    `start` is where the trace began, if not with the front end.
    """
    if not trace.program:
        raise ValueError("this trace holds no program to start from")
    given = input_of(trace, name)
    failed = trace.failure is not None and trace.failure.step == name
    why = f", which failed: {trace.failure.message}" if failed and trace.failure else ""
    program = "\n".join(
        f"    {trace.program[n : n + 88]!r}" for n in range(0, len(trace.program), 88)
    )
    text = _ir(trace, name, start)
    shown = "\n".join(f"#   {line}" for line in plain(given).splitlines())
    return _FILE.format(
        title=_one_line(f"{trace.kernel} for {trace.target}, from {name} on{why}"),
        version=_one_line(trace.version), input=_quoted(text) if text else shown, program=program,
        name=name, mark=digest(given), ir="IR, __file__" if text else repr(""),
    )  # fmt: skip


def _ir(trace: Trace, name: str, start: Start | None) -> str:
    """What the pass was given, as a file to go on from; "" where that cannot be had."""
    from tilelang_trace.stages import saved_before

    try:
        text = saved_before(trace, name, start)
    except Exception:  # a program of another version, or of nobody; IR without a form
        return ""
    return text if plain(text) == text else ""


def _quoted(text: str) -> str:
    """IR as a string of a reproducer. Three quotes in a row stand in its own strings alone, where
    they may have backslashes."""
    quotes = "'" * 3
    return f"{_BEGINS}\n{text.replace(quotes, _ESCAPED)}{quotes}"


def input_of(trace: Trace, name: str) -> str:
    """The text a pass was given; ValueError if no pass is called so."""
    if trace.steps and name.partition(":")[0] in names_of(trace):
        return _given(trace, name).text
    raise ValueError(f"no pass is called {name!r}")


def _given(trace: Trace, name: str) -> Step:
    from tilelang_trace.stages import position_of

    position = position_of(trace, name)
    return trace.steps[-1 if position is None else position - 1]


_BEGINS: Final = "IR = r" + "'" * 3
_ESCAPED: Final = r"\'" * 3
_FILE = '''\
"""{title}

Written by tilelang {version}. Run it: python THIS_FILE
Exit status: 0 the passes ran, 1 diagnostics, 3 a failure of the compiler.
"""

import sys

from tilelang_trace.replay import replay

# What the pass is given:
{input}

PROGRAM = (
{program}
)

if __name__ == "__main__":
    sys.exit(replay(PROGRAM, {name!r}, {mark!r}, {ir}))
'''


def replay(program: str, name: str, mark: str, ir: str = "", file: str = "") -> int:
    """Run the passes again and show them from the pass `name` on; the exit status.

    With `ir`, which stands in `file`, they begin with it; else with the program.
    """
    from tilelang.cli.output import show
    from tilelang_trace.recorder import Recorder, recorded

    function, target, options = unpack(program)
    recorder = Recorder(function, target, options, code=False)
    error = recorded(recorder, function, target, options, code=False)
    trace = recorder.trace
    try:
        same = digest(input_of(trace, name)) == mark
        told = "is given what it was given then" if same else "is given something else than then"
    except ValueError:
        told = "was not reached"
    print(f"{name} {told}")
    if ir:
        trace, error = _gone_on(trace, ir, file)
    _shown(trace, name)
    return 0 if error is None else _status(error, show)


def _gone_on(trace: Trace, ir: str, file: str) -> tuple[Trace, CompileError | None]:
    """From the IR of a reproducer on, whose lines are those of `file`."""
    from tilelang_trace.resuming_ir import resume_ir

    try:
        above = Path(file).read_text(encoding="utf-8").partition(_BEGINS)[0].count("\n")
    except OSError:
        above = 0
    made = resume_ir(trace, "\n" * above + ir, file, code=False)
    return made.trace, made.error


def _shown(trace: Trace, name: str) -> None:
    from rich.console import Console

    from tilelang_trace.terminal import print_trace

    console = Console(highlight=False, width=None if sys.stdout.isatty() else 10_000)
    print_trace(console, _from(trace, name))


def _status(error: CompileError, show: Any) -> int:
    show(error.diagnostics, error.sources)
    return exit_status(error.diagnostics) or 1


def _from(trace: Trace, name: str) -> Trace:
    """The trace without what came before the pass."""
    from tilelang_trace.stages import position_of

    position = position_of(trace, name) or len(trace.steps)
    return replace(trace, steps=trace.steps[max(position - 1, 0) :])


def _one_line(text: str) -> str:
    return " ".join(plain(text).split()).replace('"""', "'''").replace("\\", "/")


def names_of(trace: Trace) -> Sequence[str]:
    """The passes of a trace, the one that failed too."""
    found = list(dict.fromkeys(after.name for _, after in trace.pairs))
    if trace.failure is not None and trace.failure.step not in found:
        found.append(trace.failure.step)
    return found
