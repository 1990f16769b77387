"""Runs a bundle of compiled kernels on a GPU and compares with what was expected.

Needs Python, NumPy and the CUDA driver, nothing of this repository:

    python tests/device/driver.py BUNDLE [REPORT.json]

A bundle is a folder with `checks.json` and the binaries and arrays it names; `build.py` makes one.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

_P = ctypes.c_void_p
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_MAP_TYPES = {"uint8": 0, "uint16": 1, "uint32": 2, "int32": 3, "float16": 6, "float32": 7,
              "float64": 8, "bfloat16": 9}  # fmt: skip
_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


class CudaFailure(RuntimeError):
    pass


class Driver:
    """The CUDA driver API on device 0."""

    def __init__(self) -> None:
        self.api = ctypes.CDLL("libcuda.so.1")
        self("cuInit", 0)
        device, context = ctypes.c_int(), _P()
        self("cuDeviceGet", ctypes.byref(device), 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self("cuCtxSetCurrent", context)
        self._functions: dict[tuple[str, str], Any] = {}

    def __call__(self, name: str, *args: Any) -> None:
        status = getattr(self.api, name)(*args)
        if status:
            text = ctypes.c_char_p()
            self.api.cuGetErrorName(status, ctypes.byref(text))
            raise CudaFailure(f"{name}: {(text.value or b'?').decode()}")

    def function(self, path: Path, symbol: str, shared: int) -> Any:
        key = (str(path), symbol)
        if key not in self._functions:
            module, found = _P(), _P()
            self("cuModuleLoadData", ctypes.byref(module), path.read_bytes())
            self("cuModuleGetFunction", ctypes.byref(found), module, symbol.encode())
            if shared > 48 * 1024:
                self("cuFuncSetAttribute", found, _MAX_DYNAMIC_SHARED, shared)
            self._functions[key] = found
        return self._functions[key]

    def upload(self, array: np.ndarray) -> int:
        pointer = ctypes.c_uint64()
        size = max(16, array.nbytes)
        self("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
        if array.nbytes:
            self(
                "cuMemcpyHtoD_v2", pointer, array.ctypes.data_as(_P), ctypes.c_size_t(array.nbytes)
            )
        return int(pointer.value)

    def download(self, pointer: int, like: np.ndarray) -> np.ndarray:
        out = np.empty_like(like)
        self("cuMemcpyDtoH_v2", out.ctypes.data_as(_P), ctypes.c_uint64(pointer),
             ctypes.c_size_t(out.nbytes))  # fmt: skip
        return out

    def launch(
        self, function: Any, launch: dict[str, Any], grid: list[int], args: list[Any]
    ) -> None:
        pointers = (_P * len(args))(*(ctypes.addressof(a) for a in args))
        name = "cuLaunchCooperativeKernel" if launch["cooperative"] else "cuLaunchKernel"
        last = [pointers] if launch["cooperative"] else [pointers, None]
        sizes = [*grid, *launch["block"], launch["dynamic_shared"]]
        self(name, function, *map(ctypes.c_uint, sizes), None, *last)

    def encode(self, row: dict[str, Any], base: int, values: dict[str, int]) -> Any:
        """A tensor map: 128 bytes, aligned to 64."""
        raw = ctypes.create_string_buffer(192)
        place = (ctypes.addressof(raw) + 63) & ~63
        rank = len(row["shape"])
        shape = (ctypes.c_uint64 * rank)(*(evaluate(e, values) for e in row["shape"]))
        strides = (ctypes.c_uint64 * max(1, rank - 1))(
            *(evaluate(e, values) for e in row["strides"])
        )
        box = (ctypes.c_uint32 * rank)(*row["box"])
        steps = (ctypes.c_uint32 * rank)(*([1] * rank))
        self("cuTensorMapEncodeTiled", _P(place), _MAP_TYPES[row["dtype"]], rank,
             ctypes.c_uint64(base + evaluate(row["offset"], values)), shape, strides, box, steps,
             0, _SWIZZLES[row["swizzle"]], 2, 0)  # fmt: skip
        out = (ctypes.c_char * 128).from_address(place)
        out.keep = raw
        return out


def evaluate(expr: Any, values: dict[str, int]) -> int:
    if isinstance(expr, str):
        return values[expr]
    if not isinstance(expr, list):
        return int(expr)
    operator, *operands = expr
    numbers = [evaluate(o, values) for o in operands]
    return {
        "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
        "//": lambda a, b: a // b, "%": lambda a, b: a % b, "min": min, "max": max,
    }[operator](*numbers)  # fmt: skip


_SCALARS = {
    "int32": ctypes.c_int32, "uint32": ctypes.c_uint32, "int64": ctypes.c_int64,
    "uint64": ctypes.c_uint64, "float32": ctypes.c_float, "float64": ctypes.c_double,
}  # fmt: skip


def run(driver: Driver, folder: Path, check: dict[str, Any]) -> dict[str, Any]:
    """One check: launch, compare, and time if asked."""
    made = Execution(driver, folder, check)
    got = made.once()
    result: dict[str, Any] = {"name": check["name"], "ok": True, "errors": {}}
    for name, want in np.load(folder / check["expected"]).items():
        error = difference(got[name], want)
        result["errors"][name] = error
        if not error <= check["tolerance"]:
            result["ok"] = False
    if check.get("repeat"):
        result["us"] = timed(driver, made.calls, check["repeat"])
    made.free()
    return result


def execute(driver: Driver, folder: Path, check: dict[str, Any]) -> dict[str, np.ndarray]:
    """All arrays of a check after its launches."""
    made = Execution(driver, folder, check)
    got = made.once()
    made.free()
    return got


class Execution:
    """The arrays of one check on the device, and its launches."""

    def __init__(self, driver: Driver, folder: Path, check: dict[str, Any]) -> None:
        self.driver = driver
        manifest, values = check["manifest"], check["values"]
        self.arrays = dict(np.load(folder / check["arrays"]))
        self.places = {name: driver.upload(array) for name, array in self.arrays.items()}
        maps = {row["name"]: driver.encode(row, self.places[row["source"]], values)
                for row in manifest["maps"]}  # fmt: skip
        self.calls = []
        for launch in manifest["launches"]:
            args = []
            for param in launch["params"]:
                name, kind = param["source"], param["kind"]
                if kind == "buffer":
                    args.append(ctypes.c_uint64(self.places[name]))
                elif kind == "map":
                    args.append(maps[name])
                else:
                    args.append(_SCALARS[param["dtype"]](values[name]))
            path = folder / check["binary"]
            function = driver.function(path, launch["symbol"], launch["dynamic_shared"])
            grid = [evaluate(e, values) for e in launch["grid"]]
            self.calls.append((function, launch, grid, args))

    def once(self) -> dict[str, np.ndarray]:
        """Run every launch; all arrays as they are then."""
        for call in self.calls:
            self.driver.launch(*call)
        self.driver("cuCtxSynchronize")
        return {name: self.driver.download(self.places[name], array)
                for name, array in self.arrays.items()}  # fmt: skip

    def free(self) -> None:
        for pointer in self.places.values():
            self.driver("cuMemFree_v2", ctypes.c_uint64(pointer))


def timed(driver: Driver, calls: list[Any], repeat: int) -> float:
    """Median microseconds of a run, by events."""
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
    return float(np.median(samples))


def difference(got: np.ndarray, want: np.ndarray) -> float:
    """Relative Frobenius error of floats; share of different elements otherwise."""
    if got.dtype.kind != "f":
        return float(np.mean(got != want))
    a, b = got.astype(np.float64), want.astype(np.float64)
    odd = ~(np.isfinite(a) & np.isfinite(b))
    if np.any(odd & ~((a == b) | (np.isnan(a) & np.isnan(b)))):
        return float("inf")
    a, b = np.where(odd, 0.0, a), np.where(odd, 0.0, b)
    scale = float(np.linalg.norm(b))
    return float(np.linalg.norm(a - b)) / (scale or 1.0)


def main(folder: Path, report: Path | None) -> int:
    checks = json.loads((folder / "checks.json").read_text())
    driver = Driver()
    results = []
    for check in checks:
        started = time.time()
        try:
            results.append(run(driver, folder, check))
        except CudaFailure as error:
            results.append({"name": check["name"], "ok": False, "failure": str(error)})
            print(json.dumps(results[-1]))
            if "cuModuleLoad" not in str(error):
                break  # the context is lost
        results[-1]["seconds"] = round(time.time() - started, 3)
        if not results[-1]["ok"] or "us" in results[-1]:
            print(json.dumps(results[-1]))
    failed = [r["name"] for r in results if not r["ok"]]
    print(f"{len(results)} of {len(checks)} checks ran, {len(failed)} failed: {failed}")
    if report is not None:
        report.write_text(json.dumps(results, indent=1))
    return 1 if failed or len(results) < len(checks) else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None))
