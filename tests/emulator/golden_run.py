"""How is a recorded case run on the emulator?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from tests.device.golden import Golden
from tilelang.codegen.cuda import print_cuda
from tilelang.emulator.call import Region
from tilelang.emulator.launch import launch
from tilelang.emulator.settings import Emulator
from tilelang.emulator.source import refusals

GOLDEN: Final = Path(__file__).parent / "golden"


@cache
def manifest() -> dict[str, Any]:
    """Where and when it was recorded, and the hashes of each case."""
    found: dict[str, Any] = json.loads((GOLDEN / "manifest.json").read_text())
    return found


@cache
def recorded() -> Mapping[str, np.ndarray]:
    """The outputs that depend on rounding, by `case/output`."""
    with np.load(GOLDEN / "outputs.npz") as stored:
        return dict(stored)


def emulate(case: Golden, emulator: Emulator) -> dict[str, np.ndarray]:
    """All arrays of `case` after the emulator ran it; raises CompileError."""
    source = print_cuda(case.func())
    assert not refusals(source)
    arrays = case.inputs()
    values = {name: array.ctypes.data for name, array in arrays.items()}
    tensors = [
        Region(slot.name, values[slot.name], arrays[slot.name].nbytes)
        for slot in source.slots if slot.kind == "buffer"
    ]  # fmt: skip
    launch(source, values, tensors, emulator)
    return arrays
