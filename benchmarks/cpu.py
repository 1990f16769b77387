"""How fast are CPU kernels beside PyTorch, on one core and on several?

    python benchmarks/cpu.py                      ratios on one core
    python benchmarks/cpu.py --cores              ... and how both scale with cores
    python benchmarks/cpu.py --json out.json --minimum 0.7

Both sides are timed in turns within one run, because a shared machine drifts by more than they
differ; each keeps the best of its rounds. The ratio is PyTorch's time over ours: above 1 we are
faster. PyTorch writes into an existing tensor where it can, as ours does. Every result is checked
against float64 first. With `--minimum`, a smaller ratio of a required kernel makes the exit
code 1.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import tilelang
import tilelang.language as T
from tilelang.runtime.cpu import set_num_threads
from tilelang.runtime.cpu_pool import available_cores

# The other side's worker threads (OpenMP's above all) go on spinning after a call: with several
# cores, a turn waits until they sleep.
SPIN_SECONDS = 0.25
CALLS_PER_TURN = 4
LOG2_E = 1.44269504
EPSILON = 1e-6


def gemm_kernel(M: int, N: int, K: int, dtype: str, block: tuple[int, int, int]) -> Any:
    block_M, block_N, block_K = block

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return gemm


def softmax_kernel(M: int, N: int, block_M: int = 1) -> Any:
    @T.prim_func
    def softmax(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            rows = T.alloc_fragment((block_M, N), "float32")
            peak = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M, 0], rows)
            T.reduce_max(rows, peak, dim=1)
            for i, j in T.Parallel(block_M, N):
                rows[i, j] = T.exp2(rows[i, j] * LOG2_E - peak[i] * LOG2_E)
            T.reduce_sum(rows, total, dim=1)
            for i, j in T.Parallel(block_M, N):
                rows[i, j] /= total[i]
            T.copy(rows, Y[bx * block_M, 0])

    return softmax


def rms_norm_kernel(M: int, N: int, block_M: int = 1) -> Any:
    @T.prim_func
    def rms_norm(
        X: T.Tensor((M, N), "float32"), W: T.Tensor((N,), "float32"),
        Y: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            rows = T.alloc_fragment((block_M, N), "float32")
            squares = T.alloc_fragment((block_M, N), "float32")
            scale = T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M, 0], rows)
            for i, j in T.Parallel(block_M, N):
                squares[i, j] = rows[i, j] * rows[i, j]
            T.reduce_sum(squares, scale, dim=1)
            for i in T.Parallel(block_M):
                scale[i] = T.rsqrt(scale[i] / N + EPSILON)
            for i, j in T.Parallel(block_M, N):
                rows[i, j] *= scale[i] * W[j]
            T.copy(rows, Y[bx * block_M, 0])

    return rms_norm


@dataclass(frozen=True, slots=True)
class Case:
    """One comparison: our call, PyTorch's, and how far our result is from float64."""

    name: str
    ours: Callable[[], Any]
    torch: Callable[[], Any]
    error: Callable[[], float]
    tolerance: float
    work: float  # floating-point operations or bytes of one call
    unit: str
    required: bool


@dataclass(frozen=True, slots=True)
class Result:
    """One row of the table; times in seconds."""

    name: str
    cores: int
    ours: float
    torch: float
    error: float
    required: bool

    @property
    def ratio(self) -> float:
        return self.torch / self.ours


def gemm_case(size: int, dtype: str, block: tuple[int, int, int], required: bool) -> Case:
    kernel = tilelang.compile(gemm_kernel(size, size, size, dtype, block), target="cpu")
    kind = getattr(torch, dtype)
    a, b = torch.randn(size, size).to(kind), torch.randn(size, size).to(kind)
    c, out = torch.empty(size, size), torch.empty(size, size, dtype=kind)
    exact = a.double() @ b.double()
    return Case(
        f"gemm {size}³ {dtype}",
        lambda: kernel(a, b, c),
        lambda: torch.mm(a, b, out=out),
        lambda: float((c - exact).norm() / exact.norm()),
        1e-5, 2.0 * size**3, "GFLOP/s", required,
    )  # fmt: skip


def softmax_case(m: int, n: int) -> Case:
    kernel = tilelang.compile(softmax_kernel(m, n), target="cpu")
    x, y, out = torch.randn(m, n), torch.empty(m, n), torch.empty(m, n)
    exact = torch.softmax(x.double(), -1)
    return Case(
        f"softmax {m}×{n}",
        lambda: kernel(x, y),
        lambda: torch.softmax(x, -1, out=out),
        lambda: float((y - exact).norm() / exact.norm()),
        1e-5, 8.0 * m * n, "GB/s", True,
    )  # fmt: skip


def rms_norm_case(m: int, n: int) -> Case:
    kernel = tilelang.compile(rms_norm_kernel(m, n), target="cpu")
    x, w, y = torch.randn(m, n), torch.randn(n), torch.empty(m, n)
    exact = F.rms_norm(x.double(), (n,), w.double(), EPSILON)
    return Case(
        f"rms_norm {m}×{n}",
        lambda: kernel(x, w, y),
        lambda: F.rms_norm(x, (n,), w, EPSILON),
        lambda: float((y - exact).norm() / exact.norm()),
        1e-5, 8.0 * m * n, "GB/s", True,
    )  # fmt: skip


CASES: tuple[Callable[[], Case], ...] = (
    lambda: gemm_case(1024, "float32", (128, 128, 32), True),
    lambda: softmax_case(4096, 4096),
    lambda: rms_norm_case(4096, 4096),
    lambda: gemm_case(512, "float32", (64, 64, 32), False),
    lambda: gemm_case(1024, "bfloat16", (128, 128, 64), False),
)
SCALING: tuple[Callable[[], Case], ...] = (
    lambda: gemm_case(2048, "float32", (128, 128, 64), False),
    lambda: softmax_case(4096, 4096),
)


def measure(case: Case, cores: int, rounds: int) -> Result:
    """Best time of each side over `rounds` turns."""
    torch.set_num_threads(cores)
    set_num_threads(cores)
    case.ours()
    case.torch()
    error = case.error()
    if not error <= case.tolerance:
        raise SystemExit(f"{case.name}: relative error {error:.2g} against float64")
    best = [float("inf"), float("inf")]
    for _ in range(-(-rounds // CALLS_PER_TURN)):
        for side, call in enumerate((case.ours, case.torch)):
            if cores > 1:
                time.sleep(SPIN_SECONDS)
            for _ in range(CALLS_PER_TURN):
                start = time.perf_counter()
                call()
                best[side] = min(best[side], time.perf_counter() - start)
    return Result(case.name, cores, best[0], best[1], error, case.required)


def plan(scaling: bool) -> list[tuple[Callable[[], Case], int]]:
    """Which case runs on how many cores: powers of two, and all of them."""
    found = [(case, 1) for case in CASES]
    if scaling:
        total = available_cores()
        counts = sorted({1, total} | {1 << p for p in range(10) if 1 << p < total})
        found += [(case, count) for case in SCALING for count in counts]
    return found


def show(console: Console, results: list[Result], rates: dict[str, tuple[float, str]]) -> None:
    table = Table(title="CPU kernels beside PyTorch (best of the rounds, in turns)")
    for column in ("kernel", "cores", "ours", "PyTorch", "ratio", "our rate", "error"):
        table.add_column(column, justify="left" if column == "kernel" else "right")
    for r in results:
        work, unit = rates[r.name]
        table.add_row(
            r.name, str(r.cores), f"{r.ours * 1e3:.2f} ms", f"{r.torch * 1e3:.2f} ms",
            f"{r.ratio:.2f}", f"{work / r.ours / 1e9:.1f} {unit}", f"{r.error:.1e}",
        )  # fmt: skip
    console.print(table)


def record(results: list[Result]) -> dict[str, Any]:
    """Everything a later reader needs to judge the numbers."""
    return {
        "machine": platform.processor() or platform.machine(),
        "cores": available_cores(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "tilelang": tilelang.__version__,
        "results": [{**asdict(r), "ratio": r.ratio} for r in results],
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20, help="calls of each side")
    parser.add_argument("--cores", action="store_true", help="also measure scaling with cores")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--minimum", type=float, default=0.0, help="least ratio allowed")
    given = parser.parse_args(arguments)
    console = Console()
    results: list[Result] = []
    rates: dict[str, tuple[float, str]] = {}
    steps = plan(given.cores)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("compiling", total=len(steps))
        for make, cores in steps:
            case = make()
            rates[case.name] = case.work, case.unit
            progress.update(task, description=f"{case.name} on {cores}")
            results.append(measure(case, cores, given.rounds))
            progress.advance(task)
    show(console, results, rates)
    if given.json is not None:
        given.json.write_text(json.dumps(record(results), indent=1) + "\n")
    slow = [r for r in results if r.required and r.ratio < given.minimum]
    for r in slow:
        console.print(f"{r.name}: ratio {r.ratio:.2f} is below {given.minimum}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
