"""Statement rules: what each Python construct inside a kernel becomes."""

from __future__ import annotations

import textwrap

import pytest

from tests.support.programs import body_of, in_kernel

# (name, body of a kernel over A and B, what the program says)
PROGRAMS: list[tuple[str, str, str]] = [
    ("constants fold", "A[0] = 2 * 3 + 1", "A[0] = 7.0"),
    ("a value is named once", "x = A[0] * 2\nB[0] = x + x", "x = A[0] * 2.0\nB[0] = x + x"),
    ("python values stay python", "n = 4\nA[n] = 1", "A[4] = 1.0"),
    (
        "a constant condition picks a branch",
        "flag = True\nif flag:\n    A[0] = 1\nelse:\n    A[0] = 2",
        "A[0] = 1.0",
    ),
    (
        "a device condition is a branch",
        "if A[0] > 0:\n    B[0] = 1\nelif A[0] < 0:\n    B[0] = 2\nelse:\n    B[0] = 3",
        "if A[0] > 0.0:\n    B[0] = 1.0\nelse:\n    if A[0] < 0.0:\n        B[0] = 2.0\n"
        "    else:\n        B[0] = 3.0",
    ),
    ("range is a serial loop", "for i in range(4):\n    A[i] = 0", "for i in T.serial(4):\n    A[i] = 0.0"),
    (
        "ranges step",
        "for i in range(1, 9, 2):\n    A[i] = 0",
        "for i in T.serial(1, 9, 2):\n    A[i] = 0.0",
    ),
    (
        "ranges count down",
        "for i in range(8, 0, -1):\n    A[i] = 0",
        "for i in T.serial(8, 0, -1):\n    A[i] = 0.0",
    ),
    ("lists unroll", "for i in [0, 3]:\n    A[i] = i", "A[0] = 0.0\nA[3] = 3.0"),
    (
        "parallel loops nested directly are one",
        "for i in T.Parallel(4):\n    for j in T.Parallel(4):\n        A[i * 4 + j] = 0",
        "for i, j in T.Parallel(4, 4):\n    A[i * 4 + j] = 0.0",
    ),
    ("grid nests", "for i, j in T.grid(2, 3):\n    A[i * 3 + j] = 0",
     "for i in T.serial(2):\n    for j in T.serial(3):\n        A[i * 3 + j] = 0.0"),
    (
        "while",
        "n = T.alloc_var('int32', init=4)\nwhile n > 0:\n    n -= 1",
        "n = T.alloc_var('int32', init=4)\nwhile n > 0:\n    n = n - 1",
    ),
    (
        "break and continue",
        "for i in T.serial(8):\n    if A[i] > 0:\n        break\n    if A[i] < 0:\n        continue\n"
        "    B[i] = 1",
        "for i in T.serial(8):\n    if A[i] > 0.0:\n        break\n    if A[i] < 0.0:\n"
        "        continue\n    B[i] = 1.0",
    ),
    ("element swap reads first", "A[0], A[1] = A[1], A[0]",
     "value = A[1]\nvalue_1 = A[0]\nA[0] = value\nA[1] = value_1"),
    (
        "variable swap reads first",
        "x = T.alloc_var('int32', init=1)\ny = T.alloc_var('int32', init=2)\nx, y = y, x",
        "x = T.alloc_var('int32', init=1)\ny = T.alloc_var('int32', init=2)\n"
        "x_1 = y\ny_1 = x\nx = x_1\ny = y_1",
    ),
    ("chained assignment", "A[0] = A[1] = 3", "A[0] = 3.0\nA[1] = 3.0"),
    ("an annotation does not convert", "x: T.float16 = A[0]\nB[0] = x", "x = A[0]\nB[0] = x"),
    ("augmented elements", "A[3] += B[3]", "A[3] = A[3] + B[3]"),
    ("chained comparison", "if 0 < A[0] < 1:\n    B[0] = 1", "if A[0] > 0.0 and A[0] < 1.0:\n    B[0] = 1.0"),
    ("and, or, not", "if not (A[0] > 0 or A[1] > 0) and True:\n    B[0] = 1",
     "if not (A[0] > 0.0 or A[1] > 0.0):\n    B[0] = 1.0"),
    ("a conditional expression is lazy", "B[0] = A[0] if A[0] > 0 else 0",
     "B[0] = T.if_then_else(A[0] > 0.0, A[0], 0.0)"),
    ("a device assert", "assert A[0] > 0, 'positive'", "assert A[0] > 0.0, 'positive'"),
    ("negative indices count from the end", "B[-1] = A[-16]", "B[15] = A[0]"),
    ("min and max of expressions", "B[0] = max(A[0], 0)", "B[0] = T.max(A[0], 0.0)"),
    ("powers of small integers multiply", "B[0] = A[0] ** 2", "B[0] = A[0] * A[0]"),
    ("lambdas run while tracing", "f = lambda v: v * 2 + 1\nB[0] = f(A[0])", "B[0] = A[0] * 2.0 + 1.0"),
    ("comprehensions run while tracing", "s = sum([A[i] for i in range(3)])\nB[0] = s",
     "s = 0.0 + A[0] + A[1] + A[2]\nB[0] = s"),
    ("slices store vectors", "A[0:4] = 1", "for v in T.vectorized(4):\n    A[v] = 1.0"),
    ("values convert to the buffer's dtype", "n = T.alloc_var('int32', init=3)\nA[0] = n",
     "n = T.alloc_var('int32', init=3)\nA[0] = T.cast(n, 'float32')"),
    ("names bound again are new values", "x = A[0]\nx = x + 1\nB[0] = x",
     "x = A[0]\nx_1 = x + 1.0\nB[0] = x_1"),
    ("f-strings and len run while tracing", "n = len(f'{3}ab')\nA[n] = 0", "A[3] = 0.0"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "body", "expected"), PROGRAMS, ids=[p[0] for p in PROGRAMS])
def test_statement(name: str, body: str, expected: str) -> None:
    assert body_of(in_kernel(body)) == expected


def test_macros_take_scalars_by_value_and_references_by_reference() -> None:
    text = textwrap.dedent(
        """
        @T.macro
        def accumulate(total: T.Ref, value, scale):
            total += value * scale

        @T.prim_func
        def main(A: T.Tensor((16,), "float32")):
            with T.Kernel(1, threads=16) as bx:
                t = T.alloc_var("float32", init=0)
                accumulate(t, A[0] + 1, 2)
                accumulate(A[3], t, 1)
        """
    )
    assert body_of(text) == textwrap.dedent(
        """\
        t = T.alloc_var('float32', init=0.0)
        value = A[0] + 1.0
        t = t + value * 2.0
        value_1 = t
        A[3] = A[3] + value_1 * 1.0"""
    )


def test_macros_return_values_and_call_each_other() -> None:
    text = """
    @T.macro
    def square(x):
        return x * x

    @T.macro
    def norm(x, y):
        return square(x) + square(y)

    @T.prim_func
    def main(A: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=16) as bx:
            A[0] = norm(A[1], A[2])
    """
    assert body_of(text) == "A[0] = A[1] * A[1] + A[2] * A[2]"


def test_factories_specialise_with_values() -> None:
    text = """
    def scale(n, factor, relu=False):
        @T.prim_func
        def main(A: T.Tensor((n,), "float32")):
            with T.Kernel(T.ceildiv(n, 16), threads=16) as bx:
                for i in T.Parallel(16):
                    A[bx * 16 + i] = A[bx * 16 + i] * factor
                    if relu:
                        A[bx * 16 + i] = T.max(A[bx * 16 + i], 0)
        return main
    """
    assert body_of(text, {"n": 40, "factor": 3}) == (
        "for i in T.Parallel(16):\n    A[bx * 16 + i] = A[bx * 16 + i] * 3.0"
    )


def test_a_symbol_beside_memory_leaves_the_branch_to_the_device() -> None:
    text = """
    import tilelang.language as T

    def factory(n):
        @T.prim_func
        def main(A: T.Tensor((128,), "int32"), B: T.Tensor((128,), "int32")):
            with T.Kernel(1):
                if A[0] == n:
                    B[0] = 1
                m = n * 2
                if m == 4:
                    B[1] = 1
        return main
    """
    # The file leaves `n` open, so the second condition is decided when the kernel is made.
    assert body_of(textwrap.dedent(text)) == "if A[0] == n:\n    B[0] = 1\nB[1] = 1"
