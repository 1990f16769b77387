"""Instructions do what an H200 does: the checks of `tests/device`, which pass there bit for bit."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.device import checks
from tests.emulator.needs import needs_compiler
from tilelang.codegen.cuda import print_cuda
from tilelang.emulator.call import Region
from tilelang.emulator.launch import launch
from tilelang.emulator.settings import Emulator
from tilelang.emulator.source import refusals

MOST_BYTES = 1 << 22
SEED, SAMPLE = 20261129, 10


@functools.cache
def all_checks() -> dict[str, dict[str, Any]]:
    return {given["name"]: given for make in checks.CHECKS for given in make()}


def names() -> Iterator[str]:
    for name, given in all_checks().items():
        if sum(a.nbytes for a in given["arrays"].values()) <= MOST_BYTES:
            yield name


@functools.cache
def _sample() -> frozenset[str]:
    chosen = random.Random(SEED).sample(list(names()), SAMPLE)
    return frozenset({*chosen, "tma and wgmma", "grid barrier"})


@needs_compiler
@pytest.mark.parametrize("check", [False, True], ids=["plain", "check"])
@pytest.mark.parametrize("name", list(names()))
def test_as_on_the_device(name: str, check: bool, full: bool) -> None:
    if not full and name not in _sample():
        pytest.skip("runs with --full")
    given = all_checks()[name]
    source = print_cuda(given["func"])
    assert not refusals(source)
    arrays = {k: np.ascontiguousarray(v).copy() for k, v in given["arrays"].items()}
    values = {k: v.ctypes.data for k, v in arrays.items()} | dict(given.get("values", {}))
    tensors = [
        Region(slot.name, arrays[slot.name].ctypes.data, arrays[slot.name].nbytes)
        for slot in source.slots if slot.kind == "buffer"
    ]  # fmt: skip
    launch(source, values, tensors, Emulator(check=check))
    for key, want in given["expected"].items():
        got = arrays[key]
        if given.get("tolerance"):
            np.testing.assert_allclose(got, want, rtol=given["tolerance"], atol=given["tolerance"])
        else:
            np.testing.assert_array_equal(got, want, err_msg=key)
