"""Every code has a page of the fixed form whose Python parses."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import resources
from io import StringIO

import pytest
from rich.console import Console

from tilelang_diagnostics import CATALOGUE, Code, explain, explain_rich, page
from tilelang_diagnostics.pages import PageError, parse_page

PAGE = """\
# TL204 gemm-k-mismatch

## What it means
Text.

## A failing kernel
```python fails=TL204 target=cuda:sm_90a
# TL204
## not a heading
x = 1
```

## Fixed
```python ok
x = 2
```
"""


@pytest.mark.parametrize("row", CATALOGUE, ids=str)
def test_every_code_has_a_page(row: Code) -> None:
    found = page(row.code)
    assert (found.code, found.name) == (row.code, row.name)
    assert 60 < len(found.meaning) < 1500
    match found.kind:
        case "kernel":
            assert found.failing.language == "python"
            assert found.failing.options["fails"] == row.code
            assert "ok" in found.fixed.options
        case "call":
            assert found.failing.language == "python"
            assert found.failing.options["call-fails"] == row.code
            assert "ok" in found.fixed.options
        case "command":
            assert found.failing.language == found.fixed.language == "console"
            assert found.failing.text.startswith("$ ")
            assert f"[{row.code}]" in found.failing.text
            assert found.fixed.text.startswith("$ ")
            assert f"[{row.code}]" not in found.fixed.text
    assert found.failing.text != found.fixed.text


@pytest.mark.parametrize("row", CATALOGUE, ids=str)
def test_the_python_of_a_page_is_python(row: Code) -> None:
    found = page(row.code)
    if found.kind != "command":
        ast.parse(found.fixed.text)
        if row.code != "TL101":
            compile(found.failing.text, row.code, "exec")
        for example in (found.failing, found.fixed):
            assert max(map(len, example.text.split("\n"))) <= 88


@pytest.mark.parametrize("row", CATALOGUE, ids=str)
def test_kernel_examples_use_the_public_language(row: Code) -> None:
    found = page(row.code)
    if found.kind != "command":
        assert "import tilelang" in found.fixed.text
        assert found.fixed.options.keys() <= {"ok", "target", "select"}
        assert found.failing.options.get("target") == found.fixed.options.get("target")


def test_there_are_no_pages_without_a_code() -> None:
    folder = resources.files("tilelang_diagnostics").joinpath("pages")
    names = {entry.name for entry in folder.iterdir()}
    assert names == {f"{row.code}.md" for row in CATALOGUE}


def test_parse() -> None:
    found = parse_page(PAGE)
    assert found.meaning == "Text."
    assert found.failing.options == {"fails": "TL204", "target": "cuda:sm_90a"}
    assert found.failing.text == "# TL204\n## not a heading\nx = 1\n"
    assert found.fixed.options == {"ok": ""}


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("# TL204 gemm-k-mismatch\n", "TL204\n", "first line"),
        ("## What it means", "## Meaning", "headings"),
        ("## A failing kernel", "## Failing", "headings"),
        ("## Fixed\n", "", "headings"),
        ("Text.", "Text.\n\n## More\n", "headings"),
        ("```python ok\nx = 2\n```\n", "", "0 fenced"),
        ("x = 2\n```\n", "x = 2\n```\n```python ok\ny\n```\n", "2 fenced"),
    ],
)
def test_a_page_of_another_form_is_refused(old: str, new: str, complaint: str) -> None:
    with pytest.raises(PageError, match=complaint):
        parse_page(PAGE.replace(old, new))


def test_explain_in_text_and_colour() -> None:
    text = explain("tl204")
    assert text.startswith("error · shapes and dtypes · raised as ValueError\n\n# TL204 ")
    console = Console(width=80, file=StringIO())
    with console.capture() as capture:
        console.print(explain_rich("gemm-k-mismatch"))
    shown = capture.get()
    assert "TL204 gemm-k-mismatch" in shown and "fails=" not in shown
    with pytest.raises(KeyError):
        explain("TL299")


def test_nothing_heavy_is_imported_until_colour_is_asked_for() -> None:
    program = (
        "import sys, tilelang_diagnostics as d; d.explain('TL204');"
        "d.render_text([d.diagnose('TL204', 'x')], d.SourceMap());"
        "print(sorted({m.split('.')[0] for m in sys.modules} & {'rich', 'tvm', 'torch', 'numpy'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout == "[]\n"
