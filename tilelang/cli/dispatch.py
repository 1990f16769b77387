"""How does a command line reach its subcommand, and what becomes of an error?"""

from __future__ import annotations

import errno
import importlib
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from tilelang.cli.commands import BY_NAME, COMMANDS, ENTRY_POINT_GROUP, Row
from tilelang.cli.pipes import PipeClosed, closed_pipes_told
from tilelang.version import VERSION

_EPILOG = """\b
Kernels are named FILE or FILE::KERNEL, values are given as --set M=256,N=512.
Exit status: 0 fine, 1 diagnostics, 2 usage, 3 compiler failure (a reproducer is saved).

\b
  tilelang run examples/quickstart.py
  tilelang run gemm.py::matmul --set M=256,N=512,K=128
  tilelang compile gemm.py --set M=256 --emit source
  tilelang explain TL204
"""


class _Commands(click.Group):
    """A group whose members are imported when they are run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [row.name for row in COMMANDS]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        row = BY_NAME.get(name)
        if row is not None:
            return _tool(row) if row.is_tool else _own(row)
        return _entry_point(name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        command = self.get_command(ctx, name)
        if command is None:
            from tilelang_diagnostics import did_you_mean

            ctx.fail(f"there is no command {name!r}{did_you_mean(name, BY_NAME)}")
        return name, command, args[1:]

    def invoke(self, ctx: click.Context) -> Any:
        with closed_pipes_told():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # From the table: asking the commands themselves would import them all.
        with formatter.section("Commands"):
            formatter.write_dl([(row.name, row.help) for row in COMMANDS])


@click.group(
    cls=_Commands,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(VERSION, "-V", "--version", message="tilelang %(version)s")
def tilelang() -> None:
    """Tile kernels in Python: compile, run, check and look inside them."""


def run_command(argv: list[str]) -> int:
    """Run `argv`; every failure becomes diagnostics and an exit status."""
    _prepare_streams()
    with _warnings_as_diagnostics():
        return _run(argv)


def _run(argv: list[str]) -> int:
    try:
        result = tilelang.main(argv, prog_name="tilelang", standalone_mode=False)
        if not sys.stdout.closed:  # by the language server, with its connection
            sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as wrong:
        if isinstance(wrong, click.UsageError) and re.search(r"extra arg.*\(\w+=", wrong.message):
            hint = f"{wrong.message}; values are given with --set NAME=VALUE"
            wrong = click.UsageError(hint, wrong.ctx)
        wrong.show()
        return wrong.exit_code if isinstance(wrong, click.UsageError) else 1
    except (click.Abort, KeyboardInterrupt) as stopped:
        by = stopped.__cause__ or stopped  # click ends a command in its own way
        print(f"interrupted {by}".rstrip(), file=sys.stderr)
        return 130
    except (PipeClosed, BrokenPipeError):
        # The reader (`| head`) has seen enough. What is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.filename is not None or error.errno not in _CANNOT_WRITE:
            return _report(error, argv)
        from tilelang_diagnostics import failure

        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        reason = error.strerror or str(error)
        return _report(failure("TL810", f"standard output cannot be written: {reason}"), argv)
    except Exception as error:
        return _report(error, argv)


# Of a write to a stream; no file is named then.
_CANNOT_WRITE = frozenset({errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT})


def _prepare_streams() -> None:
    """A closed stream swallows what is written; an encoding that lacks a character escapes it."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure") and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def _warnings_as_diagnostics() -> Iterator[None]:
    """Warnings of ours are shown with their excerpts, those of others as ever."""
    usual = warnings.showwarning

    def showwarning(message: Warning | str, *more: Any, **named: Any) -> None:
        diagnostic = getattr(message, "diagnostic", None)
        if diagnostic is None:
            usual(message, *more, **named)
            return
        from tilelang.cli.output import show

        show((diagnostic,))

    warnings.showwarning = showwarning
    try:
        yield
    finally:
        warnings.showwarning = usual


def _report(error: Exception, argv: list[str]) -> int:
    """Show what went wrong; 3 for our own faults, 1 for what is about the kernel or the machine."""
    # Imported here: `tilelang --help` has nothing to report.
    from tilelang.cli.output import show
    from tilelang_diagnostics import CompileError, exit_status

    if isinstance(error, CompileError):
        show(error.diagnostics, error.sources)
        return exit_status(error.diagnostics) or 1
    from tilelang.runtime.crash import internal_error, out_of_memory

    if isinstance(error, MemoryError):
        show(out_of_memory(f"for tilelang {' '.join(argv)}", error).diagnostics)
        return 1
    show((internal_error(error, f"running tilelang {' '.join(argv)}", files=_files(argv)),))
    return 3


def _own(row: Row) -> click.Command:
    command: click.Command = importlib.import_module(row.module).command
    return command


def _tool(row: Row) -> click.Command:
    def load() -> Callable[[list[str]], int]:
        main: Callable[[list[str]], int] = importlib.import_module(row.module).main
        return main

    return _passing_on(row.name, row.help, load)


def _entry_point(name: str) -> click.Command | None:
    # 10 ms to import, so only for names that are not ours.
    import importlib.metadata

    for entry in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP, name=name):
        return _passing_on(name, f"From {entry.value}.", entry.load)
    return None


def _passing_on(name: str, help: str, load: Callable[[], Any]) -> click.Command:
    """A command that hands its arguments, `--help` included, to a function of its own."""

    def callback(arguments: tuple[str, ...]) -> int:
        status = load()(list(arguments))
        return int(status or 0)

    return click.Command(
        name,
        callback=callback,
        params=[click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)],
        help=help,
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    )


def _files(argv: list[str]) -> tuple[str, ...]:
    return tuple(a.split("::")[0] for a in argv if a.split("::")[0].endswith(".py"))
