"""Which kernels does `export_check` export, and what travels beside them?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tilelang.language as T
from benchmarks.gpu_cases import Case, _Row
from tests.kernels.case import KernelCase, to_numpy
from tests.kernels.registry import KERNELS
from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.options import CompileOptions
from tilelang.program.buffer import Buffer
from tilelang.runtime.export import Product, compile_product, target_list, write_artifacts
from tilelang.runtime.signature import make_signature


@T.prim_func
def trivial(A: T.Tensor((4096,), "float32"), B: T.Tensor((4096,), "float32")):
    with T.Kernel(8, threads=128) as bx:
        for i in T.Parallel(512):
            B[bx * 512 + i] = A[bx * 512 + i] + 1.0


def export_trivial(out: Path, name: str, targets: str) -> None:
    """The kernel whose launch is timed, in a file of its own."""
    made = [compile_product("trivial", trivial.function, target, CompileOptions())
            for target in target_list(targets)]  # fmt: skip
    write_artifacts(made, out / f"{name}.so")


def export_cases(names: Sequence[str], out: Path, targets: str) -> list[dict[str, Any]]:
    """Export the named cases to `kernels.so`; their rows."""
    by_name = {case.name: case for case in KERNELS}
    products: list[Product] = []
    rows = []
    for name in names:
        made, row = _case(by_name[name], out, targets)
        products += made
        rows.append(row)
        print(f"{name}: compiled for {', '.join(str(p.target) for p in made)}", flush=True)
    write_artifacts(products, out / "kernels.so")
    return rows


def _case(case: KernelCase, out: Path, targets: str) -> tuple[list[Product], dict[str, Any]]:
    assert case.canonical is None, f"results of {case.name} may differ in order"
    inputs = case.make_inputs(0, False)
    expected = case.reference(*(to_numpy(x) for x in inputs), **case.values(False))
    function, out_idx = Case(case).program(inputs, False)
    made = [compile_product(case.name, function, target, CompileOptions())
            for target in target_list(targets)]  # fmt: skip
    artifact = made[0].artifact
    assert isinstance(artifact, CudaArtifact)
    row = _Row(case, function, out_idx, inputs, expected)
    arrays = row.fill(artifact.device)
    np.savez_compressed(out / f"{case.name}.npz", **arrays)
    described = {d["name"]: d for d in row.described}
    args: list[dict[str, Any]] = []
    for parameter in make_signature(function).slots:
        if isinstance(parameter, Buffer):
            args.append({"kind": "buffer", **described[parameter.name]})
        else:
            value = row.values[parameter.name]
            args.append({"kind": "scalar", "name": parameter.name, "value": value})
    return made, {"name": case.name, "arrays": f"{case.name}.npz", "args": args,
                  "checks": row.checks}  # fmt: skip
