"""A call with tensors like those of an earlier call is told in one step, and nothing else is.

Tensors of the CPU stand for those of a device: they are on device -1, which only recognition lets
through, so that a call that asks each tensor gives up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import tilelang.language as T
from tests.runtime_cuda.kernels import scale
from tilelang.runtime import fast_guard
from tilelang.runtime.fast_call import NO_FAST_PATH, make_fast_call
from tilelang.runtime.fast_guard import MISSES, same_kind
from tilelang.runtime.place import Place
from tilelang.runtime.signature import make_signature

torch = pytest.importorskip("torch")
HALF = torch.float16


class Calls:
    """A generated function, and what it would have launched."""

    def __init__(self, sample: Sequence[Any] | None, kernel: Any = scale) -> None:
        self.seen: list[tuple[int, ...]] = []
        signature = make_signature(kernel.function)
        self.call = make_fast_call(
            signature, (*signature.slots, *signature.dims), "torch", lambda *args: None,
            place=Place("cuda", {}), inline=self.inline, sample=sample,
        )  # fmt: skip

    def inline(self, values: Sequence[str], device: str) -> Any:
        text = ", ".join((device, *values))
        return ["True"], [f"seen.append(({text}))"], {"seen": self.seen}

    def __call__(self, *args: Any) -> bool:
        """Whether the call was taken."""
        assert self.call is not None
        return self.call(*args) is not NO_FAST_PATH


def pair(rows: int = 48) -> list[Any]:
    return [torch.ones(rows, 64, dtype=HALF), torch.zeros(rows, 64, dtype=HALF)]


def test_others_of_the_same_kind_are_recognised() -> None:
    calls = Calls([*pair(), 1.0])
    a, b = pair()
    assert calls(a, b, 2.5)
    assert calls.seen == [(-1, a.data_ptr(), b.data_ptr(), 2.5, 48, 48)]


def test_without_a_sample_each_tensor_is_asked() -> None:
    assert not Calls(None)(*pair(), 1.0)


BASE = torch.zeros(4096, dtype=HALF)
OTHERS = {
    "sizes": lambda a: torch.ones(32, 64, dtype=HALF),
    "dtype": lambda a: torch.ones(48, 64, dtype=torch.bfloat16),
    "rank": lambda a: torch.ones(48 * 64, dtype=HALF),
    "strides": lambda a: torch.ones(64, 48, dtype=HALF).t(),
    "gaps": lambda a: torch.ones(48, 128, dtype=HALF)[:, :64],
    "device": lambda a: torch.ones(48, 64, dtype=HALF, device="meta"),
    "grad": lambda a: a.requires_grad_(),
    "class": lambda a: torch.nn.Parameter(a, requires_grad=False),
    "negated": lambda a: torch._neg_view(a),
    "sparse": lambda a: a.to_sparse(),
    "no tensor": lambda a: a.numpy(),
    "nothing": lambda a: None,
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_kind_is_not(name: str) -> None:
    calls = Calls([*pair(), 1.0])
    a, b = pair()
    assert not calls(OTHERS[name](a), b, 1.0)
    assert not calls(b, OTHERS[name](a), 1.0)
    assert calls.seen == []


def test_what_recognition_does_not_tell_is_still_asked() -> None:
    calls = Calls([*pair(), 1.0])
    a, b = pair()
    assert not calls(a, b, "1")
    odd = torch.zeros(48 * 64 * 2 + 1, dtype=torch.uint8)[1:].view(48, 128)
    shifted = torch.frombuffer(memoryview(odd.numpy()), dtype=HALF).view(48, 64)
    assert shifted.data_ptr() % 2 == 1
    assert not calls(shifted, b, 1.0)
    b.untyped_storage().resize_(0)
    assert not calls(a, b, 1.0)
    assert calls.seen == []


def test_a_size_that_a_scalar_decides_is_compared() -> None:
    @T.prim_func
    def main(n: T.int32, A: T.Tensor((n,), "float16")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                A[i] = 0.0

    tensor = torch.zeros(48, dtype=HALF)
    calls = Calls([48, tensor], main)
    assert calls(48, tensor)
    assert not calls(47, tensor)


def test_tensors_of_other_sizes_are_learned_in_time() -> None:
    """After so many, the complete check is asked once, and makes a function for the latest."""
    calls = Calls([*pair(), 1.0])
    a, b = pair()
    namespace = calls.call.__globals__  # type: ignore[union-attr]
    for _ in range(MISSES):
        calls(*pair(32), 1.0)
    assert next(namespace["misses"]) == MISSES + 1
    assert calls(a, b, 1.0)


def test_a_guard_that_behaves_otherwise_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = pair()
    assert same_kind(tensors) is not None
    guards = pytest.importorskip("torch._C._dynamo.guards")
    monkeypatch.setattr(guards, "TensorGuards", lambda *args, **named: AlwaysRight())
    assert fast_guard.same_kind(tensors) is None
    monkeypatch.delattr(guards, "TensorGuards")
    assert fast_guard.same_kind(tensors) is None


class AlwaysRight:
    def check(self, *tensors: Any) -> bool:
        return True
