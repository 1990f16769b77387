"""`tilelang run FILE[::KERNEL]`: compile, run on random inputs, compare, time."""

from __future__ import annotations

import math

import click

from tilelang.cli.arguments import kernel_argument, set_option, target_option
from tilelang.runtime.sanitizer_tools import TOOLS


def _number(ctx: click.Context, param: click.Parameter, value: float) -> float:
    """`value`, which a range lets through when it is no number at all."""
    if math.isnan(value):
        raise click.BadParameter("nan is not a time", ctx, param)
    return value


def _schedule(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """The seed of a schedule."""
    from tilelang.emulator.settings import parse_schedule

    try:
        return None if value is None else parse_schedule(value)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is no schedule: {error}", ctx, param) from None


class _Whole(click.IntRange):
    name = "whole number"  # what a message calls it


class _Number(click.FloatRange):
    name = "number"


class _Run(click.Command):
    """`--sanitize` takes a value only after `=`, so that a file may follow it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, ["--sanitize=memcheck" if a == "--sanitize" else a
                                        for a in args])  # fmt: skip


@click.command("run", cls=_Run)
@kernel_argument
@set_option
@target_option
@click.option(
    "--seed", default=0, show_default=True, metavar="INTEGER", type=_Whole(min=0),
    help="Seed of the random inputs.",
)  # fmt: skip
@click.option(
    "--rep", default=300.0, show_default=True, metavar="MS",
    type=_Number(min=0, max=3_600_000), callback=_number, help="How long to measure.",
)  # fmt: skip
@click.option("--no-check", is_flag=True, help="Do not compare with the reference function.")
@click.option(
    "--sanitize", type=click.Choice(TOOLS),
    metavar="[=TOOL]",
    help="On an NVIDIA GPU: one call under compute-sanitizer's memcheck (the default), racecheck, "
    "initcheck or synccheck, told in lines of FILE. Nothing is compared or timed.",
)  # fmt: skip
@click.option(
    "--emulate", is_flag=True,
    help="Run code for a GPU on the processor, without a GPU; --target names the architecture.",
)  # fmt: skip
@click.option(
    "--check", is_flag=True,
    help="With --emulate: report races, accesses outside of memory, reads of what was never "
    "written or has not arrived, missing fences and divergent barriers, and count bank "
    "conflicts and sectors.",
)  # fmt: skip
@click.option(
    "--schedule", default=None, metavar="fifo|shuffle:SEED", callback=_schedule,
    help="With --emulate: the order in which threads run.  [default: fifo]",
)  # fmt: skip
@click.option(
    "--json", "as_json", is_flag=True,
    help="With --emulate: write what happened as JSON; tilelang.cli.emulated lists its fields.",
)  # fmt: skip
def command(
    kernel: str, settings: tuple[str, ...], target: str | None, seed: int, rep: float,
    no_check: bool, sanitize: str | None, emulate: bool, check: bool, schedule: int | None,
    as_json: bool,
) -> int:  # fmt: skip
    """Compile a kernel, run it on random inputs, check and time it.

    \b
    FILE is imported, never run as the main program. Values that --set does not give are,
    in this order, those of
      # tilelang: set M=1024,N=512    a comment in the file; in a function or right above
                                      it, for that kernel only
      [tool.tilelang.set]             a table of names in pyproject.toml
      the file's own call of the kernel with constants, and its argument parser
      the defaults of its parameters

    \b
    A function of the file called `reference`, `ref_program` or `<kernel>_reference`
    is given the same inputs in float64, and the results are compared. If it is not
    given a tensor that the kernel adds to, that one starts at zero. A function called
    `inputs` or `<kernel>_inputs` may make inputs: it returns them by name in a dict.
    """
    # Imported when it runs, so that completion and --help stay quick.
    from tilelang.cli.run_kernel import run_json, run_kernel
    from tilelang.emulator.settings import Emulator

    if not emulate and (check or schedule is not None):
        raise click.UsageError("--check and --schedule say how to emulate; add --emulate")
    if not emulate and as_json:
        raise click.UsageError("--json tells what the emulator saw; add --emulate")
    if emulate and sanitize is not None:
        raise click.UsageError("--sanitize watches a GPU; with --emulate there is --check")
    emulator = Emulator(check, schedule or 0) if emulate else None
    if emulator is not None and as_json:
        return run_json(kernel, settings, target, seed, not no_check, emulator)
    return run_kernel(kernel, settings, target, seed, rep, not no_check, sanitize, emulator)
