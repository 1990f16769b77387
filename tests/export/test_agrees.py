"""The checks in C and those in Python refuse the same calls, for the same reasons."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.export import kernels
from tests.export.conftest import Host, tensor
from tests.export.synthetic import export, product
from tilelang.codegen.device_source import KernelLaunch, KernelParam
from tilelang.program.buffer import Buffer
from tilelang.program.expr import Var
from tilelang.runtime import arguments
from tilelang.runtime.arguments import bind
from tilelang.runtime.place import Place
from tilelang.runtime.signature import make_signature
from tilelang.runtime.tensors import TensorView
from tilelang_diagnostics import CompileError

COUNT = 300
NAMES = ("scale", "sizes", "packed", "promised", "nullable")
DTYPES = {"float16": ("float", 16, 1), "float32": ("float", 32, 1), "int8": ("int", 8, 1),
          "bfloat16": ("bfloat", 16, 1)}  # fmt: skip
STORED = {"int4": "int8"}


@dataclass(frozen=True)
class Call:
    """The same arguments for both sides."""

    views: tuple[Any, ...]
    rows: tuple[Any, ...]


@pytest.fixture(autouse=True)
def views_are_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arguments, "view_of", lambda value: value)


def random_call(name: str, choose: random.Random) -> Call:
    """Arguments that fit, changed in nothing, one thing or two."""
    signature = make_signature(kernels.named(name))
    sizes = {v.name: choose.choice((0, 1, 2, 3, 64, 128)) for v in signature.dims}
    wrong = choose.choices(range(3), weights=(4, 5, 1))[0]
    changes = [choose.randrange(len(signature.slots)) for _ in range(wrong)]
    views: list[Any] = []
    rows: list[Any] = []
    for position, p in enumerate(signature.slots):
        if not isinstance(p, Buffer):
            views.append(2.5)
            rows.append(2.5)
            continue
        made = _tensor(p, sizes, choose, changes.count(position))
        views.append(made[0])
        rows.append(made[1])
    return Call(tuple(views), tuple(rows))


def _tensor(p: Buffer, sizes: dict[str, int], choose: random.Random, changes: int) -> Any:
    shape = [_value(d, sizes) for d in p.shape]
    if p.dtype.is_packed:
        shape[-1] //= 2
    dtype, device, address = STORED.get(p.dtype.name, p.dtype.name), (2, 0), 0x1000
    strides = None if p.strides is None else [_value(d, sizes) for d in p.strides]
    if p.nullable and choose.random() < 0.3:
        return None, None
    for _ in range(changes):
        match choose.choice(("shape", "rank", "dtype", "device", "address", "strides", "null")):
            case "shape":
                axis = choose.randrange(len(shape))
                shape[axis] = max(0, shape[axis] + choose.choice((-1, 1, 2, 64)))
            case "rank":
                shape = shape[1:] if len(shape) > 1 else [*shape, 1]
                strides = None
            case "dtype":
                dtype = choose.choice(sorted(DTYPES))
            case "device":
                device = choose.choice(((1, 0), (2, 1), (2, 0)))
            case "address":
                address += choose.choice((1, 2, 8, 16))
            case "strides":
                strides = [s * choose.choice((1, 2)) for s in strides or _rows(shape)]
            case _:
                return None, None
    strides = strides or _rows(shape)
    place = "cpu" if device[0] == 1 else f"cuda:{device[1]}"
    view = TensorView(address, tuple(shape), tuple(strides), dtype, place, "torch",
                      _contiguous(shape, strides), True, None)  # fmt: skip
    row = tensor(*shape, dtype=DTYPES[dtype], device=device, address=address, strides=strides)
    return view, row


def _value(dim: Any, sizes: dict[str, int]) -> int:
    text = re.sub(r"[a-z]\w*", lambda m: str(sizes[m[0]]), arguments.expr_text(dim))
    return int(eval(text))


def _rows(shape: list[int]) -> list[int]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.insert(0, step)
        step *= max(1, extent)
    return strides


def _contiguous(shape: list[int], strides: list[int]) -> bool:
    rows = _rows(shape)
    return 0 in shape or all(n == 1 or s == r for n, s, r in zip(shape, strides, rows, strict=True))


@pytest.mark.needs_torch
@pytest.mark.parametrize("name", NAMES)
def test_both_say_the_same(name: str, tmp_path: Path, host: Host) -> None:
    signature = make_signature(kernels.named(name))
    alignment = {p.name: 16 for p in signature.slots if isinstance(p, Buffer)}
    slots = product(name)[0].artifact.slots
    params = tuple(KernelParam(s.kind, s.name, s.dtype, alignment.get(s.name, 1)) for s in slots)
    shown = tuple(p for p in params if p.kind == "dim")
    launch = KernelLaunch("k", (*shown, *(p for p in params if p.kind == "buffer")), (1, 1, 1),
                          (32, 1, 1))  # fmt: skip
    library = export(tmp_path, product(name, [launch]))
    choose = random.Random(f"20261129 {name}")
    calls = [random_call(name, choose) for _ in range(COUNT)]
    requests = [
        {"function": name, "args": c.rows, "formats": "i" * len(shown)} for c in calls
    ]  # fmt: skip
    outcomes = set()
    for call, answer in zip(calls, host(library, requests, devices=[(9, 0, 1)] * 2), strict=True):
        code = None if answer.error is None else answer.error[1][1:6]
        outcomes.add(code)
        try:
            bound = bind(signature, call.views, {}, place=Place("cuda", alignment))
        except CompileError as error:
            assert code in {d.code for d in error.diagnostics}, (call, answer.error, str(error))
        else:
            assert answer.error is None, (call, answer.error)
            dims = [bound.dims[v] for v in signature.dims if isinstance(v, Var)]
            assert answer.launches[0]["params"] == "".join(f"{d};" for d in dims)
    # The calls are of every kind: some go well, and some fail for each of several reasons.
    assert None in outcomes and len(outcomes) >= 4
