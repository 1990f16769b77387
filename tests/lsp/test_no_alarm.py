"""No finding in what is right: every example, and every kernel of the documentation, per target."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tilelang_diagnostics import CATALOGUE, page
from tilelang_lsp.analysis import analyse
from tilelang_lsp.options import Options

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ("", "cuda:sm_80", "cuda:sm_90a", "cuda:sm_100a", "hip:gfx942", "metal:apple9", "cpu")
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
BLOCKS = {
    f"{path.name} {number}": block
    for path in (*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md")
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(), re.S))
    if "tilelang" in block
}
FIXED = {
    row.code: page(row.code).fixed for row in CATALOGUE if page(row.code).kind == "kernel"
}  # fmt: skip


def alarms(text: str, path: str, target: str) -> list[str]:
    found = analyse(text, path, Options(targets=(target,) if target else ())).diagnostics
    return [f"{d.code} {d.message}" for d in found if d.severity.value in ("error", "warning")]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples(path: Path, target: str) -> None:
    assert alarms(path.read_text(), str(path), target) == []


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", BLOCKS)
def test_documentation(name: str, target: str) -> None:
    assert alarms(BLOCKS[name], "docs.py", target) == []


@pytest.mark.parametrize("code", FIXED)
def test_the_corrected_kernels_of_pages(code: str) -> None:
    example = FIXED[code]
    assert alarms(example.text, "page.py", example.options.get("target", "")) == []
