"""`tilelang inspect FILE[::KERNEL]`: what is in the machine code of a kernel."""

from __future__ import annotations

from pathlib import Path

import click

from tilelang.cli.arguments import (
    kernel_argument,
    set_option,
    spare_what_is_read,
    target_option,
)
from tilelang.inspection.expect import BadExpectation, names_help, parse_expectations


@click.command("inspect", epilog=f"\b\nNames that --expect compares:\n{names_help()}")
@kernel_argument
@set_option
@target_option
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Write JSON, for tools; tilelang.inspection.as_json lists its fields.",
)
@click.option(
    "--expect", "expected", metavar="COMPARISONS", multiple=True,
    help="Exit with status 1 unless these hold, such as 'cp.async>=4,mma>0,spills==0'; may be "
    "repeated. Accesses have widths in bits besides (ld.global.b128), and loop.NAME is the most "
    "that one loop holds.",
)  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to a file instead.")
def command(
    kernel: str, settings: tuple[str, ...], target: str | None, as_json: bool,
    expected: tuple[str, ...], output: Path | None,
) -> int:  # fmt: skip
    """Show what is in the machine code of a kernel for CUDA, by line of Python.

    Shared memory against its limit, registers and spills, occupancy, instructions and their
    widths for each loop and line, predicted bank conflicts, and the compiler's remarks. No GPU is
    needed. TARGET may be several, separated by commas; JSON is then a list.
    """
    try:
        expectations = tuple(x for text in expected for x in parse_expectations(text))
    except BadExpectation as wrong:
        raise click.BadParameter(str(wrong), param_hint="'--expect'") from None
    spare_what_is_read([kernel], [output])
    # Imported when it runs, so that completion and --help stay quick.
    from tilelang.cli.inspect_kernel import inspect_kernel

    return inspect_kernel(kernel, settings, target, as_json, expectations, output)
