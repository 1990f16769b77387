"""`tilelang run FILE[::KERNEL]`: compile, run on random inputs, compare, time."""

from __future__ import annotations

import math

import click

from tilelang.cli.arguments import kernel_argument, set_option, target_option


def _number(ctx: click.Context, param: click.Parameter, value: float) -> float:
    """`value`, which a range lets through when it is no number at all."""
    if math.isnan(value):
        raise click.BadParameter("nan is not a time", ctx, param)
    return value


@click.command("run")
@kernel_argument
@set_option
@target_option
@click.option(
    "--seed", default=0, show_default=True, metavar="INTEGER", type=click.IntRange(min=0),
    help="Seed of the random inputs.",
)  # fmt: skip
@click.option(
    "--rep", default=300.0, show_default=True, metavar="MS",
    type=click.FloatRange(min=0, max=3_600_000), callback=_number, help="How long to measure.",
)  # fmt: skip
@click.option("--no-check", is_flag=True, help="Do not compare with the reference function.")
def command(
    kernel: str, settings: tuple[str, ...], target: str | None, seed: int, rep: float,
    no_check: bool,
) -> int:  # fmt: skip
    """Compile a kernel, run it on random inputs, check and time it.

    \b
    FILE is imported, never run as the main program. Values that --set does not give
    are those of the file: its own call of the kernel, its argument parser, its defaults.

    \b
    A function of the file called `reference`, `ref_program` or `<kernel>_reference`
    is given the same inputs in float64, and the results are compared.
    """
    # Imported when it runs, so that completion and --help stay quick.
    from tilelang.cli.run_kernel import run_kernel

    return run_kernel(kernel, settings, target, seed, rep, not no_check)
