"""`tilelang compile --emit layouts`: as text for people, as JSON for tools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

KERNEL = """\
import tilelang.language as T


def factory(policy=T.GemmWarpPolicy.Square, columns=False):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            half = T.alloc_fragment((64, 64), "float16")
            out = T.alloc_fragment((64, 64), "float32")
            T.copy(A, s)
            T.clear(acc)
            T.gemm(s, s, acc, policy=policy)
            T.copy(acc, half)
            T.clear(out)
            T.gemm(half, s, out, policy=policy)
            T.copy(out, C)

    return main


def conflicting():
    @T.prim_func
    def main(A: T.Tensor((16, 8), "int8"), C: T.Tensor((16, 8), "int32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((16, 8), "int8")
            acc = T.alloc_fragment((16, 16), "int32")
            T.copy(A, s)
            T.clear(acc)
            T.gemm(s, s, acc, transpose_B=True)
            T.copy(acc[:, 0:8], C)

    return main
"""

TEXT = """\
main: a CPU needs no thread layouts; these are those of cuda:sm_80

launch of 128 threads, line 7

  shared s: 64 x 64 float16, 8192 bytes
      (i*64 + j) ^ i%8*8
      128-byte swizzle: no bank conflicts in 4 uses; row-major has 8-way ones in T.gemm(s, s, acc)
        T.copy(A, s) at line 12: no bank conflicts
        T.gemm(s, s, acc) at line 14 (ldmatrix): no bank conflicts
        T.gemm(s, s, acc) at line 14 (ldmatrix.trans): no bank conflicts
        T.gemm(half, s, out) at line 17 (ldmatrix.trans): no bank conflicts
              0    1    2    3    4    5    6    7    …
         0    0    1    2    3    4    5    6    7    …
         1   72   73   74   75   76   77   78   79    …
         2  144  145  146  147  148  149  150  151    …
         3  216  217  218  219  220  221  222  223    …
         …
        4 of 64 rows, 8 of 64 columns
"""

CONVERSIONS = """\
  conversions
    half through shared memory for T.copy(acc, half) at line 15, 104 instructions
        from thread=rep*64 + i//32*32 + i%8*4 + j//2%4
        to   thread=j//32*64 + i//32*32 + i%8*4 + j//2%4
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "kernels.py"
    path.write_text(KERNEL)
    return path


def test_text(run: Run, file: Path) -> None:
    done = run("compile", "kernels.py::factory", "--target", "cpu", "--emit", "layouts")
    assert done.status == 0
    assert done.out.startswith(TEXT)
    assert done.out.endswith(CONVERSIONS)
    assert "loop T.copy(A, s) at line 12: 64 x 64\n" in done.out
    assert "remark[TL307]" in done.err


def test_json(run: Run, file: Path) -> None:
    done = run("compile", "kernels.py::factory", "--target", "cpu", "--emit", "layouts", "--json")
    assert done.status == 0
    found = json.loads(done.out)
    assert (found["kernel"], found["target"], found["nominal"]) == ("main", "cuda:sm_80", True)
    (launch,) = found["launches"]
    assert (launch["line"], launch["threads"]) == (7, 128)
    entries = {entry["name"]: entry for entry in launch["entries"]}
    acc = entries["acc"]
    assert acc["layout"] == "thread=j//32*64 + i//32*32 + i%8*4 + j//2%4"
    assert (acc["registers"], acc["line"], acc["bytes"]) == (32, 9, None)
    thread, slot = eval(acc["formula"], {"i": 33, "j": 40, "rep": 0})
    assert (thread, slot) == (64 + 32 + 4, 4)
    assert (entries["s"]["bytes"], entries["s"]["formula"]) == (8192, "(i*64 + j) ^ i%8*8")
    assert entries["s"]["bank_uses"][1] == {
        "op": "T.gemm(s, s, acc)", "line": 14, "mode": "reads", "degree": 1, "what": "ldmatrix",
    }  # fmt: skip
    (conversion,) = entries["half"]["conversions"]
    assert (conversion["via"], conversion["line"]) == ("shared memory", 15)
    assert [d["code"] for d in found["diagnostics"]] == ["TL307"]


def test_what_a_gpu_refuses_is_an_error_there_and_nothing_on_a_cpu(run: Run, file: Path) -> None:
    command = ("compile", "kernels.py::conflicting", "--emit", "layouts")
    on_cpu = run(*command, "--target", "cpu")
    assert (on_cpu.status, on_cpu.err) == (0, "")
    on_gpu = run(*command, "--target", "cuda:sm_80")
    assert on_gpu.status == 1
    assert "error[TL410]" in on_gpu.err


def test_json_is_for_layouts(run: Run, file: Path) -> None:
    done = run("compile", "kernels.py::factory", "--emit", "ir", "--json")
    assert done.status == 2
    assert "--json goes with --emit layouts" in done.err


def test_into_a_file(run: Run, file: Path) -> None:
    command = ("compile", "kernels.py::factory", "--target", "cpu", "--emit", "layouts", "--json")
    assert run(*command, "-o", "out.json").status == 0
    assert json.loads(Path("out.json").read_text())["kernel"] == "main"
