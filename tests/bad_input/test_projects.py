"""A pyproject.toml that TOML's own reader chokes on: a finding at a line, for all who read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilelang.cli.project import project_values
from tilelang_diagnostics import CompileError
from tilelang_lint.engine import Settings
from tilelang_lint.projects import Projects
from tilelang_lint.settings import Asked
from tilelang_lsp.features.suppressions import _ignores
from tilelang_lsp.project import Projects as EditorProjects

UNREADABLE = {
    "digits": ("N = " + "1" * 5000, "too many digits", 5),
    "brackets": ("M = [1]\nN = " + "[" * 3000 + "]" * 3000, "nest too deeply", 5),
    "tables": ("N = " + "{a=" * 3000 + "1" + "}" * 3000, "nest too deeply", 5),
    "no TOML": ("N = ]", "Invalid value", 5),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_unreadable_settings_count_as_not_given(case: str, tmp_path: Path) -> None:
    body, message, column = UNREADABLE[case]
    text = f"[tool.tilelang.set]\n{body}\n"
    project, kernel = tmp_path / "pyproject.toml", tmp_path / "k.py"
    project.write_text(text)
    line = text.rstrip().count("\n") + 1

    with pytest.raises(CompileError) as caught:
        project_values(kernel)
    (found,) = caught.value.diagnostics
    assert found.code == "TL725" and message in found.message
    assert found.span is not None
    assert (found.span.file, found.span.line, found.span.column) == (str(project), line, column)

    projects = Projects(Settings(), Asked())
    assert projects.settings(str(kernel), "").project == {}
    (warned,) = projects.findings
    assert warned.code == "TL725" and message in warned.message
    assert warned.span is not None
    assert (warned.span.file, warned.span.line) == (str(project), line)

    assert EditorProjects().table(str(kernel)) == {}
    assert _ignores(text) is None
