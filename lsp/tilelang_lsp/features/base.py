"""What is a feature: an LSP method and a pure function that answers it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from tilelang_diagnostics import Diagnostic
from tilelang_lsp.assembly import Reading
from tilelang_lsp.insights import FileInsights
from tilelang_lsp.model import Analysis, Catalogue, Hint
from tilelang_lsp.options import Options
from tilelang_lsp.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Request:
    """What the editor asks about. A position is a range of no length.

    `text` is what the editor holds now; `reading` may be of an older text, unless the feature
    waits for the current one. `hints` are those of the analysis, moved to where `text` has them.
    `options`, `findings` and `project` are there if the feature asks for settings.
    """

    text: str
    reading: Reading
    catalogue: Catalogue
    line: int = 1
    column: int = 1
    end_line: int = 1
    end_column: int = 1
    hints: tuple[Hint, ...] = ()
    include_declaration: bool = True
    insights: FileInsights = field(default_factory=FileInsights)
    options: Options = field(default_factory=Options)
    findings: tuple[Diagnostic, ...] = ()
    new_name: str = ""
    uri: str = ""
    positions: tuple[tuple[int, int], ...] = ()  # of a request about several
    workspace: Workspace = field(default_factory=Workspace)
    only: tuple[str, ...] = ()  # kinds of code actions, empty: all
    project: tuple[str, str] | None = None  # its pyproject.toml, and what that says

    @property
    def analysis(self) -> Analysis:
        """Everything that was read, put together when first asked for."""
        return self.reading.analysis


@dataclass(frozen=True, slots=True)
class Feature:
    """One request the server answers.

    `waits`: for the analysis of the current text ("current"), for a moment ("fresh"), or takes what
    there is ("newest") because an answer at once is worth more than a fresh one. `apart`: it may
    read many files, so that it is answered on a thread of its own. `settings`: it looks at those
    of the file, which take longer to find out than hints may.
    """

    method: str
    answer: Callable[[Request], Any]
    waits: Literal["current", "fresh", "newest"]
    apart: bool = False
    settings: bool = True
