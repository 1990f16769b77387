"""How is a compilation done again, from a chosen pass on? From the tile program kept in its trace.

A reproducer is one Python file: the program, the target, the options, and what the chosen pass was
given. It runs what comes before silently, says whether that gives the same text, and goes on.
"""

from __future__ import annotations

import base64
import hashlib
import pickle
import sys
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tilelang.options import CompileOptions
from tilelang.program.stmt import Function
from tilelang.target import Target, parse_target
from tilelang_diagnostics import CompileError
from tilelang_trace.model import Line, Step, Trace


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
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def write_reproducer(trace: Trace, name: str) -> str:
    """A Python file that replays `trace` from the pass `name` on; ValueError says why not."""
    if not trace.program:
        raise ValueError("this trace holds no program to start from")
    given = input_of(trace, name)
    failed = trace.failure is not None and trace.failure.step == name
    why = f", which failed: {trace.failure.message}" if failed and trace.failure else ""
    program = "\n".join(
        f"    {trace.program[n : n + 88]!r}" for n in range(0, len(trace.program), 88)
    )
    shown = "\n".join(f"#   {line}" for line in _plain(given).splitlines())
    return _FILE.format(
        title=_one_line(f"{trace.kernel} for {trace.target}, from {name} on{why}"),
        version=_one_line(trace.version), input=shown, program=program, name=name,
        mark=digest(given),
    )  # fmt: skip


def input_of(trace: Trace, name: str) -> str:
    """The text a pass was given; ValueError if no pass is called so."""
    if name in names_of(trace) and trace.steps:
        return _given(trace, name).text
    raise ValueError(f"no pass is called {name!r}")


def ir_file(trace: Trace, name: str | None = None) -> str:
    """The program that the pass `name` was given, or the first one, as a Python file.

    Each line ends in the place it is from. The first program is a kernel like any other; what
    passes attach to a later one is to be read only.
    """
    if name is None:
        lines = trace.steps[0].lines if trace.steps else ()
    else:
        input_of(trace, name)
        lines = _given(trace, name).lines
    head = _one_line(f"{trace.kernel} for {trace.target}, before {name or 'the first pass'}")
    body = "\n".join(f"{_plain(x.text)}{_place(x)}" for x in lines)
    return f'"""{head}"""\n\nimport tilelang.language as T\n\n\n{body}\n'


def _given(trace: Trace, name: str) -> Step:
    for before, after in reversed(trace.pairs):
        if after.name == name:
            return before
    return trace.steps[-1]


def _place(line: Line) -> str:
    if line.span is None:
        return ""
    return f"  #@ {_one_line(line.span.file)}:{line.span.line}:{line.span.column}"


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
    sys.exit(replay(PROGRAM, {name!r}, {mark!r}))
'''


def replay(program: str, name: str, mark: str) -> int:
    """Run the pipeline again, shown from the pass `name` on; the exit status."""
    from rich.console import Console

    from tilelang.cli.output import show
    from tilelang_trace.recorder import Recorder, recorded
    from tilelang_trace.terminal import print_trace

    function, target, options = unpack(program)
    recorder = Recorder(function, target, options, code=False)
    error = recorded(recorder, function, target, options, code=False)
    trace = recorder.trace
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 10_000)
    try:
        same = digest(input_of(trace, name)) == mark
        told = "is given what it was given then" if same else "is given something else than then"
    except ValueError:
        told = "was not reached"
    console.print(f"{name} {told}", markup=False)
    print_trace(console, _from(trace, name))
    return 0 if error is None else _status(error, show)


def _status(error: CompileError, show: Any) -> int:
    show(error.diagnostics, error.sources)
    return 3 if any(d.code.startswith("TL9") for d in error.diagnostics) else 1


def _from(trace: Trace, name: str) -> Trace:
    """The trace without what came before the pass."""
    names = [step.name for step in trace.steps]
    start = names.index(name) - 1 if name in names else len(names) - 1
    return replace(trace, steps=trace.steps[max(start, 0) :])


def _plain(text: str) -> str:
    """Text without control characters, which a terminal would act upon."""
    return "".join(c if c == "\n" or c.isprintable() else repr(c)[1:-1] for c in text)


def _one_line(text: str) -> str:
    return " ".join(_plain(text).split()).replace('"""', "'''").replace("\\", "/")


def names_of(trace: Trace) -> Sequence[str]:
    """The passes of a trace, the one that failed too."""
    found = list(dict.fromkeys(after.name for _, after in trace.pairs))
    if trace.failure is not None and trace.failure.step not in found:
        found.append(trace.failure.step)
    return found
