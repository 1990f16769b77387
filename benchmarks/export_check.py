"""Do exported kernels run where nothing but PyTorch and apache-tvm-ffi is installed?

    python benchmarks/export_check.py build BUNDLE [--wheel FILE.whl]
    python3 benchmarks/export_check.py run BUNDLE [--json OUT.json]

`build`, where the compiler is, exports eight kernels of `tests.kernels.registry` for sm_80 and
sm_90a into one file, with inputs and expected results (float64 NumPy) beside it. `run`, where the
GPU is, needs Python, NumPy, PyTorch and apache-tvm-ffi, which is taken from the wheel in the bundle
if it is not installed. It compares results, checks streams, graphs, threads and refusals, and sets
the time of one call beside that of `torch.add(out=)`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

CASES = (
    "vector_add", "scalars_of_every_kind", "gemm_float16", "jit_gemm_nt", "rms_norm",
    "mha_fwd_causal", "mha_inference_full", "gemm_splitk",
)  # fmt: skip
TARGETS = "cuda:sm_80,cuda:sm_90a"


# --- building -------------------------------------------------------------------------------


def build(out: Path, wheel: Path | None) -> int:
    """Write the bundle."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from benchmarks.export_cases import export_cases, export_trivial

    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    rows = export_cases(CASES, out, TARGETS)
    export_trivial(out, "trivial", TARGETS)
    export_trivial(out, "elsewhere", "cuda:sm_86")
    if wheel is not None:
        shutil.copy(wheel, out / wheel.name)
    (out / "cases.json").write_text(json.dumps(rows, indent=1))
    print(f"{len(rows)} kernels in {out}: {', '.join(r['name'] for r in rows)}")
    return 0


# --- running --------------------------------------------------------------------------------


def run(folder: Path, report: Path | None) -> int:
    """Run everything; the number of failures."""
    import torch

    tvm_ffi = import_tvm_ffi(folder)
    found: dict[str, Any] = {
        "device": torch.cuda.get_device_name(), "capability": torch.cuda.get_device_capability(),
        "torch": torch.__version__, "tvm_ffi": tvm_ffi.__version__, "results": [],
    }  # fmt: skip
    module = tvm_ffi.load_module(str(folder / "kernels.so"))
    for row in json.loads((folder / "cases.json").read_text()):
        found["results"].append(guarded(row["name"], lambda row=row: compare(module, folder, row)))  # type: ignore[misc]
    trivial = tvm_ffi.load_module(str(folder / "trivial.so"))["trivial"]
    elsewhere = tvm_ffi.load_module(str(folder / "elsewhere.so"))["trivial"]
    for name, check in behaviours(trivial, elsewhere):
        found["results"].append(guarded(name, check))
    found["launch"] = launch_times(trivial)
    found["alone"] = sorted({"tvm", "tilelang"} & set(sys.modules)) == []
    text = json.dumps(found, indent=1)
    print(text)
    if report is not None:
        report.write_text(text)
    failed = [r["name"] for r in found["results"] if not r["ok"]]
    print(f"{len(found['results'])} checks, {len(failed)} failed: {' '.join(failed)}")
    return len(failed) + (not found["alone"])


def import_tvm_ffi(folder: Path) -> Any:
    """apache-tvm-ffi, installed or from the wheel of the bundle."""
    try:
        import tvm_ffi
    except ImportError:
        (wheel,) = folder.glob("*.whl")
        place = tempfile.mkdtemp(prefix="tvm-ffi-")
        zipfile.ZipFile(wheel).extractall(place)
        sys.path.insert(0, place)
        import tvm_ffi
    return tvm_ffi


def guarded(name: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The result of one check, or what it raised."""
    try:
        return {"name": name, **work()}
    except Exception as error:
        return {"name": name, "ok": False, "failure": f"{type(error).__name__}: {error}"[:600]}


def compare(module: Any, folder: Path, row: dict[str, Any]) -> dict[str, Any]:
    """Call one kernel and compare its results with the expected ones."""
    import numpy as np
    import torch

    stored = dict(np.load(folder / row["arrays"]))
    values: dict[str, Any] = {}
    for arg in row["args"]:
        if arg["kind"] == "scalar":
            values[arg["name"]] = arg["value"]
            continue
        raw = torch.from_numpy(stored[arg["name"]].reshape(-1).view(np.uint8).copy())
        dtype = getattr(torch, arg["dtype"])
        values[arg["name"]] = raw.cuda().view(dtype).reshape(arg["shape"])
    module[row["name"]](*(values[arg["name"]] for arg in row["args"]))
    torch.cuda.synchronize()
    errors, ok = [], True
    for check in row["checks"]:
        got = values[check["name"]].double().cpu().numpy()
        error = difference(got, stored[check["expected"]])
        errors.append(float(f"{error:.3g}"))
        ok = ok and error <= check["tolerance"]
    return {"ok": ok, "errors": errors}


# As in `tests/kernels/case.py`, of which nothing is there where `run` runs: just this file.
def difference(got: Any, want: Any) -> float:
    """Relative Frobenius error; NaN and infinity must stand at the same places in both."""
    import numpy as np

    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    odd = ~np.isfinite(want)
    if not np.array_equal(got[odd], want[odd], equal_nan=True) or not np.isfinite(got[~odd]).all():
        return float("inf")
    scale = float(np.linalg.norm(want[~odd]))
    distance = float(np.linalg.norm(got[~odd] - want[~odd]))
    return distance / scale if scale else distance


def behaviours(trivial: Any, elsewhere: Any) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """What a call does besides computing: `trivial(A, B)` is B = A + 1 over 4096 floats."""
    import torch

    a = torch.randn(4096, device="cuda")
    out = torch.empty_like(a)

    def right() -> dict[str, Any]:
        return {"ok": torch.equal(out, a + 1)}

    def stream() -> dict[str, Any]:
        other = torch.cuda.Stream()
        out.zero_()
        torch.cuda.synchronize()
        with torch.cuda.stream(other):
            torch.cuda._sleep(50_000_000)
            doubled = a * 2
            trivial(doubled, out)
        torch.cuda.synchronize()
        return {"ok": torch.equal(out, a * 2 + 1)}

    def graph() -> dict[str, Any]:
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            trivial(a, out)
        out.zero_()
        captured.replay()
        torch.cuda.synchronize()
        return right()

    def threads() -> dict[str, Any]:
        failures: list[BaseException] = []
        outs = [torch.empty_like(a) for _ in range(8)]

        def work(mine: Any) -> None:
            try:
                for _ in range(200):
                    trivial(a, mine)
            except BaseException as error:
                failures.append(error)

        started = [threading.Thread(target=work, args=(o,)) for o in outs]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
        torch.cuda.synchronize()
        return {"ok": not failures and all(torch.equal(o, a + 1) for o in outs)}

    def refused(call: Callable[[], Any], text: str) -> dict[str, Any]:
        try:
            call()
        except Exception as error:
            said = str(error)
        else:
            said = "nothing"
        trivial(a, out)
        torch.cuda.synchronize()
        return {"ok": text in said and right()["ok"], "said": said}

    def second_device() -> dict[str, Any]:
        """While the first one is current; PyTorch's stream of the second one is used."""
        there, result = a.to("cuda:1"), torch.empty(4096, device="cuda:1")
        trivial(there, result)
        torch.cuda.synchronize(1)
        current = torch.cuda.current_device()
        return {"ok": torch.equal(result.cpu(), a.cpu() + 1) and current == 0}

    yield "stream", stream
    yield "graph", graph
    yield "threads", threads
    if torch.cuda.device_count() > 1:
        yield "second device", second_device
    wide = torch.randn(4097, device="cuda")
    for name, call, text in (
        (
            "another architecture",
            lambda: elsewhere(a, out),
            "[TL416] `trivial` was compiled for sm_86",
        ),
        ("a tensor of the host", lambda: trivial(a.cpu(), out), "[TL707]"),
        ("another dtype", lambda: trivial(a.half(), out), "[TL702]"),
        ("another shape", lambda: trivial(a[:4095], out), "[TL704]"),
        ("a misaligned view", lambda: trivial(wide[1:], out), "[TL706]"),
    ):
        yield name, lambda call=call, text=text: refused(call, text)  # type: ignore[misc]


def launch_times(trivial: Any) -> dict[str, float]:
    """Microseconds of one call from Python, the two functions in turn."""
    import torch

    a = torch.randn(4096, device="cuda")
    out = torch.empty_like(a)

    def sample(call: Callable[[], Any], count: int = 400) -> float:
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            call()
        elapsed = time.perf_counter() - start
        torch.cuda.synchronize()
        return elapsed / count * 1e6

    ours, theirs = (lambda: trivial(a, out)), (lambda: torch.add(a, 1, out=out))
    for call in (ours, theirs):
        sample(call)
    pairs = [(sample(ours), sample(theirs)) for _ in range(21)]
    mine, add = (statistics.median(column) for column in zip(*pairs, strict=True))
    return {"exported_us": round(mine, 2), "torch_add_out_us": round(add, 2),
            "ratio": round(statistics.median(m / t for m, t in pairs), 3)}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("build", "run"))
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--wheel", type=Path, help="a wheel of apache-tvm-ffi for the GPU host")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if given.action == "build":
        return build(given.bundle, given.wheel)
    return min(1, run(given.bundle, given.json))


if __name__ == "__main__":
    sys.exit(main())
