"""What `tilelang trace` does, once its arguments are read."""

from __future__ import annotations

import json
import sys
import tempfile
import webbrowser
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.text import Text

from tilelang_diagnostics import CompileError, Diagnostic, SourceMap, exit_status
from tilelang_trace.files import readable, saved, streamed
from tilelang_trace.model import Trace
from tilelang_trace.usage import check, check_for_target, check_for_trace, is_saved
from tilelang_trace.wanted import Wanted

if TYPE_CHECKING:
    from tilelang.compiler import Start


def run(wanted: Wanted) -> int:
    """The exit status; raises CompileError for what ended the compilation."""
    from tilelang.cli.output import show

    check(wanted)
    if wanted.reduced is not None:
        return _reduce(wanted)
    targets = _targets(wanted.target)
    if len(targets) > 1:
        return _several(wanted, targets)
    wanted = replace(wanted, target=next(iter(targets), None))
    compared = None if wanted.compare is None else read(wanted.compare)
    edited = None if wanted.resume is None else _edited(wanted.resume)
    if edited is not None and wanted.target is None:
        from tilelang_trace.resuming_ir import target_said

        wanted = replace(wanted, target=target_said(edited))
    if is_saved(wanted.kernel):
        trace, error = read(wanted.kernel), None
        check_for_trace(wanted, trace)
        if wanted.goes_on and trace.program:
            _check_program(wanted.kernel, trace)
        if wanted.output is not None and edited is None:
            _save(trace, wanted.output)
    else:
        trace, error = _recorded(wanted, kept=edited is None)
        check_for_trace(wanted, trace)
    if edited is not None:
        return _resume(wanted, trace, edited, error)
    _write_files(wanted, trace)
    if wanted.output != "-" and not wanted.page_alone:
        _show(wanted, trace, compared)
    if error is not None:
        _keep_reproducer(trace, error)
        raise error
    alone = wanted.pipeline or wanted.compare is not None
    told = _errors(trace) if alone else trace.remarks
    show(told, SourceMap(dict(trace.sources)))
    return _status(trace)


def _errors(trace: Trace) -> tuple[Diagnostic, ...]:
    return tuple(d for d in trace.remarks if d.is_error)


def _status(trace: Trace) -> int:
    """That of compiling the kernel: passes may refuse it and go on, to say more."""
    return exit_status(trace.remarks) or int(trace.failure is not None)


def _targets(said: str | None) -> tuple[str, ...]:
    """Those of `--target A,B`, each once, in their order; none where it was not said."""
    if said is None:
        return ()
    return tuple(dict.fromkeys(target.strip() for target in said.split(",")))


def _several(wanted: Wanted, targets: Sequence[str]) -> int:
    """What a kernel becomes for each of several targets; the first error ends it.

    They are compared, unless a question was asked that each has its own answer to.
    """
    if any((wanted.output, wanted.html, wanted.opened, wanted.perfetto, wanted.reproducer,
            wanted.compare, wanted.ir, wanted.source, wanted.resume)):  # fmt: skip
        raise click.UsageError("files are written for one target at a time")
    from tilelang.cli.output import show
    from tilelang_trace.compare import comparison_text

    traces = []
    for target in targets:
        trace, error = _recorded(replace(wanted, target=target), code=True)
        if error is not None:
            raise error
        traces.append(trace)
    if wanted.pipeline or wanted.timed:
        for number, trace in enumerate(traces):
            print(end="\n" * (number > 0))
            _show(wanted, trace, None)
    else:
        console = _console()
        for other in traces[1:]:
            _print(console, comparison_text(traces[0], other, wanted.context))
    for trace in traces:
        show(_errors(trace), SourceMap(dict(trace.sources)))
    return max(map(_status, traces))


def _edited(path: Path) -> str:
    readable(path)
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{path} is no text: {error}") from None


def _resume(wanted: Wanted, trace: Trace, edited: str, error: CompileError | None) -> int:
    """Go on from an edited file, and show what came of it beside what it was."""
    from tilelang.cli.output import show
    from tilelang_trace.compare import comparison_text
    from tilelang_trace.resuming import resume
    from tilelang_trace.resuming_ir import is_ir

    file = str(wanted.resume)
    if not trace.program:
        raise click.UsageError("this trace holds no program to go on from")
    if not is_ir(edited, file) and trace.code("source") is None:
        raise error or click.UsageError("this trace holds no source to go on from")
    made = resume(trace, edited, file)
    if made.error is not None:
        raise made.error
    if wanted.output is not None:
        _save(made.trace, wanted.output)
    _write_files(wanted, made.trace, made.start)
    if wanted.output == "-":
        return 0
    called = ("as it was", f"from {file}")
    text = comparison_text(trace, made.trace, wanted.context, source=True, called=called)
    _print(_console(), text)
    show(made.trace.remarks, SourceMap(dict(made.trace.sources)))
    return 0


def _console() -> Console:
    # In a pipe nothing is cut off: a pager or a file has room.
    return Console(width=None if sys.stdout.isatty() else 10_000, highlight=False)


def read(path: str) -> Trace:
    """A saved trace; a usage error says why a file is none."""
    from tilelang_trace import load
    from tilelang_trace.ndjson import TraceFormatError

    readable(path)
    try:
        return load(path)
    except OSError as error:
        raise click.UsageError(f"cannot read {path}: {error.strerror}") from None
    except (TraceFormatError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{path}: {error}") from None


def _check_program(path: str, trace: Trace) -> None:
    from tilelang_trace.replay import unpack

    try:
        unpack(trace.program)
    except CompileError:
        raise
    except (AttributeError, ImportError):
        return  # of another version, which a reproducer can still be for
    except Exception as error:  # reading it runs what it says
        raise click.UsageError(
            f"{path}: damaged trace: its `program` cannot be read: {type(error).__name__}: {error}"
        ) from None


def _recorded(
    wanted: Wanted, code: bool = False, kept: bool = True
) -> tuple[Trace, CompileError | None]:
    """The trace of a kernel; `kept`: in the file that was asked for, too."""
    from tilelang.cli.files import choose
    from tilelang.cli.specialise import specialise
    from tilelang.language.settings import parse_settings
    from tilelang.runtime.devices import resolve
    from tilelang_trace.recorder import record
    from tilelang_trace.wanted import target_of_file

    chosen = choose(wanted.kernel)
    said = wanted.target or target_of_file(chosen.file.text, getattr(chosen.entry, "target", None))
    special = specialise(chosen, parse_settings(wanted.settings), said)
    target = resolve(special.target).target
    check_for_target(wanted, special, target)
    file = str(chosen.file.path)
    if wanted.output is None or not kept:
        return record(special, target, file, code=code or wanted.needs_code)
    # Written as it comes about: what a crash leaves is a trace up to it.
    with streamed(wanted.output) as sink:
        return record(special, target, file, sink, code=wanted.needs_code)


def _save(trace: Trace, output: str) -> None:
    from tilelang_trace.ndjson import dump

    with streamed(output) as sink:
        for line in dump(trace):
            sink(line)


def _write_files(wanted: Wanted, trace: Trace, begun: Start | None = None) -> None:
    if wanted.perfetto is not None:
        from tilelang_trace.timing import perfetto

        _write(wanted.perfetto, json.dumps(perfetto(trace)))
    if wanted.reproducer is not None:
        from tilelang_trace.replay import names_of, write_reproducer

        failed = trace.failure.step if trace.failure is not None else None
        start = wanted.start or failed or names_of(trace)[0]
        try:
            _write(wanted.reproducer, write_reproducer(trace, start, begun))
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    if wanted.ir is not None:
        from tilelang_trace.stages import saved_before

        try:
            _write(wanted.ir, saved_before(trace, wanted.start, begun))
        except ValueError as error:
            if isinstance(error, CompileError):
                raise
            raise click.UsageError(str(error)) from None
    if wanted.source is not None:
        source = trace.code("source")
        if source is None:
            raise click.UsageError("this trace holds no generated source")
        _write(wanted.source, source.text)
    if wanted.html is not None or wanted.opened:
        from tilelang_trace.html.page import page_of

        path = wanted.html
        if path is None:
            folder = Path(tempfile.mkdtemp(prefix="tilelang-trace-"))
            path = folder / "trace.html"
        _write(path, page_of(trace))
        if wanted.opened:
            webbrowser.open(path.resolve().as_uri())


def _write(path: Path, text: str) -> None:
    try:
        saved(path, text)
    except OSError as error:
        raise click.UsageError(f"cannot write {path}: {error.strerror}") from None
    print(f"wrote {path}", file=sys.stderr)


def _show(wanted: Wanted, trace: Trace, compared: Trace | None) -> None:
    console = _console()
    if compared is not None:
        from tilelang_trace.compare import comparison_text

        called = (f"saved in {wanted.compare}", f"of {wanted.kernel}")
        _print(console, comparison_text(
            compared, trace, wanted.context, called=called, timed=wanted.timed
        ))  # fmt: skip
    elif wanted.pipeline:
        from tilelang_trace.pipelines import pipeline_text

        _print(console, pipeline_text(trace))
    elif wanted.timed:
        from tilelang_trace.timing import timing_text

        _print(console, timing_text(trace))
    else:
        from tilelang_trace.terminal import print_trace

        print_trace(
            console, trace, passes=wanted.passes, changed_only=wanted.changed,
            context=wanted.context, grep=wanted.grep,
        )  # fmt: skip


def _print(console: Console, lines: Iterable[Text]) -> None:
    for line in lines:
        console.print(line, soft_wrap=True)


def _keep_reproducer(trace: Trace, error: CompileError) -> None:
    """For a failure of the compiler itself, what replays it is saved without being asked for."""
    if not any(d.is_internal for d in error.diagnostics) or trace.failure is None:
        return
    from tilelang import options
    from tilelang.runtime.cache import cache_root
    from tilelang_trace.replay import digest, write_reproducer

    try:
        text = write_reproducer(trace, trace.failure.step)
        folder = Path(options.CRASH_DIR.get() or cache_root() / "crashes")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"replay-{trace.failure.step}-{digest(text)[:8]}.py"
        saved(path, text)
    except (OSError, ValueError):
        return
    print(f"{trace.failure.step} failed; what it was given, and a replay, are in {path}",
          file=sys.stderr)  # fmt: skip


def _reduce(wanted: Wanted) -> int:
    from tilelang.cli.files import read as file_text
    from tilelang_trace.failing import reduce_file
    from tilelang_trace.wanted import target_of_file

    assert wanted.reduced is not None
    target = wanted.target or target_of_file(file_text(Path(wanted.kernel.partition("::")[0])))
    found, told = reduce_file(wanted.kernel, wanted.settings, target)
    _write(wanted.reduced, found.text)
    print(f"{found.statements} statements are left after {found.attempts} attempts, with {told}",
          file=sys.stderr)  # fmt: skip
    return 0
