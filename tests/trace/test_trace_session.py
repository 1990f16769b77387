"""Recording from Python and by an environment variable; nothing happens when nobody records."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang
import tilelang.language as T
import tilelang_trace
from tilelang import watching
from tilelang.compiler import compile_function
from tilelang.options import CompileOptions, child_environment
from tilelang.target import parse_target
from tilelang_trace.ndjson import load
from tilelang_trace.recorder import Recorder
from tilelang_trace.session import Recording, _flushing

ROOT = Path(__file__).resolve().parents[2]


def kernel(n: int):
    @T.prim_func
    def double(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
            for i in T.Parallel(32):
                B[bx * 32 + i] = A[bx * 32 + i] * 2.0

    return double


def lower(made: Any) -> None:
    target, options = parse_target("cpu"), CompileOptions()
    compile_function(made.function, target, options)


def test_each_compilation_is_a_trace_of_its_own() -> None:
    with tilelang_trace.record() as t:
        first = tilelang.compile(kernel(64), target="cpu")
        tilelang.compile(kernel(96), target="cpu")
    a, b = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    first(a, b)
    assert (b == 2 * a).all()
    assert [x.kernel for x in t.traces] == ["double", "double"]
    assert [x.steps[0].name for x in t.traces] == ["emit", "emit"]
    assert "(64,)" in t.traces[0].steps[0].text and "(96,)" in t.trace.steps[0].text
    assert t.trace.code("source") is not None
    assert t.trace.failure is None


def test_what_the_cache_holds_is_compiled_all_the_same() -> None:
    tilelang.compile(kernel(128), target="cpu")
    with tilelang_trace.record() as t:
        tilelang.compile(kernel(128), target="cpu")
    assert len(t.traces) == 1


def test_nobody_watches_afterwards() -> None:
    with tilelang_trace.record() as t:
        pass
    tilelang.compile(kernel(160), target="cpu")
    assert t.traces == () and not watching.WATCHERS
    with pytest.raises(RuntimeError), tilelang_trace.record():
        raise RuntimeError
    assert not watching.WATCHERS


def test_recordings_may_be_inside_each_other() -> None:
    with tilelang_trace.record() as outer:
        with tilelang_trace.record() as inner:
            tilelang.compile(kernel(192), target="cpu")
        tilelang.compile(kernel(224), target="cpu")
    assert (len(outer.traces), len(inner.traces)) == (2, 1)


def test_into_a_folder_as_it_happens(tmp_path: Path) -> None:
    with tilelang_trace.record(tmp_path / "traces") as t:
        tilelang.compile(kernel(256), target="cpu")
    (path,) = t.files
    assert path.parent == tmp_path / "traces"
    found = tilelang_trace.load(str(path))
    assert found.kernel == "double" and found.failure is None
    assert t.traces == ()


def test_traces_of_a_recording_can_be_saved(tmp_path: Path) -> None:
    with tilelang_trace.record() as t:
        tilelang.compile(kernel(288), target="cpu")
    (path,) = t.save(tmp_path)
    assert tilelang_trace.load(str(path)).steps == t.trace.steps


@pytest.mark.parametrize("name", ["../../etc/x", "a b\x1b[31m", "..", "é" * 300, "a/b\\c:d"])
def test_files_are_named_safely(tmp_path: Path, name: str) -> None:
    from tilelang_trace.session import _new_file

    path, file = _new_file(tmp_path / "t", name, "cuda:sm_90a")
    file.close()
    assert path.parent == tmp_path / "t"
    assert path.name.isprintable() and len(path.name) < 120


PROGRAM = """
import numpy as np
import tilelang
import tilelang.language as T


@T.prim_func
def add(A: T.Tensor((32,), "float32")):
    with T.Kernel(1, threads=32) as bx:
        for i in T.Parallel(32):
            A[i] += 1.0


kernel = tilelang.compile(add, target="cpu")
a = np.zeros(32, np.float32)
kernel(a)
assert (a == 1).all()
import sys
print("tilelang_trace" in sys.modules)
"""


@pytest.mark.parametrize("traced", [True, False])
def test_any_program_by_an_environment_variable(tmp_path: Path, traced: bool) -> None:
    file, folder = tmp_path / "program.py", tmp_path / "traces"
    file.write_text(textwrap.dedent(PROGRAM))
    path = ":".join(str(ROOT / part) for part in (".", "diagnostics", "trace", "lsp"))
    more = {"TILELANG_TRACE": str(folder)} if traced else {}
    environment = child_environment(
        PYTHONPATH=path, TILELANG_CACHE_DIR=str(tmp_path / "cache"), **more
    )
    for _ in range(2):  # the second time the kernel would be in the cache
        done = subprocess.run(
            [sys.executable, str(file)], env=environment, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        assert done.stdout.strip() == str(traced)
    found = sorted(folder.glob("*.ndjson")) if folder.exists() else []
    assert len(found) == (2 if traced else 0)
    for one in found:
        with one.open(encoding="utf-8") as lines:
            trace = load(lines)
        assert (trace.kernel, trace.failure) == ("add", None)
        assert dict(trace.sources)[str(file)] == textwrap.dedent(PROGRAM)


def test_nothing_is_called_while_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Recording, "start", lambda *_: pytest.fail("called"))
    tilelang.compile(kernel(320), target="cpu")


def test_kernels_compiled_at_once_are_recorded() -> None:
    kernels = [kernel(n) for n in (384, 416)]
    tilelang.compile(kernels[0], target="cpu")  # in the cache of this process and on disk
    with tilelang_trace.record() as t:
        made = tilelang.par_compile(kernels, target="cpu", num_workers=2)
    assert len(made) == 2 and [x.kernel for x in t.traces] == ["double", "double"]
    assert "(384,)" in t.traces[0].steps[0].text and "(416,)" in t.traces[1].steps[0].text


AT_ONCE = """
import numpy as np
import tilelang
import tilelang.language as T


def kernel(n):
    @T.prim_func
    def add(A: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                A[i] += 1.0

    return add


if __name__ == "__main__":
    first, second = tilelang.par_compile([kernel(32), kernel(64)], target="cpu", num_workers=2)
    a = np.zeros(64, np.float32)
    second(a)
    assert (a == 1).all()
    import os
    print(os.getpid())
"""


def test_processes_that_compile_leave_their_traces_as_well(tmp_path: Path) -> None:
    file, folder = tmp_path / "program.py", tmp_path / "traces"
    file.write_text(AT_ONCE)
    path = ":".join(str(ROOT / part) for part in (".", "diagnostics", "trace", "lsp"))
    environment = child_environment(
        PYTHONPATH=path, TILELANG_CACHE_DIR=str(tmp_path / "cache"), TILELANG_TRACE=str(folder)
    )
    done = subprocess.run(
        [sys.executable, str(file)], env=environment, capture_output=True, text=True, check=True
    )
    found = sorted(folder.glob("*.ndjson"))
    own = done.stdout.strip()
    assert len(found) == 2 and not any(one.name.startswith(f"{own}-") for one in found)
    assert all(tilelang_trace.load(str(one)).failure is None for one in found)


def test_emulated_kernels_are_recorded_as_well() -> None:
    with tilelang_trace.record() as t:
        tilelang.compile(kernel(352), target="cuda:sm_80", execution_backend="emulator")
    (found,) = t.traces
    source = found.code("source")
    assert found.failure is None and source is not None
    assert source.language == "cuda" and "__global__" in source.text
    assert [c.kind for c in found.codes] == ["source"]


def test_threads_that_record_at_once_get_their_own_compilations() -> None:
    together = threading.Barrier(2, timeout=60)

    def recorded(size: int) -> list[str]:
        with tilelang_trace.record(code=False) as t:
            together.wait()
            lower(kernel(size))
            together.wait()  # neither is over while the other compiles
        return [trace.steps[0].symbols[0].shape[0] for trace in t.traces]

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(recorded, (352, 384))) == [["352"], ["384"]]
    assert not watching.WATCHERS


def test_a_thread_that_records_nothing_is_recorded_by_who_does() -> None:
    with tilelang_trace.record(code=False) as t, ThreadPoolExecutor(1) as pool:
        pool.submit(lower, kernel(416)).result()
    assert len(t.traces) == 1


def test_a_command_s_recorder_alone_sees_its_compilation() -> None:
    seen: list[str] = []

    def watcher(name: str) -> Callable[..., Recorder]:
        def start(*given: Any) -> Recorder:
            seen.append(name)
            return Recorder(*given, code=False)

        return start

    with watching.watching(watcher("around")), watching.watched_by(watcher("alone")):
        lower(kernel(448))
        assert watching.is_watched_only_here()
    assert seen == ["alone"] and not watching.is_watched()


@pytest.mark.parametrize(
    ("folder", "problem"),
    [
        (" ", "it names no folder"),
        ("/dev/null/x", "not a directory"),
        ("/proc/x", "no such file or directory"),
        (__file__, "it is no folder"),
    ],
)
def test_a_folder_that_cannot_be_is_one_warning(
    folder: str, problem: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(watching, "WATCHERS", [])
    monkeypatch.setenv("TILELANG_TRACE", folder)
    monkeypatch.delitem(sys.modules, "tilelang_trace.always", raising=False)
    for said in (f"tilelang: nothing is recorded: TILELANG_TRACE={folder!r}: {problem}\n", ""):
        assert not watching.is_watched()
        assert capsys.readouterr().err == said
    monkeypatch.delitem(sys.modules, "tilelang_trace.always")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_cuts_a_recording_off() -> None:
    with open("/dev/full", "w") as file:
        write = _flushing(file)
        with pytest.warns(UserWarning, match="a trace was cut off: /dev/full: No space left"):
            write("{}\n")
        write("{}\n")
