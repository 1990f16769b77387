"""What people write in their first hours, coming from PyTorch, NumPy, Triton or plain Python."""

from __future__ import annotations

import copy
import pickle
import re
from typing import Any

import numpy as np
import pytest

import tilelang
import tilelang.language as T
from tests.support.markers import check_diagnostics
from tests.support.programs import in_kernel
from tilelang.language import advice
from tilelang_diagnostics import CompileError

# (name, body of a kernel over A and B with markers); read as text, so that nothing is imported.
BODIES: list[tuple[str, str]] = [
    ("a Python list as a tile", """
        tile = [0.0] * 16
        for i in T.serial(16):
            tile[i] = A[i]
        #   ^^^^^^^ error[TL228] a Python list is indexed by `i`
     """),
    ("a table indexed on the device", """
        table = (1.0, 2.0)
        for i in T.serial(16):
            B[i] = table[i % 2]
        #          ^^^^^^^^^^^^ error[TL228] a Python tuple is indexed by `i % 2`
     """),
    ("a function of NumPy", """
        import numpy as np
        A[0] = np.exp(B[0])
        #      ^^^^^^^^^^^^ error[TL152] help: use `T.exp(…)`
     """),
    ("a function of torch by another name", """
        import torch
        A[0] = torch.maximum(B[0], 0)
        #      ^^^^^^^^^^^^^^^^^^^^^^ error[TL152] help: use `T.max(a, b)`
     """),
    ("a function of torch on a whole tensor", """
        import torch
        T.copy(torch.relu(A), B)
        #      ^^^^^^^^^^^^^ error[TL152] help: element by element in `for i in T.Parallel(n):`
     """),
    ("a function of math", """
        import math
        A[0] = math.sqrt(B[0])
        #      ^^^^^^^^^^^^^^^ error[TL152] help: use `T.sqrt(…)`
     """),
    ("round", """
        A[0] = round(B[0])
        #      ^^^^^^^^^^^ error[TL152] help: use `T.round(…)`
     """),
    ("Triton's loads", """
        A[0] = T.load(B, 0)
        #        ^^^^ error[TL111] help: an index (`A[i, j]`), or the copy of a tile
     """),
    ("Triton's program id", """
        pid = T.program_id(0)
        #       ^^^^^^^^^^ error[TL111] help: with T.Kernel(grid_x, grid_y) as (bx, by)
     """),
    ("dot is no slip for Not", """
        T.dot(A, B)
        # ^^^ error[TL111] help: `T.gemm(A_tile, B_tile, C_tile)`
     """),
    ("where", """
        A[0] = T.where(B[0] > 0, 1, 0)
        #        ^^^^^ error[TL111] help: `T.if_then_else(condition, a, b)`
     """),
    ("a file of the compiler is no function", """
        tile = T.alloc((16,), "float32")
        #        ^^^^^ error[TL111] help: `T.alloc_shared`
     """),
    ("methods of a tensor", """
        A[0] = B.sum()
        #        ^^^ error[TL111] help: `T.reduce_sum(tile, out, dim)`
        A[1] = B[0].item()
        #           ^^^^ error[TL111] help: the element itself
        A.fill_(0)
        # ^^^^^ error[TL111] help: `T.fill(tile, value)`
        A[2] = B[0].exp()
        #           ^^^ error[TL111] help: use `T.exp(…)`
        A[3] = B.frobnicate
        #        ^^^^^^^^^^ error[TL111] help: a buffer has `.shape`
     """),
    ("iterating a tensor", """
        for x in A:
        #        ^ error[TL141] is not a loop
            B[0] = x
        for i, x in enumerate(A):
        #           ^^^^^^^^^^^^ error[TL141] its elements are only known when the kernel runs
            B[i] = x
        for a, b in zip(A, B):
        #           ^^^^^^^^^ error[TL141] help: loop over its indices
            B[0] = a
        B[0] = max(A)
        #      ^^^^^^ error[TL141]
        first, *rest = A
     #  ^^^^^^^^^^^^ error[TL154]
     """),
    ("a string is no number, where it stands", """
        A[0] = "x" * 3
        #      ^^^^^^^ error[TL116] the string `'xxx'`
        A[1] = f"{B[0]}"
        #      ^^^^^^^^^ error[TL116] the string `'B[0]'`
        A[2] = 1j
        #      ^^ error[TL116] the complex number `1j`
     """),
    ("arithmetic of slices", """
        A[:] = B[:] * 2
        #      ^^^^^^^^ error[TL151] an operator is applied to a region of `B`
        A[0] = -B
        #      ^^ error[TL151] the whole buffer `B`
     """),
    ("operators Python does not have either", """
        x = -"a"
        #   ^^^^ error[TL183] bad operand type
        y = ~1.5
        #   ^^^^ error[TL183]
        z = {[1]}
        #   ^^^^^ error[TL183] help: use tuples as keys
        T.copy(A, B, **{1: 2})
        #              ^^^^^^ error[TL116] no dict of keywords
     """),
    ("statements of Python", """
        global x
     #  ^^^^^^^^ error[TL130] `global` is not part of the language
        async_ = 1
        yield A[0]
     #  ^^^^^^^^^^ error[TL131] `yield` is not part of the language
     """),
    ("raise where the device decides", """
        if A[0] > 0:
            raise ValueError("positive")
        #   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ error[TL130] help: T.device_assert
     """),
    ("a counter that is Python's", """
        i = 0
        while i < 3:
        #     ^^^^^ error[TL139] help: `i = T.alloc_var("int32", init=…)`
            A[i] = 1
            i += 1
     """),
    ("return in the launch", """
        return A
     #  ^^^^^^^^ error[TL136] help: put it after the `with` block
     """),
    ("a loop in with", """
        with T.Parallel(16) as i:
        #    ^^^^^^^^^^^^^^ error[TL116] help: write `for … in T.Parallel(16):`
            A[i] = 1
     """),
    ("T is something else here", """
        T = 3
        A[0] = T.exp(B[0])
        #        ^^^ error[TL111] no attribute `exp`
     """),
    ("the shape and the dtype", """
        a = T.alloc_shared("float32", (16,))
        #                             ^^^^^ error[TL230] help: the shape comes first
        b = T.alloc_shared(16, 16, "float32")
        #                      ^^ error[TL230] help: several extents are one tuple
     """),
    ("num_stages", """
        for i in T.Pipelined(4, stages=2):
        #                       ^^^^^^ error[TL112] did you mean `num_stages`
            A[i] = 1
     """),
    ("values of a loop in a list", """
        kept = []
        for i in T.serial(4):
            kept.append(A[i])
        B[0] = kept[0]
     #  ^^^^ error[TL134] a value that depends on `i`
     """),
    ("tiles of a loop in a list", """
        kept = []
        for i in T.serial(4):
            kept.append(T.alloc_shared((16,), "float32"))
            T.fill(kept[0], 1)
        T.copy(kept[0], B)
     #  ^^^^^^^^^^^^^^^^^^ error[TL134] used outside the branch or loop
     """),
    ("tiles of an unrolled loop in a list", """
        kept = []
        for i in (1, 2):
            kept.append(T.alloc_shared((16,), "float32"))
            T.fill(kept[-1], i)
        T.copy(kept[0], B)
        T.copy(kept[1], A)
     """),
    ("the result of what has none", """
        C = T.copy(A, B)
     #  ^ error[TL116] returns nothing that could have a name
        old = T.atomic_add(A[0], 1)
     #  ^^^ error[TL116] help: `return_prev=True`
        _ = T.clear(A)
     """),
    ("print", """
        print("shape", A.shape)
        print("value", A[0])
     #  ^^^^^^^^^^^^^^^^^^^^ warning[TL152] help: print values with `T.print(A[0])`
        T.print(A[0], A[1])
     #  ^^^^^^^^^^^^^^^^^^^ error[TL116] help: print one value at a time
     """),
    ("casts of NumPy", """
        import numpy as np
        A[0] = np.float16(B[0])
        #      ^^^^^^^^^^^^^^^^ error[TL152] help: use `T.cast(x, 'float16')`
        A[16 / 2] = 1
     #  ^^^^^^^^^ error[TL234] help: write `//`
     """),
    ("a sum that each thread has a part of", """
        total = T.alloc_var("float32", init=0)
        for i in T.Parallel(16):
            total += A[i]
        #   ^^^^^^^^^^^^^ warning[TL240] `total` is private to each thread
        B[0] = total
     """),
    ("a sum whose parts are put together", """
        total = T.alloc_var("float32", init=0)
        for i in T.Parallel(16):
            total += A[i]
        T.atomic_add(B[0], total)
     """),
    ("a sum of every iteration", """
        total = T.alloc_var("float32", init=0)
        for i in T.Parallel(4):
            total = 0
            for j in T.serial(4):
                total += A[i * 4 + j]
            B[i] = total
     """),
    ("all of it, with dots", """
        T.copy(A[...], B)
     """),
]  # fmt: skip


@pytest.mark.parametrize(("name", "body"), BODIES, ids=[b[0] for b in BODIES])
def test_body(name: str, body: str) -> None:
    check_diagnostics(in_kernel(body))


def loops(A):
    for i in T.Parallel(32):
        A[i] = 1


def launches(A):
    with T.Kernel(1, threads=32):
        A[0] = 1


def branches(x):
    return x if x > 0 else 0


TABLE = np.ones(32, np.float32)


@tilelang.jit(target="cpu")
def calling(A, how):
    A: T.Tensor((32,), "float32")
    if how == "launches":
        launches(A)
    with T.Kernel(1, threads=32):
        if how == "loops":
            loops(A)
        if how == "captured":
            T.copy(TABLE, A)
        for i in T.Parallel(32):
            if how == "branches":
                A[i] = branches(A[i])
            elif how == "table":
                A[i] = TABLE[i]


@pytest.mark.parametrize(
    ("how", "code", "help"),
    [
        ("loops", "TL156", "decorate the function with `@T.macro`"),
        ("launches", "TL156", "decorate the function with `@T.macro`"),
        ("branches", "TL152", "may branch if it is a `@T.macro`"),
        ("table", "TL228", "pass it to the kernel as a tensor"),
        ("captured", "TL116", "give the kernel a parameter for it"),
    ],
)
def test_functions_the_kernel_calls(how: str, code: str, help: str) -> None:
    with pytest.raises(CompileError) as caught:
        calling.compile(TABLE, how)
    found = caught.value.diagnostics[0]
    assert found.code == code and found.help is not None and help in found.help
    assert found.span is not None and found.span.file == __file__


class Method:
    def kernel(self, A):
        A: T.Tensor((32,), "float32")
        with T.Kernel(1, threads=32):
            A[0] = 1

    @staticmethod
    @tilelang.jit(target="cpu")
    def static(A):
        A: T.Tensor((32,), "float32")
        with T.Kernel(1, threads=32):
            A[0] = 7


@tilelang.jit(target="cpu")
def undeclared(A):
    M = A.shape[0]
    A: T.Tensor((M,), "float32")
    with T.Kernel(1, threads=32):
        A[0] = 1


@tilelang.jit(target="cpu")
def starred(*tensors):
    with T.Kernel(1, threads=32):
        tensors[0][0] = 1


@tilelang.jit(target="cpu")
def optional(A, **options):
    A: T.Tensor((32,), "float32")
    with T.Kernel(1, threads=32):
        A[0] = options.get("value", 5)


@tilelang.jit(target="cpu")
def shaped(A, shape):
    A: T.Tensor((32,), "float32")
    with T.Kernel(1, threads=32):
        tile = T.alloc_shared(shape, "float32")
        T.fill(tile, 3)
        T.copy(tile, A)


SHAPE = np.array([32])


@tilelang.jit(target="cpu")
def array_shaped(A):
    A: T.Tensor(SHAPE, "float32")
    with T.Kernel(1, threads=32):
        tile = T.alloc_shared(SHAPE, "float32")
        T.fill(tile, 4)
        T.copy(tile, A)


def swapped():
    @T.prim_func
    def main(A: T.Tensor("float32", (32,))):
        with T.Kernel(1, threads=32):
            A[0] = 1


USES: list[tuple[str, Any, str, str]] = [
    ("a method", lambda: tilelang.jit(Method.kernel), "TL173", "outside of the class"),
    ("a prim_func method", lambda: T.prim_func(Method.kernel), "TL167", "a kernel is no method"),
    ("a target by position", lambda: tilelang.jit("cpu"), "TL173", "@tilelang.jit(target='cpu')"),
    ("an extent from the tensor", lambda: undeclared(TABLE), "TL167", 'T.const("M, N")'),
    ("tensors by star", lambda: starred(TABLE, TABLE), "TL714", "a parameter of its own"),
    ("no arguments", lambda: undeclared(), "TL701", "call it as undeclared(A)"),
    ("a wrong keyword", lambda: shaped(TABLE, shpe=3), "TL720", "call it as shaped(A, shape)"),
    ("the dtype first", swapped, "TL215", "tuple of positive integers"),
]  # fmt: skip


@pytest.mark.parametrize(("use", "code", "help"), [u[1:] for u in USES], ids=[u[0] for u in USES])
def test_uses(use: Any, code: str, help: str) -> None:
    with pytest.raises(CompileError) as caught:
        use()
    found = caught.value.diagnostics[0]
    assert found.code == code and found.help is not None and help in found.help


def test_what_works_although_it_is_unusual() -> None:
    for shape in ((np.int64(32),), [32], np.int64(32), 32):
        A = np.zeros(32, np.float32)
        shaped(A, shape)
        assert A.tolist() == [3] * 32
    A = np.zeros(32, np.float32)
    array_shaped(A)
    assert A.tolist() == [4] * 32
    A = np.zeros(32, np.float32)
    optional(A)
    assert A[0] == 5
    Method.static(A)
    assert A[0] == 7


class Holder:
    """What a `torch.nn.Module` does with its attributes: they are copied and pickled with it."""

    def __init__(self) -> None:
        self.kernel = optional
        self.compiled = optional.compile()


def test_kernels_are_copied_and_pickled_like_functions() -> None:
    holder = Holder()
    made = copy.deepcopy(holder)
    assert made.kernel is holder.kernel and made.compiled is holder.compiled
    assert copy.copy(holder.compiled) is holder.compiled
    assert pickle.loads(pickle.dumps(optional)) is optional


def test_advice_names_what_exists() -> None:
    texts = [*advice.NAMES.values(), *advice._ATTRIBUTES.values()]
    names = {name for text in texts for name in re.findall(r"\bT\.(\w+)", text)}
    assert names <= set(T.__all__)
