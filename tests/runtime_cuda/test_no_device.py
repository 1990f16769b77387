"""A machine, a driver or a device that cannot run a kernel: named, and the process lives on."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang
import tilelang.language as T
from tests.runtime_cuda.fake_driver import ERRORS, FakeLibrary
from tests.runtime_cuda.kernels import scale, too_large
from tests.runtime_cuda.test_launches import LAUNCH, artifact
from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.runtime import cuda_driver, devices
from tilelang.runtime.cuda import load_cuda
from tilelang.runtime.nvrtc import find_nvrtc
from tilelang.target import Probe
from tilelang_diagnostics import CompileError
from tilelang_diagnostics.model import Diagnostic

needs_nvrtc = pytest.mark.skipif(find_nvrtc() is None, reason="needs NVRTC")


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Puts a library, or an OSError, in place of libcuda, for everything that loads it."""
    load = ctypes.CDLL

    def install(found: Any) -> Any:
        def loaded(name: Any, *args: Any, **named: Any) -> Any:
            if name != cuda_driver._LIBCUDA:
                return load(name, *args, **named)
            if isinstance(found, OSError):
                raise found
            return found

        monkeypatch.setattr(ctypes, "CDLL", loaded)
        monkeypatch.setitem(sys.modules, "torch", None)
        cuda_driver.driver.cache_clear()
        return found

    yield install
    cuda_driver.driver.cache_clear()


def refusal(call: Any) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        call()
    found: Diagnostic = caught.value.diagnostics[0]
    return found


def run(values: Any = (1, 1.0, 5)) -> None:
    load_cuda(artifact()).run(list(values))


class Broken(FakeLibrary):
    """A driver whose `function` answers `result`, every time."""

    def __init__(self, function: str, result: int, **named: Any) -> None:
        super().__init__(**named)
        setattr(self, f"_{function}", lambda *args: result)


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (OSError("libcuda.so.1: cannot open shared object file"),
         "the CUDA driver library libcuda.so.1 is not here"),
        (FakeLibrary(version=11040), "the driver is for CUDA 11.4, and kernels need 12.0 or later"),
        (FakeLibrary(devices=()), "the CUDA driver sees no device"),
        (Broken("cuInit", 100), "CUDA_ERROR_NO_DEVICE: what it means; CUDA_VISIBLE_DEVICES hides"),
        (Broken("cuInit", 803), "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: what it means; libcuda and the "
         "kernel module are of different versions"),
        (Broken("cuInit", 34), "CUDA_ERROR_STUB_LIBRARY: what it means; the libcuda found is the "
         "stub"),
        (Broken("cuDeviceGetCount", 999), "CUDA_ERROR_UNKNOWN: what it means; the device may hang"),
    ],
    ids=["no library", "too old", "no device", "hidden", "mismatch", "stub", "count"],
)  # fmt: skip
def test_a_driver_that_cannot_be_used(library: Any, found: Any, why: str) -> None:
    library(found)
    for _ in range(2):  # nothing was left half done
        said = refusal(run)
        assert said.code == "TL805" and "`k` needs an NVIDIA GPU, but" in said.message
        assert why in said.message
    library(FakeLibrary(formats=("Q", "f", "i")))
    run()


@pytest.mark.parametrize("result", [2, 201, 719])
def test_an_error_is_never_a_number_alone(library: Any, result: int) -> None:
    library(Broken("cuDevicePrimaryCtxRetain", result))
    found = refusal(run)
    assert found.code == "TL812" and ERRORS[result] in found.message and found.help


def test_an_error_the_driver_has_no_name_for(library: Any) -> None:
    fake = FakeLibrary()
    fake._cuInit = lambda flags: 12345  # type: ignore[attr-defined]
    fake._cuGetErrorName = lambda result, out: 1  # type: ignore[method-assign]
    library(fake)
    assert "CUDA error 12345, which this driver has no name for" in refusal(run).message


@needs_nvrtc
def test_compiling_needs_no_gpu_and_calling_says_what_is_missing(
    library: Any, cache_dir: Path
) -> None:
    library(OSError("no such file"))
    kernel = tilelang.compile(scale, target="cuda:sm_80")
    a = np.ones((4, 64), np.float16)
    for _ in range(2):
        found = refusal(lambda: kernel(a, a, 1.0))
        assert found.code == "TL805" and "`scale` needs an NVIDIA GPU" in found.message
    on_cpu = tilelang.compile(scale, target="cpu")
    b = np.zeros_like(a)
    on_cpu(a, b, 2.0)
    assert (b == 2).all()


# Target auto.


def test_auto_in_a_container_that_cannot_see_the_gpu(
    library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    library(Broken("cuInit", 100))
    monkeypatch.setattr(devices, "_nvidia_hardware", lambda: "an NVIDIA driver is loaded")
    monkeypatch.setattr(devices, "probes", lambda: (devices.probe_cuda(ctypes.CDLL),))
    for call in (lambda: tilelang.compile(scale), lambda: devices.determine_target("auto")):
        found = refusal(call)
        assert found.code == "TL805"
        assert found.message.startswith(
            "target auto found a GPU that cannot be used from here: an NVIDIA driver is loaded, "
            "but the CUDA driver cannot start: CUDA_ERROR_NO_DEVICE: what it means"
        )
        assert "docker run --gpus all" in found.message
        assert "target='cpu'" in (found.help or "")
    a = np.ones((4, 64), np.float16)
    tilelang.compile(scale, target="cpu")(a, a, 1.0)


def test_auto_where_the_driver_library_was_not_mounted(library: Any, monkeypatch: Any) -> None:
    library(OSError("no such file"))
    monkeypatch.setattr(devices, "_nvidia_hardware", lambda: "an NVIDIA GPU is on the PCI bus")
    found = devices.probe_cuda(ctypes.CDLL)
    assert found == Probe("cuda", hidden="an NVIDIA GPU is on the PCI bus, but its driver library "
                          "libcuda.so.1 is not here")  # fmt: skip


def test_auto_finds_the_gpu_of_a_whole_machine(library: Any) -> None:
    library(FakeLibrary((((8, 6), 101376),)))
    assert devices.probe_cuda(ctypes.CDLL) == Probe("cuda", "sm_86", "Test GPU 0")


# Devices.


def test_a_device_that_is_not_there(library: Any) -> None:
    library(FakeLibrary())
    found = refusal(lambda: load_cuda(artifact()).run([1, 1.0, 5], 2))
    assert (found.code, found.message) == (
        "TL805", "`k` is to run on cuda:2, but the driver sees 1 device"
    )  # fmt: skip


def test_an_artifact_for_another_architecture_and_then_for_this(library: Any) -> None:
    library(FakeLibrary((((8, 6), 101376),), ("Q", "f", "i")))
    found = refusal(lambda: load_cuda(artifact(archs=("sm_90a",))).run([1, 1.0, 5]))
    assert (found.code, found.help) == ("TL416", "compile it with target='cuda:sm_86'")
    load_cuda(artifact(archs=("sm_90a", "sm_80"))).run([1, 1.0, 5])


def test_an_artifact_newer_than_the_driver(library: Any) -> None:
    library(FakeLibrary(version=12020)).results["cuLibraryLoadData"] = [222]
    found = refusal(run)
    assert found.code == "TL416" and "the driver, which is for CUDA 12.2, does not take" in (
        found.message
    )
    assert "update the driver" in (found.help or "")


def test_shared_memory_of_another_device(library: Any) -> None:
    library(FakeLibrary((((8, 6), 101376),), ("Q", "f", "i")))
    launch = replace(LAUNCH, dynamic_shared=160_000)
    found = refusal(lambda: load_cuda(artifact(launch, archs=("sm_80",))).run([1, 1.0, 5]))
    assert found.code == "TL406" and "has 101376" in found.message
    load_cuda(artifact(archs=("sm_80",))).run([1, 1.0, 5])


@needs_nvrtc
def test_shared_memory_is_refused_where_it_is_compiled() -> None:
    found = refusal(lambda: tilelang.compile(too_large, target="cuda:sm_80"))
    assert found.code == "TL406" and found.span is not None


def test_too_many_threads() -> None:
    def make() -> Any:
        @T.prim_func
        def wide(A: T.Tensor((4096,), "float32")):
            with T.Kernel(1, threads=2048):
                for i in T.Parallel(4096):
                    A[i] = 0.0

        return wide

    assert refusal(make).code == "TL164"


def test_too_many_threads_for_the_registers(library: Any) -> None:
    library(FakeLibrary()).results["cuLaunchKernelEx"] = [701]
    found = refusal(run)
    assert "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES" in found.message
    assert "launch fewer threads" in (found.help or "")


def test_a_binary_cut_off_on_the_way(library: Any, tmp_path: Path) -> None:
    library(FakeLibrary())
    artifact().save(tmp_path)
    for file in tmp_path.glob("*.cubin"):
        file.write_bytes(file.read_bytes()[:40])
    found = refusal(lambda: load_cuda(CudaArtifact.load(tmp_path)).run([1, 1.0, 5]))
    assert found.code == "TL416" and "is damaged" in found.message
