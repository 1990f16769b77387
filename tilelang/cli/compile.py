"""`tilelang compile FILE[::KERNEL]`: what the compiler makes of a kernel, as text."""

from __future__ import annotations

from pathlib import Path

import click

from tilelang.cli.arguments import kernel_argument, set_option, target_option


@click.command("compile")
@kernel_argument
@set_option
@target_option
@click.option(
    "--emit", type=click.Choice(["program", "ir", "layouts", "source"]),
    help="What to show: the kernel as it was read, the IR after the last pass, the inferred "
    "layouts, or the generated code. Without it, only diagnostics are shown.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="With --emit layouts: as JSON, for tools.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to a file instead.")
def command(
    kernel: str, settings: tuple[str, ...], target: str | None, emit: str | None,
    as_json: bool, output: Path | None,
) -> int:  # fmt: skip
    """Compile a kernel; show its source, IR or layouts.

    FILE is imported, never run as the main program. Values come from --set, else from the file.
    """
    if as_json and emit != "layouts":
        raise click.UsageError("--json goes with --emit layouts")
    # Imported when it runs, so that completion and --help stay quick.
    from tilelang.cli.compile_kernel import compile_kernel

    return compile_kernel(kernel, settings, target, emit, output, as_json)
