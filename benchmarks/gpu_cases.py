"""Which kernels does `gpu_check` build, and what travels of each?

The cases of `tests.kernels.registry` that name a CUDA target, compiled for one architecture.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.gpu import conversions, extents, foreign, gemms, numbers, random_numbers, tiles
from tests.gpu.pipelined import random_pipelined
from tests.gpu.random_kernels import random_gemm, random_tiles
from tests.gpu_hopper import copies, groups, products, roles
from tests.kernels.case import TOLERANCE, KernelCase, to_numpy
from tests.kernels.registry import KERNELS
from tilelang.codegen.cuda import print_cuda
from tilelang.codegen.device_source import DeviceSource, TensorMap
from tilelang.codegen.host_expr import evaluate
from tilelang.compiler import effective_options, lower_function
from tilelang.options import CompileOptions
from tilelang.program import expr as ex
from tilelang.program.buffer import Buffer
from tilelang.program.stmt import Function
from tilelang.runtime.eager import EagerKernel
from tilelang.runtime.toolchain_cuda import compile_cuda
from tilelang.target import parse_target
from tilelang_diagnostics import raise_for


def all_cases(count: int = 0) -> Iterator[Case]:
    """Every case there is, and three times `count` random ones."""
    for case in (
        *KERNELS, *gemms.CASES, *tiles.CASES, *conversions.CASES, *numbers.CASES, *foreign.CASES,
        *extents.CASES, *random_numbers.CASES,
        *copies.CASES, *groups.CASES, *products.CASES, *roles.CASES,
    ):  # fmt: skip
        if any(name.startswith("cuda") for name in case.targets):
            yield Case(case)
    for seed in range(count):
        yield Case(random_gemm(seed))
        yield Case(random_tiles(seed))
        yield Case(random_pipelined(seed))


@dataclass(frozen=True, slots=True)
class Case:
    """A registered kernel on its way to a GPU."""

    case: KernelCase

    @property
    def name(self) -> str:
        return self.case.name

    def fits(self, arch: str) -> bool:
        """Whether the case is for an architecture: cases of sm_90a are for no other."""
        named = [t.partition(":")[2] for t in self.case.targets if t.startswith("cuda")]
        return any(not t.endswith("a") or t == arch for t in named)

    def program(
        self, inputs: Sequence[Any], device: bool, arch: str = "sm_90a"
    ) -> tuple[Function, tuple[int, ...]]:
        """The traced kernel, and the positions of parameters that a call allocates."""
        case, params = self.case, self.case.kernel_params(device)
        match case.style:
            case "prim_func":
                return case.make(**params).function, case.out_idx
            case "lazy":
                factory = getattr(case.make, "jit", case.make)  # without tuning: its defaults
                made = factory.get_tir(**params)
                found = factory.out_idx
                indices = () if found is None else (found,) if isinstance(found, int) else found
                return made.function, tuple(indices)
            case _:
                return _eager_function(case.make.eager, inputs, params, f"cuda:{arch}"), ()

    def source(self, arch: str, device: bool = False) -> DeviceSource:
        """The CUDA source at the sizes of the case."""
        function, _ = self.program(self.case.make_inputs(0, device), device, arch)
        return lowered(function, arch)

    def store(self, out: Path, number: int, arch: str, device: bool) -> dict[str, Any]:
        """Compile and write one case; its row in the bundle."""
        case = self.case
        inputs = case.make_inputs(0, device)
        expected = case.reference(*(to_numpy(x) for x in inputs), **case.values(device))
        function, out_idx = self.program(inputs, device, arch)
        device_source = lowered(function, arch)
        binary = compile_cuda(device_source, parse_target(f"cuda:{arch}"))
        (out / f"{number}.cubin").write_bytes(binary.cubin)
        (out / f"{number}.cu").write_text(device_source.text)
        row = _Row(case, function, out_idx, inputs, expected)
        arrays = row.fill(device_source)
        np.savez_compressed(out / f"{number}.npz", **arrays)
        return {
            "name": case.name, "binary": f"{number}.cubin", "arrays": f"{number}.npz",
            "canonical": case.canonical is not None, "arrays_of": row.described,
            "checks": row.checks, "values": row.values,
            "launches": [_launch(x, row.values) for x in device_source.launches],
            "maps": [_map(m, row.values) for m in device_source.maps],
        }  # fmt: skip


def _eager_function(
    eager: Any, inputs: Sequence[Any], params: Mapping[str, Any], target: str
) -> Function:
    """What a call with these tensors would compile for `target`."""
    kernel = EagerKernel(eager.python, eager.captured, eager.out_idx, lambda: target, eager.build)
    bound, given = kernel._bound(inputs, params)
    special = kernel._specialisation(bound)
    values = [bound[p.name] for p in special.signature.inputs]
    dims = {**given, **kernel._dims(special, values, given)}
    found: Function = kernel._trace(special, dims)
    return found


def lowered(function: Function, arch: str) -> DeviceSource:
    """The CUDA source of a traced kernel."""
    options = effective_options(function, CompileOptions())
    found = lower_function(function, parse_target(f"cuda:{arch}"), options)
    raise_for(found.diagnostics)
    return print_cuda(found.func)


def _launch(launch: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "symbol": launch.symbol,
        "params": [{"kind": p.kind, "source": p.source, "dtype": p.dtype} for p in launch.params],
        "grid": list(launch.grid_of(values)), "block": list(launch.block),
        "shared": launch.dynamic_shared, "cooperative": launch.cooperative,
    }  # fmt: skip


def _map(found: TensorMap, values: Mapping[str, Any]) -> dict[str, Any]:
    """A tensor map for the sizes of one call."""
    return {
        **asdict(found),
        "offset": evaluate(found.offset, values),
        "shape": [evaluate(e, values) for e in found.shape],
        "strides": [evaluate(e, values) for e in found.strides],
    }


class _Row:
    """The arrays and scalar values of one call."""

    def __init__(
        self, case: KernelCase, function: Function, out_idx: tuple[int, ...],
        inputs: Sequence[Any], expected: Sequence[Any],
    ) -> None:  # fmt: skip
        self.case, self.function = case, function
        self.inputs, self.expected = list(inputs), list(expected)
        params = list(function.params)
        allocated = {i % len(params) for i in out_idx}
        self.given = [p for n, p in enumerate(params) if n not in allocated]
        self.returned = [params[i % len(params)] for i in out_idx] + list(function.outputs)
        self.values: dict[str, Any] = {}
        self.described: list[dict[str, Any]] = []
        self.checks: list[dict[str, Any]] = []

    def fill(self, source: DeviceSource) -> dict[str, Any]:
        """The arrays to store; describes them on the way."""
        arrays: dict[str, Any] = {}
        given = [x for x in self.inputs if _is_array(x) or isinstance(x, (int, float, bool))]
        names = [p.name for p in self.given]
        for param, value in zip(self.given, given, strict=False):
            if isinstance(param, Buffer):
                self._bind_dims(param, value)
                arrays[param.name] = self._describe(param, tuple(value.shape), _raw(value))
            else:
                self.values[param.name] = value
        for position, want in enumerate(self.expected):
            if position < len(self.returned):
                param = self.returned[position]
                shape = tuple(np.shape(want))
                size = int(np.prod(shape)) * max(1, param.dtype.bits // 8)
                # What a kernel does not write shows.
                raw = np.full(size, 0xFF, dtype=np.uint8)
                arrays[param.name] = self._describe(param, shape, raw)
                name = param.name
            else:
                name = names[self.case.mutates[position - len(self.returned)]]
            arrays[f"{name}__expected"] = np.asarray(want)
            self.checks.append({
                "name": name, "expected": f"{name}__expected",
                "tolerance": self._tolerance(position, name),
            })  # fmt: skip
        for workspace in source.workspaces:
            size = int(evaluate(workspace.bytes, self.values))
            arrays[workspace.name] = np.zeros(size, dtype=np.uint8)
            self.described.append({"name": workspace.name, "dtype": "uint8", "shape": [size]})
        return arrays

    def _tolerance(self, position: int, name: str) -> float:
        case = self.case
        named = case.precision[position] if position < len(case.precision) else None
        dtype = next(d["dtype"] for d in self.described if d["name"] == name)
        return TOLERANCE.get(named or dtype, 0.0)

    def _describe(self, param: Buffer, shape: tuple[int, ...], raw: Any) -> Any:
        dtype = "float32" if param.dtype.name == "tfloat32" else param.dtype.name
        self.described.append({"name": param.name, "dtype": dtype, "shape": list(shape)})
        return raw

    def _bind_dims(self, param: Buffer, value: Any) -> None:
        for dim, extent in zip(param.shape, value.shape, strict=True):
            if isinstance(dim, ex.Var):
                self.values[dim.name] = int(extent)
        steps = _strides(value)
        for stride, step in zip(param.strides or (), steps, strict=False):
            if isinstance(stride, ex.Var):
                self.values[stride.name] = int(step)


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _raw(value: Any) -> Any:
    """The bytes of a tensor or array, as they lie in memory; what lies between rows is 0."""
    if hasattr(value, "detach"):
        import torch

        return value.detach().contiguous().view(torch.uint8).numpy().reshape(-1)
    last = sum((n - 1) * s for n, s in zip(value.shape, value.strides, strict=True))
    held = np.zeros(last + value.itemsize if value.size else 0, dtype=np.uint8)
    if value.size:
        whole = np.ndarray(value.shape, value.dtype, held, strides=value.strides)
        whole[...] = value
    return held


def _strides(value: Any) -> tuple[int, ...]:
    if hasattr(value, "detach"):
        return tuple(value.stride())
    return tuple(s // value.itemsize for s in value.strides)
