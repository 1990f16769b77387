"""What goes wrong in CUDA that the author brought is told of the author's lines and memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang
import tilelang.language as T
from tests.emulator.needs import needs_compiler
from tests.emulator.running import TARGET
from tilelang.emulator import toolchain
from tilelang.emulator.settings import Emulator
from tilelang_diagnostics import CompileError
from tilelang_diagnostics.model import Diagnostic

pytestmark = needs_compiler
CHECK = Emulator(check=True)

SOURCE = r"""
extern "C" __global__ void turned(const float* x, float* y) {
  __shared__ float s[128];
  int t = threadIdx.x;
  s[t] = x[t];
  __syncthreads();
  y[t] = s[127 - t];
}
"""
PUT = "__device__ void put_next(float* p, float v) { p[1] = v; }"


def own(source: str) -> Any:
    @T.prim_func
    def main(x: T.Tensor((128,), "float32"), y: T.Tensor((128,), "float32")):
        T.CUDASourceCodeKernel(1, threads=128, source_code_or_path=source, entry_name="turned")

    return main


@T.prim_func
def past_the_tile(x: T.Tensor((128,), "float32"), y: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=128):
        T.import_source(PUT)
        s = T.alloc_shared((128,), "float32")
        t = T.get_thread_binding()
        T.call_extern("void", "put_next", T.access_ptr(s[t], "w", 1), x[t])
        y[t] = 1.0


@T.prim_func
def loaded(x: T.Tensor((64, 64), "float16"), y: T.Tensor((64, 64), "float16")):
    with T.Kernel(1, threads=128):
        s = T.alloc_shared((64, 64), "float16")
        bar = T.alloc_barrier([1])
        T.tma_copy(x[0, 0], s, barrier=bar[0])
        if T.get_thread_binding() == 0:
            T.mbarrier_arrive(bar[0])
        T.sync_threads()
        for i, j in T.Parallel(64, 64):
            y[i, j] = s[i, j]


@T.prim_func
def by_groups(x: T.Tensor((128,), "float32"), y: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=256):
        s = T.alloc_shared((128,), "float32")
        bar = T.alloc_barrier([128])
        with T.ws(0):
            T.copy(x, s)
            T.mbarrier_arrive(bar[0])
        with T.ws(1):
            T.copy(s, y)


def found(prim_func: Any, target: str = TARGET, shape: tuple[int, ...] = (128,),
          dtype: Any = np.float32) -> tuple[Diagnostic, ...]:  # fmt: skip
    kernel = tilelang.compile(prim_func, target=target, execution_backend=CHECK)
    with pytest.raises(CompileError) as caught:
        kernel(np.ones(shape, dtype), np.zeros(shape, dtype))
    return caught.value.diagnostics


def test_past_the_end_of_a_tile_no_tensor_is_blamed() -> None:
    (outside,) = found(past_the_tile)
    assert outside.code == "TL730"
    assert "a write of 4 bytes outside of `s`: byte 512 of 512" in outside.message


def test_an_index_of_a_shared_array() -> None:
    (bad,) = found(own(SOURCE.replace("127 - t", "128 - t")))
    assert bad.code == "TL730"
    assert "index 128 of the shared array `s` in" in bad.message
    assert "each thread" not in bad.message


def test_an_index_of_an_array_of_a_thread() -> None:
    bad = found(own(SOURCE.replace("s[127 - t];", "s[127 - t];\n float w[4] = {};\n w[t] = y[t];"
                                   "\n y[t] = w[3];")))[0]  # fmt: skip
    assert "of the private array `w` in `main`, which is float [4]" in bad.message


def test_a_race_between_two_lines_of_one_string() -> None:
    races = [d for d in found(own(SOURCE.replace("__syncthreads();", ""))) if d.code == "TL731"]
    assert races
    for race in races:
        assert (race.help or "").startswith("__syncthreads() between the two lines")
        assert len(race.labels) == 1 and race.span != race.labels[0].span


def test_a_source_that_does_not_compile() -> None:
    (bad,) = found(own(SOURCE.replace("s[t] = x[t];", "nonsense = x[t];")))
    assert bad.code == "TL816" and "does not compile for the emulator" in bad.message
    assert "nonsense" in bad.message and bad.span is not None and bad.span.file == __file__


def test_a_load_by_tensor_map_is_waited_for_at_its_mbarrier() -> None:
    flights = [d for d in found(loaded, "cuda:sm_90a", (64, 64), np.float16) if d.code == "TL734"]
    assert flights
    assert all("T.mbarrier_wait_parity" in (d.help or "") for d in flights)
    assert not any("ptx_wait_group" in (d.help or "") for d in flights)


def test_a_race_of_warp_groups_is_not_helped_by_a_barrier_of_the_block() -> None:
    races = [d for d in found(by_groups, "cuda:sm_90a") if d.code == "TL731"]
    assert races
    assert all((d.help or "").startswith("T.sync_threads() would wait for ever") for d in races)


def test_what_a_call_counted_prints_in_a_few_lines() -> None:
    kernel = tilelang.compile(own(SOURCE), target=TARGET, execution_backend=CHECK)
    kernel(np.ones(128, np.float32), np.zeros(128, np.float32))
    assert str(kernel.checked) == "shared memory: 8 passes, the least\ntensors: 32 sectors, " \
                                  "the least"  # fmt: skip
    assert repr(kernel.checked) == "<Checked, 4 lines of traffic>"


@pytest.mark.parametrize(("says", "text"), [("1", "building the emulator's runtime, once\n"),
                                            ("0", "")])  # fmt: skip
def test_building_the_emulator_is_said_once(
    says: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TILELANG_PRINT_ON_COMPILATION", says)

    def compiled(compiler: toolchain.Compiler, arguments: Sequence[str]) -> None:
        Path(arguments[list(arguments).index("-o") + 1]).write_text("made")

    monkeypatch.setattr(toolchain, "_run", compiled)
    for _ in range(2):
        assert toolchain.runtime_program(toolchain.find_compiler()).read_text() == "made"
    assert capsys.readouterr().err == text
