"""How may a copy be tuned: its keywords and annotations, each checked."""

from __future__ import annotations

from typing import Any

from tilelang.language.operands import (
    choice,
    options,
    static_bool,
    static_int,
)
from tilelang.program.context import reject, warn
from tilelang_diagnostics.model import Severity
from tilelang_diagnostics.suggest import did_you_mean

EVICTION_POLICIES = ("evict_normal", "evict_first", "evict_last")
COPY_INSTRUCTIONS = ("tma", "cp_async", "sync")
MAX_COALESCED = 1 << 10


def copy_options(function: str, annotations: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Keywords of a copy, overridden by `annotations`, each checked."""
    for key, value in options(function, annotations).items():
        name = {"parallel_loop_layout": "loop_layout"}.get(key, key)
        if name in given:
            given[name] = value
        elif name not in ("disable_tma", "eviction_policy", "prefer_instruction"):
            known = ", ".join(given)
            warn(
                "TL117",
                f"`T.{function}` knows no annotation {key!r}{did_you_mean(key, tuple(given))}",
                severity=Severity.WARNING,
                help=f"it knows {known}",
            )
    if given.get("coalesced_width") is not None:
        width = given["coalesced_width"]
        given["coalesced_width"] = static_int(function, "coalesced_width", width, 1, MAX_COALESCED)
    if "disable_tma" in given:
        given["disable_tma"] = static_bool(function, "disable_tma", given["disable_tma"])
    for key, allowed in (
        ("eviction_policy", EVICTION_POLICIES), ("prefer_instruction", COPY_INSTRUCTIONS),
    ):  # fmt: skip
        if given.get(key) is not None:
            given[key] = choice(function, key, given[key], allowed)
    if given.get("disable_tma") and given.get("prefer_instruction") == "tma":
        reject(
            "TL117",
            f"`T.{function}` is asked for TMA and told not to use it",
            help="leave out one of them",
        )
    return given
