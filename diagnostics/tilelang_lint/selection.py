"""Which codes are wanted? A selector is a code, its name, or the beginning of codes (`TL2`)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tilelang_diagnostics import CATALOGUE, Diagnostic, did_you_mean, find_code


@dataclass(frozen=True, slots=True)
class Selection:
    """`select` narrows (empty: everything), `ignore` then removes. Our own failures always stay."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for selector in (*self.select, *self.ignore):
            problem = selector_problem(selector)
            if problem:
                raise ValueError(problem)

    def keep(self, diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
        """Those of `diagnostics` that are wanted; a fault of ours always is."""
        return tuple(d for d in diagnostics if d.is_internal or self.wants(d.code))

    def asks_for(self, code: str) -> bool:
        """Whether `code`, which is off by default, is wanted by name."""
        return bool(self.select) and self.wants(code)

    def wants(self, code: str) -> bool:
        """Whether findings of `code` are reported."""
        if self.select and not any(matches(s, code) for s in self.select):
            return False
        return not any(matches(s, code) for s in self.ignore)


def matches(selector: str, code: str) -> bool:
    """Whether a selector means `code`."""
    if re.fullmatch(r"TL\d{0,2}", selector.upper()):
        return code.startswith(selector.upper())
    row = find_code(selector)
    return row is not None and row.code == code


def selector_problem(selector: str) -> str | None:
    """What is wrong with a selector, or None."""
    if any(matches(selector, row.code) for row in CATALOGUE):
        return None
    known = [name for row in CATALOGUE for name in (row.code, row.name)]
    return f"no diagnostic is called {selector!r}{did_you_mean(selector, known)}"
