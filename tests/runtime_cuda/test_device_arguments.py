"""Arguments of a kernel on a GPU: where they are, and how their addresses are aligned."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest

from tilelang.dtypes import dtype
from tilelang.program.buffer import Buffer
from tilelang.runtime import arguments, fast_call
from tilelang.runtime.arguments import bind
from tilelang.runtime.fast_call import make_fast_call
from tilelang.runtime.place import Place
from tilelang.runtime.signature import Signature
from tilelang.runtime.tensors import TensorView
from tilelang_diagnostics import CompileError

pytestmark = pytest.mark.needs_torch

A, B = (Buffer(name, (4, 8), dtype("float16"), "global", None) for name in "AB")
SIGNATURE = Signature("scale", (A, B))
PLACE = Place("cuda", {"A": 16})
HERE = TensorView(
    address=4096, shape=(4, 8), strides=(8, 1), dtype="float16", device="cuda:1", family="torch",
    contiguous=True, writable=True, owner=None,
)  # fmt: skip


class Tensor:
    """A tensor on a device, as the generated code asks for it."""

    def __init__(self, view: TensorView) -> None:
        self.view = view
        self.shape, self.dtype = view.shape, sys.intern(view.dtype)

    def get_device(self) -> int:
        kind, _, index = self.view.device.partition(":")
        return int(index) if kind == "cuda" else -1

    def is_contiguous(self) -> bool:
        return self.view.contiguous

    def data_ptr(self) -> int:
        return self.view.address


@pytest.fixture(autouse=True)
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fake tensors are tensors."""
    monkeypatch.setattr(arguments, "view_of", lambda value: value.view)
    monkeypatch.setattr(fast_call, "_classes", lambda family: frozenset({Tensor}))
    monkeypatch.setattr(fast_call, "_plain_class", lambda family: Tensor)
    monkeypatch.setattr(
        fast_call._Writer, "dtypes", lambda self, buffer: (sys.intern(buffer.dtype.name),)
    )


def said(*views: TensorView) -> list[tuple[str, str, str | None]]:
    with pytest.raises(CompileError) as caught:
        bind(SIGNATURE, [Tensor(v) for v in views], {}, place=PLACE)
    return [(d.code, d.message, d.help) for d in caught.value.diagnostics]


def test_tensors_on_one_device() -> None:
    found = bind(SIGNATURE, [Tensor(HERE), Tensor(replace(HERE, address=2))], {}, place=PLACE)
    assert found.device == 1 and found.addresses == {A: 4096, B: 2}


def test_a_tensor_on_the_cpu() -> None:
    assert said(HERE, replace(HERE, device="cpu")) == [
        ("TL707", "argument `B` of `scale` is on cpu, expected cuda",
         "pass B.cuda(), or compile the kernel for that device"),
    ]  # fmt: skip
    ((_, _, help),) = said(HERE, replace(HERE, device="cpu", family="numpy"))
    assert help == "pass torch.from_numpy(B).cuda(), or compile the kernel for that device"


def test_a_tensor_on_another_device() -> None:
    assert said(HERE, replace(HERE, device="cuda:0")) == [
        ("TL707", "argument `B` of `scale` is on cuda:0, but `A` is on cuda:1",
         "pass B.to('cuda:1')"),
    ]  # fmt: skip


def test_a_view_that_is_not_aligned_for_vectors() -> None:
    assert said(replace(HERE, address=4100), HERE) == [
        ("TL706", "argument `A` of `scale` starts at an address that is not a multiple of 16 "
         "bytes, which its code relies on", "pass A.clone(), which is aligned"),
    ]  # fmt: skip


def test_a_view_that_is_not_contiguous() -> None:
    ((code, message, _),) = said(replace(HERE, strides=(16, 1), contiguous=False), HERE)
    assert code == "TL708" and "expected (8, 1)" in message


# The generated function.


def method(launched: list[Any]) -> Any:
    def inline(values: Any, device: str) -> Any:
        return [f"{device} in devices"], [f"note(({', '.join(values)}, {device}))"], {
            "devices": {0, 1}, "note": launched.append,
        }  # fmt: skip

    def slow(self: Any, *args: Any, **kwargs: Any) -> Any:
        launched.append(("slow", args, kwargs))

    made = make_fast_call(
        SIGNATURE, (A, B), "torch", lambda: None, frozenset(), PLACE, inline, slow
    )  # fmt: skip
    assert made is not None
    return type("Kernel", (), {"__call__": made})()


def test_a_call_that_fits_launches_at_once() -> None:
    launched: list[Any] = []
    method(launched)(Tensor(HERE), Tensor(replace(HERE, address=8)))
    assert launched == [(4096, 8, 1)]


@pytest.mark.parametrize(
    "change",
    [{"device": "cpu"}, {"device": "cuda:0"}, {"device": "cuda:2"}, {"dtype": "float32"},
     {"shape": (4, 9)}, {"contiguous": False}, {"address": 4104}],
    ids=str,
)  # fmt: skip
def test_every_doubt_is_left_to_the_complete_check(change: dict[str, Any]) -> None:
    launched: list[Any] = []
    odd, other = Tensor(replace(HERE, **change)), Tensor(HERE)
    method(launched)(odd, other)
    assert launched == [("slow", (odd, other), {})]


def test_every_way_of_calling_is_passed_on() -> None:
    launched: list[Any] = []
    kernel, t = method(launched), Tensor(HERE)
    kernel()
    kernel(t)
    kernel(t, t, t)
    kernel(t, B=t)
    kernel(t, 3)
    assert launched == [
        ("slow", (), {}), ("slow", (t,), {}), ("slow", (t, t, t), {}), ("slow", (t,), {"B": t}),
        ("slow", (t, 3), {}),
    ]  # fmt: skip


def test_what_the_complete_check_raises_stands_alone() -> None:
    launched: list[Any] = []
    kernel = method(launched)

    def slow(*args: Any) -> Any:
        raise ValueError("wrong")

    type(kernel).__call__.__globals__["slow"] = slow
    with pytest.raises(ValueError, match="wrong") as caught:
        kernel(1, 2)
    assert caught.value.__context__ is None
