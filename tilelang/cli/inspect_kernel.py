"""Compile a kernel of a file, look into its code, and compare that with what is expected."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from tilelang.cli.files import choose
from tilelang.cli.output import show, table, terminal_width
from tilelang.cli.specialise import specialise
from tilelang.inspection.as_json import inspection_json
from tilelang.inspection.expect import Expectation, misses
from tilelang.inspection.inspect import inspect_artifact
from tilelang.inspection.text import print_inspection
from tilelang.language.settings import parse_settings
from tilelang.runtime.build import build
from tilelang.runtime.devices import resolve
from tilelang.runtime.kernel import write_text
from tilelang_diagnostics import SourceMap


def inspect_kernel(
    kernel: str, settings: Sequence[str], target: str | None, as_json: bool,
    expected: Sequence[Expectation], output: Path | None,
) -> int:  # fmt: skip
    """What `tilelang inspect` does; returns the exit status."""
    special = specialise(choose(kernel), parse_settings(settings), target)
    resolved = resolve(special.target).target
    compiled = build(special.function, resolved, special.options).compiled
    found = inspect_artifact(
        compiled.artifact, special.function, compiled.target, compiled.diagnostics
    )
    if as_json:
        text = json.dumps(inspection_json(found), indent=2, ensure_ascii=False) + "\n"
        if output is None:
            print(text, end="")
        else:
            write_text(output, text)
    elif output is None:
        print_inspection(found, Console(width=terminal_width()), SourceMap())
    else:
        plain = Console(file=io.StringIO(), width=100, color_system=None)
        print_inspection(found, plain, SourceMap())
        write_text(output, plain.file.getvalue())  # type: ignore[attr-defined]
    if output is not None and not as_json:
        table([("wrote", str(output))])
    missed = tuple(misses(found, expected))
    show(missed, stream=sys.stderr)
    return 1 if missed else 0
