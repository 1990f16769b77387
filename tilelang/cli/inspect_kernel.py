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
from tilelang.cli.specialise import Specialised, specialise
from tilelang.inspection.as_json import inspection_json
from tilelang.inspection.expect import Expectation, misses
from tilelang.inspection.inspect import inspect_artifact
from tilelang.inspection.model import Inspection
from tilelang.inspection.text import print_inspection
from tilelang.language.settings import parse_settings
from tilelang.runtime.build import build
from tilelang.runtime.devices import resolve
from tilelang.runtime.export import target_list
from tilelang.runtime.kernel import write_text
from tilelang.target import Target


def inspect_kernel(
    kernel: str, settings: Sequence[str], target: str | None, as_json: bool,
    expected: Sequence[Expectation], output: Path | None,
) -> int:  # fmt: skip
    """What `tilelang inspect` does; returns the exit status."""
    several = target is not None and "," in target
    special = specialise(choose(kernel), parse_settings(settings), None if several else target)
    targets = target_list(target) if several else (resolve(special.target).target,)
    found = [_inspected(special, one) for one in targets]
    if as_json:
        values = [inspection_json(one) for one in found]
        text = json.dumps(values if several else values[0], indent=2, ensure_ascii=False) + "\n"
        if output is None:
            print(text, end="")
    elif output is None:
        _print(found, Console(width=terminal_width()))
    else:
        plain = io.StringIO()
        _print(found, Console(file=plain, width=100, color_system=None))
        text = plain.getvalue()
    if output is not None:
        write_text(output, text)
        table([("wrote", str(output))])
    missed = tuple(miss for one in found for miss in misses(one, expected))
    show(missed, stream=sys.stderr)
    return 1 if missed else 0


def _inspected(special: Specialised, target: Target) -> Inspection:
    compiled = build(special.function, target, special.options).compiled
    return inspect_artifact(
        compiled.artifact, special.function, compiled.target, compiled.diagnostics,
        special.options,
    )  # fmt: skip


def _print(found: Sequence[Inspection], console: Console) -> None:
    for number, one in enumerate(found):
        if number:
            console.print()
        print_inspection(one, console)
