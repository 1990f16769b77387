"""Checked mode and the blocks of a launch: races for tensors are found, what is ordered is not
accused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilelang
import tilelang.language as T
from tests.emulator.damage import device_of, find_line, run_device, with_line
from tests.emulator.needs import needs_compiler
from tests.emulator.running import TARGET
from tests.emulator.test_python_api import turned
from tilelang.emulator.settings import Emulator
from tilelang_diagnostics import CompileError
from tilelang_diagnostics.model import Diagnostic

pytestmark = needs_compiler
BLOCKS, THREADS = 6, 64


@T.prim_func
def last_block_sums(
    A: T.Tensor((BLOCKS, THREADS), "int32"),
    Part: T.Tensor((BLOCKS,), "int32"),
    Count: T.Tensor((1,), "int32"),
    Out: T.Tensor((1,), "int32"),
):
    """Each block leaves a part; the one that comes last adds them up."""
    with T.Kernel(BLOCKS, threads=THREADS) as bx:
        tx = T.get_thread_binding()
        ticket = T.alloc_shared((1,), "int32")
        if tx == 0:
            Part[bx] = A[bx, 0] + A[bx, 1]
            ticket[0] = T.atomic_add(Count[0], 1, memory_order="acq_rel", return_prev=True)
        T.sync_threads()
        if ticket[0] == BLOCKS - 1:
            if tx == 1:
                total = T.alloc_local((1,), "int32")
                total[0] = 0
                for i in T.serial(BLOCKS):
                    total[0] = total[0] + Part[i]
                Out[0] = total[0]


@T.prim_func
def chain(A: T.Tensor((BLOCKS,), "int32"), Flag: T.Tensor((BLOCKS,), "int32")):
    """Each block waits for the one before it, and goes on with what that one left."""
    with T.Kernel(BLOCKS, threads=32) as bx:
        tx = T.get_thread_binding()
        if tx == 0:
            if bx > 0:
                while T.atomic_load(Flag[bx - 1], memory_order="acquire") == 0:
                    T.evaluate(0)
                A[bx] = A[bx] + A[bx - 1]
            T.atomic_store(Flag[bx], 1, memory_order="release")


@T.prim_func
def overlapping(A: T.Tensor((BLOCKS * 32,), "float32"), B: T.Tensor((BLOCKS * 32,), "float32")):
    """Each block writes its own elements."""
    with T.Kernel(BLOCKS, threads=32) as bx:
        tx = T.get_thread_binding()
        B[bx * 32 + tx] = A[bx * 32 + tx]


def findings(prim_func: Any, device: Any, arrays: list[np.ndarray], workers: int | None = None
             ) -> tuple[Diagnostic, ...]:  # fmt: skip
    try:
        run_device(prim_func, device, arrays, Emulator(check=True, workers=workers))
    except CompileError as error:
        return error.diagnostics
    return ()


def damaged(prim_func: Any, pattern: str, instead: str) -> Any:
    device = device_of(prim_func)
    number, before = find_line(device, pattern)
    return with_line(device, number, re.sub(pattern, instead, before))


def sum_arrays() -> list[np.ndarray]:
    a = np.arange(BLOCKS * THREADS, dtype=np.int32).reshape(BLOCKS, THREADS)
    return [a, np.zeros(BLOCKS, np.int32), np.zeros(1, np.int32), np.zeros(1, np.int32)]


@pytest.mark.parametrize("workers", [1, 3])
def test_the_last_block_may_read_what_was_released(workers: int) -> None:
    arrays = sum_arrays()
    assert findings(last_block_sums, device_of(last_block_sums), arrays, workers) == ()
    assert arrays[3][0] == arrays[0][:, :2].sum()


@pytest.mark.parametrize("workers", [1, 3])
def test_a_missing_release_is_a_race(workers: int) -> None:
    device = damaged(last_block_sums, r"memory_order::acq_rel", "memory_order::relaxed")
    (race, *_) = findings(last_block_sums, device, sum_arrays(), workers)
    assert race.code == "TL735"
    assert race.message.startswith("a read and a write of `Part` by different blocks of")
    assert "Part[i]" in (race.label or "") and "Part[bx]" in race.labels[0].text
    assert re.search(r"thread \(1, 0, 0\) of block \(\d, 0, 0\) and thread \(0, 0, 0\) of block "
                     r"\(\d, 0, 0\)", race.notes[0])  # fmt: skip


def chain_arrays() -> list[np.ndarray]:
    return [np.ones(BLOCKS, np.int32), np.zeros(BLOCKS, np.int32)]


@pytest.mark.parametrize("workers", [1, 3])
def test_flags_order_blocks(workers: int) -> None:
    arrays = chain_arrays()
    assert findings(chain, device_of(chain), arrays, workers) == ()
    np.testing.assert_array_equal(arrays[0], np.arange(1, BLOCKS + 1))
    device = damaged(chain, r"atomic_store<tl::memory_order::release>",
                     "atomic_store<tl::memory_order::relaxed>")  # fmt: skip
    assert {d.code for d in findings(chain, device, chain_arrays(), workers)} == {"TL735"}


def test_the_barrier_of_the_grid_orders_blocks() -> None:
    a, b = np.arange(500, dtype=np.float32), np.zeros(500, np.float32)
    kernel = tilelang.compile(turned, target=TARGET, execution_backend=Emulator(check=True))
    kernel(a, b)
    runner: Any = kernel._built.runner
    device = runner.device
    number, before = find_line(device, r"tl::sync_grid\(\);")
    device = with_line(device, number, before.replace("tl::sync_grid", "__syncthreads"))
    races: list[Diagnostic] = []
    for _ in range(3):  # who comes first is up to the processes
        try:
            runner.device = device
            kernel(a, b)
        except CompileError as error:
            races += error.diagnostics
    assert {d.code for d in races} == {"TL735"}


@pytest.mark.parametrize(
    ("instead", "codes"),
    [
        ("B[tx] = float(bx);", {"TL735"}),  # all blocks, different values
        ("B[tx] = 3.0f;", set()),  # one value
        ("B[bx * 32 + tx] = B[(bx * 32 + tx + 32) % 192] + 1.0f;", {"TL735"}),
        ("B[bx * 32 + tx] = 1.0f; B[bx * 32 + tx] += 2.0f;", set()),
        ("atomicAdd(&B[0], 1.0f);", set()),
        # an update of one byte leaves its neighbours alone
        ("if (tx == 0 && bx < 4) { atomicOr((unsigned*)B, 1u << 8 * bx); "
         "if (((unsigned char*)B)[bx] == 9) B[64] = 1.0f; }", set()),
        ("if (tx == 0 && bx < 4) { atomicOr((unsigned*)B, 1u << 8 * bx); "
         "if (((unsigned char*)B)[(bx + 1) % 4] == 9) B[64] = 1.0f; }", {"TL735"}),
        ("if (tx == 0) { if (bx == 3) B[0] = 7.0f; else atomicAdd(&B[0], 1.0f); }", {"TL735"}),
    ],
)  # fmt: skip
def test_what_blocks_do_to_one_element(instead: str, codes: set[str]) -> None:
    device = damaged(overlapping, r"B\[bx \* 32 \+ tx\] = .*", instead)
    arrays = [np.zeros(BLOCKS * 32, np.float32), np.zeros(BLOCKS * 32, np.float32)]
    assert {d.code for d in findings(overlapping, device, arrays)} == codes


@T.prim_func
def sums(A: T.Tensor((4, 64), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(4, threads=64) as bx:
        tx = T.get_thread_binding()
        T.atomic_add(B[tx], A[bx, tx])


def test_a_result_that_is_added_to_before_it_is_written() -> None:
    """What a call allocates holds nothing; what the caller passes does."""
    a, b = np.ones((4, 64), np.float32), np.zeros(64, np.float32)
    emulator = Emulator(check=True)
    tilelang.compile(sums, target=TARGET, execution_backend=emulator)(a, b)
    np.testing.assert_array_equal(b, 4)
    returning = tilelang.compile(sums, out_idx=[1], target=TARGET, execution_backend=emulator)
    with pytest.raises(CompileError) as caught:
        returning(a)
    (found,) = caught.value.diagnostics
    assert found.code == "TL732" and "in `B` of `sums`" in found.message


@T.prim_func
def through_registers(A: T.Tensor((256,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        tx = T.get_thread_binding()
        w = T.alloc_local((4,), "float32")
        for i in T.serial(4):
            w[i] = A[tx * 4 + i]
        B[tx] = w[tx % 4]


@pytest.mark.parametrize(
    ("pattern", "instead", "code", "text"),
    [
        (r"w\[tx % 4\]", "w[tx % 4 + 1]", "TL730",
         "index 4 of `w` in `through_registers`, which each thread holds as float [4]"),
        (r"w\[i\] =", "w[i - 1] =", "TL730", "index -1 of `w` in"),
        (r"w\[i\] =", "if (i != 2) w[i] =", "TL732",
         "`w` of `through_registers` is read where the thread has not written it"),
        (r"w\[tx % 4\]", "tl::load<4>(&w[2])[0]", "TL730",
         "a read of 16 bytes past the end of `w` in `through_registers`: byte 8 of 16"),
    ],
)  # fmt: skip
def test_arrays_of_a_thread(pattern: str, instead: str, code: str, text: str) -> None:
    arrays = [np.arange(256, dtype=np.float32), np.zeros(64, np.float32)]
    assert findings(through_registers, device_of(through_registers), arrays) == ()
    found = findings(through_registers, damaged(through_registers, pattern, instead), arrays)
    assert any(d.code == code and text in d.message for d in found), [
        (d.code, d.message) for d in found
    ]
