"""A call of an eager kernel with tensors like earlier ones goes straight to its kernel."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import tilelang
import tilelang.language as T
from tilelang.runtime.fast_guard import MISSES, same_kind

torch = pytest.importorskip("torch")


@tilelang.jit(target="cpu")
def added(A, B, scale=2):  # type: ignore[no-untyped-def]
    N = T.const("N")
    A: T.Tensor((N,), "float32")  # type: ignore[no-redef]
    B: T.Tensor((N,), "float32")  # type: ignore[no-redef]
    C = T.empty((N,), "float32")
    with T.Kernel(1, threads=32):
        for i in T.Parallel(N):
            C[i] = A[i] + B[i] * scale
    return C


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The arguments of each call that is looked at in full, from a fresh start."""
    seen: list[Any] = []
    eager = added.eager
    monkeypatch.setattr(eager, "_known", None)
    monkeypatch.setattr(eager, "_others", 0)
    prepare = type(eager).prepare

    def counted(self: Any, args: Any, kwargs: Any) -> Any:
        seen.append(args)
        return prepare(self, args, kwargs)

    monkeypatch.setattr(type(eager), "prepare", counted)
    return seen


def pair(n: int = 8) -> tuple[Any, Any]:
    return torch.arange(n, dtype=torch.float32), torch.ones(n)


def right(a: Any, b: Any, scale: int = 2) -> bool:
    return bool(torch.equal(added(a, b), a + b * scale))


def test_only_the_first_call_is_looked_at(prepared: list[Any]) -> None:
    for _ in range(4):
        assert right(*pair())
    assert len(prepared) == 1


def test_every_other_call_is_looked_at(prepared: list[Any]) -> None:
    assert right(*pair()) and right(*pair(16))
    a, b = pair()
    assert torch.equal(added(a, b, 3), a + b * 3)
    assert torch.equal(added(a, B=b), a + b * 2)
    assert torch.equal(torch.from_numpy(added(a.numpy(), b.numpy())), a + b * 2)
    assert right(a, torch.nn.Parameter(b, requires_grad=False))
    assert len(prepared) == 6


def test_what_is_wrong_is_still_said(prepared: list[Any]) -> None:
    a, b = pair()
    added(a, b)
    for wrong in ((a,), (a, b.double()), (a, b, 2, 2), (a, None), (a, pair(9)[1])):
        with pytest.raises((ValueError, TypeError)):
            added(*wrong)
    assert right(a, b)


def test_other_sizes_are_learned_in_time(prepared: list[Any]) -> None:
    assert right(*pair())
    for _ in range(MISSES + 2):
        assert right(*pair(24))
    assert len(prepared) == MISSES + 1


def test_nothing_is_kept_alive() -> None:
    tensor = torch.ones(8)
    kept = weakref.ref(tensor)
    test = same_kind([tensor])
    assert test is not None and test(tensor)
    del tensor
    gc.collect()
    assert kept() is None
