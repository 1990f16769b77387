"""Exceptions of language functions called where no kernel is being traced."""

from __future__ import annotations

from tilelang.program.context import users_place
from tilelang_diagnostics import error_for
from tilelang_diagnostics.model import Diagnostic, Severity


def outside_kernel(name: str) -> Exception:
    """The exception for `T.name(…)` called by plain Python."""
    diagnostic = Diagnostic(
        code="TL169",
        severity=Severity.ERROR,
        message=f"`T.{name}` is called outside a kernel",
        span=users_place(),
        help="call it inside a function decorated with `@T.prim_func`, `@T.macro` or "
        "`@tilelang.jit`",
    )
    return error_for((diagnostic,))
