"""Does a changed file still fail as the first did? What `--reduce` asks again and again."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import click

from tilelang_diagnostics import CompileError
from tilelang_trace.reduce import Reduced, reduce_text


def reduce_file(kernel: str, settings: Sequence[str], target: str | None) -> Reduced:
    """The smallest form of a file whose kernel fails with the same code; a usage error if it
    compiles."""
    file, separator, name = kernel.partition("::")
    try:
        text = Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"cannot read {file}: {error.strerror}") from None
    wanted = _codes(text, separator + name, settings, target)
    if wanted is None:
        raise click.UsageError(f"{kernel} compiles: there is nothing to reduce")
    return reduce_text(
        text, lambda smaller: _codes(smaller, separator + name, settings, target) == wanted
    )


def _codes(text: str, kernel: str, settings: Sequence[str], target: str | None) -> str | None:
    """The first code the kernel of a file is refused with; None if it compiles."""
    folder = Path(tempfile.mkdtemp(prefix="tilelang-reduce-"))
    try:
        path = folder / "kernel.py"
        path.write_text(text, encoding="utf-8")
        with redirect_stdout(StringIO()):
            _compile(f"{path}{kernel}", settings, target)
    except CompileError as error:
        return error.diagnostics[0].code if error.diagnostics else ""
    except Exception as error:  # of the file itself, when it is imported
        return type(error).__name__
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return None


def _compile(kernel: str, settings: Sequence[str], target: str | None) -> None:
    from tilelang.cli.files import choose
    from tilelang.cli.specialise import specialise
    from tilelang.compiler import effective_options, lower_function
    from tilelang.language.settings import parse_settings
    from tilelang.runtime.crash import guarded
    from tilelang.runtime.devices import resolve
    from tilelang_diagnostics import raise_for

    special = specialise(choose(kernel), parse_settings(settings), target)
    function = special.function
    options = effective_options(function, special.options)
    resolved = resolve(special.target).target
    with guarded(f"lowering {function.name} for {resolved}", function.span):
        raise_for(lower_function(function, resolved, options).diagnostics)
