"""What `tilelang run --emulate` says of a call: the costly lines, or all of it as JSON.

    {"schema": "tilelang-run", "major": 1, "minor": 0,
     "kernel": "gemm.py::matmul", "target": "cuda:sm_80", "schedule": "shuffle:3", "checked": true,
     "status": 0, "seconds": 0.21, "diagnostics": [DIAGNOSTIC],
     "results": [{"name": "C", "error": 1e-7, "allowed": 0.001}],
     "traffic": {"shared": {"transactions": 64, "minimum": 32},
                 "global": {"transactions": 512, "minimum": 512},
                 "lines": [{"space": "shared", "access": "read", "bytes": 4, "requests": 1,
                            "transactions": 32, "minimum": 1, "worst": 32, "ratio": 32.0,
                            "span": SPAN, "line": 21, "code": "generated"}]}}

`status` is that of the command. SPAN and DIAGNOSTIC are those of
`tilelang_diagnostics.json_format`: the second side of a conflict is a label. `seconds` and
`traffic` are null where there was no call, `traffic` also without --check. Fields may be added
within a major number.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Final

from tilelang.cli.reference import Comparison
from tilelang.emulator.settings import Emulator, schedule_text
from tilelang.emulator.traffic import Checked, Space
from tilelang_diagnostics import to_json
from tilelang_diagnostics.model import Diagnostic

SCHEMA: Final = {"schema": "tilelang-run", "major": 1, "minor": 0}
_SPACES: Final[tuple[Space, ...]] = ("shared", "global")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a command."""

    target: str
    seconds: float | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    results: tuple[Comparison, ...] = ()
    checked: Checked | None = None


def outcome_json(kernel: str, emulator: Emulator, outcome: Outcome, status: int) -> str:
    """The JSON of a command, as text."""
    value = {
        **SCHEMA,
        "kernel": kernel,
        "target": outcome.target,
        "schedule": schedule_text(emulator.seed),
        "checked": emulator.check,
        "status": status,
        "seconds": None if outcome.seconds is None else round(outcome.seconds, 3),
        "diagnostics": [to_json(d) for d in outcome.diagnostics],
        "results": [
            {"name": c.name, "error": _finite(c.error), "allowed": c.allowed}
            for c in outcome.results
        ],
        "traffic": None if outcome.checked is None else _traffic_json(outcome.checked),
    }
    return json.dumps(value, indent=2, ensure_ascii=False)


def _finite(number: float) -> float | None:
    """JSON has no NaN and no infinity."""
    return number if math.isfinite(number) else None


def _traffic_json(checked: Checked) -> dict[str, Any]:
    totals: dict[str, Any] = {
        space: dict(zip(("transactions", "minimum"), checked.total(space), strict=True))
        for space in _SPACES
    }
    return {**totals, "lines": [t.to_json() for t in checked.traffic]}


def traffic_rows(checked: Checked) -> list[tuple[str, str]]:
    """Rows of a report: each memory's total, and the lines that waste most."""
    text = str(checked)
    return [("traffic", text)] if text else []
