"""Which target and which codes do a file and its project ask for?

    # tilelang: target cuda:sm_90a           in the file

    [tool.tilelang]                          in the nearest pyproject.toml
    target = "cuda:sm_90a"

    [tool.tilelang.lint]
    ignore = ["TL6", "bank-conflicts"]

The command line comes before the file, that before the editor, and that before the project. What is
wrong counts as not given; `settings_check.py` says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilelang_lint.comments import comments
from tilelang_lint.selection import selector_problem

COMMENT = re.compile(r"^\s*#\s*tilelang:\s*(?P<what>target|hints)\s+(?P<rest>.+?)\s*$", re.M)


@dataclass(frozen=True, slots=True)
class Asked:
    """Targets, the first of which findings are for, and codes, names or groups of them."""

    targets: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def over(self, other: Asked) -> Asked:
        """These, and what the other says of which they say nothing."""
        return Asked(
            self.targets or other.targets, self.select or other.select, self.ignore or other.ignore
        )


def asked_by(settings: Mapping[str, Any]) -> Asked:
    """What settings of an editor ask for, in which all keys are side by side."""
    select, ignore = rules(settings.get("select")), rules(settings.get("ignore"))
    return Asked(targets(settings.get("target")), select, ignore)


def asked_by_project(project: Mapping[str, Any]) -> Asked:
    """What `[tool.tilelang]` asks for."""
    lint = table(project.get("lint"))
    wanted = targets(project.get("target")) or targets(project.get("targets"))
    return Asked(wanted, rules(lint.get("select")), rules(lint.get("ignore")))


def asked_by_file(text: str) -> Asked:
    """What the comments of a file ask for."""
    said = [words(m["rest"]) for m in comments(text, COMMENT) if m["what"] == "target"]
    return Asked(targets=said[-1] if said else ())


def targets(value: Any) -> tuple[str, ...]:
    """The targets that are named; an object as `tilelang.Target` writes it is one."""
    if isinstance(value, Mapping) and "kind" in value:
        arch = value.get("arch")
        return (f"{value['kind']}:{arch}" if arch else str(value["kind"]),)
    return tuple(t for t in words(value) if t.lower() != "auto")


def rules(value: Any) -> tuple[str, ...]:
    """The selectors that there are."""
    return tuple(word for word in words(value) if selector_problem(word) is None)


def words(value: Any) -> tuple[str, ...]:
    """Words of a list, or of a text that commas separate."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)):
        return ()
    return tuple(p.strip() for p in parts if isinstance(p, str) and p.strip())


def table(value: Any) -> Mapping[str, Any]:
    """A table; empty for what is none."""
    return value if isinstance(value, Mapping) else {}
