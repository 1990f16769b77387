"""Are the kernels of `tests.kernels.registry` right on a GPU at the sizes they are named with?

    python benchmarks/device_sizes.py build BUNDLE [--arch sm_90a] [--only TEXT …]
    python3 benchmarks/device_sizes.py run BUNDLE [--only TEXT …] [--seconds 15] [--json OUT.jsonl]

`gpu_check.py` carries inputs and float64 results to the GPU, which gigabytes do not allow. Here
only machine code travels: inputs and results are made on the GPU's machine by the case itself, in
float64, by NumPy, or on the GPU (through PyTorch's own `torch._numpy`) where they are large.
`run` needs Python, NumPy, PyTorch, the driver and this tree; neither TVM nor a compiler.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(_ROOT), str(_ROOT / "diagnostics")]

_LARGE = 1 << 22  # elements in the largest tensor from which the GPU computes the answer
_FIRST_SECONDS = 90.0  # the first case of a process waits for PyTorch too


# --- building -------------------------------------------------------------------------------


def build(out: Path, arch: str, only: Sequence[str]) -> int:
    """Write the bundle; the number of cases that could not be compiled."""
    from benchmarks.gpu_cases import Case
    from tests.kernels.registry import KERNELS

    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("*.cubin"):
        old.unlink()
    rows: list[dict[str, Any]] = []
    failed = []
    for case in KERNELS:
        for_gpu = any(name.startswith("cuda") for name in case.targets) and Case(case).fits(arch)
        wanted = not only or any(text in case.name for text in only)
        if not (for_gpu and wanted) or case.tier == 5:  # tier 5: Blackwell
            continue
        started = time.perf_counter()
        try:
            rows.append(_store(case, out, len(rows), arch))
            state = "ok"
        except Exception as error:
            failed.append(case.name)
            state = f"FAILED {type(error).__name__}: {str(error)[:400]}"
        print(f"{case.name}: {state} ({time.perf_counter() - started:.1f} s)", flush=True)
    rows.sort(key=lambda row: int(row["elements"]))
    (out / "cases.json").write_text(json.dumps({"arch": arch, "cases": rows}))
    print(f"{len(rows)} cases in {out}, {len(failed)} failed: {' '.join(failed)}")
    return len(failed)


def _store(case: Any, out: Path, number: int, arch: str) -> dict[str, Any]:
    """Compile and write one case at the sizes of a GPU; its row in the bundle."""
    from benchmarks.gpu_cases import Case, _launch, _map, _Row, lowered
    from tilelang.codegen.host_expr import evaluate
    from tilelang.program.buffer import Buffer
    from tilelang.runtime.toolchain_cuda import compile_cuda
    from tilelang.target import parse_target

    inputs = case.inputs(_Unread(), **case.values(True)) if _shapes_matter(case) else ()
    function, out_idx = Case(case).program(inputs, True, arch)
    source = lowered(function, arch)
    binary = compile_cuda(source, parse_target(f"cuda:{arch}"))
    (out / f"{number}.cubin").write_bytes(binary.cubin)
    row = _Row(case, function, out_idx, inputs, ())
    values = [x for x in inputs if hasattr(x, "shape") or isinstance(x, (int, float, bool))]
    if values:
        for param, value in zip(row.given, values, strict=True):
            if isinstance(param, Buffer):
                row._bind_dims(param, value)
            else:
                row.values[param.name] = value
    for param in (*row.given, *row.returned):
        if isinstance(param, Buffer):
            row._describe(param, _extents(param.shape, row.values), None)
    checked = [p.name for p in row.returned] + [row.given[i].name for i in case.mutates]
    return {
        "name": case.name, "row": case.row, "binary": f"{number}.cubin",
        "given": [p.name for p in row.given], "arrays": row.described, "values": row.values,
        "elements": max((math.prod(a["shape"]) for a in row.described), default=0),
        "checks": [
            {"name": name, "tolerance": row._tolerance(n, name)} for n, name in enumerate(checked)
        ],
        "workspaces": {w.name: int(evaluate(w.bytes, row.values)) for w in source.workspaces},
        "launches": [_launch(x, row.values) for x in source.launches],
        "maps": [_map(m, row.values) for m in source.maps],
    }  # fmt: skip


def _extents(dims: Sequence[Any], values: Mapping[str, Any]) -> tuple[int, ...]:
    from tilelang.program import arith, operators
    from tilelang.program.accesses import variables

    known = {
        v: operators.constant(values[v.name], v.dtype)
        for d in dims if not isinstance(d, int) for v in variables(d)
    }  # fmt: skip
    return tuple(int(arith.constant_value(arith.substitute(d, known)) or 0) for d in dims)


def _shapes_matter(case: Any) -> bool:
    """Whether the program follows from tensors; the other styles name every extent."""
    if case.style == "eager":
        return True
    return not (case.device_params or case.device_sizes)


class _Unread:
    """A generator whose large arrays are never written: only their shapes are looked at."""

    def __init__(self) -> None:
        import numpy as np

        class Unwritten(np.ndarray):
            def astype(self, dtype: Any, *_: Any, **__: Any) -> Any:
                return np.zeros(self.shape, dtype)

        self.real, self.kind, self.zeros = np.random.default_rng(0), Unwritten, np.zeros

    def standard_normal(self, shape: Any) -> Any:
        return self.zeros(shape).view(self.kind)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


# --- running --------------------------------------------------------------------------------


def run_case(driver: Any, folder: Path, row: dict[str, Any], device: str) -> dict[str, Any]:
    """Make inputs and the answer, launch, compare."""
    import torch

    from benchmarks.device_answers import answer, compare, make_inputs, tensor_of
    from tests.kernels.registry import KERNELS

    case = next(case for case in KERNELS if case.name == row["name"])
    large = row["elements"] >= _LARGE
    started = time.perf_counter()
    inputs, made = make_inputs(case, device, large)
    want, computed = answer(case, inputs, device, large)
    given = [x for x in inputs if hasattr(x, "shape") or isinstance(x, (int, float, bool))]
    described = {array["name"]: array for array in row["arrays"]}
    held: dict[str, Any] = {}
    for name, value in zip(row["given"], given, strict=True):
        if name in described:
            held[name] = tensor_of(value, device)
            found, said = list(held[name].shape), described[name]["shape"]
            if found != said:
                raise RuntimeError(f"`{name}` was made with {found}, compiled for {said}")
    for name, array in described.items():
        if name not in held:
            held[name] = _poisoned(array, device)
    for name, size in row["workspaces"].items():
        held[name] = torch.zeros(max(16, size), dtype=torch.uint8, device=device)
    torch.cuda.synchronize()
    prepared = time.perf_counter()
    _launch_all(driver, folder, row, {name: tensor.data_ptr() for name, tensor in held.items()})
    launched = time.perf_counter()
    outputs = [_typed(held[c["name"]], described[c["name"]]) for c in row["checks"]]
    if case.canonical is not None:
        outputs = [
            torch.from_numpy(x) for x in case.canonical(tuple(x.cpu().numpy() for x in outputs))
        ]
        want = case.canonical(want)
    if len(want) != len(outputs):
        raise RuntimeError(f"{len(outputs)} outputs, expected {len(want)}")
    checks = [
        compare(got, exact, check["tolerance"])
        for got, exact, check in zip(outputs, want, row["checks"], strict=True)
    ]
    return {
        "name": case.name, "row": case.row, "ok": all(c["ok"] for c in checks),
        "checks": checks, "allowed": [check["tolerance"] for check in row["checks"]],
        "shapes": {name: array["shape"] for name, array in described.items()},
        "inputs": made, "answer": computed,
        "seconds": [round(prepared - started, 2), round(launched - prepared, 3),
                    round(time.perf_counter() - launched, 2)],
    }  # fmt: skip


def _poisoned(array: dict[str, Any], device: str) -> Any:
    """An output with all bits set: what a kernel does not write is NaN or -1."""
    import torch

    size = math.prod(array["shape"]) * getattr(torch, array["dtype"]).itemsize
    return torch.full((max(16, size),), 0xFF, dtype=torch.uint8, device=device)


def _typed(held: Any, array: dict[str, Any]) -> Any:
    """What lies in memory, as the kernel means it."""
    import torch

    dtype = getattr(torch, array["dtype"])
    size = math.prod(array["shape"]) * dtype.itemsize
    return held.reshape(-1).view(torch.uint8)[:size].view(dtype).reshape(array["shape"])


def _launch_all(driver: Any, folder: Path, row: dict[str, Any], places: dict[str, int]) -> None:
    """Launch the kernels of a case in turn and wait for the last."""
    from benchmarks.gpu_check import described, scalar

    module = ctypes.c_void_p()
    driver("cuModuleLoadData", ctypes.byref(module), (folder / row["binary"]).read_bytes())
    for launch in row["launches"]:
        args: list[Any] = []
        for param in launch["params"]:
            if param["kind"] in ("buffer", "workspace"):
                args.append(ctypes.c_uint64(places[param["source"]]))
            elif param["kind"] == "map":
                args.append(described(driver, row, param["source"], places))
            else:
                args.append(scalar(param["dtype"], row["values"][param["source"]]))
        driver.launch(driver.function(module, launch["symbol"], launch["shared"]), launch, args)
    driver("cuCtxSynchronize")
    driver("cuModuleUnload", module)


def work(folder: Path, numbers: Sequence[int]) -> None:
    """In a process of its own: one line of JSON before and after each case."""
    import torch

    from benchmarks.gpu_check import Driver

    rows = json.loads((folder / "cases.json").read_text())["cases"]
    torch.zeros(1, device="cuda")
    driver = Driver()
    for number in numbers:
        print(json.dumps({"start": number}), flush=True)
        try:
            result = run_case(driver, folder, rows[number], "cuda")
        except Exception as error:
            text = f"{type(error).__name__}: {str(error)[:300]}"
            result = {"name": rows[number]["name"], "ok": False, "failure": text}
        print(json.dumps({"end": number, "result": result}), flush=True)
        if "CUDA_ERROR" in result.get("failure", ""):
            return  # the context may be gone: the rest goes on in a new process
        if rows[number]["elements"] >= 1 << 27:
            torch.cuda.empty_cache()


def supervise(folder: Path, numbers: Sequence[int], seconds: float) -> Iterator[dict[str, Any]]:
    """The results of all cases, each within its time, over as many processes as it takes."""
    rows = json.loads((folder / "cases.json").read_text())["cases"]
    left = list(numbers)
    while left:
        command = [sys.executable, __file__, "work", str(folder), "--numbers", *map(str, left)]
        current, before = None, len(left)
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            for line in _lines(process, seconds):
                if not line.startswith("{"):
                    continue
                record = json.loads(line)
                current = record.get("start", current)
                if "end" in record:
                    left.remove(record["end"])
                    current = None
                    yield record["result"]
            late = process.poll() is None
            process.kill()
        if current is not None:
            left.remove(current)
            why = f"no answer within {seconds:.0f} s" if late else "the process died"
            yield {"name": rows[current]["name"], "ok": False, "failure": why}
        elif len(left) == before:
            yield {"name": "worker", "ok": False, "failure": "it did not start"}
            return


def _lines(process: subprocess.Popen[bytes], seconds: float) -> Iterator[str]:
    """What a process prints, until it ends or says nothing for so long."""
    assert process.stdout is not None
    wait = selectors.DefaultSelector()
    wait.register(process.stdout, selectors.EVENT_READ)
    allowed, rest = _FIRST_SECONDS, b""
    while wait.select(allowed):
        data = os.read(process.stdout.fileno(), 1 << 16)
        if not data:
            process.wait()
            return
        *lines, rest = (rest + data).split(b"\n")
        yield from (line.decode(errors="replace") for line in lines)
        allowed = seconds


def run(folder: Path, only: Sequence[str], seconds: float, report: Path | None) -> int:
    """Run everything; the number of failures."""
    cases = json.loads((folder / "cases.json").read_text())["cases"]
    wanted = [n for n, c in enumerate(cases) if not only or any(text in c["name"] for text in only)]
    failed, count = [], 0
    for result in supervise(folder, wanted, seconds):
        count += 1
        if not result["ok"]:
            failed.append(result["name"])
            print(json.dumps(result), flush=True)
        if report is not None:
            with report.open("a") as out:
                out.write(json.dumps(result) + "\n")
    print(f"{count} of {len(wanted)} ran, {len(failed)} failed: {' '.join(failed)}")
    return len(failed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("build", "run", "work"))
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--seconds", type=float, default=15.0, help="the most one case may take")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--numbers", nargs="*", type=int, default=())
    given = parser.parse_args()
    match given.action:
        case "build":
            return min(1, build(given.bundle, given.arch, given.only))
        case "run":
            return min(1, run(given.bundle, given.only, given.seconds, given.json))
        case _:
            work(given.bundle, given.numbers)
            return 0


if __name__ == "__main__":
    sys.exit(main())
