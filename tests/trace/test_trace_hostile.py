"""Text of kernels stays text: on a terminal, in files, and in the page."""

from __future__ import annotations

import ast
import io
import json
import re
from dataclasses import replace

import pytest
from rich.console import Console

from tests.trace import pages
from tilelang_trace.compare import comparison_text
from tilelang_trace.html.page import page_of
from tilelang_trace.ndjson import dump, load
from tilelang_trace.pipelines import pipeline_text
from tilelang_trace.replay import write_reproducer
from tilelang_trace.terminal import trace_text
from tilelang_trace.timing import timing_text


def on_terminal(lines: object) -> str:
    out = io.StringIO()
    console = Console(file=out, width=10_000, color_system=None, highlight=False)
    for line in lines:  # type: ignore[attr-defined]
        console.print(line, soft_wrap=True)
    return out.getvalue()


@pytest.mark.parametrize(
    "show",
    [trace_text, pipeline_text, timing_text, lambda t: comparison_text(t, t)],
    ids=["passes", "pipeline", "times", "compare"],
)
def test_no_control_characters_reach_a_terminal(show: object) -> None:
    text = on_terminal(show(pages.hostile()))  # type: ignore[operator]
    assert text.strip()
    assert re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text) == []


def test_a_file_holds_it_as_it_is() -> None:
    trace = pages.hostile()
    lines = list(dump(trace))
    assert all(json.loads(line) for line in lines)
    assert load(lines) == trace


def test_the_page_holds_no_markup_of_it() -> None:
    page = page_of(pages.hostile())
    head, data, script = re.split(r'<script type="application/json" id="data">|</script>', page)[:3]
    assert not {"<", ">", "&", "'"} & set(data)
    assert json.loads(data)["kernel"] == pages.hostile().kernel
    assert "<b class" not in head and "onerror" not in head
    assert page.count("<script") == 2 and page.count("</script>") == 2
    assert "pwned" not in script


def test_the_policy_allows_the_script_and_style_of_the_page_alone() -> None:
    page = page_of(pages.large(10))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert "default-src &#39;none&#39;" in policy[1] or "default-src 'none'" in policy[1]
    assert policy[1].count("sha256-") == 2
    assert "unsafe" not in policy[1] and "http" not in policy[1]


def test_a_reproducer_of_it_is_python_that_does_nothing_else() -> None:
    quote = 'x"""\nimport os\nos.system("echo pwned")\n"""'
    trace = replace(pages.hostile(), program="x" * 200, version=quote, kernel=quote)
    text = write_reproducer(trace, "tidy")
    kinds = [type(node).__name__ for node in ast.parse(text).body]
    assert kinds == ["Expr", "Import", "ImportFrom", "Assign", "If"]
    assert all(c.isprintable() or c == "\n" for c in text)


def test_the_ir_of_a_reproducer_is_one_string_whatever_it_holds() -> None:
    from tilelang_trace.replay import _quoted

    for text in ("x = \"'''\"\n", "x = 'a\\\\'  # \\\n", "y = \"''''''; import os\"\n"):
        (node,) = ast.parse(_quoted(text)).body
        assert isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        held = node.value.value
        assert ast.dump(ast.parse(held)) == ast.dump(ast.parse(text))


def test_lines_of_the_page_are_coloured_by_their_whole_length() -> None:
    from tilelang_trace.html.colour import colours

    lines = [
        "x = T.copy(A, 'a b')  # c",
        "",
        "for i in T.serial(4):",
        '"""',
        "y = 1",
        "é = '\u2028'",
    ]
    for language in ("python", "cuda", "ptx", "sass", "llvm", "nothing"):
        for line, runs in zip(lines, colours(lines, language), strict=True):
            found = re.findall(r"([a-z_])(\d+)", runs)
            assert "".join(f"{a}{b}" for a, b in found) == runs
            assert sum(int(n) for _, n in found) <= len(line)
