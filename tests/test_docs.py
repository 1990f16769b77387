"""Documentation runs: each Python block of `docs/` prints what the text block after it shows."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAIR = re.compile(r"```python\n(?P<code>.*?)```\n\n```text\n(?P<shown>.*?)```", re.DOTALL)


def output_of(code: str, name: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, name, "exec"), {"__name__": "docs"})
    return "\n".join(line.rstrip() for line in printed.getvalue().splitlines()) + "\n"


@pytest.mark.parametrize("path", DOCS, ids=lambda p: p.name)
def test_drawings_are_what_the_tool_draws(path: Path, update: bool) -> None:
    text = path.read_text()
    pairs = list(PAIR.finditer(text))
    assert pairs, f"{path.name} shows nothing the tool made"
    if update:
        for pair in reversed(pairs):
            start, end = pair.span("shown")
            text = text[:start] + output_of(pair["code"], path.name) + text[end:]
        path.write_text(text)
        return
    for pair in pairs:
        assert output_of(pair["code"], path.name) == pair["shown"]


def test_local_links_exist() -> None:
    for path in [*DOCS, *(ROOT / n for n in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"))]:
        if not path.exists():
            continue
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"
