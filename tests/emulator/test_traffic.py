"""Bank conflicts and sectors are counted exactly; numbers here are counted by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilelang
import tilelang.language as T
from tests.emulator.needs import needs_compiler
from tests.emulator.running import TARGET
from tilelang.emulator.settings import Emulator
from tilelang.emulator.traffic import Checked, Traffic
from tilelang_diagnostics import Span

pytestmark = needs_compiler
CHECK = Emulator(check=True)


def transpose(row_major: bool, pad: int = 0) -> Any:
    """A block of 8 warps moves a tile of 32 x 32 floats: rows in, columns out."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(2, 2, threads=256) as (bx, by):
            tile = T.alloc_shared((32, 32 + pad), "float32")
            tx = T.get_thread_binding()
            if row_major:
                T.annotate_layout({tile: T.Layout((32, 32), lambda i, j: i * 32 + j)})
            for i in T.serial(4):
                tile[i * 8 + tx // 32, tx % 32] = A[by * 32 + i * 8 + tx // 32, bx * 32 + tx % 32]
            T.sync_threads()
            for i in T.serial(4):
                B[bx * 32 + i * 8 + tx // 32, by * 32 + tx % 32] = tile[tx % 32, i * 8 + tx // 32]

    return main


def counted(prim_func: Any, *arrays: np.ndarray, out: list[int] | None = None
            ) -> tuple[Traffic, ...]:  # fmt: skip
    kernel = tilelang.compile(prim_func, out_idx=out, target=TARGET, execution_backend=CHECK)
    kernel(*arrays)
    assert kernel.checked is not None
    return kernel.checked.traffic


def one(traffic: tuple[Traffic, ...], space: str, access: str) -> tuple[int, int, int, int]:
    (found,) = (t for t in traffic if t.space == space and t.access == access)
    return found.requests, found.transactions, found.minimum, found.worst


@pytest.mark.parametrize(
    ("row_major", "pad", "passes"),
    [(True, 0, 32), (False, 0, 1), (False, 1, 1)],  # columns of 32 words; swizzled; padded
)
def test_transpose(row_major: bool, pad: int, passes: int) -> None:
    a, b = np.arange(4096, dtype=np.float32).reshape(64, 64), np.zeros((64, 64), np.float32)
    traffic = counted(transpose(row_major, pad), a, b)
    np.testing.assert_array_equal(b, a.T)
    # 4 blocks of 8 warps, 4 times each; a row of 32 floats is 4 sectors.
    assert one(traffic, "shared", "write") == (128, 128, 128, 1)
    assert one(traffic, "shared", "read") == (128, 128 * passes, 128, passes)
    assert one(traffic, "global", "read") == (128, 512, 512, 4)
    assert one(traffic, "global", "write") == (128, 512, 512, 4)
    (read,) = (t for t in traffic if t.space == "shared" and t.access == "read")
    assert read.ratio == passes and read.span is not None and read.text.startswith("B[")


def test_as_inspect_predicts() -> None:
    """The worst of a tile is what `tilelang inspect` counts from its layout, writes and reads."""
    for row_major, degree in ((True, 32), (False, 1)):
        kernel = tilelang.compile(transpose(row_major), target=TARGET, execution_backend=CHECK)
        kernel(np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32))
        assert kernel.checked is not None
        assert max(t.worst for t in kernel.checked.of("shared")) == degree
        assert _predicted(transpose(row_major)) == [1, degree]


def _predicted(prim_func: Any) -> list[int]:
    from tilelang.layouts.infer import infer_layouts
    from tilelang.target import parse_target

    layouts = infer_layouts(prim_func.function, parse_target(TARGET))
    return [use.degree for entry in layouts for use in entry.bank_uses]


def gemm(row_major: bool) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((32, 64), "float16"), B: T.Tensor((64, 32), "float16"),
        C: T.Tensor((32, 32), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((32, 64), "float16")
            b = T.alloc_shared((64, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            if row_major:
                T.annotate_layout({
                    a: T.Layout((32, 64), lambda i, j: i * 64 + j),
                    b: T.Layout((64, 32), lambda i, j: i * 32 + j),
                })  # fmt: skip
            T.clear(c)
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c)
            T.copy(c, C)

    return main


@pytest.mark.parametrize(("row_major", "of_a", "of_b"), [(False, 1, 1), (True, 8, 4)])
def test_gemm(row_major: bool, of_a: int, of_b: int) -> None:
    """Rows of A are 128 bytes: all 8 rows that a part of ldmatrix reads lie in the same banks. Rows
    of B are 64 bytes: every other one does."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((32, 64)).astype(np.float16)
    b = rng.standard_normal((64, 32)).astype(np.float16)
    traffic = counted(gemm(row_major), a, b, np.zeros((32, 32), np.float32))
    loads = [t for t in traffic if "ldmatrix" in t.text]
    by_tile = {t.text.split("tl::at(")[1][0]: t for t in loads}
    # 4 steps of 16; A: 2 blocks of rows, B: 2 of columns; 4 parts of 8 rows each.
    for name, degree in (("a", of_a), ("b", of_b)):
        t = by_tile[name]
        assert (t.requests, t.transactions, t.minimum, t.worst) == (8, 32 * degree, 32, degree)
    assert _predicted(gemm(row_major)) == [1, of_a, 1, of_b]  # written by copies, read


@T.prim_func
def strided(A: T.Tensor((64, 8), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        tx = T.get_thread_binding()
        if tx % 2 == 0:
            B[tx] = A[tx, 0]
        else:
            B[tx] = A[tx, 0] + A[0, 0]


def test_sectors_and_branches() -> None:
    """A stride of 32 bytes takes a sector for each float; lanes of a branch are a request of their
    own."""
    traffic = counted(strided, np.zeros((64, 8), np.float32), np.zeros(64, np.float32))
    reads = sorted((t.requests, t.transactions, t.minimum) for t in traffic if t.access == "read")
    # Per warp and branch 16 lanes: 16 sectors where 64 bytes are wanted; and one float for all.
    assert reads == [(2, 32, 4), (4, 34, 6)]
    writes = [(t.requests, t.transactions, t.minimum) for t in traffic if t.access == "write"]
    assert writes == [(2, 8, 4), (2, 8, 4)]


@T.prim_func
def vectors(A: T.Tensor((1024,), "float32"), B: T.Tensor((1024,), "float32")):
    with T.Kernel(1, threads=128):
        for i in T.Parallel(1024):
            B[i] = A[i] + 1.0


def test_a_vector_is_one_access() -> None:
    traffic = counted(vectors, np.zeros(1024, np.float32), np.zeros(1024, np.float32))
    assert [(t.access, t.bytes, t.requests, t.transactions, t.minimum) for t in traffic] == [
        ("read", 16, 8, 128, 128), ("write", 16, 8, 128, 128),
    ]  # fmt: skip


def row(place: int, line: int, wasted: int, file: str = "k.py") -> Traffic:
    span = Span(file, place, 1, place, 9) if place else None
    return Traffic(line, "", span, "shared", "read", 4, 1, wasted + 1, 1, wasted + 1)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        # The copies before a loop and in it are of one line.
        ([row(3, 10, 2), row(3, 20, 5), row(4, 30, 6)],
         ["4.5x  k.py:3: a read of 4 bytes a lane, 9 passes for 2, up to 6 at once",
          "7.0x  k.py:4: a read of 4 bytes a lane, 7 passes for 1, up to 7 at once"]),
        ([row(0, n, 9 - n) for n in range(2)], [9, 8]),
        ([row(n + 1, n, 9 - n) for n in range(6)], [9, 8, 7, 6, 5, 4]),
        ([row(n + 1, n, 9 - n) for n in range(7)], [9, 8, 7, 6, 5, "2 lines more"]),
    ],
)  # fmt: skip
def test_the_summary(rows: list[Traffic], said: list[Any]) -> None:
    _, *lines = str(Checked(tuple(rows))).split("\n")
    assert len(lines) == len(said)
    for line, wanted in zip(lines, said, strict=True):
        assert line == wanted if isinstance(wanted, str) else f"up to {wanted + 1} at once" in line
