"""Checked mode finds what was damaged, at the line of Python, with both sides of a conflict."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tilelang
import tilelang.language as T
from tests.codegen.kernels import hopper_gemm
from tests.emulator import kernels
from tests.emulator.damage import device_of, find_line, run_device, with_line
from tests.emulator.needs import needs_compiler
from tests.emulator.running import TARGET
from tests.emulator.test_python_api import turned
from tests.support.device import device_func
from tilelang.codegen.cuda import print_cuda
from tilelang.emulator.call import Region
from tilelang.emulator.launch import launch
from tilelang.emulator.settings import Emulator
from tilelang_diagnostics import CompileError
from tilelang_diagnostics.model import Diagnostic

pytestmark = needs_compiler
CHECK = Emulator(check=True)


def found(prim_func: Any, device: Any, arrays: list[np.ndarray], emulator: Emulator = CHECK
          ) -> tuple[Diagnostic, ...]:  # fmt: skip
    try:
        run_device(prim_func, device, arrays, emulator)
    except CompileError as error:
        return error.diagnostics
    return ()


def line_of(diagnostic: Diagnostic) -> str:
    """The user's line a diagnostic is about."""
    assert diagnostic.span is not None
    with open(diagnostic.span.file, encoding="utf-8") as file:
        return file.read().splitlines()[diagnostic.span.line - 1].strip()


def reverse_arrays() -> list[np.ndarray]:
    return [np.arange(256, dtype=np.float32), np.zeros(256, np.float32)]


@pytest.mark.parametrize("target", [TARGET, "hip:gfx942"])
def test_static_tiles_of_a_class(target: str) -> None:
    @T.prim_func
    def turned_halves(A: T.Tensor((32, 32), "float16"), B: T.Tensor((32, 32), "float16")):
        with T.Kernel(1, threads=64):
            tile = T.alloc_shared((32, 32), "float16", scope="shared")
            T.copy(A, tile)
            for i, j in T.Parallel(32, 32):
                B[i, j] = tile[j, i]

    a = np.arange(1024, dtype=np.float16).reshape(32, 32)
    b = np.zeros_like(a)
    kernel = tilelang.compile(turned_halves, target=target, execution_backend=Emulator(check=True))
    kernel(a, b)
    assert (b == a.T).all()


def test_race_names_both_sides() -> None:
    prim_func = kernels.reverse()
    device = device_of(prim_func)
    number, text = find_line(device, r"sync_threads")
    races = found(prim_func, with_line(device, number, ""), reverse_arrays())
    race = next(d for d in races if d.code == "TL731")
    assert "`tile`" in race.message and "`main`" in race.message
    lines = {line_of(race), *(line_of(Diagnostic("TL731", race.severity, "", label.span))
                              for label in race.labels)}  # fmt: skip
    assert lines == {"tile[tx] = A[tx]", "B[tx] = tile[N - 1 - tx]"}
    assert re.search(r"thread \(\d+, 0, 0\) and thread \(\d+, 0, 0\) of block \(0, 0, 0\)",
                     race.notes[0])  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "instead", "code", "text", "line"),
    [
        # past the end of shared memory
        (r"tile\[tx\] =", "tile[tx + 1] =", "TL730", "outside of `tile`: byte 1024 of 1024",
         "tile[tx] = A[tx]"),
        # past the end of a tensor, and far away from all
        (r"= A\[tx\]", "= A[tx + 1]", "TL730", "a read of 4 bytes past the end of `A`: byte "
         "1024 of 1024", "tile[tx] = A[tx]"),
        (r"B\[tx\] =", "B[tx + (1 << 28)] =", "TL730", "a write of 4 bytes past the end of `B`",
         "B[tx] = tile[N - 1 - tx]"),
        (r"B\[tx\] =", "B[tx - 1] =", "TL730", "before the start of `B`: byte -4",
         "B[tx] = tile[N - 1 - tx]"),
        # never written
        (r"tile\[255", "tile[tx == 7 ? 300 : 255", "TL730", "outside of `tile`",
         "B[tx] = tile[N - 1 - tx]"),
        (r"tile\[tx\] =", "if (tx != 9) tile[tx] =", "TL732", "nothing has written, in `tile`",
         "B[tx] = tile[N - 1 - tx]"),
        # two threads write different values to one place
        (r"tile\[tx\] =", "tile[tx & ~1] =", "TL731", "a write and a write of `tile`",
         "tile[tx] = A[tx]"),
        (r"B\[tx\] =", "B[tx & ~1] =", "TL731", "a write and a write of `B`",
         "B[tx] = tile[N - 1 - tx]"),
        # a vector at an odd address
        (r"B\[tx\] = .*", "tl::store(&B[(tx + 2) & 127], tl::vec<float, 4>{});", "TL730",
         "no multiple of 16", "B[tx] = tile[N - 1 - tx]"),
        # half of the threads wait somewhere else
        (r"(.*)tl::sync_threads\(\);", r"if (tx < 128) tl::sync_threads(); else __syncwarp();",
         "TL731", "a read and a write of `tile`", "B[tx] = tile[N - 1 - tx]"),
    ],
)  # fmt: skip
def test_one_damage(pattern: str, instead: str, code: str, text: str, line: str) -> None:
    prim_func = kernels.reverse()
    device = device_of(prim_func)
    number, before = find_line(device, pattern)
    diagnostics = found(prim_func, with_line(device, number, re.sub(pattern, instead, before)),
                        reverse_arrays())  # fmt: skip
    assert any(d.code == code and text in d.message and line_of(d) == line for d in diagnostics), [
        (d.code, d.message, d.span and line_of(d)) for d in diagnostics
    ]


def test_a_race_within_one_statement_is_not_helped_by_a_barrier() -> None:
    prim_func = kernels.reverse()
    device = device_of(prim_func)
    number, before = find_line(device, r"tile\[tx\] =")
    damaged = with_line(device, number, before.replace("tile[tx] =", "tile[tx & ~1] ="))
    (race,) = (d for d in found(prim_func, damaged, reverse_arrays()) if d.code == "TL731"
               and d.message.startswith("a write and a write"))  # fmt: skip
    assert (race.help or "").startswith("several threads reach one element in this statement")
    assert "between the two" not in (race.help or "")


def test_deadlock_says_who_waits() -> None:
    arrays = [np.arange(64, dtype=np.int32), np.zeros(64, np.int32)]
    fine = kernels.handover()
    assert found(fine, device_of(fine), arrays) == ()
    np.testing.assert_array_equal(arrays[1], arrays[0])
    stuck = kernels.handover()
    device = device_of(stuck)
    number, before = find_line(device, r"sync_threads\(1")
    device = with_line(device, number, f"if (tx < 32) {before.strip()}")
    (deadlock,) = found(stuck, device, arrays, Emulator())
    assert deadlock.code == "TL733"
    assert "32 threads wait at barrier 1 for 32 more of 64 threads" in deadlock.message
    assert line_of(deadlock) == "T.sync_threads(1, count)"


@pytest.mark.parametrize(("count", "text"), [(48, "whole warps"), (96, "of a block that has 64")])
def test_impossible_barrier(count: int, text: str) -> None:
    prim_func = kernels.handover()
    device = device_of(prim_func)
    number, before = find_line(device, r"sync_threads\(1")
    device = with_line(device, number, before.replace("64)", f"{count})"))
    (bad,) = found(prim_func, device, [np.zeros(64, np.int32), np.zeros(64, np.int32)], Emulator())
    assert bad.code == "TL511" and text in bad.message


@pytest.mark.parametrize(
    ("pattern", "instead", "text"),
    [
        (r"24576\)", "24592)", "lacks 0 of 1 arrivals and 16 bytes"),
        (
            r"mbarrier_arrive\(empty",
            "mbarrier_arrive(full",
            "lacks 128 of 128 arrivals and 0 bytes",
        ),
        (r"tl::mbarrier_arrive_expect_tx.*", "", "lacks 1 of 1 arrivals and -24576 bytes"),
        (r"if \(tx == 0\)", "if (true)", "an mbarrier is initialised that is in use already"),
        (r"\(k / 2 \+ 1\) % 2", "k / 2 % 2", "at an mbarrier for phase 0 (parity 0), which lacks"),
    ],
)
def test_mbarriers(pattern: str, instead: str, text: str) -> None:
    """A ring of two stages between a warp that loads by TMA and a warp group that multiplies."""
    maps: Any = {"A_map": ("A", (64, 64), 128), "B_map": ("B", (128, 64), 128),
                 "C_map": ("C", (64, 32), 0)}  # fmt: skip
    device = print_cuda(device_func(hopper_gemm(64, 128, 320), maps=maps))
    number, before = find_line(device, pattern)
    a, b = np.ones((64, 320), np.float16), np.ones((128, 320), np.float16)
    arrays = {"A": a, "B": b, "C": np.zeros((64, 128), np.float32)}
    tensors = [Region(k, v.ctypes.data, v.nbytes) for k, v in arrays.items()]
    values = {k: v.ctypes.data for k, v in arrays.items()}
    launch(device, values, tensors, CHECK)
    np.testing.assert_array_equal(arrays["C"], 320)
    with pytest.raises(CompileError) as caught:
        launch(with_line(device, number, re.sub(pattern, instead, before)), values, tensors, CHECK)
    (found,) = caught.value.diagnostics
    assert found.code in ("TL733", "TL511") and text in found.message


def test_a_divergent_barrier_names_both_places() -> None:
    prim_func = kernels.reverse()
    device = device_of(prim_func)
    first, _ = find_line(device, r"sync_threads")
    second, text = find_line(device, r"B\[tx\] =")
    device = with_line(device, first, "if (tx < 128) tl::sync_threads();")
    device = with_line(device, second, f"if (tx >= 128) tl::sync_threads(); {text.strip()}")
    apart = next(d for d in found(prim_func, device, reverse_arrays()) if d.code == "TL510")
    assert apart.message.endswith("the barrier of the block")
    lines = {line_of(apart), *(line_of(Diagnostic("TL510", apart.severity, "", label.span))
                               for label in apart.labels)}  # fmt: skip
    assert lines == {"T.sync_threads()", "B[tx] = tile[N - 1 - tx]"}


def test_a_barrier_of_the_grid_that_a_block_leaves_out() -> None:
    kernel = tilelang.compile(turned, target=TARGET, execution_backend=CHECK)
    arrays = [np.zeros(500, np.float32), np.zeros(500, np.float32)]
    kernel(*arrays)
    runner: Any = kernel._built.runner
    number, before = find_line(runner.device, r"sync_grid")
    runner.device = with_line(runner.device, number, f"if (blockIdx.x != 2) {before.strip()}")
    with pytest.raises(CompileError) as caught:
        kernel(*arrays)
    stuck = next(d for d in caught.value.diagnostics if d.code == "TL733")
    assert "a block waits at the barrier of the grid, and another block has ended" in stuck.message
    assert line_of(stuck) == "T.sync_grid()"


def test_lanes_that_do_different_things() -> None:
    prim_func = kernels.reverse()
    device = device_of(prim_func)
    number, _ = find_line(device, r"sync_threads")
    text = "if (tx % 2) __shfl_sync(~0u, tx, 0); else __ballot_sync(~0u, 1);"
    (apart,) = found(prim_func, with_line(device, number, text), reverse_arrays(), Emulator())
    assert apart.code == "TL510"
    assert "vote.sync" in apart.message and "shfl.sync" in apart.message


def test_a_crash_ends_only_the_emulator() -> None:
    """Without checks an access far outside is a segmentation fault, of another process."""
    prim_func = kernels.reverse()
    device = device_of(prim_func)
    number, before = find_line(device, r"B\[tx\] =")
    device = with_line(device, number, before.replace("B[tx]", "B[tx + (1 << 28)]"))
    arrays = reverse_arrays()
    (fault,) = found(prim_func, device, arrays, Emulator())
    assert fault.code == "TL730" and "segmentation fault" in fault.message
    assert line_of(fault) == "B[tx] = tile[N - 1 - tx]"
    np.testing.assert_array_equal(arrays[1], 0)


def test_assertion() -> None:
    import tilelang.language as T

    @T.prim_func
    def main(A: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            T.device_assert(A[tx] > 0, "all positive")

    kernel = tilelang.compile(main, target=TARGET, execution_backend="emulator")
    kernel(np.ones(64, np.int32))
    with pytest.raises(CompileError, match="all positive") as caught:
        kernel(np.zeros(64, np.int32))
    assert caught.value.diagnostics[0].code == "TL722"
    assert line_of(caught.value.diagnostics[0]).startswith("T.device_assert")


def test_printing(capfd: pytest.CaptureFixture[str]) -> None:
    import tilelang.language as T

    @T.prim_func
    def main(A: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            if T.get_thread_binding() == 3:
                T.print(A[2], "third")

    tilelang.compile(main, target=TARGET, execution_backend="emulator")(
        np.arange(4, dtype=np.float32)
    )
    assert capfd.readouterr().out == "third 2\n"
