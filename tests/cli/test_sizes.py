"""A value of `--set` that is no size is one mistake, at the parameter, whatever follows from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilelang.cli.files import choose
from tilelang.cli.specialise import specialise
from tilelang_diagnostics import CompileError

EAGER = """
import tilelang
import tilelang.language as T


@tilelang.jit
def scaled(A, block_M=64, block_N=32, threads=128):
    M, N = T.const("M, N")
    A: T.Tensor((M, N), "float32")
    B = T.empty((M, N), "float32")
    half = block_M // 2
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, half), threads=threads) as (bx, by):
        tile = T.alloc_shared((half, block_N), "float32")
        other = T.alloc_fragment((half, block_N), "float32")
        T.copy(A[by * half, bx * block_N], tile)
        for i, j in T.Parallel(half, block_N):
            other[i, j] = tile[i, j] * 2
        T.copy(other, B[by * half, bx * block_N])
    return B


# tilelang: set M=256,N=256
"""

FACTORY = """
import tilelang
import tilelang.language as T


@tilelang.jit
def scaled(M, N, block_M, block_N=32):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            tile = T.alloc_shared((block_M, block_N), "float32")
            T.copy(A[by * block_M, bx * block_N], tile)
            T.copy(tile, B[by * block_M, bx * block_N])

    return main


if __name__ == "__main__":
    scaled(256, 256, 64)
"""

PLAIN = FACTORY.replace("@tilelang.jit\n", "", 1)


@pytest.mark.parametrize("text", [EAGER, FACTORY, PLAIN], ids=["eager", "factory", "plain"])
@pytest.mark.parametrize("name", ["block_M", "block_N"])
@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "0, not a positive integer"),
        (-64, "-64, not a positive integer"),
        (10**20, "100000000000000000000, not a 64-bit integer"),
        (4.5, "4.5, not an integer"),
        (None, "None, not an integer"),
        ("x", "'x', not an integer"),
    ],
)
def test_one_mistake(tmp_path: Path, text: str, name: str, value: object, said: str) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(text)
    with pytest.raises(CompileError) as caught:
        specialise(choose(f"{path}::scaled"), {name: value})
    (found,) = caught.value.diagnostics
    if found.code == "TL183":
        pytest.skip("Python itself refuses it: `None // 2`")
    assert found.code in ("TL116", "TL117")
    assert found.message == f"`{name}` of `scaled` is {said}"
    assert found.span is not None and found.span.file == str(path)
    line = text.splitlines()[found.span.line - 1]
    assert line[found.span.column - 1 : found.span.end_column - 1] == name
    good = 64 if name == "block_M" else 32
    assert found.help == f"pass one, such as {name}={good}"
