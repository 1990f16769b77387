"""Builds the bundle that `driver.py` runs on a GPU: kernels at thread level with their answers.

python -m tests.device.build OUT [--arch sm_90a]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.device import checks
from tilelang.codegen.cuda import print_cuda
from tilelang.runtime.toolchain_cuda import compile_cuda
from tilelang.target import Target


@dataclass(frozen=True)
class Check:
    """A function at stage `device`, its arguments, and what some of them become."""

    name: str
    func: Any
    arrays: Mapping[str, np.ndarray]
    expected: Mapping[str, np.ndarray]
    values: Mapping[str, int | float] = field(default_factory=dict)
    tolerance: float = 0.0
    repeat: int = 0
    arch: str | None = None


def build(out: Path, arch: str) -> int:
    """Write the bundle; the number of checks."""
    out.mkdir(parents=True, exist_ok=True)
    rows = []
    for number, check in enumerate(all_checks()):
        source = print_cuda(check.func)
        binary = compile_cuda(source, Target("cuda", check.arch or arch))
        # Machine code of another architecture goes as PTX, which the driver compiles.
        code = binary.cubin if check.arch is None else binary.ptx.encode() + b"\0"
        (out / f"{number}.bin").write_bytes(code)
        (out / f"{number}.cu").write_text(source.text)
        np.savez_compressed(out / f"{number}_in.npz", **check.arrays)
        np.savez_compressed(out / f"{number}_out.npz", **check.expected)
        manifest = source.manifest()
        del manifest["source_map"]
        rows.append({
            "name": check.name, "binary": f"{number}.bin", "manifest": manifest,
            "arrays": f"{number}_in.npz", "expected": f"{number}_out.npz",
            "values": dict(check.values), "tolerance": check.tolerance, "repeat": check.repeat,
        })  # fmt: skip
    (out / "checks.json").write_text(json.dumps(rows))
    return len(rows)


def all_checks() -> Iterator[Check]:
    """Every check of `checks`."""
    for make in checks.CHECKS:
        for given in make():
            yield Check(**given)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--arch", default="sm_90a")
    given = parser.parse_args()
    print(f"{build(given.out, given.arch)} checks in {given.out}")
