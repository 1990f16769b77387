"""What is one proposal of a completion?"""

from __future__ import annotations

from dataclasses import dataclass

from tilelang_diagnostics import Edit


@dataclass(frozen=True, slots=True)
class Completion:
    """One proposal. `kind` is an entry's or a symbol's kind, or "keyword"; `text` is inserted, and
    `edits` are made elsewhere. `entry` is the name whose documentation it has."""

    label: str
    kind: str
    detail: str = ""
    markdown: str = ""
    text: str = ""
    order: int = 0  # lower comes first
    edits: tuple[Edit, ...] = ()
    deprecated: bool = False
    entry: str = ""
