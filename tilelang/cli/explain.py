"""`tilelang explain TL204`: the page of a diagnostic code."""

from __future__ import annotations

import sys

import click

from tilelang.cli.arguments import CodeName
from tilelang.cli.output import table, terminal_width
from tilelang_diagnostics import AREAS, CATALOGUE, did_you_mean, explain, explain_rich, find_code


@click.command("explain")
@click.argument("code", type=CodeName(), required=False)
def command(code: str | None) -> int:
    """Show the page of a diagnostic code (TL204) or name (gemm-k-mismatch).

    Without a code, list them all.
    """
    if code is None:
        _list()
        return 0
    row = find_code(code)
    if row is None:
        known = [key for r in CATALOGUE for key in (r.code, r.name)]
        raise click.UsageError(f"no diagnostic is called {code!r}{did_you_mean(code, known)}")
    if sys.stdout.isatty():
        from rich.console import Console

        Console(width=terminal_width()).print(explain_rich(row.code))
    else:
        click.echo(explain(row.code), nl=False)
    return 0


def _list() -> None:
    for prefix, area in AREAS.items():
        print(f"{prefix}xx  {area}")
        table([(row.code, f"{row.name}: {row.summary}") for row in CATALOGUE
               if row.code.startswith(prefix)])  # fmt: skip
