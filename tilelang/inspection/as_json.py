"""An inspection as JSON for tools; the field names are a public format.

    {"schema": "tilelang-inspect", "major": 1, "minor": 1,
     "name": "matmul", "target": "cuda:sm_90a", "arch": "sm_90a", "compiler": "NVRTC 13.0",
     "source": "sass" or "ptx", "note": "why it is PTX, or empty",
     "kernels": [{"symbol": "matmul_kernel", "threads": 128,
       "shared": {"static": 0, "dynamic": 49152, "limit": 232448},
       "registers": 168, "stack": 0, "spill_stores": 0, "spill_loads": 0,
       "occupancy": {"blocks": 3, "warps": 12, "most_warps": 64, "percent": 18,
                     "limited_by": ["registers"]},
       "counts": {"mma": 64, …}, "mapped": 480,
       "loops": [{"span": SPAN, "variable": "k", "depth": 0, "counts": {…}}],
       "lines": [{"span": SPAN, "calls": [{"function": "…", "span": SPAN}], "counts": {…}}]}],
     "conflicts": [{"buffer": "A_s", "operation": "T.gemm(…)", "access": "ldmatrix",
                    "mode": "reads", "degree": 1, "span": SPAN}],
     "remarks": [DIAGNOSTIC],
     "choices": [{"kind": "copy", "text": "…", "why": "…", "span": SPAN or null,
                  "rejected": [{"way": "TMA", "why": "…"}],
                  "places": [{"span": SPAN, "text": "…"}], "said": "all of it in one line"}]}

SPAN and DIAGNOSTIC are those of `tilelang_diagnostics.json_format`. Names of counts are those of
`counts.NAMES`; a count that is not there is 0. What is not known is null. Fields may be added
within a major number; a reader ignores those it does not know.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from tilelang.choices import Note
from tilelang.inspection.counts import Counts
from tilelang.inspection.model import BankConflicts, Inspection, KernelReport
from tilelang_diagnostics import to_json
from tilelang_diagnostics.json_format import span_to_json
from tilelang_diagnostics.model import Span

SCHEMA: Final = {"schema": "tilelang-inspect", "major": 1, "minor": 1}


def inspection_json(found: Inspection) -> dict[str, Any]:
    """Plain JSON values."""
    return {
        **SCHEMA,
        "name": found.name,
        "target": found.target,
        "arch": found.arch,
        "compiler": found.compiler,
        "source": found.source,
        "note": found.note,
        "kernels": [_kernel(k) for k in found.kernels],
        "conflicts": [_conflict(c) for c in found.conflicts],
        "remarks": [to_json(d) for d in found.remarks],
        "choices": [_choice(n) for n in found.choices],
    }


def _choice(found: Note) -> dict[str, Any]:
    return {
        "kind": found.kind,
        "text": found.text,
        "why": found.why,
        "span": _span(found.span),
        "rejected": [{"way": r.way, "why": r.why} for r in found.rejected],
        "places": [{"span": _span(span), "text": text} for span, text in found.places],
        "said": found.said,
    }


def _kernel(found: KernelReport) -> dict[str, Any]:
    occupancy = found.occupancy
    return {
        "symbol": found.symbol,
        "threads": found.threads,
        "shared": asdict(found.shared),
        "registers": found.registers,
        "stack": found.stack,
        "spill_stores": found.spill_stores,
        "spill_loads": found.spill_loads,
        "occupancy": None
        if occupancy is None
        else {
            "blocks": occupancy.blocks,
            "warps": occupancy.warps,
            "most_warps": occupancy.most_warps,
            "percent": occupancy.percent,
            "limited_by": list(occupancy.limited_by),
        },
        "counts": _counts(found.counts),
        "mapped": found.mapped,
        "loops": [
            {
                "span": _span(loop.span),
                "variable": loop.variable,
                "depth": loop.depth,
                "counts": _counts(loop.counts),
            }
            for loop in found.loops
        ],
        "lines": [
            {
                "span": _span(line.span),
                "calls": [{"function": f.function, "span": _span(f.span)} for f in line.calls],
                "counts": _counts(line.counts),
            }
            for line in found.lines
        ],
    }


def _conflict(found: BankConflicts) -> dict[str, Any]:
    return {
        "buffer": found.buffer,
        "operation": found.operation,
        "access": found.access,
        "mode": found.mode,
        "degree": found.degree,
        "span": _span(found.span),
    }


def _counts(found: Counts) -> dict[str, int]:
    return dict(found.pairs)


def _span(span: Span | None) -> dict[str, Any] | None:
    return None if span is None else span_to_json(span)
