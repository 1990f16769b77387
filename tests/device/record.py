"""Records what a GPU does, for the emulator to be compared with.

    python -m tests.device.record build BUNDLE             # here: compiles, needs NVRTC, no GPU
    python3 -m tests.device.record run BUNDLE --out GOLDEN  # there: needs NumPy and the driver

GOLDEN is `tests/emulator/golden`: `manifest.json` says where and when it was recorded, with a hash
of the inputs and outputs of each case; `outputs.npz` holds the outputs that depend on rounding.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.device.driver import CudaFailure, Driver, execute

COMMAND = "python3 -m tests.device.record run BUNDLE --out GOLDEN"


def build(bundle: Path, arch: str = "sm_90a") -> int:
    """Compile every case into `bundle`; how many there are."""
    from tests.device.golden import golden_cases
    from tilelang.codegen.cuda import print_cuda
    from tilelang.runtime.toolchain_cuda import compile_cuda
    from tilelang.target import Target

    bundle.mkdir(parents=True, exist_ok=True)
    rows = []
    for number, case in enumerate(golden_cases()):
        source = print_cuda(case.func())
        (bundle / f"{number}.bin").write_bytes(compile_cuda(source, Target("cuda", arch)).cubin)
        np.savez_compressed(bundle / f"{number}_in.npz", **case.inputs())
        manifest = source.manifest()
        del manifest["source_map"]
        rows.append({
            "name": case.name, "binary": f"{number}.bin", "manifest": manifest,
            "arrays": f"{number}_in.npz", "values": {}, "outputs": list(case.outputs),
            "rounded": list(case.rounded), "inputs": case.fingerprint(),
        })  # fmt: skip
    (bundle / "cases.json").write_text(json.dumps(rows))
    return len(rows)


def run(bundle: Path, out: Path) -> int:
    """Run every case of `bundle` and write down what came out; how many there are.

    A case that the GPU refuses is written down as that; the next ones run in a new process.
    """
    stored: dict[str, np.ndarray] = {}
    cases: dict[str, Any] = {}
    pool = ProcessPoolExecutor(1)
    about = pool.submit(_about).result()
    for row in json.loads((bundle / "cases.json").read_text()):
        cases[row["name"]] = said = {"inputs": row["inputs"]}
        try:
            arrays = pool.submit(_execute, bundle, row).result()
        except CudaFailure as failure:
            said["refused"] = str(failure)
            pool.shutdown()
            pool = ProcessPoolExecutor(1)
            continue
        said["outputs"] = {name: digest(arrays[name]) for name in row["outputs"]}
        stored |= {f"{row['name']}/{name}": arrays[name] for name in row["rounded"]}
    pool.shutdown()
    out.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(out / "outputs.npz", **stored)
    today = datetime.now(UTC).date().isoformat()
    manifest = {**about, "date": today, "command": COMMAND, "cases": cases}
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return len(cases)


@cache
def _driver() -> Driver:
    return Driver()


def _execute(bundle: Path, row: dict[str, Any]) -> dict[str, np.ndarray]:
    return execute(_driver(), bundle, row)


def _about() -> dict[str, str]:
    return {"device": device_name(_driver()), "driver": driver_version(_driver())}


def digest(array: np.ndarray) -> str:
    """The hash an output is known by."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:32]


def device_name(driver: Driver) -> str:
    text, device = ctypes.create_string_buffer(128), ctypes.c_int()
    driver("cuDeviceGet", ctypes.byref(device), 0)
    driver("cuDeviceGetName", text, 128, device)
    return text.value.decode()


def driver_version(driver: Driver) -> str:
    """Of the driver's package where the system says it, else of the API."""
    try:
        words = Path("/proc/driver/nvidia/version").read_text().split()
        return next(w for w in words if w.count(".") >= 1 and w[0].isdigit())
    except (OSError, StopIteration):
        version = ctypes.c_int()
        driver("cuDriverGetVersion", ctypes.byref(version))
        return f"API {version.value // 1000}.{version.value % 1000 // 10}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("build", "run"))
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--out", type=Path, default=Path("tests/emulator/golden"))
    given = parser.parse_args()
    count = build(given.bundle) if given.action == "build" else run(given.bundle, given.out)
    print(f"{count} cases {'in' if given.action == 'build' else 'of'} {given.bundle}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
