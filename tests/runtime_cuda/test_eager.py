"""A kernel that is its own function's body, called with tensors of a GPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import tilelang
import tilelang.language as T
from tilelang.program.stmt import Function
from tilelang_diagnostics import CompileError


@tilelang.jit(target="cuda:sm_80")
def scale(A: Any, B: Any) -> None:
    N = T.const("N")
    A: T.Tensor((N,), "float32")  # type: ignore[no-redef]
    B: T.Tensor((N,), "float32")  # type: ignore[no-redef]
    with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
        for i in T.Parallel(128):
            B[bx * 128 + i] = A[bx * 128 + i] * 2.0


class OnDevice:
    """What is known of an array of CuPy or Numba."""

    def __init__(self, size: int, device: int = 0) -> None:
        self.device = device
        self.__cuda_array_interface__ = {
            "shape": (size,), "typestr": "<f4", "data": (4096, False), "version": 3,
        }  # fmt: skip

    def __dlpack__(self, **_: Any) -> Any:
        raise NotImplementedError

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.device


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[Function]:
    """The functions that would have been compiled."""
    functions: list[Function] = []

    def build(function: Function) -> Any:
        functions.append(function)
        return SimpleNamespace(came_from=lambda *_: None)

    monkeypatch.setattr(scale.eager, "build", build)
    monkeypatch.setattr(scale.eager, "_by_constants", {})
    return functions


def test_tensors_of_a_device_say_the_sizes(built: list[Function]) -> None:
    scale.eager.prepare([OnDevice(300, 1), OnDevice(300, 1)], {})
    (function,) = built
    assert [str(p.shape[0]) for p in function.params] == ["300", "300"]


def test_tensors_of_the_processor_are_refused(built: list[Function]) -> None:
    np = pytest.importorskip("numpy")
    arrays = [np.zeros(300, np.float32), np.zeros(300, np.float32)]
    with pytest.raises(CompileError, match="is on cpu, expected cuda"):
        scale.eager.prepare(arrays, {})
    assert not built
