"""`docs/reference.md` and `help` say what the catalogue says."""

from __future__ import annotations

import inspect
import pydoc
from pathlib import Path

import pytest

import tilelang.language as T
from tilelang.language.reference import reference

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference.md"


def test_the_page_is_current(update: bool) -> None:
    if update:
        PAGE.write_text(reference(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == reference(), "run this test with --update"


def test_every_name_has_a_row_of_its_own() -> None:
    rows = [line for line in reference().splitlines() if line.startswith("| `T.")]
    assert len(rows) == sum(len(family.FUNCTIONS) for family in T.FAMILIES)
    assert all(row.split(" | ")[1].strip() for row in rows)


@pytest.mark.parametrize("name", ["copy", "gemm", "exp", "alloc_shared"])
def test_help_and_signature(name: str) -> None:
    function = T.FUNCTIONS[name]
    shown = pydoc.plain(pydoc.render_doc(function))
    assert f"T.{name}(" in shown and function.doc.splitlines()[0] in shown
    assert inspect.signature(function) == function.signature
    assert (function.__doc__ or "").startswith(f"T.{function.usage}\n\n")


def test_names_of_a_signature() -> None:
    assert list(inspect.signature(T.copy).parameters)[:2] == ["src", "dst"]
    assert "C += A @ B" in (T.gemm.__doc__ or "")
