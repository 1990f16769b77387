"""tilelang.compile for a GPU, where there is none: source, binary, cache, and what a call says."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang
from tests.runtime_cuda import kernels
from tests.support.cuda import needs_cuda_compiler
from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.options import CompileOptions
from tilelang.runtime import build, cuda, cuda_build, cuda_compiler
from tilelang.runtime.cache import KernelCache
from tilelang.runtime.cuda_driver import NoDriver
from tilelang.runtime.fingerprint import fingerprint
from tilelang.runtime.nvrtc import Nvrtc, find_nvrtc
from tilelang.target import Target
from tilelang_diagnostics import CompileError, failure

pytestmark = needs_cuda_compiler

ROOT = Path(__file__).parents[2]


def compiled(target: str = "cuda:sm_80") -> Any:
    return tilelang.compile(kernels.scale, target=target)


def test_source_and_binary(cache_dir: Path) -> None:
    kernel = compiled()
    source = kernel.get_kernel_source()
    assert source == kernel.kernel_source == kernel.artifact.source
    assert "__global__ void __launch_bounds__(128) scale_kernel(" in source
    assert "tile[" in source and "factor" in source
    (binary,) = kernel.artifact.binaries
    assert binary.arch == "sm_80" and binary.cubin[:4] == b"\x7fELF" and binary.warnings == ()
    assert kernel.shared_memory_bytes == 16 * 64 * 2
    assert (kernel.device_kind, kernel.n_spills) == ("cuda", 0) and kernel.n_regs > 0
    assert ".target sm_80" in kernel.ptx and ".entry scale_kernel" in kernel.ptx
    (launch,) = kernel.artifact.launches
    assert launch.block == (128, 1, 1) and launch.grid_of({"n": 17, "n_1": 17})[0] == 2


def test_lines_of_the_source_lead_back_to_python(cache_dir: Path) -> None:
    source = compiled().artifact.device.source
    lines = Path(kernels.__file__).read_text().splitlines()
    number = next(n for n, line in enumerate(lines, 1) if "tile[i, j] * factor" in line)
    found = [source.at(n).text for n in source.lines_of(kernels.__file__, number)]  # type: ignore[union-attr]
    assert any("factor" in text for text in found)


def test_found_again_without_compiling(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = compiled()
    build.forget()
    monkeypatch.setattr(cuda_build, "compile_cuda", None)  # calling it would fail
    again = compiled()
    assert again.from_cache and again.artifact == first.artifact
    assert again.get_host_source() == first.get_host_source()


def test_the_same_source_is_compiled_once(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its front entry is gone, its binary is not."""
    first = compiled()
    KernelCache().fronts.clear()
    build.forget()
    monkeypatch.setattr(cuda_build, "compile_cuda", None)
    again = compiled()
    assert not again.from_cache and again.artifact.binaries == first.artifact.binaries


def test_a_kernel_that_spilled_is_found_by_its_source(
    cache_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept is another form of the source than the one that was printed first."""
    compile_cuda = cuda_build.compile_cuda

    def spilling(device: Any, *args: Any, **more: Any) -> Any:
        binary = compile_cuda(device, *args, **more)
        spills = 0 if "tl::again" in device.text else 8
        rows = tuple(replace(r, spill_stores=spills) for r in binary.resources)
        return replace(binary, resources=rows)

    monkeypatch.setattr(cuda_build, "compile_cuda", spilling)
    first = tilelang.compile(kernels.rounds, target="cuda:sm_80")
    assert "tl::again" in first.kernel_source
    KernelCache().fronts.clear()
    build.forget()
    monkeypatch.setattr(cuda_build, "compile_cuda", None)
    again = tilelang.compile(kernels.rounds, target="cuda:sm_80")
    assert not again.from_cache and again.artifact == first.artifact


def test_another_architecture_is_another_kernel(cache_dir: Path) -> None:
    assert compiled("cuda:sm_80").artifact.archs == ("sm_80",)
    assert compiled("cuda:sm_90a").artifact.archs == ("sm_90a",)
    assert KernelCache().info().kernels == 2


def test_a_cached_kernel_loads_neither_tvm_nor_a_compiler(cache_dir: Path) -> None:
    compiled()
    text = f"import sys; sys.path[:0] = {sys.path!r}\n" + textwrap.dedent("""
        sys.modules["tvm"] = sys.modules["tvm_ffi"] = None
        import tilelang
        from tests.runtime_cuda import kernels
        from tilelang.runtime import nvrtc
        nvrtc._load = None  # calling it would fail
        kernel = tilelang.compile(kernels.scale, target="cuda:sm_80")
        assert kernel.from_cache and "scale_kernel" in kernel.get_kernel_source()
    """)
    subprocess.run([sys.executable, "-c", text], check=True, cwd=ROOT)


@pytest.mark.parametrize(
    ("compiler", "found_again"),
    [("NVRTC 13.0", True), ("NVRTC 13.1", False), ("nvcc 13.0", False), (None, False)],
)
def test_another_compiler_is_another_kernel(
    cache_dir: Path, monkeypatch: pytest.MonkeyPatch, compiler: str | None, found_again: bool
) -> None:
    """Code of an older compiler is not taken for that of the one that is here now."""

    def make(name: str | None) -> str:
        def identity(choices: Any) -> tuple[str, tuple[str, ...]]:
            if name is None:
                raise failure("TL807", "neither NVRTC nor nvcc is installed")
            return name, ("-std=c++17",)

        monkeypatch.setattr(cuda_compiler, "identity", identity)
        mark = fingerprint(kernels.scale.function)
        assert mark is not None
        return KernelCache().front_key(mark, Target("cuda", "sm_80"), CompileOptions())

    assert (make(compiler) == make("NVRTC 13.0")) is found_again


def test_the_version_of_nvrtc_is_that_of_its_library() -> None:
    """It is read from a file name; asking loads the library."""
    found = find_nvrtc()
    if found is None:
        pytest.skip("NVRTC is not installed")
    major, minor = ctypes.c_int(), ctypes.c_int()
    ctypes.CDLL(str(found.library)).nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    assert found.version == (major.value, minor.value)


def test_an_nvrtc_that_does_not_load(tmp_path: Path) -> None:
    (tmp_path / "libnvrtc.so.13").write_bytes(b"\x7fELF")
    broken = Nvrtc(tmp_path / "libnvrtc.so.13", (13, 0), tmp_path)
    with pytest.raises(CompileError) as caught:
        broken.compile("", "k.cu", ())
    (found,) = caught.value.diagnostics
    assert found.code == "TL807" and found.message.startswith("NVRTC is installed but cannot be")


def test_the_launcher_imports_nothing_else() -> None:
    text = f"import sys; sys.path[:0] = {sys.path!r}\n" + textwrap.dedent("""
        import tilelang.runtime.cuda
        import tilelang.codegen.cuda_artifact
        heavy = {"tvm", "tvm_ffi", "torch", "numpy", "rich", "filelock"}
        assert not heavy & set(sys.modules), heavy & set(sys.modules)
    """)
    subprocess.run([sys.executable, "-c", text], check=True, cwd=ROOT)


def test_an_artifact_in_a_folder(cache_dir: Path, tmp_path: Path) -> None:
    artifact = compiled().artifact
    artifact.save(tmp_path / "scale")
    assert CudaArtifact.load(tmp_path / "scale") == artifact
    names = {p.name for p in (tmp_path / "scale").iterdir()}
    assert names == {"manifest.json", "kernel.cu", "kernel.sm_80.cubin", "kernel.sm_80.ptx"}


def test_a_call_without_a_gpu(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Any:
        raise NoDriver("the CUDA driver library libcuda.so.1 is not here")

    monkeypatch.setattr(cuda, "driver", none)
    a = np.zeros((4, 64), np.float16)
    for _ in range(2):
        with pytest.raises(RuntimeError) as caught:
            compiled()(a, a, 2.0)
        assert isinstance(caught.value, CompileError)
        (found,) = caught.value.diagnostics
        assert found.code == "TL805" and "`scale` needs an NVIDIA GPU" in found.message


def test_too_much_shared_memory_is_found_before_code_is_made(cache_dir: Path) -> None:
    with pytest.raises(ValueError) as caught:
        tilelang.compile(kernels.too_large, target="cuda:sm_80")
    assert isinstance(caught.value, CompileError)
    (found,) = caught.value.diagnostics
    assert found.code == "TL406"
    assert found.message.startswith("a block needs 262144 bytes of shared memory, cuda:sm_80 has")
    assert found.span is not None and found.span.file == kernels.__file__
