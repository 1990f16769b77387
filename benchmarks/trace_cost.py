"""What does recording add to a compilation?

    python -m benchmarks.trace_cost [--target cuda:sm_90a] [--runs 5] [--json FILE]

Each kernel is compiled in turns without and with a recording into a folder, as TILELANG_TRACE makes
it; nothing comes from a cache. The figures are ratios of processor time, children included, so that
other work on the machine counts little: the least of all turns with, by the least without. *passes*
is lowering alone, *all* goes on to a binary where there is a compiler for the target.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tilelang_trace
from tilelang.compiler import compile_function, effective_options, lower_function
from tilelang.options import CompileOptions
from tilelang.program.stmt import Function
from tilelang.target import Target, parse_target
from tilelang_diagnostics import CompileError
from tilelang_trace.recorder import Recorder

CASES: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("row softmax", "examples.softmax", "softmax", {"M": 4096, "N": 1024}),
    ("quickstart GEMM", "examples.quickstart", "matmul_relu", {"M": 1024, "N": 1024, "K": 1024}),
    ("flash attention", "examples.flash_attention", "flash_attention",
     {"batch": 2, "seq_len": 1024, "heads": 8, "dim": 64, "kv_heads": 8}),
    ("MLA decode", "tests.kernels.mla_decode", "flashattn",
     {"batch": 1, "heads": 64, "kv_head_num": 1, "seqlen_kv": 512, "dim": 128, "pe_dim": 64,
      "block_N": 64, "block_H": 64, "num_split": 1, "softmax_scale": 0.1}),
)  # fmt: skip
COLUMNS = ("passes", "all", "KB written", "lines of IR")


def measure(function: Function, target: Target, runs: int) -> dict[str, float]:
    """The figures of one kernel."""
    options = effective_options(function, CompileOptions())
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:

        def whole() -> None:
            compile_function(function, target, options)

        def recorded() -> None:
            with tilelang_trace.record(folder):
                compile_function(function, target, options)

        try:
            found["all"] = _ratio(whole, recorded, runs)
        except CompileError as error:
            if error.diagnostics[0].code != "TL807":  # there is no compiler here
                raise
            found["all"] = float("nan")
        files = list(Path(folder).iterdir())
        found["KB written"] = sum(file.stat().st_size for file in files) / len(files) / 1000
        trace = tilelang_trace.load(str(files[0]))
        found["lines of IR"] = sum(len(step.lines) for step in trace.steps)

    def passes() -> None:
        lower_function(function, target, options)

    def passes_recorded() -> None:
        recorder = Recorder(function, target, options, [].append, code=False)
        lower_function(function, target, options, [recorder])
        recorder.close(())

    found["passes"] = _ratio(passes, passes_recorded, runs)
    return found


def _ratio(without: Callable[[], None], with_: Callable[[], None], runs: int) -> float:
    """The processor time of one by that of the other, which is run before it each time."""
    sides = without, with_
    for side in sides:
        side()
    least = [float("inf"), float("inf")]
    for _ in range(runs):
        for number, side in enumerate(sides):
            before = os.times()
            side()
            after = os.times()
            least[number] = min(least[number], sum(after[:4]) - sum(before[:4]))
    return least[1] / least[0]


def function_of(module: str, name: str, values: dict[str, Any]) -> Function:
    """A kernel of a case, specialised."""
    kernel = getattr(importlib.import_module(module), name)
    made = kernel.get_tir(**values)
    found: Function = getattr(made, "function", made)  # of a factory, or of an eager kernel
    return found


def table(target: Target, runs: int) -> list[dict[str, Any]]:
    """A row a case, printed as it is measured."""
    print(f"| {target} | " + " | ".join(COLUMNS) + " |")
    print("|" + "---|" * (len(COLUMNS) + 1))
    rows = []
    for title, *case in CASES:
        row = measure(function_of(*case), target, runs)
        shown = [f"{row[c]:.2f}" for c in COLUMNS[:2]] + [f"{row[c]:.0f}" for c in COLUMNS[2:]]
        print(f"| {title} | " + " | ".join(shown) + " |", flush=True)
        rows.append({"kernel": title, **{n: round(v, 3) for n, v in row.items()}})
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="cuda:sm_90a")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = table(parse_target(given.target), given.runs)
    if given.json is not None:
        given.json.write_text(json.dumps({"target": given.target, "rows": rows}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
