"""Does a changed file still fail as the first did? What `--reduce` asks again and again."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Final

import click

from tilelang_diagnostics import CompileError
from tilelang_trace.reduce import Reduced, reduce_text

# What is wrong with the file or the command line, and with no part of the kernel.
_NOT_THE_KERNEL: Final = frozenset({
    "TL101", "TL103", "TL104", "TL105", "TL106", "TL107", "TL715", "TL716", "TL720", "TL725",
})  # fmt: skip
_ENCODING: Final = re.compile(r"\A(?:[ \t\f]*(?:#.*)?\n)?[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")


def reduce_file(kernel: str, settings: Sequence[str], target: str | None) -> tuple[Reduced, str]:
    """The smallest form of a file whose kernel fails with the same code, and that diagnostic.

    A usage error if it compiles; CompileError for what no kernel is needed for.
    """
    from tilelang.cli.files import read
    from tilelang.language.settings import parse_settings
    from tilelang.runtime.devices import resolve

    parse_settings(settings)
    if target is not None:
        resolve(target)
    file, separator, name = kernel.partition("::")
    text = _in_utf8(read(Path(file)))
    told = _failure(kernel, settings, target)
    if not told:
        raise click.UsageError(f"{kernel} compiles: there is nothing to reduce")

    def fails(smaller: str) -> bool:
        return _about(_of_text(smaller, separator + name, settings, target)) == _about(told)

    try:
        return reduce_text(text, fails), told
    except ValueError:
        raise click.UsageError(f"a copy of {file} does not fail with {told}") from None


def _in_utf8(text: str) -> str:
    """Text that says it is in UTF-8, as which its copies are written."""
    found = _ENCODING.match(text)
    return text if found is None else text[: found.start(1)] + "utf-8" + text[found.end(1) :]


def _of_text(text: str, kernel: str, settings: Sequence[str], target: str | None) -> str:
    """What the kernel of a file is refused with first; "" if it compiles."""
    folder = Path(tempfile.mkdtemp(prefix="tilelang-reduce-"))
    try:
        path = folder / "kernel.py"
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
        with redirect_stderr(StringIO()):  # what is said of a copy is said of no file
            return _failure(f"{path}{kernel}", settings, target)
    except CompileError as error:
        return _first(error)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _about(told: str) -> tuple[str, str]:
    """The code of a diagnostic and the first name in it: the rest, such as sizes, may change."""
    code, _, message = told.partition(": ")
    return code, message.partition("`")[2].partition("`")[0]


def _failure(kernel: str, settings: Sequence[str], target: str | None) -> str:
    """The first code a kernel is refused with and what that says; "" if it compiles. Raises
    CompileError for what is not the kernel's fault."""
    try:
        with redirect_stdout(StringIO()):
            _compile(kernel, settings, target)
    except CompileError as error:
        if error.diagnostics[0].code in _NOT_THE_KERNEL:
            raise
        return _first(error)
    except Exception as error:  # of the file itself, when it is traced
        return f"{type(error).__name__}: {error}"
    return ""


def _first(error: CompileError) -> str:
    found = error.diagnostics[0]
    return f"{found.code}: {found.message}"


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
