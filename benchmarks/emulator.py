"""How fast is the emulator on one core?

    python -m benchmarks.emulator [--clock cpu] [--runs 5]

Everything runs pinned to one core of this machine, in an empty cache of its own. *wall* is what a
user waits for; *cpu* is what the call's processes took of the core, for a machine with other work
to do. Medians in seconds. *built* is the runtime (once per machine and compiler), *compile* is one
kernel's C++ to a library, *first* and *again* are whole processes of `tilelang run --emulate`:
with nothing kept, and with the kernel kept from before.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

import tilelang  # noqa: E402
import tilelang.language as T  # noqa: E402
from tests.kernels.mha_fwd import flashattn  # noqa: E402
from tilelang.emulator.launch import build_library, build_runtime  # noqa: E402
from tilelang.emulator.settings import Emulator  # noqa: E402
from tilelang.emulator.toolchain import find_compiler  # noqa: E402

TARGET = "cuda:sm_80"
LIMITS = {
    "GEMM 256^3": 0.15,
    "GEMM 256^3, checked": 1.0,
    "compile": 1.5,
    "attention, checked": 10.0,
}


def gemm(size: int = 256) -> Any:
    """Half precision, 64x64x32 tiles, three stages."""

    @T.prim_func
    def main(
        A: T.Tensor((size, size), "float16"), B: T.Tensor((size, size), "float16"),
        C: T.Tensor((size, size), "float32"),
    ):  # fmt: skip
        with T.Kernel(size // 64, size // 64, threads=128) as (bx, by):
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(size // 32, num_stages=3):
                T.copy(A[by * 64, k * 32], a)
                T.copy(B[k * 32, bx * 64], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 64, bx * 64])

    return main


Figure = tuple[str, float, float]


def clocks() -> tuple[float, float]:
    """Wall time, and processor time of this process and those it started."""
    mine, theirs = (resource.getrusage(who) for who in
                    (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))  # fmt: skip
    used = mine.ru_utime + mine.ru_stime + theirs.ru_utime + theirs.ru_stime
    return time.perf_counter(), used


def timed(name: str, call: Callable[[], object], runs: int = 1) -> Figure:
    """The median of `runs`."""
    samples = []
    for _ in range(runs):
        wall, used = clocks()
        call()
        then_wall, then_used = clocks()
        samples.append((then_wall - wall, then_used - used))
    return name, *(statistics.median(column) for column in zip(*samples, strict=True))


def calls(runs: int) -> Sequence[Figure]:
    """Calls of kernels that are compiled already, and what compiling them took."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((256, 256)).astype(np.float16) for _ in range(2))
    c = np.zeros((256, 256), np.float32)
    q, k, v = (rng.standard_normal((1, 256, 2, 64)).astype(np.float16) for _ in range(3))
    attention = flashattn.get_tir(batch=1, heads=2, seq_len=256, dim=64, is_causal=False)
    found: list[Figure] = [timed("runtime, built", lambda: build_runtime(find_compiler()))]
    for name, program, out_idx, arguments in (
        ("GEMM 256^3", gemm(), None, (a, b, c)), ("attention", attention, [3], (q, k, v)),
    ):  # fmt: skip
        for check, suffix in ((False, ""), (True, ", checked")):
            emulator = Emulator(check=check, workers=1)
            kernel = _compiled(program, out_idx, emulator)
            build = partial(build_library, kernel._built.runner.device, check, find_compiler())
            found.append(timed(f"{name}{suffix}: compile", build))
            kernel(*arguments)
            found.append(timed(f"{name}{suffix}", partial(kernel, *arguments), runs))
    return found


def _compiled(program: Any, out_idx: Any, emulator: Emulator) -> Any:
    return tilelang.compile(program, out_idx=out_idx, target=TARGET, execution_backend=emulator)


def processes(runs: int) -> Sequence[Figure]:
    """`tilelang run --emulate` of an example, in processes of their own."""
    sizes = [word for size in ("M=64", "N=64", "K=256", "split=2") for word in ("--set", size)]
    command = [sys.executable, "-m", "tilelang", "run", str(ROOT / "examples" / "split_k.py"),
               *sizes, "--target", TARGET, "--emulate"]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}

    def run() -> None:
        subprocess.run(command, env=environment, check=True, capture_output=True)

    return timed("tilelang run, first", run), timed("tilelang run, again", run, runs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory(prefix="tilelang-benchmark-") as cache:
        os.environ["TILELANG_CACHE_DIR"] = cache
        figures = [*calls(given.runs), *processes(given.runs)]
    over = []
    print(f"{find_compiler()}\n\n| what | wall | cpu | at most |\n|---|---|---|---|")
    for name, wall, used in figures:
        limit = LIMITS.get("compile" if name.endswith("compile") else name)
        taken = wall if given.clock == "wall" else used
        print(f"| {name} | {wall:.2f} s | {used:.2f} s | {'' if limit is None else f'{limit} s'} |")
        if limit is not None and taken > limit:
            over.append(name)
    if over:
        print(f"\nover the limit: {', '.join(over)}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
