"""What is wrong with a command line, before anything is compiled and any file is opened?"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import click

from tilelang_diagnostics import did_you_mean
from tilelang_trace.wanted import Wanted

if TYPE_CHECKING:
    from tilelang.cli.specialise import Specialised
    from tilelang.target import Target
    from tilelang_trace.model import Trace

SAVED: Final = (".ndjson", ".jsonl")
_FRONT_END: Final = "emit"
_AFTER: Final = re.compile(rb"^# after (\S+)", re.MULTILINE)
_BEGIN: Final = 4096  # bytes of a file that say what it is


def check(wanted: Wanted) -> None:
    """UsageError for what can be said of the arguments alone."""
    _check_kernel(wanted)
    if wanted.start is not None and wanted.reproducer is None and wanted.ir is None:
        raise click.UsageError("--from says where --reproducer or --ir begins: name one of them")
    if wanted.reduced is not None and [*_outputs(wanted)][1:]:
        raise click.UsageError("--reduce writes its one file and nothing else")
    _check_outputs(wanted)
    if not is_saved(wanted.kernel):
        _check_names(wanted, known_names())


def is_saved(kernel: str) -> bool:
    """Whether FILE is a saved trace."""
    return kernel.partition("::")[0].endswith(SAVED)


def _check_kernel(wanted: Wanted) -> None:
    file, separator, _ = wanted.kernel.partition("::")
    if is_saved(file):
        if separator:
            raise click.UsageError(f"{file} is a saved trace of one kernel: name the file alone")
        if wanted.reduced is not None:
            raise click.UsageError("--reduce takes a Python file, and this is a saved trace")
        if wanted.settings or wanted.target is not None:
            given = "--set" if wanted.settings else "--target"
            raise click.UsageError(
                f"{given} is for a Python file: a saved trace is of one compilation"
            )
        return
    after = _AFTER.search(_begin(file))
    if after is not None and after[1] != _FRONT_END.encode() and b"# tilelang IR " in _begin(file):
        raise click.UsageError(
            f"{file} is IR after {after[1].decode(errors='replace')}: go on from it with the "
            f"kernel it was made of, tilelang trace KERNEL.py --resume {file}"
        )


def _begin(file: str) -> bytes:
    try:
        if not stat.S_ISREG(os.stat(file).st_mode):
            return b""
        with open(file, "rb") as found:
            return found.read(_BEGIN)
    except (OSError, ValueError):
        return b""


# --- outputs ---


def _check_outputs(wanted: Wanted) -> None:
    seen: dict[str, str] = {}
    for option, path in _outputs(wanted):
        if path == "-":
            if option == "--json":
                continue
            raise click.UsageError(f"{option} writes a file: only --json takes - for standard "
                                   "output")  # fmt: skip
        _check_path(path)
        if os.path.exists(path) and not os.path.isfile(path):
            continue  # /dev/null takes all of them
        other = seen.setdefault(os.path.realpath(path), option)
        if other != option:
            raise click.UsageError(f"{other} and {option} would both write {path}")


def _outputs(wanted: Wanted) -> Iterator[tuple[str, str]]:
    named = (
        ("--json", wanted.output), ("--html", wanted.html), ("--perfetto", wanted.perfetto),
        ("--reproducer", wanted.reproducer), ("--reduce", wanted.reduced), ("--ir", wanted.ir),
        ("--source", wanted.source),
    )  # fmt: skip
    yield from ((option, str(path)) for option, path in named if path is not None)


def _check_path(path: str) -> None:
    folder = os.path.dirname(path) or "."
    reason = ""
    if os.path.isdir(path) or not path:
        reason = "it is a folder" if path else "it has no name"
    elif not os.path.isdir(folder):
        reason = f"{folder} is no folder" if os.path.exists(folder) else f"there is no {folder}"
    elif not os.access(path if os.path.exists(path) else folder, os.W_OK):
        reason = "permission denied"
    if reason:
        raise click.UsageError(f"cannot write {path!r}: {reason}")


# --- names of passes ---


def known_names() -> Sequence[str]:
    """Every pass that there is, and the front end."""
    from tilelang.pipeline import PIPELINE, marks

    return tuple(dict.fromkeys((_FRONT_END, *(step.name for step in PIPELINE), *marks())))


def check_for_target(wanted: Wanted, special: Specialised, target: Target) -> None:
    """UsageError for a pass that does not run for the target."""
    from tilelang.compiler import effective_options
    from tilelang.passes.context import PassContext
    from tilelang.pipeline import PIPELINE

    names = (*wanted.passes, *([wanted.start] if wanted.start else ()))
    if not names:
        return
    context = PassContext(str(target), effective_options(special.function, special.options))
    absent = {step.name for step in PIPELINE} - {s.name for s in PIPELINE if s.applies(context)}
    for name in names:
        if re.split("[:/]", name)[0] in absent:
            there = ", ".join(dict.fromkeys(s.name for s in PIPELINE if s.applies(context)))
            raise click.UsageError(f"{name} does not run for {target}; there are {there}")


def check_for_trace(wanted: Wanted, trace: Trace) -> None:
    """UsageError for a pass that a trace does not have."""
    from tilelang.pipeline import marks
    from tilelang_trace.replay import names_of

    known = [*(step.name for step in trace.steps[:1]), *names_of(trace)]
    if trace.failure is not None and not is_saved(wanted.kernel):
        known += known_names()  # it did not get there, and says so
    inner = [after.name for _, after in trace.nested if "/" in after.name]
    _check_names(wanted, (*known, *(m for m in marks() if ":" in m)), inner)


def _check_names(wanted: Wanted, known: Iterable[str], inner: Sequence[str] | None = None) -> None:
    """`inner` are the passes inside of others, None where these cannot be known yet."""
    there = tuple(dict.fromkeys(known))
    for name in wanted.passes:
        if name in there or (inner is not None and name in inner):
            continue
        if inner is None and "/" in name and name.partition("/")[0] in there:
            continue
        _refuse(name, tuple(dict.fromkeys((*there, *(inner or ())))))
    begun = tuple(name for name in there if name != _FRONT_END)
    if wanted.start is not None and wanted.start not in begun:
        _refuse(wanted.start, begun)


def _refuse(name: str, known: Sequence[str]) -> None:
    hint = did_you_mean(name, known) or f"; there are {', '.join(known)}"
    raise click.UsageError(f"no pass is called {name!r}{hint}")
