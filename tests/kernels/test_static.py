"""Is the front end silent about every correct kernel it only knows as text?

With no values at all, and with the values of the registry; kernels that are meant to be refused
give the code they are refused with.
"""

from __future__ import annotations

import ast
import inspect
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.kernels.registry import KERNELS, REJECTED, KernelCase
from tilelang.language.frontend import StaticResult, parse_static
from tilelang_diagnostics import SourceMap, render_text
from tilelang_diagnostics.model import Diagnostic, Severity

ROOT = Path(__file__).resolve().parents[2]


def _refused() -> dict[str, str]:
    """The code of each function that a case of `REJECTED` is, or that its lambda calls."""
    out: dict[str, str] = {}
    for case in REJECTED:
        name = getattr(case.attempt, "__name__", "")
        names = case.attempt.__code__.co_names if name == "<lambda>" else (name,)
        out.update(dict.fromkeys(names, case.code))
    return out


REFUSED = _refused()


def _functions() -> list[tuple[Path, str]]:
    """Each top-level function of the kernels under test and of the examples."""
    files = sorted((ROOT / "tests/kernels").glob("*.py")) + sorted((ROOT / "examples").glob("*.py"))
    return [
        (file, node.name)
        for file in files
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.FunctionDef)
    ]


@pytest.mark.parametrize(
    ("file", "name"), _functions(), ids=lambda x: x.stem if isinstance(x, Path) else x
)
def test_without_values(file: Path, name: str) -> None:
    text = file.read_text()
    found = _complaints(parse_static(text, str(file), kernel=name))
    if name in REFUSED:
        found = tuple(d for d in found if d.code != REFUSED[name])
    assert not found, render_text(found, SourceMap({str(file): text}))


@pytest.mark.parametrize("case", KERNELS, ids=lambda case: case.name)
def test_with_the_values_of_the_registry(case: KernelCase) -> None:
    path, name = _place_of(case)
    text = _text_of(path)
    result = parse_static(text, path, kernel=name, values=case.params, target=case.targets[0])
    assert result, f"no kernel {name} in {path}"
    found = _complaints(result)
    assert not found, render_text(found, SourceMap({path: text}))


def _complaints(result: StaticResult) -> tuple[Diagnostic, ...]:
    return tuple(d for d in result.all_diagnostics if d.severity is not Severity.REMARK)


def _place_of(case: KernelCase) -> tuple[str, str]:
    """The file and the name of the function that makes the kernel of `case`."""
    function: Any = getattr(case.make, "func", case.make)
    python = inspect.unwrap(getattr(function, "python", function))
    module = inspect.getmodule(python)
    assert module is not None and module.__file__, case.name
    return module.__file__, python.__name__


@cache
def _text_of(path: str) -> str:
    return Path(path).read_text()
