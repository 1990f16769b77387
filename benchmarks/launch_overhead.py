"""How long does Python take for a launch of a trivial kernel, against `torch.add(out=)`?

    python benchmarks/launch_overhead.py build BUNDLE [--arch sm_90a]
    python3 benchmarks/launch_overhead.py run BUNDLE [--json OUT.json]

`build` needs the compiler, `run` PyTorch and a GPU. Each round times every contender once, a batch
of calls at a time with the device idle before it, so that all see the same clocks; the table gives
medians over the rounds, and the ratio to `torch.add` of the same round.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "diagnostics")]

import tilelang  # noqa: E402
import tilelang.language as T  # noqa: E402

SIZE = 1024


@T.prim_func
def add(
    A: T.Tensor((SIZE,), "float32"), B: T.Tensor((SIZE,), "float32"),
    C: T.Tensor((SIZE,), "float32"),
):  # fmt: skip
    with T.Kernel(SIZE // 256, threads=256) as bx:
        for i in T.Parallel(256):
            C[bx * 256 + i] = A[bx * 256 + i] + B[bx * 256 + i]


@T.prim_func
def add_rows(
    A: T.Tensor((T.dynamic("n"), 64), "float32"), B: T.Tensor((T.dynamic("n"), 64), "float32"),
    C: T.Tensor((T.dynamic("n"), 64), "float32"),
):  # fmt: skip
    with T.Kernel(T.ceildiv(A.shape[0], 4), threads=256) as bx:
        for i, j in T.Parallel(4, 64):
            C[bx * 4 + i, j] = A[bx * 4 + i, j] + B[bx * 4 + i, j]


@tilelang.jit(target="cuda:sm_90a")
def add_eager(A, B, C):  # type: ignore[no-untyped-def]
    N = T.const("N")
    A: T.Tensor((N,), "float32")  # type: ignore[no-redef]
    B: T.Tensor((N,), "float32")  # type: ignore[no-redef]
    C: T.Tensor((N,), "float32")  # type: ignore[no-redef]
    with T.Kernel(N // 256, threads=256) as bx:
        for i in T.Parallel(256):
            C[bx * 256 + i] = A[bx * 256 + i] + B[bx * 256 + i]


def functions() -> dict[str, Any]:
    """The traced kernels, by name."""
    return {"add": add.function, "add_rows": add_rows.function,
            "add_eager": add_eager.get_tir(N=SIZE)}  # fmt: skip


def build(out: Path, arch: str) -> None:
    from tilelang.compiler import compile_function
    from tilelang.options import CompileOptions
    from tilelang.target import parse_target

    for name, function in functions().items():
        target = parse_target(f"cuda:{arch}")
        compiled = compile_function(function, target, CompileOptions())
        compiled.artifact.save(out / name)  # type: ignore[union-attr]
        print(f"{name} in {out / name}")


def load(bundle: Path, name: str, arch: str) -> Any:
    """The kernel as `tilelang.compile` gives it, from a stored binary."""
    from tilelang.codegen.cuda_artifact import CudaArtifact
    from tilelang.compiler import Compiled
    from tilelang.runtime.build import Built
    from tilelang.runtime.cuda import load_cuda
    from tilelang.runtime.kernel import JITKernel
    from tilelang.target import parse_target

    artifact = CudaArtifact.load(bundle / name)
    compiled = Compiled(artifact, parse_target(f"cuda:{arch}"), "")
    return JITKernel(functions()[name], Built(compiled, load_cuda(artifact), True))


def run(bundle: Path, arch: str, report: Path | None, rounds: int, calls: int) -> int:
    import torch

    flat = [torch.randn(SIZE, device="cuda") for _ in range(3)]
    rows = [x.view(16, 64) for x in flat]
    static, dynamic = load(bundle, "add", arch), load(bundle, "add_rows", arch)
    add_eager.eager.build = lambda function: load(bundle, "add_eager", arch)
    contenders: dict[str, Callable[[], Any]] = {
        "torch.add(out=)": lambda: torch.add(flat[0], flat[1], out=flat[2]),
        "tilelang": lambda: static(*flat),
        "tilelang, dynamic rows": lambda: dynamic(*rows),
        "tilelang, eager": lambda: add_eager(*flat),
    }
    for name, call in contenders.items():
        for _ in range(50):
            call()
        torch.cuda.synchronize()
        wanted = flat[0] + flat[1]
        assert torch.equal(flat[2], wanted), name
    timed: dict[str, list[float]] = {name: [] for name in contenders}
    a, b, c = flat
    ra, rb, rc = rows
    add_out = torch.add
    for _ in range(rounds):
        timed["torch.add(out=)"].append(_batch(lambda: add_out(a, b, out=c), calls))
        timed["tilelang"].append(_batch(lambda: static(a, b, c), calls))
        timed["tilelang, dynamic rows"].append(_batch(lambda: dynamic(ra, rb, rc), calls))
        timed["tilelang, eager"].append(_batch(lambda: add_eager(a, b, c), calls))
    base = timed["torch.add(out=)"]
    result = {}
    for name, samples in timed.items():
        ratio = statistics.median(x / y for x, y in zip(samples, base, strict=True))
        result[name] = {"us": statistics.median(samples), "min": min(samples), "ratio": ratio}
        print(f"{name:26} {statistics.median(samples):6.2f} µs  min {min(samples):6.2f}  "
              f"{ratio:5.2f} x torch.add")  # fmt: skip
    for name, us in _pieces(static, flat).items():
        result[name] = {"us": us}
        print(f"  {name:24} {us:6.2f} µs")
    if report is not None:
        report.write_text(json.dumps(result, indent=1))
    return 0


def _batch(call: Callable[[], Any], calls: int) -> float:
    """Microseconds of one call, in a batch short enough that no queue fills up."""
    import torch

    torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(calls):
        call()
    seconds = time.perf_counter() - started
    torch.cuda.synchronize()
    return seconds / calls * 1e6


def _pieces(kernel: Any, tensors: list[Any]) -> dict[str, float]:
    """What parts of a call take by themselves."""
    names = type(kernel).__call__.__globals__
    a, b, c = tensors
    found = {"a.data_ptr()": _batch(lambda: a.data_ptr(), 500)}
    if "same" in names:
        same = names["same"]
        found["recognising 3 tensors"] = _batch(lambda: same(a, b, c), 500)
    stream, frame = names["stream"], names["frame0"]()
    launch, function = names["driver_launch"], names["functions0"][a.get_device()]
    names["pack0"](frame[0], frame[1], stream(a.get_device()), *(x.data_ptr() for x in tensors))
    found["current stream"] = _batch(lambda: stream(0), 500)
    found["cuLaunchKernelEx alone"] = _batch(
        lambda: launch(frame[2], function, frame[3], None), 500
    )
    found["an empty lambda"] = _batch(lambda: None, 500)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("build", "run"))
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--calls", type=int, default=300)
    given = parser.parse_args()
    if given.action == "build":
        build(given.bundle, given.arch)
        return 0
    return run(given.bundle, given.arch, given.json, given.rounds, given.calls)


if __name__ == "__main__":
    sys.exit(main())
