"""`tilelang lint PATHS`: check kernel files without running them."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence

from tilelang.cli.values import parse_set
from tilelang_diagnostics import CompileError, Diagnostic, Severity, SourceMap
from tilelang_lint import files, report
from tilelang_lint.engine import INTERNAL, Settings, lint_text
from tilelang_lint.selection import Selection

EXIT_CLEAN, EXIT_FOUND, EXIT_USAGE, EXIT_INTERNAL = 0, 1, 2, 3

_EPILOG = """\
exit codes:
  0  nothing found, or remarks only
  1  errors or warnings found
  2  wrong usage
  3  tilelang itself failed on a file (TL900); the other files were still checked

suppress a finding on its line, or on the line above, and say why:
  T.copy(A, B)  # tilelang: ignore[copy-not-vectorised] eight elements, once per launch

examples:
  tilelang lint kernels/
  tilelang lint gemm.py --set M=1000,N=512 --format json
  tilelang lint . --select TL2,TL3 --ignore bank-conflicts
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the result is the exit code."""
    parser = _parser()
    try:
        arguments = parser.parse_args(argv)
    except SystemExit as stop:  # argparse has printed why
        return int(stop.code or 0)
    try:
        settings = _settings(arguments)
    except (ValueError, CompileError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return EXIT_USAGE
    found: list[Diagnostic] = []
    texts: dict[str, str] = {}
    paths = tuple(files.python_files(arguments.paths))
    for path in paths:
        found += _check(path, settings, texts)
    _write(arguments, found, SourceMap(texts), len(paths))
    return exit_code(found)


def exit_code(found: Sequence[Diagnostic]) -> int:
    """The exit code for a set of findings."""
    if any(d.code == INTERNAL for d in found):
        return EXIT_INTERNAL
    bad = (Severity.ERROR, Severity.WARNING)
    return EXIT_FOUND if any(d.severity in bad for d in found) else EXIT_CLEAN


def _check(path: str, settings: Settings, texts: dict[str, str]) -> tuple[Diagnostic, ...]:
    reading = files.read(path)
    if reading.text is None:
        return settings.selection.keep([reading.problem] if reading.problem else [])
    found = lint_text(reading.text, path, settings)
    if found:
        texts[path] = reading.text  # excerpts show what was checked, even if the file changes
    return found


def _write(
    arguments: argparse.Namespace, found: Sequence[Diagnostic], sources: SourceMap, count: int
) -> None:
    if arguments.format == "json":
        sys.stdout.write(report.as_json(found, count))
        return
    width = shutil.get_terminal_size((100, 24)).columns
    sys.stdout.write(report.as_text(found, sources, count, width, sys.stdout.isatty()))


def _settings(arguments: argparse.Namespace) -> Settings:
    selection = Selection(_split(arguments.select), _split(arguments.ignore))
    return Settings(selection, parse_set(arguments.set), arguments.target)


def _split(given: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.strip() for item in given for part in item.split(",") if part.strip())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tilelang lint",
        description="Check kernel files without importing or running them.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="files, or directories to search for *.py"
    )
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="how findings are written"
    )
    parser.add_argument(
        "--select", action="append", default=[], metavar="CODES",
        help="report only these codes, names, or groups such as TL2 (comma-separated)",
    )  # fmt: skip
    parser.add_argument(
        "--ignore", action="append", default=[], metavar="CODES", help="leave these out"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE",
        help="values for the kernels' parameters, e.g. M=256,N=512",
    )  # fmt: skip
    parser.add_argument("--target", help="also check what this target lacks, e.g. cuda:sm_90a")
    return parser
