"""Layouts as plain JSON values, for tools. The field names are a public format.

    {"kernel": "…", "target": "cuda:sm_80", "nominal": false, "note": "…",
     "launches": [{"line": 12, "threads": 128, "entries": [ENTRY]}],
     "diagnostics": [as tilelang_diagnostics writes them]}

    ENTRY = {"kind": "fragment" | "shared" | "reducer" | "loop", "name": "…", "shape": ["64"],
             "dtype": "float16" or null, "line": 14, "layout": "…" or null, "formula": "…" or null,
             "why": "…", "registers": 32 or null, "bytes": 8192 or null,
             "bank_uses": [{"op": "…", "line": 20, "mode": "reads", "degree": 1,
                            "what": "ldmatrix" or null}],
             "conversions": [{"fragment": "…", "op": "…", "line": 21, "via": "shuffles",
                              "cost": 12, "from": "…", "to": "…" or null}]}

`layout` is the short form, `formula` Python source over the indices `i, j, …` (and `rep`, which of
the copies). Fields may be added; a reader ignores those it does not know.
"""

from __future__ import annotations

from typing import Any

from tilelang.layout.layout import Layout
from tilelang.layout.solution import Conversion
from tilelang.layouts.layout_map import Entry, LaunchLayouts, LayoutMap
from tilelang.layouts.shared import BankUse
from tilelang_diagnostics.json_format import to_json
from tilelang_diagnostics.model import Span

Json = dict[str, Any]

# The formula of a table without a closed form lists every value.
MAX_FORMULA = 400


def layouts_json(found: LayoutMap) -> Json:
    """All of an answer."""
    return {
        "kernel": found.kernel,
        "target": str(found.machine),
        "nominal": found.machine.nominal,
        "note": found.note,
        "launches": [_launch(launch) for launch in found.launches],
        "diagnostics": [to_json(d) for d in found.diagnostics],
    }


def _launch(launch: LaunchLayouts) -> Json:
    return {
        "line": _line(launch.span),
        "threads": launch.threads,
        "entries": [_entry(entry) for entry in launch.entries],
    }


def _entry(entry: Entry) -> Json:
    return {
        "kind": entry.kind,
        "name": entry.name,
        "shape": list(entry.shape),
        "dtype": entry.dtype or None,
        "line": _line(entry.span),
        "layout": None if entry.layout is None else entry.short,
        "formula": _formula(entry),
        "why": entry.why,
        "registers": entry.registers,
        "bytes": entry.bytes,
        "bank_uses": [_bank_use(use) for use in entry.bank_uses],
        "conversions": [_conversion(c) for c in entry.conversions],
    }


def _formula(entry: Entry) -> str | None:
    if entry.layout is None or entry.layout.map.forms is None:
        return None
    text = entry.layout.formula()
    return text if len(text) <= MAX_FORMULA or isinstance(entry.layout, Layout) else None


def _bank_use(use: BankUse) -> Json:
    return {
        "op": use.origin.op,
        "line": _line(use.origin.span),
        "mode": use.mode.value,
        "degree": use.degree,
        "what": use.what or None,
    }


def _conversion(found: Conversion) -> Json:
    origin = found.constraint.origin
    return {
        "fragment": found.var.name,
        "op": origin.op,
        "line": _line(origin.span),
        "via": found.via.value,
        "cost": found.cost,
        "from": str(found.source),
        "to": None if found.target is None else str(found.target),
    }


def _line(span: Span | None) -> int | None:
    return None if span is None else span.line
