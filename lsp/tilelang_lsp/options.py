"""What is a file read with: values, targets, the project's own, and what is shown of it?

In this order: the editor's settings, a comment of the file, `[tool.tilelang]` of the project.
Values in comments are read by the front end.

    # tilelang: target cuda:sm_90a
    # tilelang: hints types, layouts
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tilelang_lint.selection import selector_problem
from tilelang_lsp.following import Imports
from tilelang_lsp.model import HINT_KINDS, HintKind

COMMENT = re.compile(r"^\s*#\s*tilelang:\s*(?P<what>target|hints)\s+(?P<rest>.+?)\s*$", re.M)


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
    said = _comments(text)
    rules = _table(project.get("lint"))
    options = Options(
        values=_table(client.get("values")),
        targets=_targets(client.get("target")) or said.targets or _targets(project.get("target"))
        or _targets(project.get("targets")),
        project=_table(project.get("set")),
        select=_rules(client.get("select")) or _rules(rules.get("select")),
        ignore=_rules(client.get("ignore")) or _rules(rules.get("ignore")),
    )  # fmt: skip
    hints = _table(_table(project.get("lsp")).get("inlay-hints"))
    shown = said.hints if said.hints is not None else _kinds(hints)
    asked = _table(client.get("inlayHints"))
    return replace(options, hints=shown & _kinds(asked) if asked else shown)


def _kinds(switches: Mapping[str, Any]) -> frozenset[HintKind]:
    """All kinds but those switched off; `enable` switches all of them."""
    if switches.get("enable") is False:
        return frozenset()
    return frozenset(kind for kind in HINT_KINDS if switches.get(kind) is not False)


@dataclass(frozen=True, slots=True)
class _Said:
    targets: tuple[str, ...] = ()
    hints: frozenset[HintKind] | None = None


def _comments(text: str) -> _Said:
    said = _Said()
    if "tilelang:" not in text:
        return said
    for match in COMMENT.finditer(text):
        words = _words(match["rest"])
        if match["what"] == "target":
            said = replace(said, targets=words)
        else:
            said = replace(said, hints=frozenset(k for k in HINT_KINDS if k in words))
    return said


def _targets(value: Any) -> tuple[str, ...]:
    if isinstance(value, Mapping) and "kind" in value:
        arch = value.get("arch")
        return (f"{value['kind']}:{arch}" if arch else str(value["kind"]),)
    return tuple(t for t in _words(value) if t.lower() != "auto")


def _rules(value: Any) -> tuple[str, ...]:
    """Those that there are; `settings_check.py` says which are not."""
    return tuple(word for word in _words(value) if selector_problem(word) is None)


def _words(value: Any) -> tuple[str, ...]:
    """Words of a list, or of a text that commas separate."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)):
        return ()
    return tuple(p.strip() for p in parts if isinstance(p, str) and p.strip())


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
