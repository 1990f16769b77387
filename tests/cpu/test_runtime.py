"""Does a compiled kernel load, run on all cores, report its assertions, and live without TVM?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang.language as T
from tests.support.cpu import address_of, compile_for_cpu, run_on_cpu
from tilelang.codegen.cpu_artifact import CpuArtifact
from tilelang.runtime import cpu as runtime
from tilelang.runtime.cpu import CpuAssertionError, CpuLoadError, link_cpu, load_cpu
from tilelang.runtime.cpu_elf import CannotLoad, LoadedObject
from tilelang.runtime.cpu_link import linker_command
from tilelang.runtime.cpu_pool import Pool

ROOT = Path(__file__).resolve().parents[2]


def scaled_exp() -> Any:
    n = T.dynamic("n")

    @T.prim_func
    def kernel(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32"), s: T.float32):
        with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
            for i in T.Parallel(64):
                if bx * 64 + i < n:
                    Y[bx * 64 + i] = T.exp(X[bx * 64 + i] * s) + T.sin(X[bx * 64 + i])

    return kernel


@pytest.fixture(scope="module")
def artifact() -> CpuArtifact:
    return compile_for_cpu(scaled_exp())


def check(kernel: runtime.CpuKernel, n: int = 1000) -> None:
    x = np.linspace(-3, 3, n, dtype=np.float32)
    y = np.zeros_like(x)
    kernel.run([address_of(x), address_of(y), 0.5, n])
    np.testing.assert_allclose(y, np.exp(x * 0.5) + np.sin(x), rtol=1e-5, atol=1e-6)


def test_loads_without_a_linker(artifact: CpuArtifact, monkeypatch: Any) -> None:
    monkeypatch.setattr(runtime, "link_shared", lambda *_: pytest.fail("linked"))
    check(load_cpu(artifact))


def test_loads_as_a_shared_library(artifact: CpuArtifact, tmp_path: Path) -> None:
    library = tmp_path / "deep" / "kernel.so"
    if not link_cpu(artifact, library):
        pytest.skip("no linker on this machine")
    assert [p.name for p in library.parent.iterdir()] == ["kernel.so"]
    check(load_cpu(artifact, library=library))


def test_falls_back_to_linking(artifact: CpuArtifact, monkeypatch: Any) -> None:
    def refuse(*_: Any) -> None:
        raise CannotLoad("not for this machine")

    monkeypatch.setattr(runtime, "LoadedObject", refuse)
    if linker_command() is None:
        pytest.skip("no linker on this machine")
    check(load_cpu(artifact))
    monkeypatch.setattr(runtime, "link_shared", lambda *_: False)
    with pytest.raises(CpuLoadError, match="not for this machine"):
        load_cpu(artifact)


@pytest.mark.parametrize(
    ("code", "reason"), [(b"", "ELF"), (b"\x7fELF\x02\x01" + bytes(100), "relocatable")]
)
def test_other_files_are_not_loaded(code: bytes, reason: str) -> None:
    with pytest.raises(CannotLoad, match=reason):
        LoadedObject(code, lambda _: None)


def test_unknown_outside_functions_are_named(artifact: CpuArtifact) -> None:
    with pytest.raises(CannotLoad, match="undefined symbol sinf"):
        LoadedObject(artifact.object_code, lambda _: None)


def test_manifest_survives_json(artifact: CpuArtifact) -> None:
    plain = json.loads(json.dumps(artifact.manifest()))
    again = CpuArtifact.from_manifest(plain, artifact.object_code, artifact.source)
    assert again == artifact
    assert [s.kind for s in again.slots] == ["buffer", "buffer", "scalar", "dim"]
    with pytest.raises(ValueError, match="schema"):
        CpuArtifact.from_manifest({**plain, "schema": 99})


def test_runs_in_a_process_that_never_imports_tvm(artifact: CpuArtifact, tmp_path: Path) -> None:
    (tmp_path / "kernel.json").write_text(json.dumps(artifact.manifest()))
    (tmp_path / "kernel.o").write_bytes(artifact.object_code)
    script = """
import array, json, sys
from pathlib import Path
from tilelang.codegen.cpu_artifact import CpuArtifact
from tilelang.runtime.cpu import load_cpu
folder = Path(sys.argv[1])
manifest = json.loads((folder / "kernel.json").read_text())
kernel = load_cpu(CpuArtifact.from_manifest(manifest, (folder / "kernel.o").read_bytes()))
x, y = array.array("f", [0.0, 1.0, 2.0]), array.array("f", [9.0] * 3)
kernel.run([x.buffer_info()[0], y.buffer_info()[0], 1.0, 3])
print(["%.4f" % v for v in y], sorted({"tvm", "tvm_ffi", "torch", "numpy"} & set(sys.modules)))
"""
    path = os.pathsep.join(str(ROOT / p) for p in (".", "diagnostics", "trace", "lsp"))
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "['1.0000', '3.5598', '8.2984'] []"


def test_zero_grid_launches_nothing(artifact: CpuArtifact) -> None:
    # Null addresses: a single block would not survive.
    load_cpu(artifact).run([0, 0, 1.0, 0])
    load_cpu(artifact).run([0, 0, 1.0, -5])


def test_many_python_threads_may_call_one_kernel(artifact: CpuArtifact) -> None:
    kernel = load_cpu(artifact)
    failures: list[BaseException] = []

    def work(n: int) -> None:
        try:
            for _ in range(20):
                check(kernel, n)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(500 + 100 * i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_device_assertion_reports_its_line() -> None:
    @T.prim_func
    def kernel(X: T.Tensor((64,), "int32")):
        with T.Kernel(8, threads=1) as bx:
            for i in T.serial(8):
                T.device_assert(X[bx * 8 + i] < 100, "value too large")  # here

    x = np.arange(64, dtype=np.int32)
    run_on_cpu(kernel, x)
    x[37] = 500
    with pytest.raises(CpuAssertionError) as failure:
        run_on_cpu(kernel, x)
    message = failure.value.message
    assert not failure.value.host
    assert "value too large" in message.text
    line = Path(__file__).read_text().splitlines()[message.line - 1]
    assert line.endswith("# here")


def test_prints_values_and_buffers(capfd: Any) -> None:
    @T.prim_func
    def kernel(X: T.Tensor((2, 2), "float32")):
        with T.Kernel(1, threads=1):
            tile = T.alloc_shared((2, 2), "float32")
            T.copy(X, tile)
            T.print(tile[1, 0] * 2.0, msg="100% twice")
            T.print(tile, msg="all of")

    run_on_cpu(kernel, np.array([[1, 2], [3.5, 4]], np.float32))
    assert capfd.readouterr().out.splitlines() == [
        "100% twice 7", "all of tile[0, 0] = 1", "all of tile[0, 1] = 2",
        "all of tile[1, 0] = 3.5", "all of tile[1, 1] = 4",
    ]  # fmt: skip


def test_pool_calls_the_work_on_several_threads_at_once() -> None:
    pool = Pool()
    pool.resize(4)
    together = threading.Barrier(4, timeout=30)
    names: list[str] = []

    def work() -> None:
        together.wait()  # passes only when four threads are here at the same time
        names.append(threading.current_thread().name)

    pool.run(4, work)
    assert len(set(names)) == 4
    assert threading.current_thread().name in names


def test_pool_passes_exceptions_on() -> None:
    pool = Pool()

    def fail() -> None:
        raise RuntimeError("block 7")

    with pytest.raises(RuntimeError, match="block 7"):
        pool.run(3, fail)
    with pytest.raises(ValueError, match="at least one"):
        pool.resize(0)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_every_block_runs_once(workers: int) -> None:
    blocks = 10_000

    @T.prim_func
    def kernel(X: T.Tensor((blocks,), "int32")):
        with T.Kernel(blocks, threads=1) as bx:
            X[bx] = X[bx] + bx

    x = np.zeros(blocks, np.int32)
    loaded = load_cpu(compile_for_cpu(kernel))
    runtime.set_num_threads(workers)
    try:
        for _ in range(5):
            loaded.run([address_of(x)])
    finally:
        runtime.set_num_threads(None)
    np.testing.assert_array_equal(x, 5 * np.arange(blocks))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_kernels_run_after_a_fork(artifact: CpuArtifact) -> None:
    runtime.set_num_threads(3)
    try:
        kernel = load_cpu(artifact)
        check(kernel, 100_000)
        child = os.fork()
        if child == 0:
            try:
                check(kernel, 100_000)
                os._exit(0)
            except BaseException:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
    finally:
        runtime.set_num_threads(None)
