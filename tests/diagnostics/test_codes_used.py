"""Every code that the sources mention is in the catalogue."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tilelang_diagnostics import find_code

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("tilelang", "diagnostics", "trace", "lsp", "examples", "docs", "vscode-extension/src")
SUFFIXES = {".py", ".md", ".ts", ".json"}

FILES = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*")
    if path.suffix in SUFFIXES and "node_modules" not in path.parts
)


def test_there_is_something_to_search() -> None:
    assert len(FILES) > 10


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_codes_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    unknown = {code for code in re.findall(r"\bTL\d{3}\b", text) if find_code(code) is None}
    assert not unknown
