"""Counts and articles in messages, and that no message leaves the plural to its reader."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tilelang_diagnostics import counted, with_article

ROOT = Path(__file__).parents[2]
FILES = [
    path for folder in ("tilelang", "diagnostics", "lsp", "trace")
    for path in (ROOT / folder).rglob("*.py")
]  # fmt: skip


@pytest.mark.parametrize(
    ("count", "noun", "expected"),
    [
        (0, "byte", "0 bytes"), (1, "byte", "1 byte"), (2, "index", "2 indices"),
        (1, "index", "1 index"), (3, "entry", "3 entries"), (2, "array", "2 arrays"),
        (2, "run-time dimension", "2 run-time dimensions"), (2, "class", "2 classes"),
    ],
)  # fmt: skip
def test_counted(count: int, noun: str, expected: str) -> None:
    assert counted(count, noun) == expected


@pytest.mark.parametrize(
    ("noun", "expected"),
    [
        ("int", "an int"), ("list", "a list"), ("ndarray", "an ndarray"), ("uint8", "a uint8"),
        ("unsigned short", "an unsigned short"), ("Unit", "a Unit"), ("_Env", "an _Env"),
    ],
)  # fmt: skip
def test_with_article(noun: str, expected: str) -> None:
    assert with_article(noun) == expected


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_plural_is_left_to_the_reader(path: Path) -> None:
    texts = (n.value for n in ast.walk(ast.parse(path.read_text()))
             if isinstance(n, ast.Constant) and isinstance(n.value, str))  # fmt: skip
    assert not [t for t in texts if re.search(r"[a-z]\((s|es)\)(?!\w)", t)]
