"""What the VS Code extension declares is what the server knows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tilelang.version import VERSION
from tilelang_lsp.features.code_lenses import COMPILE, EMULATE, SET, SHOW, TARGET, TRACE
from tilelang_lsp.model import HINT_KINDS
from tilelang_lsp.settings_check import client_problems

EXTENSION = Path(__file__).resolve().parents[2] / "vscode-extension"
PACKAGE = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))
SETTINGS: dict[str, Any] = PACKAGE["contributes"]["configuration"]["properties"]


def test_versions_fit() -> None:
    assert PACKAGE["version"].split(".")[:2] == VERSION.split(".")[:2]


def test_a_switch_for_every_kind_of_hint() -> None:
    declared = {name.split(".")[2] for name in SETTINGS if name.startswith("tilelang.inlayHints.")}
    assert declared == {"enable", *HINT_KINDS}


def test_the_server_takes_every_value_that_is_offered() -> None:
    for mode in SETTINGS["tilelang.diagnosticMode"]["enum"]:
        assert client_problems({"diagnosticMode": mode}) == ()
    defaults = {name.split(".")[1]: row["default"] for name, row in SETTINGS.items()
                if name in ("tilelang.values", "tilelang.target")}  # fmt: skip
    assert client_problems(defaults) == ()


def test_commands_that_need_no_trust_are_those_that_run_nothing() -> None:
    text = (EXTENSION / "src" / "middleware.ts").read_text(encoding="utf-8")
    found = re.search(r"new Set\(\[(.*?)\]\.map", text)
    assert found is not None
    reading = {f"tilelang.server.{name}" for name in re.findall(r'"(\w+)"', found[1])}
    assert reading == {SHOW, SET, TARGET}
    assert not reading & {COMPILE, EMULATE, TRACE}
