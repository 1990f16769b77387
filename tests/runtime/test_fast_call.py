"""The generated call does what the complete check does, or gives up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tests.runtime.test_arguments import HALF, WRONG, A, B, M, N, scalar, signature, tensor
from tilelang.program.buffer import Buffer
from tilelang.runtime.arguments import bind
from tilelang.runtime.fast_call import NO_FAST_PATH, make_fast_call
from tilelang.runtime.signature import Signature
from tilelang_diagnostics import CompileError


def fast(declared: Signature, family: Any, launched: list[Any], written: Any = frozenset()) -> Any:
    slots = (*declared.slots, *declared.dims)
    return make_fast_call(declared, slots, family, launched.append, written)


@pytest.mark.parametrize("row", WRONG, ids=[row[0] for row in WRONG])
@pytest.mark.parametrize("family", ["numpy", "torch"])
def test_wrong_calls_are_left_to_the_complete_check(row: Any, family: Any) -> None:
    _, declared, args, kwargs, *_ = row
    launched: list[Any] = []
    call = fast(declared, family, launched)
    if call is None or kwargs or len(args) != len(declared.inputs):
        return
    assert call(*args) is NO_FAST_PATH
    assert launched == []


n = scalar("n", "int32")
SIGNATURES = {
    "dims": (signature(A, B, tensor("C", (M, N)), out_idx=-1), lambda z: (z(2, 4), z(4, 3))),
    "constant": (signature(tensor("A", (2, 4))), lambda z: (z(2, 4),)),
    "expression": (signature(tensor("A", (M, M * 2 + 1))), lambda z: (z(3, 7),)),
    "late": (signature(tensor("A", (M * 2,)), tensor("B", (M,))), lambda z: (z(6), z(3))),
    "scalar": (signature(n, tensor("A", (n,)), scalar("s", "float32")), lambda z: (4, z(4), 0.5)),
    "int for float": (signature(tensor("A", (4,)), scalar("s", "float32")), lambda z: (z(4), 2)),
    "strided": (
        signature(tensor("A", (M, 2), strides=(N, 1))), lambda z: (z(3, 5)[:, :2],),
    ),
    "rank 0": (signature(tensor("A", ())), lambda z: (z(),)),
    "two results": (
        signature(tensor("R", (M,)), A, tensor("C", (4,)), out_idx=[0, 2]), lambda z: (z(2, 4),),
    ),
    "empty": (signature(A), lambda z: (z(0, 4),)),
}  # fmt: skip


@pytest.mark.parametrize("name", SIGNATURES)
@pytest.mark.parametrize("family", ["numpy", "torch"])
def test_fast_and_complete_calls_agree(name: str, family: Any) -> None:
    declared, make = SIGNATURES[name]

    def zeros(*shape: int) -> Any:
        made = np.zeros(shape, np.float32)
        return made if family == "numpy" else torch.from_numpy(made)

    args = make(zeros)
    launched: list[Any] = []
    call = fast(declared, family, launched)
    assert call is not None
    results = call(*args)
    assert results is not NO_FAST_PATH
    bound = bind(declared, args, {})
    allocated = set(declared.results)
    slots = (*declared.slots, *declared.dims)
    for slot, value in zip(slots, launched[0], strict=True):
        if slot not in allocated:
            assert value == bound.value(slot), slot.name
    given = [] if results is None else results if isinstance(results, list) else [results]
    assert [(type(r), tuple(r.shape), r.dtype) for r in given] == [
        (type(r), tuple(r.shape), r.dtype) for r in bound.results
    ]
    for buffer, result in zip(declared.results, given, strict=True):
        address = result.data_ptr() if family == "torch" else result.ctypes.data
        assert launched[0][slots.index(buffer)] == address


def test_unusual_but_right_arguments_are_left_to_the_complete_check() -> None:
    launched: list[Any] = []
    call = fast(signature(A), "torch", launched)

    class Mine(torch.Tensor):
        pass

    x = torch.zeros(2, 4).as_subclass(Mine)
    assert call(x) is NO_FAST_PATH
    assert bind(signature(A), (x,), {}).dims == {M: 2}
    assert call(np.zeros((2, 4), np.float32)) is NO_FAST_PATH


def test_parameters_of_modules_are_tensors() -> None:
    launched: list[Any] = []
    call = fast(HALF, "torch", launched)
    parameter = torch.nn.Parameter(torch.zeros(4, dtype=torch.bfloat16))
    assert call(parameter) is None
    assert launched == [(parameter.data_ptr(),)]


def test_read_only_memory() -> None:
    frozen = np.zeros((2, 4), np.float32)
    frozen.flags.writeable = False
    launched: list[Any] = []
    written: frozenset[Buffer] = frozenset({A})
    assert fast(signature(A), "numpy", launched, written)(frozen) is NO_FAST_PATH
    assert fast(signature(A), "numpy", launched)(frozen) is None


def test_errors_of_the_kernel_are_not_swallowed() -> None:
    def fails(values: Any) -> None:
        raise CompileError()

    call = make_fast_call(signature(A), (A, M), "numpy", fails)
    assert call is not None
    with pytest.raises(CompileError):
        call(np.zeros((2, 4), np.float32))
