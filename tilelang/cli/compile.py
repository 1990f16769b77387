"""`tilelang compile FILE[::KERNEL]`: what the compiler makes of a kernel, as text or files."""

from __future__ import annotations

from pathlib import Path

import click

from tilelang.cli.arguments import KernelSpec, set_option, spare_what_is_read

EMIT = ("program", "ir", "layouts", "source", "cuda", "ptx", "sass", "cubin", "hip", "s", "co",
        "metal", "so", "dir")  # fmt: skip


@click.command("compile")
@click.argument("kernel", type=KernelSpec(), metavar="FILE[::KERNEL]", required=False)
@set_option
@click.option(
    "--target", metavar="TARGET", help="cpu, cuda:sm_90a, hip:gfx942, metal:apple9 or auto; with "
    "--emit so or dir several of cpu and cuda, separated by commas.",
)  # fmt: skip
@click.option(
    "--emit", type=click.Choice(EMIT), help="What to show: the kernel as it was read, the IR after "
    "the last pass, the inferred layouts, or the generated code, which for CUDA is cuda; ptx, sass "
    "(machine code as text) and cubin are what becomes of that. For HIP it is hip, s the "
    "assembly, and co the code object that a driver loads. metal is one text with all that it "
    "needs, as Apple's compiler and newLibraryWithSource take it. so is a shared object that runs "
    "with only apache-tvm-ffi installed, dir a folder with that and everything it was made from. "
    "Without it, only diagnostics are shown.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="With --emit layouts: as JSON, for tools.")
@click.option(
    "--line-directives", is_flag=True,
    help="Write #line into CUDA source, so that debuggers and profilers show the Python.",
)  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to a file instead.")
@click.option(
    "--check", "checked", metavar="DIR", type=click.Path(path_type=Path),
    help="Compile nothing: exit with 1 if what --emit dir or so wrote there no longer follows from "
    "its source.",
)  # fmt: skip
def command(
    kernel: str | None, settings: tuple[str, ...], target: str | None, emit: str | None,
    as_json: bool, line_directives: bool, output: Path | None, checked: Path | None,
) -> int:  # fmt: skip
    """Compile a kernel; show its source, IR or layouts, or write what runs elsewhere.

    FILE is imported, never run as the main program. Values come from --set, else from
    the file: see tilelang run --help.
    """
    if checked is not None:
        if kernel is not None or settings or target or emit or output:
            raise click.UsageError("--check DIR stands alone: the folder says how it was made")
        from tilelang.cli.check_export import check_export

        return check_export(checked)
    if kernel is None:
        raise click.UsageError("Missing argument 'FILE[::KERNEL]'.")
    if as_json and emit != "layouts":
        raise click.UsageError("--json goes with --emit layouts")
    if output is None and emit in ("cubin", "co", "so", "dir"):
        raise click.UsageError(f"--emit {emit} needs -o OUT")
    if emit in ("so", "dir") and (emit == "so") != (output is not None and output.suffix == ".so"):
        raise click.UsageError("-o is a file NAME.so with --emit so, and a folder with --emit dir")
    if target is not None and "," in target and emit not in ("so", "dir"):
        raise click.UsageError("several targets go with --emit so or dir")
    spare_what_is_read([kernel], [output])
    # Imported when it runs, so that completion and --help stay quick.
    from tilelang.cli.compile_kernel import Wanted, compile_kernel

    return compile_kernel(Wanted(kernel, settings, target, emit, output, as_json, line_directives))
