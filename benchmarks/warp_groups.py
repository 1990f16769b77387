"""What do warp groups, and a warp that loads for them, gain `T.gemm` and attention on Hopper,
beside cuBLAS and PyTorch's attention?

    python -m benchmarks.warp_groups [--only TEXT ...]      where a Hopper GPU and the compiler are

Each kernel is compiled as it is, with `tl.disable_warp_specialized` and with `tl.disable_wgmma`,
checked against PyTorch and timed beside it in the same run: bursts of about 12 ms from idle, the
best of three medians.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import tilelang
import tilelang.language as T
from benchmarks.speed_kernels import Blocks, gemm

TARGET: Final = "cuda:sm_90a"
WAYS: Final[dict[str, dict[str, bool] | None]] = {
    "roles": None,
    "warp groups": {"tl.disable_warp_specialized": True},
    "mma.sync": {"tl.disable_wgmma": True},
}
BURST_MS: Final = 12.0
IDLE_S: Final = 0.1
GEMM_SIZES: Final = (4096, 8192)
GEMM_BLOCKS: Final = (
    Blocks(128, 128, 64, 3, 128, 8, "chosen"), Blocks(128, 128, 32, 4, 128, 8, "chosen"),
    Blocks(128, 256, 64, 3, 256, 8, "chosen"), Blocks(256, 128, 64, 3, 256, 8, "chosen"),
)  # fmt: skip
BATCH, HEADS, LENGTH = 4, 16, 4096
ATTENTION_BLOCKS: Final = ((128, 64, 128, 2), (128, 128, 256, 2), (128, 64, 256, 2))


@dataclass(frozen=True)
class Problem:
    """What is computed, PyTorch's way to do it, and kernels with the names of their tiles."""

    name: str
    inputs: tuple[Any, ...]
    output: Any
    peer: Callable[[], Any]
    kernels: tuple[tuple[str, Any], ...]


def attention(dim: int, causal: bool, blocks: tuple[int, int, int, int]) -> Any:
    """Forward attention, `block_M` queries a block and keys in blocks of `block_N`."""
    block_M, block_N, threads, stages = blocks
    shape, scale = (BATCH, LENGTH, HEADS, dim), dim**-0.5 * 1.44269504

    @T.prim_func
    def attention(
        Q: T.Tensor(shape, "float16"), K: T.Tensor(shape, "float16"),
        V: T.Tensor(shape, "float16"), Out: T.Tensor(shape, "float16"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(LENGTH, block_M), HEADS, BATCH, threads=threads) as (bx, by, bz):
            Q_tile = T.alloc_shared((block_M, dim), "float16")
            K_tile = T.alloc_shared((block_N, dim), "float16")
            V_tile = T.alloc_shared((block_N, dim), "float16")
            scores = T.alloc_fragment((block_M, block_N), "float32")
            weights = T.alloc_fragment((block_M, block_N), "float16")
            out = T.alloc_fragment((block_M, dim), "float32")
            peak = T.alloc_fragment((block_M,), "float32")
            before = T.alloc_fragment((block_M,), "float32")
            row = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")
            first = bx * block_M
            T.copy(Q[bz, first : first + block_M, by, :], Q_tile)
            T.clear(out)
            T.clear(total)
            T.fill(peak, -T.infinity("float32"))
            steps = T.ceildiv(LENGTH, block_N)
            if causal:
                steps = T.min(steps, T.ceildiv(first + block_M, block_N))
            for k in T.Pipelined(steps, num_stages=stages):
                T.copy(K[bz, k * block_N : (k + 1) * block_N, by, :], K_tile)
                for i, j in T.Parallel(block_M, block_N):
                    seen = (not causal) or first + i >= k * block_N + j
                    scores[i, j] = T.if_then_else(seen, 0, -T.infinity("float32"))
                T.gemm(Q_tile, K_tile, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(V[bz, k * block_N : (k + 1) * block_N, by, :], V_tile)
                T.copy(peak, before)
                T.reduce_max(scores, peak, dim=1, clear=False)
                for i, j in T.Parallel(block_M, block_N):
                    scores[i, j] = T.exp2((scores[i, j] - peak[i]) * scale)
                T.reduce_sum(scores, row, dim=1)
                for i in T.Parallel(block_M):
                    before[i] = T.exp2((before[i] - peak[i]) * scale)
                    total[i] = total[i] * before[i] + row[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(block_M, dim):
                    out[i, j] *= before[i]
                T.gemm(weights, V_tile, out, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block_M, dim):
                out[i, j] /= total[i]
            T.copy(out, Out[bz, first : first + block_M, by, :])

    return attention


def problems() -> Iterator[Problem]:
    """Products of squares, and attention with and without a mask."""
    import torch

    def random(*shape: int) -> Any:
        return torch.randn(*shape, device="cuda", dtype=torch.float16)

    for size, transposed in product(GEMM_SIZES, (False, True)):
        a, b, c = random(size, size), random(size, size), random(size, size)
        right = b.T if transposed else b
        yield Problem(
            f"gemm {size}^3 {'nt' if transposed else 'nn'}", (a, b, c), c,
            lambda a=a, right=right: torch.mm(a, right),
            tuple((str(x), gemm(size, size, size, x, transposed)) for x in GEMM_BLOCKS),
        )  # fmt: skip
    for causal, dim in product((False, True), (64, 128)):
        q, k, v, o = (random(BATCH, LENGTH, HEADS, dim) for _ in range(4))
        heads = [x.transpose(1, 2) for x in (q, k, v)]
        sdpa = torch.nn.functional.scaled_dot_product_attention
        yield Problem(
            f"attention of {dim}{', causal' if causal else ''}", (q, k, v, o), o.transpose(1, 2),
            lambda heads=heads, causal=causal, sdpa=sdpa: sdpa(*heads, is_causal=causal),
            tuple(("x".join(map(str, x)), attention(dim, causal, x)) for x in ATTENTION_BLOCKS),
        )  # fmt: skip


def burst(call: Callable[[], Any]) -> float:
    """Milliseconds of one call: the median of a burst from idle."""
    import torch

    def timed(count: int) -> list[float]:
        time.sleep(IDLE_S)
        marks = []
        for _ in range(count):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            call()
            end.record()
            marks.append((start, end))
        torch.cuda.synchronize()
        return [start.elapsed_time(end) for start, end in marks]

    timed(1)
    (once,) = timed(1)
    return statistics.median(timed(max(3, int(BURST_MS / max(once, 1e-3)))))


def measure(problem: Problem) -> None:
    """One line for each kernel: ratios to PyTorch, and the largest difference from it."""
    expected = problem.peer()
    peer = min(burst(problem.peer) for _ in range(3))
    for name, kernel in problem.kernels:
        ratios, errors = [], []
        for configs in WAYS.values():
            made = tilelang.compile(kernel, target=TARGET, pass_configs=configs)
            problem.output.zero_()
            made(*problem.inputs)
            errors.append(float((problem.output - expected).abs().max()))
            ratios.append(peer / min(burst(lambda m=made: m(*problem.inputs)) for _ in range(3)))
        told = " | ".join(f"{ratio:.3f}" for ratio in ratios)
        print(f"| {problem.name} | {name} | {told} | {max(errors):.1e} |", flush=True)


def main(arguments: list[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=(), metavar="TEXT")
    wanted = parser.parse_args(arguments).only
    print(f"| problem | tile | {' | '.join(WAYS)} | largest difference |\n|{'---|' * 6}")
    for problem in problems():
        if not wanted or any(text in problem.name for text in wanted):
            measure(problem)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
