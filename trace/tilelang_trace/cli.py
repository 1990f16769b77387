"""`tilelang trace FILE[::KERNEL]`: show what every pass did to a kernel."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from tilelang.cli.arguments import kernel_argument, set_option, target_option
from tilelang_diagnostics import CompileError, SourceMap, did_you_mean
from tilelang_trace.model import Trace

SAVED = (".ndjson", ".jsonl")


def main(argv: Sequence[str]) -> int:
    """Run the command; errors go to the `tilelang` command, which shows them."""
    status = command.main(list(argv), prog_name="tilelang trace", standalone_mode=False)
    return status if isinstance(status, int) else 0


@click.command("trace", context_settings={"help_option_names": ["-h", "--help"]})
@kernel_argument
@set_option
@target_option
@click.option("--pass", "passes", multiple=True, metavar="NAME", help="Only this pass; repeatable.")
@click.option("--changed", is_flag=True, help="Only passes that changed something.")
@click.option(
    "-U", "--context", type=click.IntRange(min=0), default=3, show_default=True,
    help="Unchanged lines around a change.",
)  # fmt: skip
@click.option(
    "--json", "output", metavar="OUT", help="Also save the trace to a file (- for standard output)."
)
def command(
    kernel: str, settings: tuple[str, ...], target: str | None, passes: tuple[str, ...],
    changed: bool, context: int, output: str | None,
) -> int:  # fmt: skip
    """Show what every pass did to a kernel: the difference, its time, and the Python behind it.

    FILE is imported, never run as the main program. Values come from --set, else from the file:
    see tilelang run --help.
    A saved trace (.ndjson) is shown again without compiling anything.
    """
    from tilelang.cli.output import show

    trace, error = _saved(kernel) if kernel.endswith(SAVED) else _recorded(kernel, settings, target)
    _check_names(passes, trace)
    if output is not None:
        _save(trace, output)
    if output != "-":
        _print(trace, passes, changed, context)
    if error is not None:
        raise error
    show(trace.remarks, SourceMap(dict(trace.sources)))
    return 0


def _saved(path: str) -> tuple[Trace, None]:
    from tilelang_trace.ndjson import TraceFormatError, load

    try:
        with open(path, encoding="utf-8") as file:
            return load(file), None
    except OSError as error:
        raise click.UsageError(f"cannot read {path}: {error.strerror}") from None
    except (TraceFormatError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{path}: {error}") from None


def _recorded(
    kernel: str, settings: Sequence[str], target: str | None
) -> tuple[Trace, CompileError | None]:
    from tilelang.cli.files import choose
    from tilelang.cli.specialise import specialise
    from tilelang.language.settings import parse_settings
    from tilelang.runtime.devices import resolve
    from tilelang_trace.record import record

    chosen = choose(kernel)
    special = specialise(chosen, parse_settings(settings), target)
    return record(special, resolve(special.target).target, str(chosen.file.path))


def _check_names(passes: Sequence[str], trace: Trace) -> None:
    known = [step.name for step in trace.steps[1:]]
    if trace.failure is not None:
        known.append(trace.failure.step)
    for name in passes:
        if name not in known:
            hint = did_you_mean(name, known) or f"; there are {', '.join(known)}"
            raise click.UsageError(f"no pass is called {name!r}{hint}")


def _save(trace: Trace, output: str) -> None:
    from tilelang_trace.ndjson import dump

    if output == "-":
        sys.stdout.writelines(dump(trace))
        return
    try:
        with Path(output).open("w", encoding="utf-8") as file:
            file.writelines(dump(trace))
    except OSError as error:
        raise click.UsageError(f"cannot write {output}: {error.strerror}") from None


def _print(trace: Trace, passes: Sequence[str], changed: bool, context: int) -> None:
    from rich.console import Console

    from tilelang_trace.terminal import print_trace

    # In a pipe nothing is cut off: a pager or a file has room.
    console = Console(width=None if sys.stdout.isatty() else 10_000, highlight=False)
    print_trace(console, trace, passes=passes, changed_only=changed, context=context)
