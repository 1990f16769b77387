"""Memory that is not there: tensors that lost theirs, and launches that ask for too much."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilelang
import tilelang.language as T
from tilelang_diagnostics import CompileError

ROOT = Path(__file__).parents[2]

# A failure would be a segmentation fault, so this runs in a process of its own.
WITHOUT_MEMORY = """\
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
import tilelang
import tilelang.language as T


@tilelang.jit(target="cpu")
def double(A):
    M = T.const("M")
    A: T.Tensor((M,), T.float32)
    B = T.empty((M,), T.float32)
    with T.Kernel(M, threads=32) as bx:
        B[bx] = A[bx] * 2
    return B


def code(*tensors):
    try:
        return double(*tensors).tolist()
    except tilelang.CompileError as error:
        return error.diagnostics[0].code


def freed():
    tensor = torch.ones(3)
    tensor.untyped_storage().resize_(0)
    return tensor


found = [code(freed()), code(torch.ones(3)), code(torch.ones(3)), code(freed())]
real = torch.ones(3)
with FakeTensorMode():
    found += [code(real), code(torch.ones(3))]
print(found)
"""


def test_tensors_that_have_no_memory(tmp_path: Path) -> None:
    script = tmp_path / "without_memory.py"
    script.write_text(WITHOUT_MEMORY)
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines == ["['TL709', [2.0, 2.0, 2.0], [2.0, 2.0, 2.0], 'TL709', 'TL709', 'TL709']"]


@tilelang.jit(target="cpu")
def spacious(A, rows):
    M = T.const("M")
    A: T.Tensor((M,), T.float32)
    B = T.empty((M,), T.float32)
    with T.Kernel(M, threads=32) as bx:
        tile = T.alloc_shared((rows, 1 << 20), T.float32)
        for i in T.serial(rows):
            tile[i, 0] = A[bx]
        B[bx] = tile[0, 0]
    return B


def test_tiles_there_is_no_room_for() -> None:
    assert spacious(np.ones(1, np.float32), 1).tolist() == [1]
    with pytest.raises(MemoryError) as caught:
        spacious(np.ones(1, np.float32), 1 << 20)
    assert isinstance(caught.value, CompileError)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("TL813", "there is not enough memory to run spacious")
    assert found.notes == ("4398046511104 bytes for the tiles of one block",)
    assert found.span is not None and found.span.file == __file__
