"""What kernels met in the wild have found, each kind by the smallest use of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilelang
import tilelang.language as T
from tests.emulator.needs import needs_compiler
from tests.emulator.running import MODES, check_emulated
from tests.kernels.registry import KERNELS
from tests.support.markers import check_diagnostics
from tests.support.programs import in_kernel
from tilelang.language.frontend import parse_static
from tilelang.runtime.keys import freeze
from tilelang_diagnostics import CompileError

CASES = {case.name: case for case in KERNELS if case.row == "wild"}
FOUND = [
    ("wild_softmax_backward", "cuda:sm_80"),  # a reducer with `replication` was one thread's
    ("wild_adamw", "cuda:sm_80"),  # an exponent that is a cast is no constant
]


@needs_compiler
@pytest.mark.parametrize(("name", "target"), FOUND)
def test_right_on_a_gpu(name: str, target: str) -> None:
    mode = "check" if target.startswith("cuda") else "fifo"
    check_emulated(CASES[name], MODES[mode], target)


@needs_compiler
def test_static_tiles_share_the_one_array_of_metal_safely() -> None:
    case = CASES["wild_chunk_scan"]
    static = replace(case, params={**case.params, "scope": "shared"})
    check_emulated(static, MODES["fifo"], "metal:apple9")


@tilelang.jit(target="cpu")
def power(A, n):
    A: T.Tensor((8,), T.float32)
    n: T.int32
    B = T.empty((8,), T.float32)
    with T.Kernel(1, threads=32):
        for i in T.Parallel(8):
            B[i] = T.pow(A[i], T.cast(n, "float32"))
    return B


def test_an_exponent_known_when_the_kernel_runs() -> None:
    a = np.linspace(0.5, 2, 8, dtype=np.float32)
    assert np.allclose(power(a, 3), a**3, rtol=1e-5)


OLD_REDUCER = """
import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((8, 32), "float32"), B: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=32):
        acc = T.alloc_reducer((8,), "float32", op="{op}", replication="all")
        T.fill(acc, 0)
        {use}
        T.finalize_reducer(acc)
        T.copy(acc, B)
"""


@pytest.mark.parametrize(
    ("op", "use", "message"),
    [
        (
            "sum",
            "for i, j in T.Parallel(8, 32): acc[i] = A[i, j]",
            "an element of the reducer `acc` is assigned, not contributed to by `sum`",
        ),
        (
            "max",
            "for i, j in T.Parallel(8, 32): acc[i] += A[i, j]",
            "an element of the reducer `acc` is assigned, not contributed to by `max`",
        ),
        ("sum", "acc[0] += A[0, 0]", "`acc` is updated outside `T.Parallel`"),
    ],
)
def test_what_is_no_contribution_is_refused(op: str, use: str, message: str) -> None:
    (parsed,) = parse_static(OLD_REDUCER.format(op=op, use=use), "k.py", target="cuda:sm_80")
    (found,) = (d for d in parsed.diagnostics if d.is_error)
    assert (found.code, found.message) == ("TL187", message)


@dataclass
class Tiles:
    block: int = 16
    stages: int = 2


class Plain:
    def __init__(self) -> None:
        self.block = 16


@pytest.mark.parametrize("make", [Tiles, Plain, lambda: SimpleNamespace(block=16)])
def test_a_configuration_is_what_it_holds(make: Any) -> None:
    config = make()
    before = freeze(config)
    assert freeze(config) == before
    config.block = 32
    assert freeze(config) != before


def test_equal_dataclasses_are_one_key() -> None:
    assert freeze(Tiles()) == freeze(Tiles())
    assert freeze(Tiles(1)) != freeze(Tiles(True))


OVERLAPPING = """
import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((12, 32), "float16"), B: T.Tensor((12, 32), "float16")):
    with T.Kernel(2, threads=128) as h:
        for i, d in T.Parallel(16, 32):
            B[h * 6 + i, d] = T.if_then_else(i < 6, A[h * 6 + i, d], 0)
"""


def test_overlapping_tiles_are_larger_than_their_step_on_purpose() -> None:
    (parsed,) = parse_static(OVERLAPPING, "k.py", target="cuda:sm_80")
    assert "TL608" not in {d.code for d in parsed.diagnostics}


def test_what_stopped_a_compilation_stands_above_remarks() -> None:
    from tilelang_diagnostics import diagnose
    from tilelang_diagnostics.model import Severity

    remark = replace(diagnose("TL608", "tiles waste work"), severity=Severity.REMARK)
    text = str(CompileError((remark, diagnose("TL117", "no size"))))
    assert text.index("error[TL117]") < text.index("TL608")


@pytest.mark.parametrize(
    "body",
    [
        """
        A[0] = -T.inf
        #         ^^^ error[TL111] help: `T.infinity(dtype)`
     """,
        """
        T.reduce_mean(A, B, dim=0)
        # ^^^^^^^^^^^ error[TL111] help: `T.reduce_sum(tile, out, dim)`
     """,
        """
        a = T.alloc_shared((16, 16), "float16")
        c = T.alloc_fragment((16, 16), "float32")
        T.clear(a)
        T.clear(c)
        T.gemm(a, a, c, policy='FullRow')
        #                      ^^^^^^^^^ error[TL117] help: one of T.GemmWarpPolicy.Square
     """,
        """
        count = T.alloc_var("int32")
        #       ^^^^^^^^^^^^^^^^^^^^ warning[TL185] help: init=0
        A[count] = 1
     """,
        """
        i, j = T.Parallel(4, 4)
        #      ^^^^^^^^^^^^^^^^ error[TL156] help: write `for i, j in …:`
        A[i] = 1
     """,
    ],
    ids=["inf", "mean", "policy", "variable", "unpacked loop"],
)
def test_what_a_slip_is_told(body: str) -> None:
    check_diagnostics(in_kernel(body))


IN_A_MACRO = """
import tilelang.language as T
@T.macro
def step(A, value):
    with T.Kernel(1, threads=32):
        T.fill(A, value)
@T.prim_func
def main(A: T.Tensor((8,), "float32"), n: T.int32):
    {call}
"""


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("step(A, 1) if n > 0 else step(A, 2)", "TL181"),
        ("step(A)", "TL113"),
        ("for i in range(2): step(A, 1)", "TL161"),
    ],
)
def test_a_launch_that_a_macro_would_make_is_not_missed(call: str, code: str) -> None:
    (parsed,) = parse_static(IN_A_MACRO.format(call=call), "k.py")
    assert [d.code for d in parsed.diagnostics if d.is_error] == [code]


def test_launches_of_a_list_stand_one_after_the_other() -> None:
    text = IN_A_MACRO.format(call="for i in list(range(2)): step(A, i)")
    (parsed,) = parse_static(text, "k.py")
    assert not parsed.diagnostics and parsed.function is not None


LATER = """
import tilelang.language as T
@T.prim_func
def main(A: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=32):
        rows = T.alloc_shared((2, 8), "float32")
        for k in T.serial(8):
            {first}
            T.copy(A, rows[k % 2, :])
        T.copy(rows[1, :], A)
"""


@pytest.mark.parametrize(
    ("first", "codes"),
    [
        ("if k > 0: A[k] = rows[(k + 1) % 2, k]", set()),
        ("A[k] = rows[(k + 1) % 2, k]", {"TL185"}),
    ],
)
def test_a_read_of_later_iterations_is_no_early_one(first: str, codes: set[str]) -> None:
    (parsed,) = parse_static(LATER.format(first=first), "k.py")
    assert {d.code for d in parsed.diagnostics} == codes


@tilelang.jit(target="cpu")
def scaled_by_root(A):
    n = T.const("n")
    A: T.Tensor((n,), T.float32)
    factor = 1 / math.sqrt(n)
    B = T.empty((n,), T.float32)
    with T.Kernel(1, threads=32):
        for i in T.Parallel(n):
            B[i] = A[i] * factor
    return B


def test_python_computes_with_sizes_it_knows_only_at_the_call() -> None:
    a = np.ones(16, np.float32)
    assert np.allclose(scaled_by_root(a), 0.25)


@tilelang.jit(target="cuda:sm_80", execution_backend="emulator")
def hashed(n):
    @T.prim_func
    def main(B: T.Tensor((n,), "uint32")):
        with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
            tx = T.get_thread_binding()
            seed = T.cast(bx * 32 + tx - 40, "uint32")
            B[bx * 32 + tx] = seed * T.uint32(2654435761)

    return main


@needs_compiler
def test_a_negative_number_becomes_an_unsigned_one() -> None:
    b = np.zeros(70, np.uint32)
    hashed(70)(b)
    assert (b == (np.arange(70) - 40).astype(np.uint32) * np.uint32(2654435761)).all()
