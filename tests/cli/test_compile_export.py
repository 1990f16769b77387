"""`tilelang compile --emit cuda|ptx|sass|cubin|so|dir`, several targets, and `--check`."""

from __future__ import annotations

import json
import linecache
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.support.cuda import needs_cuda_compiler, needs_nvdisasm
from tilelang.cli import check_export
from tilelang.runtime import export_files, sass
from tilelang.runtime.programs import find_program

KERNEL = """\
import tilelang
import tilelang.language as T


def scale(M=128, factor=2.0):
    @T.prim_func
    def main(A: T.Tensor((M, 64), "float16"), B: T.Tensor((M, 64), "float16")):
        with T.Kernel(T.ceildiv(M, 16), threads=128) as bx:
            for i, j in T.Parallel(16, 64):
                B[bx * 16 + i, j] = A[bx * 16 + i, j] * factor

    return main
"""
pytestmark = needs_cuda_compiler
needs_c = pytest.mark.skipif(find_program("cc", "gcc", "clang") is None, reason="no C compiler")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "k.py"
    path.write_text(KERNEL)
    return path


def compiled(run: Run, *more: str, target: str = "cuda:sm_80") -> str:
    done = run("compile", "k.py", "--target", target, *more)
    assert done.status == 0, done.err
    return done.out


@needs_nvdisasm
def test_what_source_becomes(run: Run, file: Path) -> None:
    assert "__global__" in compiled(run, "--emit", "cuda")
    assert compiled(run, "--emit", "source") == compiled(run, "--emit", "cuda")
    assert ".target sm_80" in compiled(run, "--emit", "ptx")
    assert "EXIT" in compiled(run, "--emit", "sass")
    compiled(run, "--emit", "cubin", "-o", "out/k.cubin")
    assert (file.parent / "out" / "k.cubin").read_bytes()[:4] == b"\x7fELF"


def test_line_directives_name_the_python(run: Run, file: Path) -> None:
    assert "#line" not in compiled(run, "--emit", "cuda")
    lines = compiled(run, "--emit", "cuda", "--line-directives").splitlines()
    place = f'#line 10 "{file}"'
    assert place in lines and "factor" not in lines[lines.index(place) + 1]


def test_machine_code_needs_a_disassembler(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sass, "find_nvdisasm", lambda: None)
    done = run("compile", "k.py", "--target", "cuda:sm_80", "--emit", "sass")
    assert done.status == 1
    assert "error[TL807]: nvdisasm is not installed, which shows machine code" in done.err
    assert "pip install 'tilelang[cuda13]'" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--emit", "cubin"), "--emit cubin needs -o OUT"),
        (("--emit", "so"), "--emit so needs -o OUT"),
        (("--emit", "so", "-o", "build"), "-o is a file NAME.so with --emit so"),
        (("--emit", "dir", "-o", "a.so"), "a folder with --emit dir"),
        (("--emit", "ptx", "--target", "cpu"), "--emit ptx needs a CUDA target, and this is cpu"),
        (
            ("--emit", "cuda", "--target", "cuda:sm_80,cuda:sm_90a"),
            "several targets go with --emit",
        ),
        (("--check", "build"), "--check DIR stands alone"),
    ],
)
def test_wrong_usage(run: Run, file: Path, arguments: tuple[str, ...], message: str) -> None:
    done = run("compile", "k.py", *arguments)
    assert done.status == 2 and message in done.err


def test_a_kernel_has_to_be_named(run: Run) -> None:
    done = run("compile")
    assert done.status == 2 and "Missing argument 'FILE[::KERNEL]'" in done.err


@needs_c
def test_a_file_for_several_architectures(run: Run, file: Path) -> None:
    out = compiled(run, "--emit", "so", "-o", "lib/fast.so", target="cuda:sm_80,cuda:sm_90a")
    assert "wrote    lib/fast.so" in out and "cuda:sm_80, cuda:sm_90a" in out
    names = {p.name for p in (file.parent / "lib").iterdir()}
    assert names == {
        "fast.so", "fast.c", "fast.manifest.json",
        *(f"fast.scale.{arch}.{kind}" for arch in ("sm_80", "sm_90a")
          for kind in ("cu", "cubin", "ptx", "map.json")),
    }  # fmt: skip
    manifest = json.loads((file.parent / "lib" / "fast.manifest.json").read_text())
    assert manifest["request"] == {
        "file": "../k.py", "kernel": "scale", "set": [], "line_directives": False,
        "targets": ["cuda:sm_80", "cuda:sm_90a"],
    }  # fmt: skip
    (function,) = manifest["functions"]
    assert function["arguments"] == ["scale(A: (128, 64) float16, B: (128, 64) float16)"]
    assert [b["target"] for b in function["builds"]] == ["cuda:sm_80", "cuda:sm_90a"]
    rows = json.loads((file.parent / "lib" / "fast.scale.sm_80.map.json").read_text())["lines"]
    assert {span["file"] for row in rows for span in row["spans"]} == {"../k.py"}
    assert run("compile", "--check", "lib/fast.so").status == 0


@needs_c
def test_a_cpu_kernel_is_exported_too(run: Run, file: Path) -> None:
    compiled(run, "--emit", "dir", "-o", "build", target="cpu")
    names = {p.name for p in (file.parent / "build").iterdir()}
    assert names == {"scale.so", "scale.c", "scale.o", "scale.ll", "manifest.json"}
    assert run("compile", "--check", "build").status == 0


@needs_c
def test_files_of_an_earlier_export_go(run: Run, file: Path) -> None:
    compiled(run, "--emit", "dir", "-o", "build", target="cuda:sm_80,cuda:sm_90a")
    (file.parent / "build" / "mine.txt").write_text("stays")
    compiled(run, "--emit", "dir", "-o", "build", target="cuda:sm_80")
    names = {p.name for p in (file.parent / "build").iterdir()}
    assert "mine.txt" in names and not any("sm_90a" in name for name in names)


def edited(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


def without(at: Path, *way: Any) -> None:
    """Take one thing out of a manifest."""
    path = at / "build" / "manifest.json"
    manifest = inner = json.loads(path.read_text())
    for step in way[:-1]:
        inner = inner[step]
    del inner[way[-1]]
    path.write_text(json.dumps(manifest))


CHANGES: list[tuple[str, Callable[[Path, pytest.MonkeyPatch], object], str]] = [
    ("source", lambda at, patch: (at / "k.py").write_text(edited(KERNEL, "* factor", "+ factor")),
     "the source of `scale` has changed since it was exported"),
    ("a default", lambda at, patch: (at / "k.py").write_text(edited(KERNEL, "2.0", "3.0")),
     "the source of `scale` has changed since it was exported"),
    ("options", lambda at, patch: (at / "k.py").write_text(edited(
        KERNEL, "def scale", "@tilelang.jit(compile_flags='--maxrregcount=32')\ndef scale")),
     "the compile options of `scale` have changed: the defaults became --maxrregcount=32"),
    ("place", lambda at, patch: (at / "k.py").write_text("# first\n" + KERNEL),
     "`scale` has moved from line 7 to line 8: the source map and the positions in messages are "
     "those of before"),
    ("kernel", lambda at, patch: (at / "k.py").write_text("import tilelang\n"),
     "k.py::scale gives no kernel any more"),
    ("file", lambda at, patch: (at / "k.py").unlink(), "k.py::scale gives no kernel any more"),
    ("generated source", lambda at, patch: (at / "build" / "scale.sm_80.cu").write_text("//"),
     "build/scale.sm_80.cu is not what was exported: it was edited or cut short"),
    ("binary", lambda at, patch: (at / "build" / "scale.sm_80.cubin").unlink(),
     "build/scale.sm_80.cubin is missing"),
    ("version", lambda at, patch: patch.setattr(export_files, "VERSION", "9.9"),
     "it was compiled by tilelang 0.1.0, and this is 9.9"),
    ("sources", lambda at, patch: patch.setattr(export_files, "compiler_digest", lambda: "x"),
     "the sources of the compiler are not those that compiled it"),
    ("packages", lambda at, patch: patch.setattr(
        export_files, "tool_versions", lambda: ("apache-tvm 9", "apache-tvm-ffi 0.1.14.post1")),
     "it was compiled with other packages: apache-tvm 0.27.0.post1 is now apache-tvm 9"),
    ("device compiler", lambda at, patch: patch.setattr(
        check_export, "identity", lambda options, compiler: (f"{compiler} 99.9", ())),
     " 99.9"),
    ("no list of files", lambda at, patch: without(at, "files"),
     "build/manifest.json is damaged: what it says of files is missing or wrong"),
    ("a build without options", lambda at, patch: without(at, "functions", 0, "builds", 0,
     "options"), "build/manifest.json is damaged: what it says of options is missing or wrong"),
    ("a request of nothing", lambda at, patch: without(at, "request", "kernel"),
     "build/manifest.json is damaged: what it says of kernel is missing or wrong"),
    ("manifest", lambda at, patch: (at / "build" / "manifest.json").write_text("{"),
     "build/manifest.json is no manifest any more"),
    ("folder", lambda at, patch: (at / "build" / "manifest.json").unlink(),
     "there is no export to check: build/manifest.json cannot be read"),
]  # fmt: skip


@needs_c
@pytest.mark.parametrize(
    ("change", "message"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES]
)
def test_check_says_what_differs(
    run: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path, pytest.MonkeyPatch], object], message: str,
) -> None:  # fmt: skip
    compiled(run, "--emit", "dir", "-o", "build")
    fine = run("compile", "--check", "build")
    assert (fine.status, fine.err) == (0, "") and "up to date  build" in fine.out
    change(tmp_path, monkeypatch)
    # The next command is a process of its own to its user.
    linecache.clearcache()
    shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
    done = run("compile", "--check", "build")
    assert done.status == 1
    assert f"error[TL814]: {message}" in done.err.replace(f"{tmp_path}/", "") or (
        message in done.err and message.startswith((" ", "k.py"))
    ), done.err


@needs_c
@pytest.mark.parametrize("recorded", ["NVRTC", "nvcc"])
def test_a_compiler_is_compared_with_its_own_kind(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch, recorded: str
) -> None:
    """What nvcc compiled is not stale because NVRTC is here as well."""
    compiled(run, "--emit", "dir", "-o", "build")
    path = file.parent / "build" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["functions"][0]["builds"][0]["compiler"] = f"{recorded} 12.9"
    path.write_text(json.dumps(manifest))
    here = {"nvrtc": "NVRTC 13.0", "nvcc": "nvcc 12.9"}
    monkeypatch.setattr(check_export, "identity", lambda options, kind: (here[kind], ()))
    done = run("compile", "--check", "build")
    assert done.status == int(recorded == "NVRTC"), done.err


@needs_c
def test_values_given_then_are_given_again(run: Run, file: Path) -> None:
    compiled(run, "--set", "M=256", "--emit", "dir", "-o", "build")
    assert run("compile", "--check", "build").status == 0
    file.write_text(edited(KERNEL, "M=128", "M=512"))
    assert run("compile", "--check", "build").status == 0
