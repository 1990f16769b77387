"""How long does a kernel take from Python to a binary, and from the cache?

    python benchmarks/compile_times.py [--target cuda:sm_90a] [--runs 5] [--clock cpu]

Each sample is a process of its own. *cold* is what a first call waits for, after imports and with
an empty cache: tracing, layouts and passes, printing, the device compiler, writing the entry; TVM,
which is imported on the way, has a column of its own. *cached* is the same call in a process that
finds the entry, and imports neither TVM nor a compiler. Medians in milliseconds.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CLOCKS: dict[str, Callable[[], float]] = {
    "wall": time.perf_counter,
    "cpu": time.process_time,  # on a machine with other work to do
}
ROOT = Path(__file__).resolve().parent.parent
CASES: tuple[tuple[str, str, str, dict[str, int]], ...] = (
    ("quickstart GEMM", "quickstart", "matmul_relu", {"M": 1024, "N": 1024, "K": 1024}),
    ("row softmax", "softmax", "softmax", {"M": 4096, "N": 1024}),
    ("flash attention", "flash_attention", "flash_attention",
     {"batch": 2, "seq_len": 1024, "heads": 8, "dim": 64, "kv_heads": 8}),
    ("rms norm", "rms_layer_norm", "rms_norm", {"M": 4096, "N": 1024}),
)  # fmt: skip
COLUMNS = (
    "import TVM",
    "trace, look up",
    "lower",
    "print",
    "device compiler",
    "store",
    "cold",
    "cached",
)


def measure(
    file: str, name: str, values: dict[str, int], cold: bool, clock: Callable[[], float]
) -> dict[str, float]:  # fmt: skip
    """One sample, in this process; seconds."""
    sys.path[:0] = [str(ROOT / part) for part in ("", "diagnostics", "trace", "lsp")]
    from tilelang.runtime import build, cache, cuda, cuda_compiler, nvrtc

    assert cuda  # imported with the rest: this is about the work
    kernel = getattr(importlib.import_module(f"examples.{file}"), name)
    spent: dict[str, float] = {}
    if cold:
        import tilelang.codegen.cuda as printer
        from tilelang.ir.tirx import load_tvm
        from tilelang.pipeline import PIPELINE
        from tilelang.runtime import cuda_build

        assert PIPELINE
        start = clock()
        load_tvm()
        spent["import TVM"] = clock() - start
        _timed(build, "compile_function", "compile", spent, clock)
        _timed(printer, "print_cuda", "print", spent, clock)
        _timed(cuda_build, "compile_cuda", "device compiler", spent, clock)
        _timed(cache.KernelCache, "save", "store", spent, clock)
        chosen = cuda_compiler.find_compiler()
        if isinstance(chosen, nvrtc.Nvrtc):
            chosen.architectures()  # loads it
    start = clock()
    made = kernel.compile(**values)
    total = clock() - start
    assert made.from_cache != cold
    if not cold:
        assert "tvm" not in sys.modules
        return {"cached": total}
    compiling = spent.pop("compile")
    lower = compiling - spent["print"] - spent["device compiler"]
    trace = total - compiling - spent["store"]
    return {"trace, look up": trace, "lower": lower, **spent, "cold": total}


def _timed(
    owner: Any, name: str, column: str, spent: dict[str, float], clock: Callable[[], float]
) -> None:
    """Replace a function by one that adds up its time."""
    original: Callable[..., Any] = getattr(owner, name)

    def timed(*args: Any, **more: Any) -> Any:
        start = clock()
        try:
            return original(*args, **more)
        finally:
            spent[column] = spent.get(column, 0.0) + clock() - start

    setattr(owner, name, timed)


def sample(number: int, target: str, cold: bool, cache: str, clock: str) -> dict[str, float]:
    """One sample of a case, in a new process."""
    done = subprocess.run(
        [sys.executable, __file__, "--sample", str(number), "--clock", clock,
         *(["--cold"] if cold else [])],
        # Modules are compiled once, as in an installation.
        env={**os.environ, "TILELANG_CACHE_DIR": cache, "TILELANG_DEFAULT_TARGET": target,
             "PYTHONDONTWRITEBYTECODE": "",
             "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "tilelang-compile-times")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def table(target: str, runs: int, clock: str) -> list[dict[str, Any]]:
    """A row per case, medians in milliseconds."""
    print(f"| {target}, {clock} ms | " + " | ".join(COLUMNS) + " |")
    print("|" + "---|" * (len(COLUMNS) + 1))
    rows = []
    for number, (title, *_) in enumerate(CASES):
        samples: dict[str, list[float]] = {}
        for _ in range(runs):
            with tempfile.TemporaryDirectory() as cache:
                for cold in (True, False):
                    for name, seconds in sample(number, target, cold, cache, clock).items():
                        samples.setdefault(name, []).append(seconds * 1e3)
        row = {name: statistics.median(samples.get(name, [0.0])) for name in COLUMNS}
        print(f"| {title} | " + " | ".join(f"{row[c]:.0f}" for c in COLUMNS) + " |", flush=True)
        rows.append({"kernel": title, **{n: round(v, 1) for n, v in row.items()}})
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="cuda:sm_90a")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--sample", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--cold", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.sample is not None:
        _, file, name, values = CASES[given.sample]
        print(json.dumps(measure(file, name, values, given.cold, CLOCKS[given.clock])))
        return 0
    rows = table(given.target, given.runs, given.clock)
    if given.json is not None:
        given.json.write_text(json.dumps({"target": given.target, "rows": rows}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
