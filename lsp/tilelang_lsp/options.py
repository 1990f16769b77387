"""What is a file read with: values, targets, the project's own, and what is shown of it?

In this order: the editor's settings, a comment of the file, `[tool.tilelang]` of the project; but
the target that a file names for itself counts before all others. Values in comments are read by the
front end.

    # tilelang: target cuda:sm_90a
    # tilelang: hints types, layouts
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tilelang.cli.project import values_of
from tilelang_lint.comments import comments
from tilelang_lint.settings import COMMENT, asked_by, asked_by_file, asked_by_project, table, words
from tilelang_lsp.following import Imports
from tilelang_lsp.model import HINT_KINDS, HintKind


@dataclass(frozen=True, slots=True)
class Options:
    """How a file is read. `project` are the values its pyproject.toml sets; `select` and `ignore`
    are codes, names or groups of rules; `imports` are the files of the workspace read with it."""

    values: Mapping[str, Any] = field(default_factory=dict)
    targets: tuple[str, ...] = ()
    project: Mapping[str, Any] = field(default_factory=dict)
    hints: frozenset[HintKind] = frozenset(HINT_KINDS)
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    imports: Imports = field(default_factory=Imports)

    @property
    def target(self) -> str | None:
        """The one that findings are for."""
        return self.targets[0] if self.targets else None


def options_from(client: Mapping[str, Any], project: Mapping[str, Any], text: str) -> Options:
    """What the editor, the file and the project say together; what is malformed says nothing."""
    asked = asked_by_file(text).over(asked_by(client)).over(asked_by_project(project))
    options = Options(
        table(client.get("values")), asked.targets, values_of(project.get("set")),
        select=asked.select, ignore=asked.ignore,
    )  # fmt: skip
    said = _hints(text)
    shown = _kinds(table(table(project.get("lsp")).get("inlay-hints"))) if said is None else said
    switches = table(client.get("inlayHints"))
    return replace(options, hints=shown & _kinds(switches) if switches else shown)


def _kinds(switches: Mapping[str, Any]) -> frozenset[HintKind]:
    """All kinds but those switched off; `enable` switches all of them."""
    if switches.get("enable") is False:
        return frozenset()
    return frozenset(kind for kind in HINT_KINDS if switches.get(kind) is not False)


def _hints(text: str) -> frozenset[HintKind] | None:
    """The kinds that a comment names; the last one counts."""
    said = [words(m["rest"]) for m in comments(text, COMMENT) if m["what"] == "hints"]
    return frozenset(k for k in HINT_KINDS if k in said[-1]) if said else None
