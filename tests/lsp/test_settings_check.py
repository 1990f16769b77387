"""Wrong settings are named where they stand, and right ones are not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lsp.asking import analysis_of, in_launch
from tests.support.markers import kernel_text
from tilelang_lsp.options import options_from
from tilelang_lsp.settings_check import client_problems, comment_findings, project_findings

RIGHT = """[project]
name = "x"

[tool.tilelang]
target = "cuda:sm_90a"
targets = ["cuda:sm_80", "hip:gfx942", "auto"]

[tool.tilelang.set]
M = 1024
dtype = "float16"

[tool.tilelang.lint]
select = ["TL2", "bank-conflicts"]
ignore = "TL6, TL306"

[tool.tilelang.lsp.inlay-hints]
layouts = false
"""


def test_right_settings() -> None:
    assert project_findings(RIGHT, "pyproject.toml") == ()


@pytest.mark.parametrize("text", ["", "[tool.ruff]\nline-length = 100\n", "tool = 3\n"])
def test_other_projects(text: str) -> None:
    assert project_findings(text, "pyproject.toml") == ()


@pytest.mark.parametrize(
    ("text", "line", "code", "said"),
    [
        ("[tool.tilelang]\ntarget = 'cuda:sm_9x'\n", 2, "TL403", "sm_9x"),
        ("[tool.tilelang]\ntarget = 'cdua'\n", 2, "TL403", "did you mean"),
        ("[tool.tilelang]\ntargets = ['cpu', 'gpu']\n", 2, "TL403", "gpu"),
        ("[tool.tilelang]\ntarget = 7\n", 2, "TL403", "7 is not a target"),
        ("[tool.tilelang]\ntaget = 'cpu'\n", 2, "TL725", "did you mean `target`"),
        ("[tool]\ntilelang = 3\n", 2, "TL725", "no table"),
        ("[tool.tilelang]\nset = 3\n", 2, "TL725", "`set` is no table"),
        ("[tool.tilelang.set]\nM = {a = 1}\n", 2, "TL725", "`M` is set to no value"),
        ("[tool.tilelang.lint]\nignore = ['TL3', 'bank-conflict']\n", 2, "TL725",
         "did you mean `bank-conflicts`"),
        ("[tool.tilelang.lint]\nselect = 4\n", 2, "TL725", "no list of codes"),
        ("[tool.tilelang.lint]\n\nfix = true\n", 3, "TL725", "no setting `fix`"),
        ("[tool.tilelang.lsp.inlay-hints]\nlayout = true\n", 2, "TL725", "did you mean `layouts`"),
        ("[tool.tilelang.lsp.inlay-hints]\nlayouts = 'no'\n", 2, "TL725", "neither true nor false"),
        ("[tool.tilelang.lsp]\nhints = {}\n", 2, "TL725", "no setting `hints`"),
        ("[tool.tilelang]\nx = [\n", 3, "TL725", "not valid TOML"),
        ("[tool.tilelang\n", 1, "TL725", "not valid TOML"),
    ],
)  # fmt: skip
def test_wrong_settings_of_a_project(text: str, line: int, code: str, said: str) -> None:
    (found,) = project_findings(text, "pyproject.toml")
    assert found.span is not None
    assert (found.span.line, found.code) == (line, code)
    assert said in found.message


@pytest.mark.parametrize(
    ("comment", "code", "said"),
    [
        ("# tilelang: target cuda:sm_9x", "TL403", "sm_9x"),
        ("#tilelang: target cuda:sm_80, cda", "TL403", "cda"),
        ("# tilelang: hints types, layout", "TL725", "did you mean `layouts`"),
        ("# tilelang: hint types", "TL725", "did you mean `hints`"),
        ("    # tilelang: nothing", "TL725", "no comment"),
    ],
)
def test_wrong_comments(comment: str, code: str, said: str) -> None:
    (found,) = comment_findings(f"import tilelang\n\n{comment}\nx = 1\n", "k.py")
    assert found.span is not None
    assert (found.span.line, found.code) == (3, code)
    assert said in found.message


@pytest.mark.parametrize(
    "comment",
    [
        "# tilelang: target cuda:sm_90a, cpu", "# tilelang: hints types, layouts",
        "# tilelang: set M=4", "# tilelang: ignore[TL306] why", "# tilelang: ignore-file[TL3]",
        "# no directive", "x = 'tilelang: nothing'", "# see tilelang: nothing of it",
    ],
)  # fmt: skip
def test_right_comments(comment: str) -> None:
    assert comment_findings(f"{comment}\n", "k.py") == ()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (3, "no object"),
        ({"target": "cdua"}, "tilelang.target"),
        ({"target": ["cpu", 7]}, "tilelang.target"),
        ({"values": [1]}, "`values` is no table"),
        ({"ignore": ["TLX"]}, "tilelang.ignore"),
        ({"inlayHints": {"layout": False}}, "tilelang.inlayHints.layout"),
        ({"inlayHints": "no"}, "`inlayHints` is no table"),
        ({"diagnosticMode": "all"}, "openFilesOnly"),
        ({"trusted": "no"}, "counts as false"),
        ({"target": {"a": None}}, "a target dict with no key 'kind'"),
        ({"target": {"kind": "cuda", "a": None}}, "a target dict with an unknown key 'a'"),
        ({"select": [None]}, "null is no code, name or group, but each is a text"),
        ({"ignore": [7]}, "7 is no code, name or group"),
        ({"targett": "cpu"}, "did you mean `target`?"),
    ],
)
def test_wrong_settings_of_an_editor(settings: Any, said: str) -> None:
    (found,) = client_problems(settings)
    assert said in found


@pytest.mark.parametrize(
    "settings",
    [
        None, {}, {"target": ""}, {"target": "auto"}, {"target": {"kind": "cuda", "arch": "sm_80"}},
        {"values": {"M": 4}, "select": "", "ignore": [], "inlayHints": {"enable": True},
         "diagnosticMode": "workspace", "status": True, "trace": {"server": "off"}},
    ],
)  # fmt: skip
def test_right_settings_of_an_editor(settings: Any) -> None:
    assert client_problems(settings) == ()


def test_a_wrong_rule_switches_nothing_off() -> None:
    options = options_from({"ignore": ["TLX", "TL110"]}, {}, "")
    text = kernel_text(in_launch("T.copy(missing, C)"))
    assert options.ignore == ("TL110",)
    assert analysis_of(text, ignore=options.ignore).complete
