"""The arguments several subcommands share, and how a shell completes them."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem


class KernelSpec(click.ParamType[str]):
    """`FILE` or `FILE::KERNEL`; completes files, and after `::` the kernels of the file."""

    name = "kernel"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        file, separator, start = incomplete.partition("::")
        if not separator:
            return [CompletionItem(incomplete, type="file")]
        return [CompletionItem(f"{file}::{n}") for n in _functions(file) if n.startswith(start)]


class CodeName(click.ParamType[str]):
    """A diagnostic code or its name; completes both."""

    name = "code"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from tilelang_diagnostics import CATALOGUE

        return [
            CompletionItem(key, help=row.summary)
            for row in CATALOGUE
            for key in (row.code, row.name)
            if key.lower().startswith(incomplete.lower())
        ]


kernel_argument = click.argument("kernel", type=KernelSpec(), metavar="FILE[::KERNEL]")
set_option = click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE,…",
    help="Values of parameters and dimensions; may be repeated.",
)  # fmt: skip
target_option = click.option(
    "--target",
    metavar="TARGET",
    help="cpu, cuda:sm_90a, hip:gfx942, metal:apple9 or auto; kernels for hip and metal run on the "
    "emulator only, so far.",
)


def spare_what_is_read(
    read: Iterable[str | Path | None], written: Iterable[str | Path | None]
) -> None:
    """UsageError where a file that the command reads would be written over."""
    names = [str(name).partition("::")[0] for name in read if name is not None]
    files = {os.path.realpath(name) for name in names if os.path.exists(name)}
    for output in written:
        if output is not None and os.path.realpath(output) in files:
            raise click.UsageError(f"{output} is read, and would be written over: name another")


def _functions(file: str) -> list[str]:
    """Names of the functions of a file that look like kernels: nothing is imported to complete."""
    if not os.path.isfile(file):  # a pipe would keep the shell waiting
        return []
    try:
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return []
    return [
        n.name for n in tree.body
        if isinstance(n, ast.FunctionDef)
        and any(word in ast.unparse(n) for word in ("prim_func", "tilelang.jit", "@jit"))
    ]  # fmt: skip
