"""How fast are kernels on a GPU, beside cuBLAS, Triton and a plain copy in the same run?

    python benchmarks/gpu_speed.py build BUNDLE [--only TEXT ...]       where the compiler is
    python benchmarks/triton_gemm.py BUNDLE                             where Triton is
    python3 benchmarks/gpu_speed.py run BUNDLE [--only TEXT ...] [--json OUT.json]  on the GPU

`run` needs PyTorch and the driver. Every kernel is checked against a reference in higher precision
before it is timed. A GPU that is kept busy with matrix products meets its power limit and
clocks down, so that whoever comes first wins: each measurement is a burst of about 12 ms from idle
with the L2 overwritten between launches, sides take turns in an order shuffled each round, and the
value is the median of the rounds. The configuration of each side is picked by a burst of its own
first. Kernels for sm_80 travel as PTX, which the driver translates, as it does Triton's.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BURST_MS = 12.0
IDLE_S = 0.15
ROUNDS = 5
KEPT = 2  # configurations of each side that go into the final rounds
FLUSH_BYTES = 256 << 20
EPSILON = 1e-6


# --- building -------------------------------------------------------------------------------


def build(out: Path, only: Sequence[str]) -> int:
    """Write the bundle: machine code, PTX and `speed.json`."""
    root = Path(__file__).resolve().parent.parent
    sys.path[:0] = [str(root), str(root / "diagnostics")]
    from benchmarks.gpu_cases import lowered
    from benchmarks.speed_kernels import all_timed
    from tilelang.layouts.infer import infer_layouts
    from tilelang.runtime.toolchain_cuda import compile_cuda
    from tilelang.target import parse_target

    out.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for timed in all_timed():
        for arch in timed.made_for:
            if not _wanted(f"{timed.problem} {timed.config} {arch}", only):
                continue
            started = time.perf_counter()
            source = lowered(timed.function.function, arch)
            binary = compile_cuda(source, parse_target(f"cuda:{arch}"))
            name = f"{len(rows)}.{'ptx' if arch == 'sm_80' else 'cubin'}"
            code = binary.ptx.encode() if arch == "sm_80" else binary.cubin
            (out / name).write_bytes(code)
            (out / f"{len(rows)}.cu").write_text(source.text)
            (launch,) = source.launches
            took = binary.resources_of(launch.symbol)
            rows.append({
                "problem": timed.problem, "config": timed.config, "arch": arch, "file": name,
                "shape": timed.shape, "symbol": launch.symbol,
                "params": [p.source for p in launch.params], "grid": launch.grid_of({}),
                "block": launch.block, "shared": launch.dynamic_shared,
                "registers": took.registers, "spills": took.spill_stores + took.spill_loads,
                "conflicts": {
                    entry.name: entry.conflict_degree
                    for entry in infer_layouts(timed.function.function, f"cuda:{arch}")
                    if entry.kind == "shared"
                },
            })  # fmt: skip
            print(f"{timed.problem} {timed.config} {arch}: {took.registers} registers, "
                  f"{rows[-1]['spills']} bytes spilled ({time.perf_counter() - started:.1f} s)",
                  flush=True)  # fmt: skip
    (out / "speed.json").write_text(json.dumps(rows, indent=0))
    return 0


def _wanted(name: str, only: Sequence[str]) -> bool:
    return not only or any(text in name for text in only)


# --- running --------------------------------------------------------------------------------


@dataclass(slots=True)
class Peer:
    """Something to time: one side's configuration. `output` is None where nothing is written
    that could be checked; `note` is printed beside the time."""

    side: str
    config: str
    call: Callable[[], object]
    output: Any = None
    note: str = ""
    ms: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return sorted(self.ms)[len(self.ms) // 2]


@dataclass(slots=True)
class Problem:
    """Tensors by the names kernels give their parameters, what is right, and what counts."""

    name: str
    tensors: dict[str, Any]
    output: str
    reference: Any
    peers: list[Peer]
    flops: float = 0.0
    bytes: float = 0.0


class Machine:
    """Loads and launches kernels."""

    def __init__(self) -> None:
        import torch
        from gpu_check import Driver

        torch.cuda.init()
        torch.zeros(1, device="cuda")
        self.driver = Driver()
        self.flush = torch.empty(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")

    def launcher(
        self, path: Path, symbol: str, grid: Sequence[int], block: Sequence[int], shared: int,
        args: Sequence[Any],
    ) -> Callable[[], object]:  # fmt: skip
        """A function that launches a kernel of a file with fixed arguments."""
        module = ctypes.c_void_p()
        code = path.read_bytes() + b"\0"
        self.driver("cuModuleLoadData", ctypes.byref(module), code)
        function = self.driver.function(module, symbol, shared)
        pointers = (ctypes.c_void_p * len(args))(*(ctypes.addressof(a) for a in args))
        sizes = [ctypes.c_uint(n) for n in (*grid, *block, shared)]
        launch, keep = self.driver.api.cuLaunchKernel, (args, module)

        def call() -> None:
            status = launch(function, *sizes, None, pointers, None)
            if status:
                raise RuntimeError(f"cuLaunchKernel: {status} with {keep[0]}")

        return call

    def burst(self, call: Callable[[], object], guess: float) -> float:
        """Median milliseconds of a launch over a burst, warmed up by two."""
        import torch

        launches = max(4, min(30, int(BURST_MS / max(guess, 1e-3))))
        call()
        call()
        pairs = []
        for _ in range(launches):
            self.flush.zero_()
            start, end = torch.cuda.Event(True), torch.cuda.Event(True)
            start.record()
            call()
            end.record()
            pairs.append((start, end))
        torch.cuda.synchronize()
        times = sorted(a.elapsed_time(b) for a, b in pairs)
        return times[len(times) // 2]


def run(bundle: Path, only: Sequence[str], report: Path | None) -> int:
    """Check and time everything; the number of kernels that are wrong."""
    import torch

    machine = Machine()
    ours = json.loads((bundle / "speed.json").read_text())
    triton_file = bundle / "triton.json"
    triton = json.loads(triton_file.read_text())["rows"] if triton_file.exists() else []
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}", flush=True)
    results, wrong = [], 0
    for name in dict.fromkeys(row["problem"] for row in ours):
        if not _wanted(name, only):
            continue
        problem = _problem(name)
        rows = [row for row in ours if row["problem"] == name]
        for row in rows:
            args = [ctypes.c_uint64(problem.tensors[p].data_ptr()) for p in row["params"]]
            call = machine.launcher(
                bundle / row["file"], row["symbol"], row["grid"], row["block"], row["shared"], args
            )
            side, output = f"ours {row['arch']}", problem.tensors[problem.output]
            problem.peers.append(Peer(side, row["config"], call, output, _conflicts(row)))
        if name.startswith("gemm"):
            problem.peers += _triton_peers(machine, bundle, triton, name, problem)
        bad = _check(problem)
        wrong += len(bad)
        kept = _measure(machine, problem, every=name.startswith("swizzle"))
        results += _told(problem, kept)
        del problem
        torch.cuda.empty_cache()
    if report is not None:
        report.write_text(json.dumps(results, indent=0))
    return wrong


def _conflicts(row: dict[str, Any]) -> str:
    """What was predicted of the shared tiles of a kernel whose layouts are compared."""
    if not row["problem"].startswith("swizzle"):
        return ""
    said = (f"{name} {degree}-way" for name, degree in row["conflicts"].items())
    return "predicted conflicts: " + ", ".join(said)


def _problem(name: str) -> Problem:
    """Inputs, reference, and PyTorch's side."""
    import torch

    kind, sizes, *rest = name.split()
    shape = [int(n) for n in sizes.split("x")]
    generator = torch.Generator("cuda").manual_seed(1)

    def drawn(*dims: int) -> Any:
        return torch.randn(*dims, device="cuda", dtype=torch.float16, generator=generator)

    if kind in ("gemm", "swizzle"):
        m, n, k = shape
        a, stored = drawn(m, k), drawn(*((n, k) if rest == ["nt"] else (k, n)))
        b = stored.T if rest == ["nt"] else stored
        c, c_blas = (torch.empty(m, n, device="cuda", dtype=torch.float16) for _ in range(2))
        exact = _exact_product(a, b)
        blas = Peer("cuBLAS", "", lambda: torch.mm(a, b, out=c_blas), c_blas)
        tensors = {"A": a, "B": stored, "C": c}
        return Problem(name, tensors, "C", exact, [blas], flops=2.0 * m * n * k)
    m, n = shape
    x = drawn(m, n)
    y = torch.empty_like(x)
    moved = 2.0 * x.nbytes
    if kind == "copy":
        tensors, exact = {"A": x, "B": y}, x
    elif kind == "add":
        other = drawn(m, n)
        tensors, exact = {"A": x, "B": other, "C": y}, x + other
        moved += x.nbytes
    elif kind == "softmax":
        tensors, exact = {"x": x, "y": y}, torch.softmax(x.double(), 1).half()
    else:
        weight = drawn(n)
        wide = x.double()
        scale = (wide.square().mean(1, keepdim=True) + EPSILON).rsqrt()
        tensors, exact = {"x": x, "weight": weight, "y": y}, (wide * scale * weight.double()).half()
        moved += weight.nbytes
    source = torch.empty(int(moved) // 2, dtype=torch.uint8, device="cuda").random_(0, 255)
    target = torch.empty_like(source)
    plain = Peer("device copy", "", lambda: target.copy_(source), None)
    theirs = torch.empty_like(x)
    calls: dict[str, Callable[[], object]] = {
        "copy": lambda: theirs.copy_(x),
        "add": lambda: torch.add(x, tensors["B"], out=theirs),
        "softmax": lambda: torch.softmax(x, 1, out=theirs),
        "rms_norm": lambda: torch.nn.functional.rms_norm(x, (n,), tensors["weight"], EPSILON),
    }
    eager = Peer("PyTorch", "", calls[kind], None if kind == "rms_norm" else theirs)
    output = {"copy": "B", "add": "C"}.get(kind, "y")
    return Problem(name, tensors, output, exact, [plain, eager], bytes=moved)


def _exact_product(a: Any, b: Any) -> Any:
    """In float32 without tf32, from float16 operands: wrong by about 1e-6."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    return torch.mm(a.float(), b.float())


def _triton_peers(
    machine: Machine, bundle: Path, rows: Sequence[Any], name: str, problem: Problem
) -> list[Peer]:
    _, sizes, layout = name.split()
    m, n, k = (int(x) for x in sizes.split("x"))
    tensors = problem.tensors
    peers = []
    for row in rows:
        tile_m, tile_n = row["tile"]
        if row["layout"] != layout:
            continue
        args: list[Any] = [ctypes.c_uint64(tensors[p].data_ptr()) for p in ("A", "B", "C")]
        args += [ctypes.c_int(x) for x in (m, n, k, k, k if layout == "nt" else n, n)]
        args += [ctypes.c_uint64(0)] * (row["params"] - len(args))
        grid = (-(-m // tile_m) * -(-n // tile_n), 1, 1)
        call = machine.launcher(
            bundle / row["file"], row["symbol"], grid, (row["threads"], 1, 1), row["shared"], args
        )
        peers.append(Peer("Triton sm_80", row["config"], call, tensors["C"]))
    return peers


def _check(problem: Problem) -> list[Peer]:
    """Run each peer once on a poisoned output; those that are wrong are left out."""
    import torch

    bad = []
    scale = torch.linalg.vector_norm(problem.reference.double())
    for peer in problem.peers:
        if peer.output is None:
            continue
        peer.output.fill_(float("nan"))
        peer.call()
        torch.cuda.synchronize()
        wide = problem.reference.double()
        error = float(torch.linalg.vector_norm(peer.output.double() - wide) / scale)
        if not error < 1e-3:
            print(f"WRONG {problem.name} {peer.side} {peer.config}: {error:.3g}", flush=True)
            bad.append(peer)
    problem.peers = [p for p in problem.peers if p not in bad]
    return bad


def _measure(machine: Machine, problem: Problem, every: bool) -> list[Peer]:
    """The times of the best configurations of each side; the others keep their first burst."""
    guesses = {}
    for peer in problem.peers:
        guesses[id(peer)] = machine.burst(peer.call, 1.0)
        time.sleep(IDLE_S / 3)
    for peer in problem.peers:
        peer.ms = [machine.burst(peer.call, guesses[id(peer)])]
        time.sleep(IDLE_S / 3)
    kept: list[Peer] = []
    for side in dict.fromkeys(p.side for p in problem.peers):
        of_side = sorted((p for p in problem.peers if p.side == side), key=lambda p: p.median)
        kept += of_side if every else of_side[:KEPT]
    first = {id(p): p.median for p in kept}
    for peer in kept:
        peer.ms = []
    for number in range(ROUNDS):
        random.Random(number).shuffle(kept)
        for peer in kept:
            time.sleep(IDLE_S)
            peer.ms.append(machine.burst(peer.call, first[id(peer)]))
    return kept


def _told(problem: Problem, kept: Sequence[Peer]) -> list[dict[str, Any]]:
    """Print the rates of everything; rows for the report."""
    base = problem.peers[0].median
    rows = []
    for peer in sorted(problem.peers, key=lambda p: (p not in kept, p.median)):
        ms = peer.median
        rate = problem.flops / ms / 1e9 if problem.flops else problem.bytes / ms / 1e6
        unit = "TFLOP/s" if problem.flops else "GB/s"
        mark = "*" if peer in kept else " "
        print(f"{mark} {problem.name:28} {peer.side:13} {peer.config:32} {ms * 1e3:9.1f} us "
              f"{rate:7.1f} {unit} {base / ms:6.3f}  {peer.note}", flush=True)  # fmt: skip
        rows.append({"problem": problem.name, "side": peer.side, "config": peer.config,
                     "ms": peer.ms, "rate": rate, "unit": unit, "ratio": base / ms,
                     "final": peer in kept})  # fmt: skip
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("build", "run"))
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if given.action == "build":
        return build(given.bundle, given.only)
    return min(1, run(given.bundle, given.only, given.json))


if __name__ == "__main__":
    sys.exit(main())
