"""An emulated kernel is called like any other: arrays, tensors, sizes at run time, refusals."""

from __future__ import annotations

import errno
import os
import shlex
import tempfile
from pathlib import Path

import numpy as np
import pytest

import tilelang
import tilelang.language as T
from tests.emulator.needs import needs_compiler
from tests.emulator.running import TARGET
from tilelang.emulator import launch, toolchain
from tilelang.emulator.settings import Emulator, emulator_of, parse_schedule
from tilelang_diagnostics import CompileError

m = T.dynamic("m")


@T.prim_func
def turned(A: T.Tensor((m,), "float32"), B: T.Tensor((m,), "float32")):
    with T.Kernel(T.ceildiv(m, 128), threads=128) as bx:
        tx = T.get_thread_binding()
        if bx * 128 + tx < m:
            A[bx * 128 + tx] = A[bx * 128 + tx] + 1
        T.sync_grid()
        if bx * 128 + tx < m:
            B[bx * 128 + tx] = A[m - 1 - (bx * 128 + tx)]


@T.prim_func
def through_pointer(pointer: T.ptr, n: T.int32):
    with T.Kernel(1, threads=32):
        A = T.make_tensor(pointer, (n,), "float32")
        for i in T.Parallel(32):
            if i < n:
                A[i] = 0.0


@needs_compiler
@pytest.mark.parametrize("size", [0, 1, 500, 1024])
def test_barrier_of_the_grid_and_sizes_at_run_time(size: int) -> None:
    kernel = tilelang.compile(turned, target=TARGET, execution_backend=Emulator(check=True))
    a, b = np.arange(size, dtype=np.float32), np.zeros(size, np.float32)
    kernel(a, b)
    np.testing.assert_array_equal(a, np.arange(size, dtype=np.float32) + 1)
    np.testing.assert_array_equal(b, a[::-1])


@needs_compiler
def test_tensors() -> None:
    torch = pytest.importorskip("torch")
    kernel = tilelang.compile(
        turned, out_idx=[1], target=TARGET, execution_backend="emulator"
    )  # fmt: skip
    a = torch.arange(256, dtype=torch.float32)
    b = kernel(a)
    assert isinstance(b, torch.Tensor)
    assert torch.equal(b, torch.arange(256, 0, -1, dtype=torch.float32))


@needs_compiler
def test_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script runs on the emulator without a change of its own."""
    monkeypatch.setenv("TILELANG_EMULATE", "check,shuffle:4")
    monkeypatch.setenv("TILELANG_DEFAULT_TARGET", TARGET)
    kernel = tilelang.compile(turned)
    a, b = np.zeros(100, np.float32), np.zeros(100, np.float32)
    kernel(a, b)
    np.testing.assert_array_equal(b, 1)


@pytest.mark.parametrize(
    ("said", "asked", "wanted"),
    [
        ("", None, None),
        ("", "emulator", Emulator()),
        ("", "cython", None),
        ("1", None, Emulator()),
        ("0", None, None),
        ("check", None, Emulator(check=True)),
        ("shuffle:7, check", "emulator", Emulator(check=True, seed=7)),
        ("check", Emulator(), Emulator()),
    ],
)
def test_what_is_asked_for(
    said: str, asked: object, wanted: Emulator | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILELANG_EMULATE", said)
    assert emulator_of(asked) == wanted


def test_a_variable_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_EMULATE", "shuffle")
    with pytest.raises(CompileError, match="TL811"):
        emulator_of(None)


@pytest.mark.parametrize(("text", "seed"), [("fifo", 0), ("shuffle:1", 1), ("shuffle:99", 99)])
def test_schedule(text: str, seed: int) -> None:
    assert parse_schedule(text) == seed


@pytest.mark.parametrize("text", ["", "shuffle", "shuffle:0", "shuffle:x", "random:1"])
def test_no_schedule(text: str) -> None:
    with pytest.raises(ValueError, match="shuffle:SEED"):
        parse_schedule(text)


def test_only_code_for_gpus_is_emulated() -> None:
    with pytest.raises(CompileError, match="TL817"):
        tilelang.compile(turned, target="cpu", execution_backend="emulator")


def test_addresses_are_refused() -> None:
    with pytest.raises(CompileError, match="`pointer` of `through_pointer` holds addresses"):
        tilelang.compile(through_pointer, target=TARGET, execution_backend="emulator")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize(("value", "held"), [(1e39, np.inf), (-1e300, -np.inf), (0.5, 0.5)])
def test_a_scalar_too_large_for_its_dtype_is_infinite(
    dtype: str, value: float, held: float
) -> None:
    @T.prim_func
    def fill(A: T.Tensor((1,), "float32"), x: T.dtype(dtype)):
        with T.Kernel(1, threads=32) as _:
            A[0] = T.cast(x, "float32")

    kernel = tilelang.compile(fill, target=TARGET, execution_backend="emulator")
    A = np.zeros(1, np.float32)
    kernel(A, value)
    assert A[0] == held


@pytest.mark.parametrize("full", [("shared",), ("shared", "temporary")])
def test_a_full_folder(
    full: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("shared", "temporary"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(launch, "_SHARED", tmp_path / "shared")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    fallocate = os.posix_fallocate

    def no_room(file: int, offset: int, size: int) -> None:
        where = Path(os.readlink(f"/proc/self/fd/{file}")).parents[1].name
        if where in full:
            raise OSError(errno.ENOSPC, "No space left on device")
        fallocate(file, offset, size)

    monkeypatch.setattr(os, "posix_fallocate", no_room)
    kernel = tilelang.compile(turned, target=TARGET, execution_backend="emulator")
    A, B = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    if "temporary" in full:
        with pytest.raises(CompileError, match=r"TL813.*no room for the 64 bytes"):
            kernel(A, B)
    else:
        kernel(A, B)
        assert np.array_equal(B, A[::-1])
    assert [p for name in ("shared", "temporary") for p in (tmp_path / name).iterdir()] == []


def test_a_compiler_that_does_not_end_or_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "slow++"
    program.write_text('#!/bin/sh\n[ "$1" = --version ] && exec echo gcc\nsleep 60\n')
    program.chmod(0o755)
    monkeypatch.setattr(toolchain, "_SECONDS", 0.5)
    compiler = toolchain.Compiler((str(program),), "gcc", "1")
    with pytest.raises(toolchain.CompilerError, match=r"did not end within 0\.5 seconds"):
        toolchain.kernel_library("", "k", False, compiler)
    with pytest.raises(CompileError, match=r"TL807.*cannot build the emulator"):
        launch.build_runtime(compiler)
    gone = toolchain.Compiler((str(tmp_path / "gone"),), "gcc", "1")
    with pytest.raises(toolchain.CompilerError, match="cannot be started"):
        toolchain.kernel_library("", "k", False, gone)


@pytest.mark.parametrize("form", ["{wrapper} {compiler} -O0", "{spaced}", "'{spaced}' -O0"])
def test_a_compiler_may_be_several_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: str
) -> None:
    found = toolchain.find_compiler()
    compiler = shlex.join(found.command)
    wrapper, spaced = tmp_path / "ccache", tmp_path / "a folder" / "c++"
    spaced.parent.mkdir()
    wrapper.write_text('#!/bin/sh\nexec "$@"\n')
    spaced.write_text(f'#!/bin/sh\nexec {compiler} "$@"\n')
    for path in (wrapper, spaced):
        path.chmod(0o755)
    monkeypatch.setenv("CXX", form.format(wrapper=wrapper, spaced=spaced, compiler=compiler))
    again = toolchain.find_compiler()
    assert again.command[0] in (str(wrapper), str(spaced))
    assert again.command[1:] == {"{spaced}": (), "'{spaced}' -O0": ("-O0",)}.get(
        form, (*found.command, "-O0")
    )
    assert (again.family, again.version) == (found.family, found.version)


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    kernel = tilelang.compile(turned, target=TARGET, execution_backend="emulator")
    with pytest.raises(CompileError, match="TL807"):
        kernel(np.zeros(1, np.float32), np.zeros(1, np.float32))


@T.prim_func
def with_a_large_array(A: T.Tensor((64,), "float32"), size: T.int32):
    with T.Kernel(1, threads=64):
        tx = T.get_thread_binding()
        mine = T.alloc_local((120_000,), "float32")
        for i in T.serial(size):
            mine[i] = A[tx] + 1
        A[tx] = mine[size - 1]


@T.prim_func
def with_too_large_an_array(A: T.Tensor((64,), "float32"), size: T.int32):
    with T.Kernel(1, threads=64):
        tx = T.get_thread_binding()
        mine = T.alloc_local((1_000_000,), "float32")
        for i in T.serial(size):
            mine[i] = A[tx] + 1
        A[tx] = mine[size - 1]


@needs_compiler
@pytest.mark.parametrize("check", [False, True])
def test_a_thread_has_what_a_gpu_gives_it_and_no_more(check: bool) -> None:
    """A GPU gives a thread 512 KB; what is beyond the stack is not blamed on a tensor."""
    A = np.zeros(64, np.float32)
    emulator = Emulator(check=check)
    tilelang.compile(with_a_large_array, target=TARGET, execution_backend=emulator)(A, 120_000)
    assert A.tolist() == [1.0] * 64
    kernel = tilelang.compile(with_too_large_an_array, target=TARGET, execution_backend=emulator)
    with pytest.raises(CompileError, match=r"TL730.*needs more than 1024 KB for its own arrays"):
        kernel(A, 1000)


@pytest.mark.parametrize("program", ["true", "false"])
def test_what_is_no_compiler(program: str) -> None:
    compiler = toolchain.Compiler((program,), "gcc", "1")
    said = {"true": "wrote nothing", "false": "ended with status 1"}[program]
    with pytest.raises(toolchain.CompilerError, match=said):
        toolchain.kernel_library("", "k", False, compiler)


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    """What is built is kept by the process instead, and built once."""
    (tmp_path / "file").touch()
    where, built = tmp_path / "file" / "runtime", []

    def build(to: Path) -> None:
        built.append(to)
        to.write_text("a program")

    made = [toolchain._made(where, build) for _ in range(2)]
    assert made[0] == made[1] and made[0].read_text() == "a program" and len(built) == 1


@T.prim_func
def that_ends_the_process(A: T.Tensor((64,), "float32")):
    with T.Kernel(2, threads=64):
        T.import_source("__device__ float leave(float x) { exit(0); return x; }")
        tx = T.get_thread_binding()
        A[tx] = T.call_extern("float32", "leave", A[tx])


@needs_compiler
def test_a_kernel_that_ends_its_process_has_not_run() -> None:
    kernel = tilelang.compile(that_ends_the_process, target=TARGET, execution_backend="emulator")
    with pytest.raises(CompileError, match="ended with status"):
        kernel(np.zeros(64, np.float32))
