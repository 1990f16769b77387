"""Kernels that are compiled, exported, and called where nothing of this package is."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tilelang
from tests.export import kernels
from tests.export.conftest import A100, FLOAT16, FLOAT32, H200, HERE, Host, ask, tensor
from tests.support.cuda import needs_cuda_compiler
from tilelang.cli import main
from tilelang.codegen.cpu_artifact import CpuArtifact
from tilelang.ir.llvm import features_of
from tilelang.options import SEARCH_PATH
from tilelang.runtime import build, export_link
from tilelang.runtime.export_cpu import needs_of
from tilelang_diagnostics import CompileError

pytestmark = needs_cuda_compiler

TWO = "cuda:sm_80,cuda:sm_90a"


@pytest.fixture(scope="module")
def scale() -> Any:
    return tilelang.compile(kernels.scale, target="cuda:sm_80")


def test_a_file_of_another_kind_is_refused(scale: Any, tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=r"TL810.*ln\.exe") as caught:
        scale.export(tmp_path / "ln.exe")
    assert "ln.so" in (caught.value.diagnostics[0].help or "")
    assert not (tmp_path / "ln.exe").exists()


def test_one_file_runs_on_two_architectures(
    scale: Any, compiler: str, tmp_path: Path, host: Host
) -> None:
    library = scale.export(tmp_path / "out", targets=TWO)
    assert library == tmp_path / "out" / "scale.so"
    args = [tensor(17, 64, address=0x1000), tensor(17, 64, address=0x2000), 2.5]
    on = [
        {"function": "scale", "formats": "ppfi",
         "args": [{**a, "device": (2, d)} if isinstance(a, dict) else a for a in args]}
        for d in (0, 1)
    ]  # fmt: skip
    answers = host(library, on, devices=[H200, A100])
    for answer, arch in zip(answers, ("sm_90a", "sm_80"), strict=True):
        size = len((tmp_path / "out" / f"scale.{arch}.cubin").read_bytes())
        assert answer.error is None
        assert answer.log[0] == f"load {size}"
        assert answer.launches[0] == {
            "symbol": "scale_kernel", "grid": "2,1,1", "block": "128,1,1", "shared": "2048",
            "stream": "0", "context": "0" if arch == "sm_90a" else "1",
            "params": "4096;8192;2.5;17;",
        }  # fmt: skip


def test_what_lies_beside_it(scale: Any, compiler: str, tmp_path: Path) -> None:
    scale.export(tmp_path / "out", targets=TWO)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["kind"] == "tilelang-export" and manifest["library"] == "scale.so"
    (function,) = manifest["functions"]
    old, new = function["builds"]
    assert (old["target"], new["target"]) == ("cuda:sm_80", "cuda:sm_90a")
    assert old["compiler"].startswith(("NVRTC", "nvcc")) and "-std=c++17" in old["flags"]
    assert old["resources"][0]["kernel"] == "scale_kernel" and old["resources"][0]["registers"] > 0
    assert old["launches"][0]["block"] == [128, 1, 1]
    assert old["launches"][0]["shared_memory_bytes"] == 2048
    assert (tmp_path / "out" / old["source"]).read_text() == scale.kernel_source
    listed = {p.name for p in (tmp_path / "out").iterdir()}
    assert set(manifest["files"]) | {"manifest.json"} == listed
    rows = json.loads((tmp_path / "out" / "scale.sm_80.map.json").read_text())["lines"]
    places = {s["file"] for row in rows for s in row["spans"]}
    assert {(tmp_path / "out" / p).resolve() for p in places} == {Path(kernels.__file__).resolve()}


def test_the_host_side_is_linked_from_what_lies_there(
    scale: Any, compiler: str, tmp_path: Path
) -> None:
    """Byte for byte: the library holds nothing that is not beside it."""
    library = scale.export(tmp_path / "out")
    before = library.read_bytes()
    export_link.link_host(tmp_path / "out", "scale.c", "again.so")
    assert (tmp_path / "out" / "again.so").read_bytes() == before


def test_no_warning_comes_of_the_host_side(scale: Any, compiler: str, tmp_path: Path) -> None:
    scale.export(tmp_path / "out", targets=TWO)
    done = subprocess.run(
        [compiler, "-std=gnu11", "-O2", "-fPIC", "-Wall", "-Wextra", "-Werror", "-c", "scale.c",
         *(f"-I{path}" for path in export_link._headers()), "-o", "scale.o"],
        cwd=tmp_path / "out", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == "" and done.returncode == 0


@pytest.mark.skipif(shutil.which("objdump") is None, reason="no objdump")
@pytest.mark.parametrize("target", ["cuda:sm_80", "cpu"])
def test_it_loads_where_glibc_is_old(target: str, compiler: str, tmp_path: Path) -> None:
    library = tilelang.compile(kernels.scale, target=target).export(tmp_path)
    done = subprocess.run(["objdump", "-T", str(library)], capture_output=True, text=True,
                          check=True)  # fmt: skip
    versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([\d.]+)", done.stdout)}
    assert max(versions) <= (2, 28)


def test_names_are_those_of_a_dict(scale: Any, compiler: str, tmp_path: Path, host: Host) -> None:
    other = tilelang.compile(kernels.other_scale, target="cuda:sm_80")
    library = tilelang.export({"wide": scale, "both": [scale, other]}, tmp_path / "k.so")
    assert library == tmp_path / "k.so"
    calls = [
        {"function": name, "args": [tensor(4, width), tensor(4, width), 1.0]}
        for name, width in (("wide", 64), ("both", 64), ("both", 32), ("wide", 32))
    ]
    answers = host(library, calls, devices=[A100])
    assert [a.error is None for a in answers] == [True, True, True, False]
    assert [a.launches[0]["symbol"] for a in answers[:3]] == [
        "scale_kernel", "scale_kernel", "other_scale_kernel",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["two words", "", "1st", 3])
def test_a_name_has_to_be_one(scale: Any, tmp_path: Path, name: Any) -> None:
    with pytest.raises(ValueError, match="cannot be the name of an exported function"):
        tilelang.export({name: scale}, tmp_path / "k.so")


def test_one_name_is_for_one_kind_of_device(scale: Any, tmp_path: Path) -> None:
    with pytest.raises(CompileError) as caught:
        scale.export(tmp_path, targets=["cpu", "cuda:sm_80"])
    (found,) = caught.value.diagnostics
    assert found.code == "TL728" and found.message.endswith("is compiled for the CPU and for CUDA")


def test_only_kernels_are_exported(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="a PrimFunc is not a compiled kernel"):
        tilelang.export(kernels.scale, tmp_path)


def test_without_a_c_compiler(scale: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SEARCH_PATH.name, str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "ziglang" else find_spec(name)
    )
    with pytest.raises(CompileError) as caught:
        scale.export(tmp_path / "out")
    (found,) = caught.value.diagnostics
    assert found.code == "TL807" and found.message.startswith("no C compiler is installed")
    assert list((tmp_path / "out").iterdir()) == []


def test_the_compiler_of_a_package(
    scale: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ziglang")
    monkeypatch.setenv(SEARCH_PATH.name, str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    assert scale.export(tmp_path / "out").exists()


def test_a_compiler_that_fails(scale: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "false")
    with pytest.raises(CompileError) as caught:
        scale.export(tmp_path / "out")
    assert caught.value.diagnostics[0].code == "TL806"


@pytest.mark.parametrize("form", ["{wrapper} {compiler}", "{spaced}", "'{spaced}' -O1"])
def test_a_compiler_may_be_several_words(
    scale: Any, compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    wrapper, spaced = tmp_path / "ccache", tmp_path / "a folder" / "cc"
    spaced.parent.mkdir()
    wrapper.write_text('#!/bin/sh\nexec "$@"\n')
    spaced.write_text(f'#!/bin/sh\nexec {compiler} "$@"\n')
    for path in (wrapper, spaced):
        path.chmod(0o755)
    monkeypatch.setenv("CC", form.format(wrapper=wrapper, spaced=spaced, compiler=compiler))
    assert scale.export(tmp_path / "out").exists()


def test_a_place_that_cannot_be_written(scale: Any, compiler: str, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(OSError) as caught:
        scale.export(tmp_path / "taken" / "k.so")
    assert isinstance(caught.value, CompileError)
    assert caught.value.diagnostics[0].code == "TL810"


def test_what_a_program_exported_is_checked_too(
    compiler: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its kernel cannot be traced again from here: its file is compared."""
    file = tmp_path / "program.py"
    file.write_text(
        "import tilelang\nfrom tests.export.kernels import T\n\n\n"
        "@T.prim_func\ndef one(A: T.Tensor((32,), 'float32')):\n"
        "    with T.Kernel(1, threads=32):\n        for i in T.Parallel(32):\n"
        "            A[i] = 1.0\n\n\n"
        "tilelang.compile(one, target='cpu').export('build')\n"
    )
    text = f"import sys; sys.path[:0] = {sys.path!r}\nimport runpy; runpy.run_path('program.py')"
    subprocess.run([sys.executable, "-c", text], cwd=tmp_path, check=True)
    place = str(tmp_path / "build")
    assert main(["compile", "--check", place]) == 0
    file.write_text(file.read_text().replace("1.0", "2.0"))
    assert main(["compile", "--check", place]) == 1
    assert "program.py has changed since a program exported its kernel" in capsys.readouterr().err


# Kernels for the CPU are called for real.


def floats(*values: float) -> str:
    return struct.pack(f"<{len(values)}f", *values).hex()


def cpu(count: int, *values: float, **more: Any) -> dict[str, Any]:
    return tensor(count, dtype=FLOAT32, device=(1, 0), array=floats(*values), **more)


def exported(name: str, folder: Path) -> Path:
    build.forget()
    path: Path = tilelang.compile(getattr(kernels, name), target="cpu").export(folder)
    return path


def answers_of(library: Path, *calls: dict[str, Any]) -> list[Any]:
    return ask({"library": str(library), "calls": list(calls)})


def test_a_cpu_kernel_computes(compiler: str, tmp_path: Path) -> None:
    library = exported("scale", tmp_path)
    rows = [struct.pack("<64e", *(r + c / 64 for c in range(64))) for r in range(20)]
    a, b = (
        tensor(20, 64, dtype=FLOAT16, device=(1, 0), array=data.hex())
        for data in (b"".join(rows), bytes(20 * 128))
    )
    (answer,) = answers_of(library, {"function": "scale", "args": [a, b, 2.0]})
    assert answer.error is None
    found = struct.unpack(f"<{20 * 64}e", answer.arrays[1])
    assert found == tuple(2 * (r + c / 64) for r in range(20) for c in range(64))


def test_a_kernel_found_in_the_cache_is_exported_as_well(compiler: str, tmp_path: Path) -> None:
    exported("scale", tmp_path / "one")
    exported("scale", tmp_path / "two")
    for name in ("scale.so", "scale.o"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_cpu_kernel_with_many_blocks_and_calls(compiler: str, tmp_path: Path) -> None:
    """More blocks than threads, more than once: helpers are reused."""
    library = exported("asserted", tmp_path)
    n = 32 * 1000 + 5
    call = {"function": "asserted", "args": [cpu(n, *range(n))]}
    for answer in answers_of(library, *[call] * 5):
        assert answer.error is None
        found = struct.unpack(f"<{n}f", answer.arrays[0])
        assert found == tuple(float(i + 1) for i in range(n))


def test_an_assertion_that_fails_is_an_error(compiler: str, tmp_path: Path) -> None:
    library = exported("asserted", tmp_path)
    bad, good = ({"function": "asserted", "args": [cpu(3, 1.0, x, 1.0)]} for x in (-1.0, 1.0))
    first, second = answers_of(library, bad, good)
    assert first.error == ("RuntimeError", "[TL722] an assertion failed in `asserted`: negative")
    assert second.error is None


def test_arguments_of_a_cpu_kernel_are_checked(compiler: str, tmp_path: Path) -> None:
    library = exported("scale", tmp_path)
    on_gpu, a = tensor(4, 64), tensor(4, 64, device=(1, 0), array="00" * 512)
    first, second = answers_of(
        library, {"function": "scale", "args": [on_gpu, a, 1.0]},
        {"function": "scale", "args": [a, {**a, "shape": [4, 32]}, 1.0]},
    )  # fmt: skip
    assert first.error == (
        "ValueError", "[TL707] argument `A` of `scale` is on cuda:0, expected cpu",
    )  # fmt: skip
    assert second.error == (
        "ValueError",
        "[TL704] argument `B` of `scale` has shape (4, 32), expected (n, 64): dimension 1 is 32, "
        "not 64",
    )


def test_another_processor_is_refused(
    compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # `tbm` is of processors of 2012 to 2017.
    monkeypatch.setattr("tilelang.ir.llvm.features_of", lambda name, triple: ("sse4.2", "tbm"))
    library = exported("scale", tmp_path)
    a = tensor(4, 64, device=(1, 0), array="00" * 512)
    (answer,) = answers_of(library, {"function": "scale", "args": [a, a, 1.0]})
    assert answer.error is not None
    kind, message = answer.error
    assert kind == "RuntimeError" and message.startswith("[TL416] `scale` was compiled for ")
    assert "which has tbm; this processor has not" in message


HASWELL = {"avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2"}
LINUX = "{}-unknown-linux-gnu"


@pytest.mark.parametrize(
    ("triple", "name", "held"),
    [
        (LINUX.format("x86_64"), "haswell", HASWELL),
        (LINUX.format("x86_64"), "icelake-server", {"avx512vbmi", "avx512vbmi2", "avx512ifma",
         "avx512bitalg", "avx512vpopcntdq", "gfni", "avx512f", "avx512bw"} | HASWELL),
        (LINUX.format("x86_64"), "sapphirerapids", {"avx512fp16", "avx512bf16", "avxvnni"}),
        (LINUX.format("aarch64"), "neoverse-v1", {"sve", "bf16", "i8mm", "dotprod", "lse"}),
    ],
)  # fmt: skip
def test_what_is_asked_of_a_processor(triple: str, name: str, held: set[str]) -> None:
    """All that the code may hold, whichever machine compiled it."""
    assert held <= set(needs_of(made_for(triple, name)))


def test_every_vector_instruction_is_asked_for() -> None:
    triple = LINUX.format("x86_64")
    names = ("haswell", "skylake-avx512", "graniterapids", "diamondrapids", "znver5", "bdver4")
    for name in names:
        asked = set(needs_of(made_for(triple, name)))
        held = features_of(name, triple)
        vectors = {n for n in held if n.startswith(("avx", "sse3", "ssse", "sse4", "fma", "bmi"))}
        assert vectors <= asked, name


def test_a_processor_that_cannot_be_asked_is_refused() -> None:
    with pytest.raises(CompileError) as caught:
        needs_of(made_for("arm64-apple-darwin23", "apple-m1"))
    (found,) = caught.value.diagnostics
    assert found.code == "TL807" and "compiled for apple-m1 (arm64-apple-darwin23)" in found.message


def made_for(triple: str, name: str) -> CpuArtifact:
    return CpuArtifact("scale", (), (), "info", 0, (), triple, name, b"")


@pytest.mark.needs_torch
def test_tensors_of_pytorch(scale: Any, compiler: str, tmp_path: Path) -> None:
    """On the device they are passed as they are; here they show that dtypes and places fit."""
    shutil.copy(exported("scale", tmp_path / "cpu"), tmp_path / "cpu.so")
    scale.export(tmp_path / "cuda.so")
    text = """
import torch, tvm_ffi
a = torch.arange(256, dtype=torch.float16).reshape(4, 64)
b = torch.zeros_like(a)
tvm_ffi.load_module("./cpu.so")["scale"](a, b, 0.5)
assert torch.equal(b, a * 0.5)
for library, args in (("cuda", (a, b, 1)), ("cpu", (a.float(), b, 1)), ("cpu", (a.T, b, 1))):
    try:
        tvm_ffi.load_module(f"./{library}.so")["scale"](*args)
    except (TypeError, ValueError) as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={"PYTHONPATH": str(HERE.parent.parent)},
    )  # fmt: skip
    assert [line.partition("]")[0] for line in done.stdout.splitlines()] == [
        "[TL707", "[TL702", "[TL704",
    ]  # fmt: skip
