"""`tilelang trace FILE[::KERNEL]`: show what every pass did to a kernel."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import click

from tilelang.cli.arguments import (
    kernel_argument,
    set_option,
    spare_what_is_read,
    target_option,
)
from tilelang.cli.pipes import closed_pipes_told
from tilelang_trace.wanted import Wanted


def main(argv: Sequence[str]) -> int:
    """Run the command; errors go to the `tilelang` command, which shows them."""
    status = command.main(list(argv), prog_name="tilelang trace", standalone_mode=False)
    return status if isinstance(status, int) else 0


class _Pattern(click.ParamType[re.Pattern[str]]):
    name = "regex"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> re.Pattern[str]:
        try:
            return re.compile(value)
        except re.error as error:
            self.fail(f"{value!r} is no regular expression: {error}", param, ctx)


_FILE = click.Path(path_type=Path)


@click.command("trace", context_settings={"help_option_names": ["-h", "--help"]})
@kernel_argument
@set_option
@target_option
@click.option("--pass", "passes", multiple=True, metavar="NAME",
              help="Only this pass, or one inside of it (tidy/decide); repeatable.")  # fmt: skip
@click.option("--only-changed", "--changed", "changed", is_flag=True,
              help="Only passes that changed something.")  # fmt: skip
@click.option("--grep", type=_Pattern(), metavar="REGEX",
              help="Only passes with changed lines, or Python of theirs, that match.")  # fmt: skip
@click.option("-U", "--context", type=click.IntRange(min=0), default=3, show_default=True,
              help="Unchanged lines around a change.")  # fmt: skip
@click.option("--json", "output", metavar="OUT",
              help="Also save the trace to a file (- for standard output).")  # fmt: skip
@click.option("--html", type=_FILE, metavar="OUT",
              help="Write one page with everything, down to machine code, that works "
              "offline.")  # fmt: skip
@click.option("--open", "opened", is_flag=True, help="Show that page in a browser.")
@click.option("--time", "timed", is_flag=True, help="Show where time and memory went instead.")
@click.option("--perfetto", type=_FILE, metavar="OUT",
              help="Save the times for ui.perfetto.dev.")  # fmt: skip
@click.option("--pipeline", is_flag=True,
              help="Show whether T.Pipelined loops took effect instead.")  # fmt: skip
@click.option("--compare", metavar="TRACE",
              help="Show where this trace and a saved one part, and what that cost.")  # fmt: skip
@click.option("--reproducer", type=_FILE, metavar="OUT",
              help="Write a Python file that replays from --from on.")  # fmt: skip
@click.option(
    "--from", "start", metavar="PASS", help="The pass that --reproducer and --ir are about."
)
@click.option("--reduce", "reduced", type=_FILE, metavar="OUT",
              help="Write the smallest form of FILE with the same diagnostic.")  # fmt: skip
@click.option("--ir", type=_FILE, metavar="OUT",
              help="Write the IR before --from, or that of the front end, to edit it.")  # fmt: skip
@click.option("--source", type=_FILE, metavar="OUT", help="Write the generated source, to edit it.")
@click.option("--resume", type=_FILE, metavar="EDITED",
              help="Go on from what --ir or --source wrote and somebody edited, and show what "
              "that changed.")  # fmt: skip
def command(
    kernel: str, settings: tuple[str, ...], target: str | None, passes: tuple[str, ...],
    changed: bool, grep: re.Pattern[str] | None, context: int, output: str | None,
    html: Path | None, opened: bool, timed: bool, perfetto: Path | None, pipeline: bool,
    compare: str | None, reproducer: Path | None, start: str | None, reduced: Path | None,
    ir: Path | None, source: Path | None, resume: Path | None,
) -> int:  # fmt: skip
    """Show what every pass did to a kernel: the difference, its time, and the Python behind it.

    FILE is imported, never run as the main program. Values come from --set, else from the file:
    see tilelang run --help. The target comes from --target, else from the kernel, else from a
    comment `# tilelang: target cuda:sm_90a` of FILE.
    A saved trace (.ndjson) is shown again without compiling anything. Of several targets,
    separated by commas, each is compared with the first.

    \b
      tilelang trace gemm.py --target cuda:sm_90a --set M=4096 --only-changed
      tilelang trace gemm.py --target cuda:sm_90a --html trace.html --open
      tilelang trace gemm.py --target cuda:sm_80 --pipeline
      tilelang trace new.ndjson --compare old.ndjson
    """
    from tilelang_trace.command import run

    spare_what_is_read(
        [kernel, compare, resume], [output, html, perfetto, reproducer, reduced, ir, source]
    )
    with closed_pipes_told():
        return run(Wanted(
            kernel, settings, target, passes, changed, grep, context, output, html, opened, timed,
            perfetto, pipeline, compare, reproducer, start, reduced, ir, source,
            resume,
        ))  # fmt: skip
