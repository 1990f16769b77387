"""A kernel did what its device does not survive: who is named, and how is the place found?"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tilelang
import tilelang.language as T
from tests.runtime_cuda.fake_driver import FakeLibrary
from tests.runtime_cuda.test_launches import LAUNCH, artifact, use
from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.codegen.source_map import Line, SourceMap
from tilelang.runtime import cuda, cuda_hook
from tilelang.runtime.cuda import CudaKernel, load_cuda
from tilelang.runtime.nvrtc import find_nvrtc
from tilelang_diagnostics import CompileError
from tilelang_diagnostics.model import Diagnostic, Span

ASSERTION = '  tl::device_assert(A[tx] >= 0.0f, "a \\"negative\\" input", "k.py", 5);'


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeLibrary:
    return use(monkeypatch, FakeLibrary(formats=("Q", "f", "i")))


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The file the kernels are in; the working folder is its own."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "k.py"
    path.write_text("import tilelang\n" * 9)
    return str(path)


def kernel_of(file: str, name: str = "k", body: str = "  A[0] = s;") -> CudaKernel:
    found = artifact(replace(LAUNCH, symbol=f"{name}_kernel"))
    lines = (
        Line("#include <tl/common.h>"),
        Line(f'extern "C" __global__ void {name}_kernel(float* A) {{', (Span(file, 3, 5, 3, 9),)),
        Line(body, (Span(file, 5, 5, 5, 20),)),
        Line("}"),
    )
    device = replace(found.device, name=name, source=SourceMap(lines))
    return load_cuda(CudaArtifact(device, found.binaries))


def lost(driver: FakeLibrary, result: int) -> Diagnostic:
    """What a synchronisation says that meets an error."""
    driver.results["cuCtxSynchronize"] = [result]
    with pytest.raises(CompileError) as caught:
        cuda.synchronize(name="check")
    (found,) = caught.value.diagnostics
    return found


def test_a_command_finds_the_place(driver: FakeLibrary, file: str) -> None:
    kernel_of(file).run([1, 1.5, 1000])
    found = lost(driver, 700)
    assert (found.code, found.span) == ("TL812", Span(file, 3, 5, 3, 9))
    assert found.message == (
        "a kernel failed while it ran, noticed at `check`: CUDA_ERROR_ILLEGAL_ADDRESS: what it "
        "means"
    )
    assert found.notes == (
        f"launched since the last synchronisation: `k_kernel` ({file}:3)",
        "the CUDA context is lost: every later CUDA call of this process fails",
        "to find it: tilelang run k.py::k --set s=1.5,n=1000 --target cuda:sm_90a --sanitize",
    )
    assert "a thread touched memory that is no tensor's" in (found.help or "")


def test_every_kernel_since_the_last_synchronisation_is_named(
    driver: FakeLibrary, file: str
) -> None:
    kernel_of(file, "early").run([1, 1.0, 5])
    cuda.synchronize()
    first, second = kernel_of(file, "first"), kernel_of(file, "second")
    first.came_from("make", {"M": 64, "dtype": "float16", "table": [1, 2]})
    for kernel in (first, second, first):
        kernel.run([1, 1.0, 5])
    found = lost(driver, 716)
    assert found.span is None
    assert found.notes[0].endswith(f"`second_kernel` ({file}:3), `first_kernel` ({file}:3)")
    assert found.notes[2:] == (
        "to find it: tilelang run k.py::second --set s=1.0,n=5 --target cuda:sm_90a --sanitize",
        "to find it: tilelang run k.py::make --set M=64,dtype=float16,s=1.0,n=5 --target "
        "cuda:sm_90a --sanitize",
    )
    assert "no multiple of its size" in (found.help or "")


def test_the_ring_is_short(driver: FakeLibrary, file: str) -> None:
    kernels = [kernel_of(file, f"k{n}") for n in range(20)]
    for kernel in kernels:
        kernel.run([1, 1.0, 5])
    note = lost(driver, 719).notes[0]
    assert "`k3_kernel`" not in note and "`k4_kernel`" in note
    assert note.endswith("; only the last 16 launches are remembered")


def test_a_failure_met_at_a_launch_names_that_launch(driver: FakeLibrary, file: str) -> None:
    kernel_of(file, "late").run([1, 1.0, 5])
    driver.results["cuLaunchKernelEx"] = [700]
    with pytest.raises(CompileError) as caught:
        kernel_of(file, "next").run([1, 1.0, 5])
    (found,) = caught.value.diagnostics
    assert "noticed at `next`" in found.message and "`late_kernel`" in found.notes[0]
    assert "`next_kernel`" not in found.notes[0]


def test_a_loop_without_end(driver: FakeLibrary, file: str) -> None:
    kernel_of(file).run([1, 1.0, 5])
    assert "does not end" in (lost(driver, 702).help or "")


def test_nothing_of_ours_ran(driver: FakeLibrary) -> None:
    found = lost(driver, 700)
    assert found.notes[0] == "no kernel of ours was launched since the last synchronisation"
    assert "`compute-sanitizer python FILE`" in (found.help or "")


def test_an_assertion_is_told_at_its_line(driver: FakeLibrary, file: str) -> None:
    kernel_of(file, body=ASSERTION).run([1, 1.0, 5])
    found = lost(driver, 710)
    assert (found.code, found.span) == ("TL722", Span(file, 5, 5, 5, 20))
    assert found.message.endswith('noticed at `check`: a "negative" input')
    assert "the CUDA context is lost" in found.notes[2]


def test_one_of_several_assertions(driver: FakeLibrary, file: str) -> None:
    kernel_of(file, "one", ASSERTION).run([1, 1.0, 5])
    kernel_of(file, "two", ASSERTION.replace("negative", "odd")).run([1, 1.0, 5])
    found = lost(driver, 710)
    assert found.span is None
    assert [label.text for label in found.labels] == ['a "negative" input', 'a "odd" input']


@pytest.mark.skipif(find_nvrtc() is None, reason="needs NVRTC")
def test_the_values_of_a_factory_are_in_the_command(
    driver: FakeLibrary, cache_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parent)
    lazy = filled.compile(64, "float16")
    lazy._built.runner.run([0x1000])
    monkeypatch.setitem(sys.modules, "torch", None)
    eager = doubled.compile(N=96, block=32)
    eager._built.runner.run([0x1000, 0x2000])
    assert [n for n in lost(driver, 700).notes if n.startswith("to find it")] == [
        "to find it: tilelang run test_failures.py::filled --set M=64,dtype=float16 --target "
        "cuda:sm_90a --sanitize",
        "to find it: tilelang run test_failures.py::doubled --set block=32,N=96 --target "
        "cuda:sm_90a --sanitize",
    ]


@tilelang.jit(target="cuda:sm_90a")
def filled(M: int, dtype: Any) -> Any:
    @T.prim_func
    def main(A: T.Tensor((M,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(M):
                A[i] = 1

    return main


@tilelang.jit(target="cuda:sm_90a")
def doubled(A, block=64):  # type: ignore[no-untyped-def]
    N = T.const("N")
    A: T.Tensor((N,), "float32")  # type: ignore[no-redef]
    B = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, block), threads=block) as bx:
        for i in T.Parallel(block):
            B[bx * block + i] = A[bx * block + i] * 2
    return B


def test_the_process_lives_on(driver: FakeLibrary, file: str) -> None:
    kernel = kernel_of(file)
    kernel.run([1, 1.0, 5])
    for result in (700, 710, 719):
        lost(driver, result)
    kernel.run([1, 1.0, 5])
    assert len(driver.launches) == 2


def test_what_pytorch_meets_is_explained(driver: FakeLibrary, file: str) -> None:
    kernel_of(file).run([1, 1.5, 1000])
    met = RuntimeError("CUDA error: misaligned address\nCUDA kernel errors might be reported …")
    said = cuda_hook.explanation(met, tuple(cuda._recent)) or ""
    assert "noticed at `PyTorch`: misaligned address" in said
    assert "tilelang run k.py::k --set s=1.5,n=1000 --target cuda:sm_90a --sanitize" in said


@pytest.mark.parametrize(
    "error",
    [RuntimeError("misaligned address"), RuntimeError("CUDA error: out of memory"),
     KeyError("x"), CompileError()],
)  # fmt: skip
def test_other_errors_are_left_alone(driver: FakeLibrary, file: str, error: Exception) -> None:
    kernel_of(file).run([1, 1.5, 1000])
    assert cuda_hook.explanation(error, tuple(cuda._recent)) is None


def test_without_a_launch_there_is_nothing_to_say() -> None:
    assert cuda_hook.explanation(RuntimeError("CUDA error: misaligned address"), ()) is None


def test_the_traceback_comes_first(
    driver: FakeLibrary, file: str, monkeypatch: Any, capsys: Any
) -> None:
    printed: list[BaseException] = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, traceback: printed.append(error))
    monkeypatch.setattr(cuda_hook, "_installed", [])
    kernel_of(file).run([1, 1.5, 1000])
    first, second = RuntimeError("CUDA error: device-side assert triggered"), ValueError("no")
    for error in (first, second):
        sys.excepthook(type(error), error, None)
    assert printed == [first, second]
    assert capsys.readouterr().err.count("error[TL722]") == 1


def test_launching_costs_no_object(driver: FakeLibrary, file: str, monkeypatch: Any) -> None:
    """What is noted of a launch is the same object each time."""
    kernel = kernel_of(file)
    kernel.run([1, 1.0, 5])
    kernel.run([1, 1.0, 6])
    assert cuda._recent[0] is cuda._recent[1]
