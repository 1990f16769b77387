"""Every kernel under test and every example gets its layouts, and nothing in it is refused.

The kernels are asked about at the sizes they run with on a GPU where that costs no memory, else at
those of the CPU suite.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.kernels.registry import KERNELS, KernelCase
from tilelang.cli.files import choose, load
from tilelang.cli.specialise import specialise
from tilelang.layout.constraints import Access, Mode
from tilelang.layouts import LayoutMap, infer_layouts
from tilelang.layouts.collect import collect
from tilelang.layouts.infer import _solve_group
from tilelang.layouts.machine import machine_of
from tilelang.program.stmt import Function, Launch, walk_statements
from tilelang.runtime.eager import EagerKernel
from tilelang.target import parse_target

EXAMPLES = Path(__file__).parents[2] / "examples"

# Kernels of `examples/` and the values their files do not say.
EXAMPLE_VALUES: dict[str, dict[str, int]] = {
    "autograd.py::matmul": {},
    "convolution.py::convolution": {"N": 1, "H": 28, "W": 28, "C": 64, "KH": 3, "KW": 3, "F": 64},
    "dequant_gemm_int4.py::matmul_int4": {"half_K": 512, "K_groups": 32},
    "elementwise_broadcast.py::scaled_gelu": {},
    "flash_attention.py::flash_attention": {"kv_heads": 2},
    "grouped_gemm.py::grouped_gemm": {"rows": 333, "groups": 4, "bounds": 5, "total_tiles": 16},
    "quickstart.py::matmul_relu": {},
    "rms_layer_norm.py::rms_norm": {},
    "rms_layer_norm.py::layer_norm": {},
    "softmax.py::softmax": {},
    "softmax.py::online_softmax": {},
    "split_k.py::matmul_split_k": {},
    "top_k.py::top_k": {"N": 1024},
}

# Kernels whose tiles the instructions of the GPU do not take at these sizes, with what is said.
REFUSED: dict[str, set[str]] = {}


class Traced(Exception):
    """Carries a traced kernel out of the machinery that would go on to compile it."""


def function_of(case: KernelCase) -> Function:
    """The program of a kernel under test, for its own GPU target."""
    return _function_of(case.name)


@cache
def _function_of(name: str) -> Function:
    case = next(case for case in KERNELS if case.name == name)
    if case.needs_torch:
        pytest.importorskip("torch")
    if case.style == "eager":
        return _eager(case)
    made = getattr(case.make, "jit", case.make)
    params = case.kernel_params(device=True)
    found = made.get_tir(**params) if case.style == "lazy" else made(**params)
    return getattr(found, "function", found)


def _eager(case: KernelCase) -> Function:
    def traced(function: Function) -> Any:
        raise Traced(function)

    made = getattr(case.make, "jit", case.make)
    kernel = EagerKernel(made.python, made.captured, None, lambda: target_of(case), traced)
    with pytest.raises(Traced) as caught:
        kernel.prepare(case.make_inputs(), case.kernel_params())
    function = caught.value.args[0]
    assert isinstance(function, Function)
    return function


def target_of(case: KernelCase) -> str:
    """The GPU a kernel is written for."""
    return next((t for t in case.targets if t.startswith("cuda:")), "cuda:sm_80")


def layouts_of(case: KernelCase) -> LayoutMap:
    return infer_layouts(function_of(case), target_of(case))


@pytest.mark.parametrize("case", KERNELS, ids=lambda case: case.name)
def test_kernel(case: KernelCase) -> None:
    found = layouts_of(case)
    refused = {d.code for d in found.diagnostics if d.is_error}
    assert refused == REFUSED.get(case.name, set()), [str(d) for d in found.diagnostics]
    for entry in found:
        assert entry.short and entry.because, entry.name
        if entry.layout is not None:
            assert entry.draw()


@pytest.mark.parametrize("case", KERNELS, ids=lambda case: case.name)
def test_kernel_for_a_cpu_is_answered_for_a_gpu(case: KernelCase) -> None:
    found = infer_layouts(function_of(case), "cpu")
    assert found.machine.nominal and "cuda:sm_80" in found.note
    assert not any(d.is_error for d in found.diagnostics)


@pytest.mark.parametrize("case", KERNELS, ids=lambda case: case.name)
def test_every_thread_reads_what_it_holds(case: KernelCase) -> None:
    """The answer checked without the solver: iterations against owners, one by one."""
    for access, loop, tile in _accesses(function_of(case), target_of(case)):
        assert access.index is not None
        rng = np.random.default_rng(0)
        runs, owns = loop.owner_rows(), tile.owner_rows()
        domain = access.index.shape
        for _ in range(32):
            at = tuple(int(rng.integers(n)) for n in domain)
            element = access.index.map_forward_index(at)
            if any(x >= n for x, n in zip(element, tile.shape, strict=True)):
                continue
            threads = set(runs[np.ravel_multi_index(at[: len(loop.shape)], loop.shape)].tolist())
            owners = set(owns[np.ravel_multi_index(element, tile.shape)].tolist())
            if access.mode is not Mode.WRITE:
                assert threads <= owners, (case.name, access.origin.op, at)
            if access.mode is not Mode.READ:
                assert owners <= threads, (case.name, access.origin.op, at)


def _accesses(function: Function, target: str) -> Iterator[tuple[Access, Any, Any]]:
    machine = machine_of(parse_target(target))
    for stmt in walk_statements(function.body):
        if not isinstance(stmt, Launch):
            continue
        for builder in collect(stmt, machine).groups:
            solution = _solve_group(builder)
            moved = {id(c.constraint) for c in solution.conversions}
            for one in builder.constraints:
                if not isinstance(one, Access) or id(one) in moved or one.index is None:
                    continue
                loop, tile = solution.layouts.get(one.loop), solution.layouts.get(one.buffer)
                if loop is not None and tile is not None:
                    yield one, loop, tile


@pytest.mark.needs_torch
def test_examples_are_all_listed() -> None:
    names = {
        f"{path.name}::{kernel}"
        for path in EXAMPLES.glob("*.py")
        for kernel in load(path).kernels()
    }
    assert names == set(EXAMPLE_VALUES)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.needs_torch] * name.startswith("autograd"))
        for name in EXAMPLE_VALUES
    ],
)
@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80"])
def test_example(name: str, target: str) -> None:
    special = specialise(choose(str(EXAMPLES / name)), EXAMPLE_VALUES[name], "cpu")
    found = infer_layouts(special.function, target)
    assert not any(d.is_error for d in found.diagnostics), [str(d) for d in found.diagnostics]
    unknown = [e.name for e in found if e.layout is None]
    assert not unknown
