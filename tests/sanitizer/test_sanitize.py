"""From a kernel to compute-sanitizer and back, with programs that behave like it in its place."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang.language as T
from tests.cli.conftest import Run, run  # noqa: F401
from tests.runtime_cuda.fake_driver import FakeLibrary, value_of
from tests.runtime_cuda.kernels import scale
from tests.sanitizer import planted
from tests.sanitizer.test_findings import RECORDED
from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.compiler import compile_function
from tilelang.options import CompileOptions
from tilelang.runtime import cuda, cuda_driver, sanitizer, sanitizer_child
from tilelang.runtime.cuda import CudaKernel
from tilelang.runtime.nvrtc import find_nvrtc
from tilelang.runtime.sanitizer_call import memory_of, write_call
from tilelang.runtime.signature import make_signature
from tilelang.target import parse_target
from tilelang_diagnostics import CompileError

pytestmark = pytest.mark.skipif(find_nvrtc() is None, reason="needs NVRTC")

REVERSE = f"""\
import tilelang.language as T

@T.prim_func
def reverse(A: T.Tensor(({planted.TILE},), "float32"), B: T.Tensor(({planted.TILE},), "float32")):
    with T.Kernel(1, threads={planted.TILE}):
        tile = T.alloc_shared(({planted.TILE},), "float32")
        t = T.get_thread_binding()
        tile[t] = A[t]
        B[t] = tile[{planted.TILE} - 1 - t]
"""


def artifact_of(kernel: Any) -> CudaArtifact:
    target = parse_target("cuda:sm_90a")
    found = compile_function(kernel.function, target, CompileOptions()).artifact
    assert isinstance(found, CudaArtifact)
    return found


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a program called compute-sanitizer on the search path; `body` sees `report`, `folder`,
    `words`."""

    def install(body: str) -> Path:
        file = tmp_path / "bin" / "compute-sanitizer"
        file.parent.mkdir(exist_ok=True)
        lines = [
            f"#!{sys.executable}", "import json, pathlib, shutil, sys", "words = sys.argv[1:]",
            "folder = pathlib.Path(words[-1])",
            "report = pathlib.Path(words[words.index('--save') + 1])",
            f"recorded = pathlib.Path({str(RECORDED)!r})",
            "def reached(): (folder / 'addresses.json').write_text('{\"A\": [4096, 1024]}')", body,
        ]  # fmt: skip
        file.write_text("\n".join(lines) + "\n")
        file.chmod(0o755)
        monkeypatch.setenv("PATH", str(file.parent))
        monkeypatch.delenv("CUDA_HOME", raising=False)
        return file

    return install


CLEAN = "report.write_text('<ComputeSanitizerOutput></ComputeSanitizerOutput>'); reached()"


def sanitize(tool: sanitizer.Tool = "memcheck") -> sanitizer.Sanitized:
    ramp = np.arange(planted.TILE, dtype=np.float32)
    signature = make_signature(planted.reverse.function, [1])
    return sanitizer.sanitize(artifact_of(planted.reverse), signature, [ramp], tool)


def refusal(call: Any) -> Any:
    with pytest.raises(CompileError) as caught:
        call()
    return caught.value.diagnostics[0]


def test_nothing_found(program: Any) -> None:
    program(CLEAN)
    assert sanitize().diagnostics == ()


def test_what_it_is_asked(program: Any, tmp_path: Path) -> None:
    program(f"{CLEAN}\nshutil.copytree(folder, {str(tmp_path / 'kept')!r})\n"
            f"pathlib.Path({str(tmp_path / 'words')!r}).write_text(json.dumps(words))")  # fmt: skip
    sanitize("racecheck")
    words = json.loads((tmp_path / "words").read_text())
    assert words[:3] == ["--tool", "racecheck", "--xml"]
    assert words[-4:-1] == [sys.executable, "-m", "tilelang.runtime.sanitizer_child"]
    rows = json.loads((tmp_path / "kept" / "call.json").read_text())["values"]
    assert rows == [
        {"name": "A", "bytes": 1024, "file": "0.bin"}, {"name": "B", "bytes": 1024, "file": None}
    ]  # fmt: skip
    assert (tmp_path / "kept" / "0.bin").read_bytes() == np.arange(256, dtype=np.float32).tobytes()


def test_a_race_is_told_at_both_lines(program: Any) -> None:
    program("shutil.copy(recorded / 'reverse.xml', report); reached()")
    (found,) = sanitize("racecheck").diagnostics
    assert found.code == "TL731" and found.span is not None
    assert Path(found.span.file).name == "planted.py"


@pytest.mark.parametrize(
    "body",
    [
        "print('========= Device not supported'); sys.exit(1)",
        "report.write_text('<Compute'); print('========= Device not supported')",
        CLEAN.replace("reached()", "print('Device not supported')"),
        f"{CLEAN}\nprint('Device not supported'); sys.exit(139)",
        f"{CLEAN}\n(folder / 'addresses.json').write_text('{{\"A\": [4'); "
        "print('Device not supported')",
        f"{CLEAN}\n(folder / 'error.json').write_text('[{{'); print('Device not supported')",
    ],
    ids=["no report", "half a report", "no launch", "a crash", "half of addresses",
         "half an error"],
)  # fmt: skip
def test_a_sanitizer_that_does_not_work(program: Any, body: str) -> None:
    program(body)
    found = refusal(sanitize)
    assert found.code == "TL815" and "compute-sanitizer made no report" in found.message
    assert found.notes[-1] == "Device not supported"


def test_a_call_that_does_not_end(
    program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "child"
    program(f"import subprocess\nchild = subprocess.Popen([{sys.executable!r}, '-c', 'input()'], "
            f"stdin=subprocess.PIPE)\npathlib.Path({str(kept)!r}).write_text(str(child.pid))\n"
            "child.wait()")  # fmt: skip
    monkeypatch.setenv("TILELANG_SANITIZER_SECONDS", "1")
    found = refusal(sanitize)
    assert found.code == "TL733" and "did not end within 1 seconds" in found.message


def test_what_the_process_itself_says(program: Any) -> None:
    said = {"code": "TL416", "severity": "error", "message": "for another device", "span": None,
            "label": "", "labels": [], "notes": [], "help": None, "fixes": [],
            "calls": []}  # fmt: skip
    program(f"{CLEAN}\n(folder / 'error.json').write_text({json.dumps([said])!r}); sys.exit(1)")
    assert [d.code for d in sanitize().diagnostics] == ["TL416"]
    program(f"(folder / 'error.json').write_text({json.dumps([said])!r}); sys.exit(255)")
    assert [d.code for d in sanitize().diagnostics] == ["TL416"]


def test_no_sanitizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.setattr(sanitizer, "_in_wheels", list)
    if Path("/usr/local/cuda/bin/compute-sanitizer").exists():
        pytest.skip("the toolkit has one where it usually is")
    found = refusal(sanitizer.find_sanitizer)
    assert found.code == "TL815" and "pip install nvidia-cuda-sanitizer-api" in found.help


def test_cuda_home_comes_first(program: Any, tmp_path: Path, monkeypatch: Any) -> None:
    file = program(CLEAN)
    assert sanitizer.find_sanitizer() == file
    other = tmp_path / "cuda" / "bin" / "compute-sanitizer"
    other.parent.mkdir(parents=True)
    other.write_text("")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    assert sanitizer.find_sanitizer() == other


# The process that is watched.


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeLibrary:
    """A driver with memory: addresses, and what was copied there."""
    library = FakeLibrary(formats=("Q", "Q", "f", "i", "i"))
    library.memory = {}  # type: ignore[attr-defined]

    def allocate(out: Any, size: Any) -> None:
        out._obj.value = 0x1000 * (len(library.memory) + 1)  # type: ignore[attr-defined]
        library.memory[out._obj.value] = (value_of(size), None)  # type: ignore[attr-defined]

    def copy(address: Any, data: bytes, size: Any) -> None:
        library.memory[value_of(address)] = (value_of(size), data)  # type: ignore[attr-defined]

    library._cuMemAlloc_v2 = allocate  # type: ignore[attr-defined]
    library._cuMemcpyHtoD_v2 = copy  # type: ignore[attr-defined]
    made = cuda_driver.Driver(library)
    monkeypatch.setattr(cuda, "driver", lambda: made)
    monkeypatch.setitem(sys.modules, "torch", None)
    cuda._recent.clear()
    return library


def test_each_tensor_has_memory_of_its_own_size(driver: Any, tmp_path: Path) -> None:
    a = np.ones((40, 64), np.float16)
    write_call(tmp_path, artifact_of(scale), make_signature(scale.function), [a, a + 1, 1.5])
    assert sanitizer_child.main(tmp_path) == 0
    assert driver.memory == {0x1000: (5120, a.tobytes()), 0x2000: (5120, (a + 1).tobytes())}
    assert json.loads((tmp_path / "addresses.json").read_text()) == {
        "A": [0x1000, 5120], "B": [0x2000, 5120]
    }  # fmt: skip
    (launched,) = driver.launches
    assert launched.grid == (3, 1, 1)
    assert launched.parameters[:3] == (0x1000, 0x2000, 1.5)
    assert set(launched.parameters[3:]) == {40}


def test_a_failure_is_written_down(driver: Any, tmp_path: Path) -> None:
    a = np.ones((40, 64), np.float16)
    write_call(tmp_path, artifact_of(scale), make_signature(scale.function), [a, a, 1.5])
    driver.results["cuCtxSynchronize"] = [700]
    assert sanitizer_child.main(tmp_path) == 1
    (row,) = json.loads((tmp_path / "error.json").read_text())
    assert row["code"] == "TL812"
    assert (tmp_path / "addresses.json").exists()


def test_no_memory_left(driver: Any, tmp_path: Path) -> None:
    a = np.ones((40, 64), np.float16)
    write_call(tmp_path, artifact_of(scale), make_signature(scale.function), [a, a, 1.5])
    driver.results["cuMemAlloc_v2"] = [0, 2]
    assert sanitizer_child.main(tmp_path) == 1
    (row,) = json.loads((tmp_path / "error.json").read_text())
    assert (row["code"], row["message"]) == (
        "TL813", "cuda:0 has no 5120 bytes left for a tensor of `scale`"
    )  # fmt: skip


M, N, S = T.dynamic("M, N, S")


@T.prim_func
def row_sums(
    A: T.StridedTensor((M, N), (S, 1), "float32"), B: T.Tensor((M,), "float32"),
    bias: T.Tensor((M,), "float32") = None,
):  # fmt: skip
    with T.Kernel(M, threads=32) as i:
        B[i] = A[i, 0] + A[i, N - 1]


@pytest.mark.parametrize("family", ["numpy", "torch"])
def test_a_tensor_with_gaps(family: str, tmp_path: Path) -> None:
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    whole = pytest.importorskip("torch").from_numpy(a) if family == "torch" else a
    write_call(tmp_path, artifact_of(row_sums), make_signature(row_sums.function, [1]),
               [whole[:, :2], None])  # fmt: skip
    rows = json.loads((tmp_path / "call.json").read_text())["values"]
    assert {r["name"]: r.get("number", r.get("bytes")) for r in rows} == {
        "A": 40, "B": 12, "bias": 0, "M": 3, "N": 2, "S": 4
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "code"),
    [(np.ones((3, 4), np.float32)[::-1], "TL705"), (np.ones((3, 4), np.float16), "TL702"),
     (np.ones((3, 4), np.float32)[:, ::2], "TL705"), (np.ones(3, np.float32), "TL703")],
)  # fmt: skip
def test_a_tensor_that_does_not_fit(value: Any, code: str, tmp_path: Path) -> None:
    signature = make_signature(row_sums.function, [1])
    artifact = artifact_of(row_sums)
    assert refusal(lambda: write_call(tmp_path, artifact, signature, [value, None])).code == code


def test_a_size_that_no_input_gives(tmp_path: Path) -> None:
    a = np.ones((40, 64), np.float16)
    signature = make_signature(scale.function, [1])
    found = refusal(lambda: write_call(tmp_path, artifact_of(scale), signature, [a, 1.5]))
    assert found.code == "TL710"


def test_the_memory_of_a_view_has_its_gaps() -> None:
    rows = np.arange(12, dtype=np.int32).reshape(3, 4)[:, :2]
    assert np.frombuffer(memory_of(rows), np.int32).tolist() == [0, 1, 0, 0, 4, 5, 0, 0, 8, 9]


# The command.


def test_the_command_finds_nothing(run: Run, program: Any, tmp_path: Path,  # noqa: F811
                                   monkeypatch: Any) -> None:  # fmt: skip
    (tmp_path / "reverse.py").write_text(REVERSE)
    program(CLEAN)
    monkeypatch.setattr(CudaKernel, "require_device", lambda self: None)
    result = run("run", "--sanitize", "reverse.py", "--target", "cuda:sm_90a")
    assert (result.status, result.err) == (0, "")
    assert "memcheck  no access outside of memory" in result.out


def test_the_command_finds_a_race(run: Run, program: Any, tmp_path: Path,  # noqa: F811
                                  monkeypatch: Any) -> None:  # fmt: skip
    (tmp_path / "reverse.py").write_text(REVERSE)
    program("shutil.copy(recorded / 'reverse.xml', report); reached()")
    monkeypatch.setattr(CudaKernel, "require_device", lambda self: None)
    result = run("run", "reverse.py", "--target", "cuda:sm_90a", "--sanitize=racecheck")
    assert result.status == 1 and "error[TL731]: a write and a read of" in result.err
    assert "--> reverse.py:" in result.err or f"{tmp_path / 'reverse.py'}:" in result.err


def test_the_command_on_a_cpu(run: Run, program: Any, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "reverse.py").write_text(REVERSE)
    program(CLEAN)
    result = run("run", "reverse.py", "--target", "cpu", "--sanitize")
    assert result.status == 1
    assert "error[TL815]: --sanitize watches a GPU, and `reverse` is compiled for cpu" in result.err


def test_the_command_without_a_gpu(run: Run, program: Any, tmp_path: Path,  # noqa: F811
                                   monkeypatch: Any) -> None:  # fmt: skip
    def none() -> Any:
        raise cuda_driver.NoDriver("the CUDA driver library libcuda.so.1 is not here")

    (tmp_path / "reverse.py").write_text(REVERSE)
    program(CLEAN)
    monkeypatch.setattr(cuda, "driver", none)
    result = run("run", "reverse.py", "--target", "cuda:sm_90a", "--sanitize")
    assert result.status == 1
    assert "error[TL805]: `reverse` needs an NVIDIA GPU, but" in result.err


def test_a_tool_that_does_not_exist(run: Run) -> None:  # noqa: F811
    result = run("run", "reverse.py", "--sanitize=leakcheck")
    assert result.status == 2 and "'leakcheck' is not one of" in result.err
