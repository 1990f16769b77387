"""Kernels found again: by this process, by another, after damage, without a writable disk."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang
from tests.runtime import kernels
from tilelang.backends import find_backend
from tilelang.codegen.cpu_artifact import CpuArtifact, CpuMessage
from tilelang.options import CompileOptions
from tilelang.runtime import build, cache, store
from tilelang.runtime.cache import KernelCache, compiler_digest
from tilelang.runtime.clang import Clang
from tilelang.runtime.fingerprint import fingerprint
from tilelang.runtime.report import TileLangWarning
from tilelang.target import parse_target
from tilelang_diagnostics import CompileError

x = np.arange(40, dtype=np.float32)


def compile_scale(factor: float = 2.0) -> tilelang.JITKernel:
    return tilelang.compile(kernels.scale_factory(40, factor), out_idx=[-1], target="cpu")


def compiled_and_right(factor: float = 2.0) -> bool:
    """Compiles, checks the result; whether the kernel came from the cache."""
    kernel = compile_scale(factor)
    np.testing.assert_array_equal(kernel(x), np.float32(factor) * x)
    return kernel.from_cache


def program(text: str) -> str:
    return f"import sys; sys.path[:0] = {sys.path!r}\n" + textwrap.dedent(text)


def test_a_kernel_is_found_on_disk(cache_dir: Path) -> None:
    assert not compiled_and_right()
    build.forget()
    assert compiled_and_right()
    assert not compiled_and_right(3.0)
    info = KernelCache().info()
    assert (info.root, info.kernels, info.problem) == (cache_dir, 2, None)
    assert info.bytes > 0


def test_what_is_kept_beside_the_binary(cache_dir: Path) -> None:
    kernel = compile_scale()
    (entry,) = [path for path, _, _ in KernelCache().kernels.entries()]
    assert {"entry.json", "kernel.ll", "kernel.ir"} < {p.name for p in entry.iterdir()}
    assert (entry / "kernel.ll").read_text() == kernel.get_kernel_source()
    build.forget()
    again = compile_scale()
    assert again.from_cache
    assert again.get_kernel_source() == kernel.get_kernel_source()
    assert again.get_host_source() == kernel.get_host_source()
    assert again.diagnostics == kernel.diagnostics


def test_a_cached_kernel_needs_no_tvm(cache_dir: Path) -> None:
    """Another process, in which importing TVM or PyTorch would fail."""
    text = program("""
        import numpy, sys
        sys.modules["tvm"] = sys.modules["tvm_ffi"] = sys.modules["torch"] = None
        from tests.runtime import kernels
        import tilelang
        x = numpy.arange(40, dtype="float32")
        kernel = tilelang.compile(kernels.scale_factory(40), out_idx=[-1], target="cpu")
        assert kernel.from_cache
        assert (kernel(x) == 2 * x).all()
        assert (kernels.eager_scale(x) == 2 * x).all()
    """)
    compiled_and_right()
    kernels.eager_scale.compile(n=40)
    subprocess.run([sys.executable, "-c", text], check=True, cwd=Path(__file__).parents[2])


def test_options_and_target_are_part_of_the_key(cache_dir: Path) -> None:
    function = kernels.scale_factory(40)
    tilelang.compile(function, target="cpu")
    fast = tilelang.compile(function, target="cpu", pass_configs={"tl.enable_fast_math": True})
    assert not fast.from_cache
    assert fast.options.fast_math


def test_the_compiler_is_part_of_the_key(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled_and_right()
    build.forget()
    monkeypatch.setattr(cache, "compiler_digest", lambda: "another")
    assert not compiled_and_right()
    assert len(compiler_digest()) == 64


@pytest.mark.parametrize("target", ["hip:gfx942", "metal:apple9"])
def test_the_clang_is_part_of_the_key(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one clang made, or none of them checked, is not what another one makes."""
    tools = find_backend(parse_target(target).kind)
    assert tools is not None
    mark = fingerprint(kernels.scale_factory(40).function)
    assert mark is not None
    keys = set()
    for clang in (
        None,
        Clang(("clang",), "clang version 21"),
        Clang(("clang",), "clang version 22"),
    ):
        monkeypatch.setattr(tools.compiler(), "find_clang", lambda clang=clang: clang)
        keys.add(KernelCache().front_key(mark, parse_target(target), CompileOptions()))
    assert len(keys) == 3


@pytest.mark.parametrize("which", ["kernel", "front"])
@pytest.mark.parametrize("damage", ["truncate", "empty", "garbage", "delete"])
def test_damaged_entries_are_compiled_again(cache_dir: Path, which: str, damage: str) -> None:
    compiled_and_right()
    build.forget()
    kept = KernelCache()
    chosen = kept.kernels if which == "kernel" else kept.fronts
    ((path, _, _),) = chosen.entries()
    file = next((p for p in path.iterdir() if p.suffix in (".so", ".o")), path / "entry.json")
    data = file.read_bytes()
    match damage:
        case "truncate":
            file.write_bytes(data[: len(data) // 2])
        case "empty":
            file.write_bytes(b"")
        case "garbage":
            file.write_bytes(os.urandom(len(data)))
        case "delete":
            file.unlink()
    with pytest.warns(TileLangWarning, match="TL804"):
        assert not compiled_and_right()
    build.forget()
    assert compiled_and_right()


def test_a_front_entry_whose_kernel_was_dropped(cache_dir: Path) -> None:
    compiled_and_right()
    build.forget()
    KernelCache().kernels.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not compiled_and_right()
    build.forget()
    assert compiled_and_right()


def test_a_full_disk_is_one_warning(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: Any) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "_put", full)
    with pytest.warns(TileLangWarning, match="TL803") as caught:
        assert not compiled_and_right()
        assert not compiled_and_right(3.0)
    assert len(caught) == 1
    assert "No space left on device" in str(caught[0].message)


def test_a_cache_that_cannot_be_made_is_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache_dir: Path
) -> None:
    """Root writes everywhere, so that a folder that is a file stands for a read-only one."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(blocked / "cache"))
    with pytest.warns(TileLangWarning, match="TL803") as caught:
        assert not compiled_and_right()
        assert not compiled_and_right(3.0)
    assert len(caught) == 1
    assert KernelCache().info().problem


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere"
)
def test_a_read_only_cache_still_serves(cache_dir: Path) -> None:
    compiled_and_right()
    build.forget()
    for path in (cache_dir, *cache_dir.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert compiled_and_right()
        with pytest.warns(TileLangWarning, match="TL803"):
            assert not compiled_and_right(3.0)
    finally:
        for path in (cache_dir, *cache_dir.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)


def test_the_cache_is_bounded(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_scale()
    size = KernelCache().info().bytes
    monkeypatch.setenv("TILELANG_CACHE_LIMIT", str(3 * size))
    for factor in range(3, 9):
        compile_scale(float(factor))
    KernelCache().shrink()
    assert KernelCache().info().bytes <= 3 * size


def test_two_processes_compile_the_same_kernel(cache_dir: Path) -> None:
    text = program("""
        import numpy
        from tests.runtime import kernels
        x = numpy.arange(40, dtype="float32")
        kernel = kernels.lazy_scale(40, 11.0)
        assert (kernel(x) == 11 * x).all()
        print("cached" if kernel.from_cache else "compiled")
    """)
    started = [
        subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True,
                         cwd=Path(__file__).parents[2])
        for _ in range(3)
    ]  # fmt: skip
    printed = [process.communicate()[0].split() for process in started]
    assert [process.returncode for process in started] == [0, 0, 0]
    # The lock lets one compile; the others wait and find it done.
    assert sorted(printed) == [["cached"], ["cached"], ["compiled"]]


def test_switching_the_cache_off(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tilelang.is_cache_enabled()
    monkeypatch.setenv("TILELANG_DISABLE_CACHE", "1")
    assert not tilelang.is_cache_enabled()
    assert not compiled_and_right()
    assert not cache_dir.exists()
    monkeypatch.setenv("TILELANG_DISABLE_CACHE", "maybe")
    with pytest.raises(CompileError, match="TL811"):
        tilelang.is_cache_enabled()
    monkeypatch.setattr(build, "_enabled", [])
    tilelang.enable_cache()
    assert tilelang.is_cache_enabled()
    tilelang.disable_cache()
    assert not tilelang.is_cache_enabled()


def test_positions_of_assertions_follow_the_kernel(tmp_path: Path, cache_dir: Path) -> None:
    """A hit on a kernel that has moved in its file names the new line."""
    text = (Path(__file__).parent / "kernels.py").read_text()
    lines = []
    for name, shift in (("first", 0), ("second", 5)):
        (tmp_path / f"{name}.py").write_text("# moved\n" * shift + text)
        done = subprocess.run(
            [sys.executable, "-c", program(f"""
                import numpy, sys
                sys.path.insert(0, {str(tmp_path)!r})
                import {name} as kernels
                try:
                    kernels.checked(-1 - numpy.arange(40, dtype="float32"))
                except RuntimeError as error:
                    print(error.diagnostics[0].span.line, "tvm" in sys.modules)
            """)], capture_output=True, text=True, check=True)  # fmt: skip
        lines.append(done.stdout.split())
    (first, compiled), (second, cached) = lines
    assert int(second) == int(first) + 5
    assert (compiled, cached) == ("True", "False")


def test_clear(cache_dir: Path) -> None:
    compiled_and_right()
    assert KernelCache().clear() == 1
    assert KernelCache().info().kernels == 0


def test_messages_do_not_name_the_binary() -> None:
    """Where an assertion stands in the user's file is no reason to keep its code twice."""
    artifact = CpuArtifact("f", (), (), "f_info", 0, (CpuMessage("m", "a.py", 3),), "t", "c", b"")
    moved = CpuArtifact("f", (), (), "f_info", 0, (CpuMessage("m", "a.py", 9),), "t", "c", b"")
    assert cache.source_key_of(artifact) == cache.source_key_of(moved)


def test_the_same_generated_code_is_compiled_once(
    cache_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another front key, as after an edit of the compiler that changes no code."""
    from tilelang.ir import llvm

    compiled_and_right()
    build.forget()
    monkeypatch.setattr(cache, "compiler_digest", lambda: "another")

    def fails(*arguments: Any) -> bytes:
        raise AssertionError("LLVM is not needed")

    monkeypatch.setattr(llvm, "compile_llvm", fails)
    assert not compiled_and_right()
    assert len(list(KernelCache().fronts.entries())) == 2
    assert KernelCache().info().kernels == 1
