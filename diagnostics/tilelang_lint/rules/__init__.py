"""Which rules exist? One line each, in the order they run."""

from __future__ import annotations

from tilelang_lint.rules.base import Rule, Subject
from tilelang_lint.rules.compiler_checks import compiler_checks

RULES: tuple[Rule, ...] = (compiler_checks,)

__all__ = ["RULES", "Rule", "Subject"]
