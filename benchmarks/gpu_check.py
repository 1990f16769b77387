"""Are kernels right on a GPU? Build a bundle where the compiler is, run it where the GPU is.

    python benchmarks/gpu_check.py build BUNDLE [--arch sm_90a] [--only TEXT …]
    python3 benchmarks/gpu_check.py run BUNDLE [--json OUT.json]

`build` compiles the cases of `tests.kernels.registry` and of `gpu_cases`, and stores inputs and
expected results (float64 NumPy). `run` needs Python, NumPy, PyTorch and the driver. A case that
takes the context down is reported, and the others go on in a new process.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

_P = ctypes.c_void_p
_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_SCALARS = {
    "bool": ctypes.c_bool, "int8": ctypes.c_int8, "uint8": ctypes.c_uint8,
    "int16": ctypes.c_int16, "uint16": ctypes.c_uint16,
    "int32": ctypes.c_int32, "uint32": ctypes.c_uint32, "int64": ctypes.c_int64,
    "uint64": ctypes.c_uint64, "float32": ctypes.c_float, "float64": ctypes.c_double,
}  # fmt: skip


# --- building -------------------------------------------------------------------------------


def build(out: Path, arch: str, only: Sequence[str], device_sizes: bool, count: int) -> int:
    """Write the bundle; the number of cases that could not be compiled."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from benchmarks.gpu_cases import all_cases

    out.mkdir(parents=True, exist_ok=True)
    for old in out.iterdir():
        if old.stem.isdigit():
            old.unlink()
    rows: list[dict[str, Any]] = []
    failed = []
    for case in all_cases(count):
        if not case.fits(arch) or (only and not any(text in case.name for text in only)):
            continue
        started = time.perf_counter()
        try:
            rows.append(case.store(out, len(rows), arch, device_sizes))
            state = "ok"
        except Exception as error:
            failed.append(case.name)
            state = f"FAILED {type(error).__name__}: {str(error)[:400]}"
        print(f"{case.name}: {state} ({time.perf_counter() - started:.1f} s)", flush=True)
    (out / "cases.json").write_text(json.dumps({"arch": arch, "cases": rows}))
    print(f"{len(rows)} cases in {out}, {len(failed)} failed: {' '.join(failed)}")
    return len(failed)


# --- running --------------------------------------------------------------------------------


class Driver:
    """The CUDA driver on device 0."""

    def __init__(self) -> None:
        self.api = ctypes.CDLL("libcuda.so.1")
        self("cuInit", 0)
        device, context = ctypes.c_int(), _P()
        self("cuDeviceGet", ctypes.byref(device), 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self("cuCtxSetCurrent", context)

    def __call__(self, name: str, *args: Any) -> None:
        status = getattr(self.api, name)(*args)
        if status:
            text = ctypes.c_char_p()
            self.api.cuGetErrorName(status, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'?').decode()}")

    def upload(self, data: bytes) -> int:
        """A copy in device memory, guarded by a page that is not looked at."""
        pointer = ctypes.c_uint64()
        self("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(16, len(data))))
        if data:
            self("cuMemcpyHtoD_v2", pointer, data, ctypes.c_size_t(len(data)))
        return int(pointer.value)

    def download(self, pointer: int, size: int) -> bytes:
        out = ctypes.create_string_buffer(max(1, size))
        if size:
            self("cuMemcpyDtoH_v2", out, ctypes.c_uint64(pointer), ctypes.c_size_t(size))
        return out.raw[:size]

    def function(self, module: Any, symbol: str, shared: int) -> Any:
        found = _P()
        self("cuModuleGetFunction", ctypes.byref(found), module, symbol.encode())
        if shared > 40 * 1024:  # 48 KiB with what is static
            self("cuFuncSetAttribute", found, _MAX_DYNAMIC_SHARED, shared)
        return found

    def launch(self, function: Any, row: dict[str, Any], args: Sequence[Any]) -> None:
        if 0 in row["grid"]:
            return
        pointers = (_P * max(1, len(args)))(*(ctypes.addressof(a) for a in args))
        sizes = [ctypes.c_uint(n) for n in (*row["grid"], *row["block"], row["shared"])]
        if row["cooperative"]:
            self("cuLaunchCooperativeKernel", function, *sizes, None, pointers)
        else:
            self("cuLaunchKernel", function, *sizes, None, pointers, None)


def run_case(driver: Driver, folder: Path, row: dict[str, Any], repeat: int) -> dict[str, Any]:
    """Launch one case and compare."""
    import numpy as np

    sys.path[:0] = [str(Path(__file__).resolve().parent.parent / p) for p in ("", "diagnostics")]
    module = _P()
    driver("cuModuleLoadData", ctypes.byref(module), (folder / row["binary"]).read_bytes())
    stored = dict(np.load(folder / row["arrays"]))
    places = {a["name"]: driver.upload(stored[a["name"]].tobytes()) for a in row["arrays_of"]}
    calls = []
    for launch in row["launches"]:
        args: list[Any] = []
        for param in launch["params"]:
            if param["kind"] in ("buffer", "workspace"):
                args.append(ctypes.c_uint64(places[param["source"]]))
            elif param["kind"] == "map":
                args.append(described(driver, row, param["source"], places))
            else:
                value = row["values"][param["source"]]
                args.append(scalar(param["dtype"], value))
        function = driver.function(module, launch["symbol"], launch["shared"])
        calls.append((function, launch, args))
    for call in calls:
        driver.launch(*call)
    driver("cuCtxSynchronize")
    result: dict[str, Any] = {"name": row["name"], "ok": True, "errors": []}
    got, expected = [], []
    for check in row["checks"]:
        array = next(a for a in row["arrays_of"] if a["name"] == check["name"])
        raw = driver.download(places[check["name"]], stored[check["name"]].nbytes)
        got.append(decoded(raw, array))
        expected.append(stored[check["expected"]])
    if row["canonical"]:
        from tests.kernels.registry import KERNELS

        canonical = next(case.canonical for case in KERNELS if case.name == row["name"])
        got, expected = canonical(tuple(got)), canonical(tuple(expected))
    for check, have, want in zip(row["checks"], got, expected, strict=True):
        error = difference(have, want)
        result["errors"].append(float(f"{error:.3g}"))
        if not error <= check["tolerance"]:
            result["ok"] = False
            result.setdefault("allowed", []).append(check["tolerance"])
    if repeat:
        result["us"] = round(timed(driver, calls, repeat), 2)
    for pointer in places.values():
        driver("cuMemFree_v2", ctypes.c_uint64(pointer))
    driver("cuModuleUnload", module)
    return result


def described(driver: Driver, row: dict[str, Any], name: str, places: dict[str, int]) -> Any:
    """A tensor map as it is passed: 128 bytes, aligned to 64."""
    from types import SimpleNamespace

    from tilelang.codegen.device_source import TensorMap
    from tilelang.runtime.cuda_tensor_map import TensorMaps

    said = next(m for m in row["maps"] if m["name"] == name)
    found = TensorMap(**{**said, **{k: tuple(said[k]) for k in ("shape", "strides", "box")}})
    maps = TensorMaps(SimpleNamespace(library=driver.api), (found,))  # type: ignore[arg-type]
    address = places[found.source] + int(found.offset)  # type: ignore[arg-type]
    shape, strides = (tuple(map(int, x)) for x in (found.shape, found.strides))  # type: ignore[arg-type]
    data = maps.encode(0, address, shape, strides)
    memory = ctypes.create_string_buffer(len(data) + 64)
    start = -ctypes.addressof(memory) % 64
    kept = (ctypes.c_char * len(data)).from_buffer(memory, start)
    kept.raw = data
    return kept


def scalar(dtype: str, value: Any) -> Any:
    """A scalar argument as it lies in memory; C has no 16-bit floats, so their bits travel."""
    import struct

    if dtype == "float16":
        return ctypes.c_uint16(struct.unpack("<H", struct.pack("<e", value))[0])
    if dtype == "bfloat16":
        import torch

        bits = torch.tensor(float(value), dtype=torch.bfloat16).view(torch.int16).item()
        return ctypes.c_int16(int(bits))
    return _SCALARS[dtype](value)


def timed(driver: Driver, calls: Sequence[Any], repeat: int) -> float:
    """Median microseconds of one run."""
    events = [_P(), _P()]
    for event in events:
        driver("cuEventCreate", ctypes.byref(event), 0)
    samples = []
    for _ in range(repeat):
        driver("cuEventRecord", events[0], None)
        for call in calls:
            driver.launch(*call)
        driver("cuEventRecord", events[1], None)
        driver("cuEventSynchronize", events[1])
        elapsed = ctypes.c_float()
        driver("cuEventElapsedTime", ctypes.byref(elapsed), *events)
        samples.append(elapsed.value * 1e3)
    return sorted(samples)[len(samples) // 2]


def decoded(raw: bytes, array: dict[str, Any]) -> Any:
    """The values of an output as NumPy knows them."""
    import torch

    dtype = getattr(torch, array["dtype"])
    flat = torch.frombuffer(bytearray(raw), dtype=dtype).reshape(array["shape"])
    return (flat.double() if dtype.is_floating_point else flat).numpy()


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


def work(folder: Path, numbers: Sequence[int], repeat: int) -> None:
    """In a process of its own: one line of JSON before and after each case."""
    rows = json.loads((folder / "cases.json").read_text())["cases"]
    driver = Driver()
    for number in numbers:
        print(json.dumps({"start": number}), flush=True)
        try:
            result = run_case(driver, folder, rows[number], repeat)
        except RuntimeError as error:
            result = {"name": rows[number]["name"], "ok": False, "failure": str(error)}
        print(json.dumps({"end": number, "result": result}), flush=True)
        if "failure" in result and "cuModuleLoad" not in result["failure"]:
            return


def supervise(folder: Path, numbers: Sequence[int], repeat: int) -> Iterator[dict[str, Any]]:
    """The results of all cases, over as many processes as it takes."""
    rows = json.loads((folder / "cases.json").read_text())["cases"]
    left = list(numbers)
    while left:
        command = [sys.executable, __file__, "work", str(folder), "--repeat", str(repeat)]
        command += ["--numbers", *map(str, left)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=30 + 5 * len(left)
            )
            output, said = done.stdout, done.stderr
        except subprocess.TimeoutExpired as late:
            output = (late.stdout or b"").decode() if late.stdout else ""
            said = "no answer"
        current = None
        for line in output.splitlines():
            if not line.startswith("{"):
                continue
            record = json.loads(line)
            current = record.get("start", current)
            if "end" in record:
                left.remove(record["end"])
                current = None
                yield record["result"]
        if current is None and left and not output:
            yield {"name": "driver", "ok": False, "failure": said[-400:]}
            return
        if current is not None:
            left.remove(current)
            yield {"name": rows[current]["name"], "ok": False, "failure": said[-400:] or "died"}


def run(folder: Path, report: Path | None, repeat: int) -> int:
    """Run everything; the number of failures."""
    cases = json.loads((folder / "cases.json").read_text())["cases"]
    results = []
    for result in supervise(folder, range(len(cases)), repeat):
        results.append(result)
        if not result["ok"] or repeat:
            print(json.dumps(result), flush=True)
    failed = [r["name"] for r in results if not r["ok"]]
    print(f"{len(results)} of {len(cases)} ran, {len(failed)} failed: {' '.join(failed)}")
    if report is not None:
        report.write_text(json.dumps(results, indent=1))
    return len(failed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("build", "run", "work"))
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--device-sizes", action="store_true")
    parser.add_argument("--random", type=int, default=0, help="random kernels of each kind")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--repeat", type=int, default=0)
    parser.add_argument("--numbers", nargs="*", type=int, default=())
    given = parser.parse_args()
    match given.action:
        case "build":
            return min(
                1, build(given.bundle, given.arch, given.only, given.device_sizes, given.random)
            )
        case "run":
            return min(1, run(given.bundle, given.json, given.repeat))
        case _:
            work(given.bundle, given.numbers, given.repeat)
            return 0


if __name__ == "__main__":
    sys.exit(main())
