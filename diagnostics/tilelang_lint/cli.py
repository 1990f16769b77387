"""`tilelang lint PATHS`: check kernel files without running them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import click

from tilelang.cli.arguments import set_option, target_option
from tilelang_diagnostics import Diagnostic, Severity, SourceMap, exit_status
from tilelang_lint.selection import selector_problem

_NO_TARGET = "no target is given (--target, or `target` of [tool.tilelang])"

_EPILOG = """\b
Exit status: 0 nothing found, or remarks only; 1 errors or warnings; 2 usage;
3 tilelang itself failed on a file (TL900), the other files were checked.

\b
Switch a finding off on its line, or on the line above, and say why:
  T.copy(A, B)  # tilelang: ignore[copy-not-vectorised] once per launch

\b
  tilelang lint kernels/
  tilelang lint gemm.py --set M=1000,N=512 --format json
  tilelang lint . --select TL2,TL3 --ignore bank-conflicts
  tilelang lint gemm.py --fix
"""


def main(argv: Sequence[str]) -> int:
    """Run the command; errors go to the `tilelang` command, which shows them."""
    status = command.main(list(argv), prog_name="tilelang lint", standalone_mode=False)
    return status if isinstance(status, int) else 0


def _selectors(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    """The codes of repeated, comma-separated options; an unknown one is a usage error."""
    found = tuple(part.strip() for item in given for part in item.split(",") if part.strip())
    for selector in found:
        problem = selector_problem(selector)
        if problem is not None:
            raise click.BadParameter(problem)
    return found


@click.command(
    "lint", epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)  # fmt: skip
@click.argument("paths", nargs=-1, required=True, metavar="PATH…", type=click.Path())
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text",
    help="How findings are written.",
)  # fmt: skip
@click.option(
    "--select", multiple=True, metavar="CODES", callback=_selectors,
    help="Only these codes, names, or groups such as TL2; separated by commas.",
)  # fmt: skip
@click.option(
    "--ignore", multiple=True, metavar="CODES", callback=_selectors, help="All but these."
)
@click.option("--fix", is_flag=True, help="Apply the fixes that are safe, and write the files.")
@click.option(
    "--suggestions", is_flag=True,
    help="With --fix: also the first suggestion of each finding, which is to be looked at.",
)  # fmt: skip
@set_option
@target_option
def command(
    paths: tuple[str, ...], form: str, select: tuple[str, ...], ignore: tuple[str, ...],
    fix: bool, suggestions: bool, settings: tuple[str, ...], target: str | None,
) -> int:  # fmt: skip
    """Check kernel files without importing or running them.

    PATH is a file, or a directory whose *.py files are checked. Parameters get their values from
    --set, a comment `# tilelang: set M=64` of the file, [tool.tilelang.set] in pyproject.toml, the
    file's calls with constants, or their defaults; a dimension that none of the first three names
    stays open, so that what is found holds for every size. Macros and constants that a file imports
    from another one of its project are what that one's text says.

    The target comes from --target, a comment `# tilelang: target cuda:sm_90a`, or `target` of
    [tool.tilelang]; with one, also what it lacks is found. Codes come from --select and --ignore,
    else from `select` and `ignore` of [tool.tilelang.lint].

    --fix applies what an editor's "fix all" does, --suggestions also what is probably meant; then
    what is left is told.

    Nothing is compiled: what only lowering knows, such as shared memory after layout inference
    (TL406), needs `tilelang compile --target`.
    """
    # Imported when it runs, so that completion and --help stay quick.
    from tilelang.target import is_auto, parse_target
    from tilelang_lint import engine, files, fixing, imports
    from tilelang_lint.projects import Projects
    from tilelang_lint.settings import Asked, targets
    from tilelang_lint.settings_check import comment_findings

    if suggestions and not fix:
        raise click.UsageError("--suggestions goes with --fix")
    if not is_auto(target):
        parse_target(target)  # raises for what is none
    wanted = engine.Settings(values=_values(settings))
    projects = Projects(wanted, Asked(targets(target), select, ignore))
    found: list[Diagnostic] = []
    texts: dict[str, str] = {}
    names = tuple(files.python_files(paths))
    modules = imports.imported_modules()
    without_target, applied = False, 0
    for name in names:
        reading = files.read(name)
        here = projects.settings(name, reading.text or "")
        if reading.text is None:
            found += here.selection.keep(reading.problems)
            continue
        lint = partial(
            engine.lint_text, path=name, settings=here, modules=modules, named=name in paths
        )
        text, left = reading.text, None
        if fix:
            made = fixing.fixed(text, name, lint, suggestions)
            if made.applied:
                files.write(name, made.text)
            text, left, applied = made.text, made.left, applied + made.applied
        found += comment_findings(text, name)
        found += lint(text) if left is None else left
        texts[name] = text  # excerpts show what was checked, even if the file changes
        without_target = without_target or here.target is None
    found = projects.findings + found
    _write(found, SourceMap(texts | projects.texts), len(names), form)
    if fix:
        sys.stderr.write(f"{applied} fix{'' if applied == 1 else 'es'} applied\n")
    if without_target and form == "text":
        sys.stderr.write(f"{_NO_TARGET}: what a target lacks was not checked\n")
    return exit_status(found, Severity.WARNING)


def _values(settings: tuple[str, ...]) -> dict[str, Any]:
    if not settings:
        return {}
    from tilelang.language.settings import parse_settings

    return parse_settings(settings)


def _write(found: Sequence[Diagnostic], sources: SourceMap, count: int, form: str) -> None:
    from tilelang.cli.output import terminal_width
    from tilelang_lint import report

    if form == "json":
        sys.stdout.write(report.as_json(found, count))
    else:
        colour = sys.stdout.isatty()
        sys.stdout.write(report.as_text(found, sources, count, terminal_width(), colour))
