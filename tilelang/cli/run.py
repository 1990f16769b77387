"""`tilelang run FILE[::KERNEL]`: compile, run on random inputs, compare, time."""

from __future__ import annotations

import click

from tilelang.cli.arguments import kernel_argument, set_option, target_option


@click.command("run")
@kernel_argument
@set_option
@target_option
@click.option("--seed", default=0, show_default=True, help="Seed of the random inputs.")
@click.option("--rep", default=300.0, show_default=True, metavar="MS", help="How long to measure.")
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
