"""What tile operations put into the program: regions with explicit extents, attributes."""

from __future__ import annotations

import pytest

from tests.support.tiles import statements

# (name, statement, program text)
COPIES = [
    ("element is an origin", "T.copy(A[bx * 32, 0], s)",
     "T.copy(A[bx * 32:bx * 32 + 32, 0:64], s)"),
    ("element as destination", "T.copy(s, A[bx * 32, 0])",
     "T.copy(s, A[bx * 32:bx * 32 + 32, 0:64])"),
    ("right aligned under a batch index", "T.copy(D[bx, 0, 0], s)",
     "T.copy(D[bx, 0:32, 0:64], s)"),
    ("a stage of a ring", "T.copy(A[bx * 32, 0], w[1, :, :])",
     "T.copy(A[bx * 32:bx * 32 + 32, 0:64], w[1, 0:32, 0:64])"),
    ("a column into a vector", "T.copy(A[0:32, 3], g)", "T.copy(A[0:32, 3], g)"),
    ("a point index grows where counts differ", "T.copy(A[bx * 32, 0:64], s)",
     "T.copy(A[bx * 32:bx * 32 + 32, 0:64], s)"),
    ("non-unit extents pair in order", "T.copy(D[0:32 // 32, 0:32, 0:64], s)",
     "T.copy(D[0:1, 0:32, 0:64], s)"),
    ("a padded tile", "T.copy(D[bx, 0:32, :], z)", "T.copy(D[bx, 0:32, 0:128], z)"),
    ("an unknown extent stays", "T.copy(V[0:n], g)", "T.copy(V[0:n], g)"),
    ("two elements are a store", "T.copy(A[0, 1], C[2, 3])",
     "C[2, 3] = T.cast(A[0, 1], 'float32')"),
    ("an element inside T.Parallel",
     "for i in T.Parallel(32):\n    T.copy(A[bx, i], s[bx, i])",
     "for i in T.Parallel(32):\n    s[bx, i] = A[bx, i]"),
    ("into a variable", "T.copy(V[3], y)", "y = V[3]"),
    ("options", "T.copy(A[0, 0], s, disable_tma=True, eviction_policy='evict_last')",
     "T.copy(A[0:32, 0:64], s, disable_tma=True, eviction_policy='evict_last')"),
    ("annotations win", "T.copy(A[0, 0], s, coalesced_width=4, annotations={'coalesced_width': 2})",
     "T.copy(A[0:32, 0:64], s, coalesced_width=2)"),
    ("transpose", "T.transpose(s, t)", "T.transpose(s, t)"),
    ("im2col", "T.im2col(img, s, bx, 0, 3, 1, 1, 1)",
     "T.im2col(img, s, bx, 0, kernel=3, stride=1, dilation=1, pad=1)"),
]  # fmt: skip

FILLS = [
    ("clear", "T.clear(f)", "T.fill(f, 0.0)"),
    ("fill converts", "T.fill(b, 2.5)", "T.fill(b, 2)"),
    ("fill a region", "T.fill(s[4, 0:8], 1)", "T.fill(s[4, 0:8], 1.0)"),
    ("fill an element", "T.fill(s[4, 0], x)", "s[4, 0] = T.cast(x, 'float16')"),
    ("clear a variable", "T.clear(y)", "y = 0.0"),
]

GEMMS = [
    ("plain", "T.gemm(s, t, f)",
     "T.gemm(s, t, f, False, policy=T.GemmWarpPolicy.Square, k_pack=1)"),
    ("transposed", "T.gemm(s, s, f, transpose_B=True)",
     "T.gemm(s, s, f, False, transpose_B=True, policy=T.GemmWarpPolicy.Square, k_pack=1)"),
    ("both transposed, as numbers", "T.gemm(t, s, f, 1, 1)",
     "T.gemm(t, s, f, False, transpose_A=True, transpose_B=True, "
     "policy=T.GemmWarpPolicy.Square, k_pack=1)"),
    ("clear as expression", "T.gemm(s, t, f, clear_accum=bx == 0, policy=1)",
     "T.gemm(s, t, f, bx == 0, policy=T.GemmWarpPolicy.FullRow, k_pack=1)"),
    ("a stage of a ring", "T.gemm(w[0, :, :], t, f)",
     "T.gemm(w[0, 0:32, 0:64], t, f, False, policy=T.GemmWarpPolicy.Square, k_pack=1)"),
    ("int8", "T.gemm(m, m, b)", "T.gemm(m, m, b, False, policy=T.GemmWarpPolicy.Square, k_pack=1)"),
]  # fmt: skip

REDUCTIONS = [
    ("last dimension", "T.reduce_sum(f, g)",
     "T.reduce(f, g, kind='sum', dim=1, clear=True, batch=1)"),
    ("first dimension", "T.reduce_max(f, g, dim=0, clear=False)",
     "T.reduce(f, g, kind='max', dim=0, batch=1)"),
    ("kept as 1", "T.reduce_absmax(f, c, dim=1)",
     "T.reduce(f, c, kind='absmax', dim=1, clear=True, batch=1)"),
    ("of a vector into a variable", "T.reduce_min(g, y)",
     "T.reduce(g, y[0], kind='min', dim=0, clear=True, batch=1)"),
    ("dim counts the stage of a ring", "T.reduce_sum(w[1, :, :], g, dim=2)",
     "T.reduce(w[1, 0:32, 0:64], g, kind='sum', dim=2, clear=True, batch=1)"),
    ("dim as NumPy counts, where only that fits", "T.reduce_sum(w[1, :, :], g, dim=1)",
     "T.reduce(w[1, 0:32, 0:64], g, kind='sum', dim=2, clear=True, batch=1)"),
    ("by name", "T.reduce(b, k, 'bitxor', dim=1)",
     "T.reduce(b, k, kind='bitxor', dim=1, clear=True, batch=1)"),
    ("abssum", "T.reduce_abssum(f, g, dim=1)",
     "T.reduce(f, g, kind='abssum', dim=1, clear=True, batch=1)"),
    ("scan in place", "T.cumsum(s, dim=1)", "T.scan(s, s, kind='sum', dim=1)"),
    ("scan a row backwards", "T.cummax(s[3, :], s[4, :], dim=1, reverse=True)",
     "T.scan(s[3, 0:64], s[4, 0:64], kind='max', dim=1, reverse=True)"),
    ("reducer",
     "T.reducer_init(acc)\nfor i, j in T.Parallel(32, 32):\n    T.reducer_update(acc[i], f[i, j])\n"
     "T.finalize_reducer(acc, g)",
     "T.reducer_init(acc)\nfor i, j in T.Parallel(32, 32):\n    T.reducer_update(acc[i], f[i, j])\n"
     "T.reducer_finalize(acc, g, batch=1)"),
]  # fmt: skip

QUESTIONS = [
    ("any", "if T.any_of(I[bx:bx + 2]):\n    I[9] = 1",
     "if I[bx] != 0 or I[bx + 1] != 0:\n    I[9] = 1"),
    ("all, as a tree", "I[9] = T.all_of(I[0:3])",
     "I[9] = T.cast(I[0] != 0 and I[1] != 0 and I[2] != 0, 'int32')"),
    ("of unknown length", "I[9] = T.any_of(I[0:n])", "I[9] = T.cast(T.any_of(I[0:n]), 'int32')"),
]  # fmt: skip

ATOMICS = [
    ("element", "T.atomic_add(V[n], 1)", "T.atomic_add(V[n], 1.0)"),
    ("tile at an origin", "T.atomic_add(C[bx * 32, 0], f)",
     "T.atomic(C[bx * 32:bx * 32 + 32, 0:32], f, op='add', memory_order='relaxed')"),
    ("regions", "T.atomic_max(C[0:32, 0:32], f[:, :], memory_order='acq_rel')",
     "T.atomic(C[0:32, 0:32], f, op='max', memory_order='acq_rel')"),
    ("element from element", "T.atomic_min(V[n], C[0, 0])", "T.atomic_min(V[n], C[0, 0])"),
    ("old value", "old = T.atomic_add(I[0], 1, return_prev=True)\nI[1] = old",
     "old = T.atomic_add(I[0], 1)\nI[1] = old"),
    ("a counter of one element", "T.atomic_add(I[0:1], 1)", "T.atomic_add(I[0], 1)"),
    ("bits", "T.atomic_or(I[0], 4)", "T.atomic_or(I[0], 4)"),
    ("two at once", "T.atomic_addx2(H[2 * n], s[0, 2])",
     "T.atomic_addx2(H[2 * n:2 * n + 2], s[0, 2:4])"),
    ("four lanes", "T.atomic_addx4(V[0], T.float32x4(x, x, x, 1))",
     "T.atomic_addx4(V[0:4], T.float32x4(x, x, x, 1.0))"),
    ("load and store", "T.atomic_store(I[0], T.atomic_load(I[1], 'acquire') + 1, 'release')",
     "T.atomic_store(I[0], T.atomic_load(I[1]) + 1)"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "expected"),
    [pytest.param(*row[1:], id=row[0]) for row in COPIES + FILLS + GEMMS + REDUCTIONS + ATOMICS],
)
def test_program(body: str, expected: str) -> None:
    assert statements(body) == expected
