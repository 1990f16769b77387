"""Several files in one text, with marks: what a feature says of each of the marked places.

    -- ops.py --
    BLOCK = 64
    ^^^^^ def
    -- main.py --
    from ops import BLOCK
                    ^^^^^ use

A line of carets is no line of the file: it marks places in the line above, each with a word. `$0`
is where the cursor stands. A file is on the disk; one that holds the cursor is open, too, and so is
`-- ops.py (open) --`, which is another text than `-- ops.py --` where there are both. A path that
begins with `../` lies outside of the folders.
"""

from __future__ import annotations

import os
import re
import textwrap
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.lsp.asking import request_for
from tilelang_diagnostics import Span, apply_edits
from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.analysis import analyse
from tilelang_lsp.features.base import Feature, Request
from tilelang_lsp.features.diagnostics import line_here
from tilelang_lsp.following import Following
from tilelang_lsp.model import Analysis
from tilelang_lsp.options import Options
from tilelang_lsp.workspace import Workspace

_SECTION = re.compile(r"-- (?P<path>\S+)(?P<open> \(open\))? --")
_CARETS = re.compile(r"(?P<carets>\^+) (?P<word>\w+)")
CURSOR = "$0"


@dataclass(frozen=True, order=True)
class Place:
    """A name in a file, as its tests see it: the path below the folder, the line, the column."""

    path: str
    line: int
    column: int
    name: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column} {self.name}"


@dataclass
class Project:
    """Files in a folder, and the workspace that a server makes of them."""

    root: Path
    workspace: Workspace
    texts: dict[str, str] = field(default_factory=dict)  # as the editor or the disk has them
    marks: dict[str, list[Place]] = field(default_factory=dict)
    cursor: tuple[str, int, int] = ("", 1, 1)

    def __post_init__(self) -> None:
        self.following = Following(self.workspace)

    def path(self, name: str) -> str:
        """The path of a file; what is no file has only its name."""
        return name if ":" in name else os.path.normpath(self.root / name)

    def save(self, name: str, text: str) -> None:
        """Write a file to the disk."""
        file = Path(self.path(name))
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("w", encoding="utf-8", newline="") as out:
            out.write(text)
        self.texts.setdefault(name, text)

    def open(self, name: str, text: str) -> None:
        """Open a file, or change it in the editor."""
        self.texts[name] = text
        self.workspace.open(self.path(name), text)

    def place(self, span: Span) -> Place:
        """A span as tests see it."""
        path = span.file if ":" in span.file else os.path.relpath(span.file, self.root)
        lines = split_lines(self.texts.get(path, ""))
        row = lines[span.line - 1] if span.line <= len(lines) else ""
        return Place(path, span.line, span.column, row[span.column - 1 : span.end_column - 1])

    def analysis(self, name: str) -> Analysis:
        """What the server knows of a file, with the files that it imports."""
        path, text = self.path(name), self.texts[name]
        options = Options(imports=self.following.of(path, text))
        return analyse(text, path, options)

    def request(self, name: str, line: int, column: int, **more: Any) -> Request:
        """A request about a place."""
        analysis = self.analysis(name)
        place = {"line": line, "column": column, "end_line": line, "end_column": column}
        return replace(request_for(analysis), workspace=self.workspace, **{**place, **more})

    def ask(self, feature: Feature, at: Place | None = None, **more: Any) -> Any:
        """The answer of a feature in a place, or at the cursor."""
        name, line, column = self.cursor if at is None else (at.path, at.line, at.column)
        return feature.answer(self.request(name, line, column, **more))

    def places(self, feature: Feature, at: Place | None = None, **more: Any) -> list[Place]:
        """The same for a feature that answers with places."""
        return sorted(self.place(span) for span in self.ask(feature, at, **more))

    def findings(self, name: str) -> list[tuple[str, int]]:
        """The code and line of what is wrong in a file."""
        path = self.path(name)
        return sorted((d.code, line_here(d, path)) for d in self.analysis(name).diagnostics)

    def edited(self, edits: Any) -> dict[str, str]:
        """The texts of all files after some edits."""
        found = dict(self.texts)
        for name in found:
            here = tuple(e for e in edits if self.place(e.span).path == name)
            found[name] = apply_edits(found[name], here)
        return found


def project(text: str, root: Path, folders: tuple[str, ...] = (".",)) -> Project:
    """The project that a text with sections describes."""
    root = root / "work"
    root.mkdir(exist_ok=True)
    workspace = Workspace([os.path.normpath(root / f) for f in folders])
    made = Project(root, workspace)
    name, is_open, lines = "", False, list[str]()

    def finish() -> None:
        if not name:
            return
        said = "\n".join(lines).rstrip("\n") + "\n"
        before, mark, after = said.partition(CURSOR)
        if mark:
            said = before + after
            made.cursor = (name, *_position(before))
        if is_open or mark or ":" in name:
            made.open(name, said)
        if ":" not in name and not is_open:
            made.save(name, said)

    for line in textwrap.dedent(text).strip("\n").split("\n"):
        section = _SECTION.fullmatch(line.strip())
        if section is not None:
            finish()
            name, is_open, lines = section["path"], section["open"] is not None, []
        elif line.strip().startswith("^"):
            above = lines[-1].replace(CURSOR, "")
            for match in _CARETS.finditer(line):
                start, end = match.span("carets")
                place = Place(name, len(lines), start + 1, above[start:end])
                made.marks.setdefault(match["word"], []).append(place)
        else:
            lines.append(line)
    finish()
    return made


def written(texts: dict[str, str], root: Path, folders: tuple[str, ...] = (".",)) -> Project:
    """A project of texts without marks."""
    sections = (f"-- {name} --\n{text}" for name, text in texts.items())
    return project("\n".join(sections), root, folders)


def _position(before: str) -> tuple[int, int]:
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
