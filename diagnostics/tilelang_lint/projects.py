"""What is each file checked with? What was asked for, then what the file and its project say.

    settings = Projects(wanted, asked).settings("kernels/gemm.py", text)

A pyproject.toml is read once. What is wrong in it is a finding there, and counts as not given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tomllib import TOMLDecodeError
from typing import Any

from tilelang.cli.project import nearest, table_of, values_of
from tilelang.target import parse_target
from tilelang_diagnostics import CompileError, Diagnostic
from tilelang_lint.engine import Settings
from tilelang_lint.selection import Selection
from tilelang_lint.settings import Asked, asked_by_file, asked_by_project, table
from tilelang_lint.settings_check import project_findings


class Projects:
    """The projects of the files that are checked, and what is wrong in them.

    `wanted` and `asked` are what the command line says.
    """

    def __init__(self, wanted: Settings, asked: Asked) -> None:
        self._wanted, self._asked = wanted, asked
        self._tables: dict[Path, Mapping[str, Any]] = {}
        self.texts: dict[str, str] = {}
        self.findings: list[Diagnostic] = []

    def settings(self, name: str, text: str) -> Settings:
        """What a file that says `text` is checked with."""
        project = self._project(name)
        asked = self._asked.over(asked_by_file(text)).over(asked_by_project(project))
        return replace(
            self._wanted, selection=Selection(asked.select, asked.ignore),
            target=next(filter(_is_target, asked.targets), None),
            project=values_of(project.get("set")),
        )  # fmt: skip

    def _project(self, name: str) -> Mapping[str, Any]:
        file = nearest(name)
        if file is None:
            return {}
        if file not in self._tables:
            self._tables[file] = self._read(file)
        return self._tables[file]

    def _read(self, file: Path) -> Mapping[str, Any]:
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return {}
        found = project_findings(text, str(file))
        if found:
            self.texts[str(file)] = text
            self.findings += found
        try:
            return table(table_of(text))
        except TOMLDecodeError:
            return {}


def _is_target(text: str) -> bool:
    try:
        parse_target(text)
    except CompileError:
        return False
    return True
