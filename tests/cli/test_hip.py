"""What the command line makes of a kernel for AMD's processors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.support.clang import needs_clang

KERNEL = """\
import tilelang.language as T


@T.prim_func
def product(A: T.Tensor((64, 32), "float16"), B: T.Tensor((32, 64), "float16"),
            C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=256):
        a = T.alloc_shared((64, 32), "float16")
        b = T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.clear(c)
        T.copy(A, a)
        T.copy(B, b)
        T.gemm(a, b, c)
        T.copy(c, C)
"""
GFX942 = ("--target", "hip:gfx942")


@pytest.fixture(autouse=True)
def file(tmp_path: Path) -> Path:
    path = tmp_path / "product.py"
    path.write_text(KERNEL)
    return path


@needs_clang
def test_source_and_assembly_are_shown(run: Run) -> None:
    done = run("compile", "product.py", *GFX942, "--emit", "hip")
    assert done.status == 0 and "tl::mfma_m32n32k8_f32_f16_f16(" in done.out
    done = run("compile", "product.py", *GFX942, "--emit", "s")
    assert done.status == 0 and done.out.count("v_mfma_f32_32x32x8_f16") == 4
    done = run("compile", "product.py", *GFX942)
    assert "target  hip:gfx942" in done.out and "bytes" in done.out


@needs_clang
def test_the_code_object_is_written(run: Run, tmp_path: Path) -> None:
    done = run("compile", "product.py", *GFX942, "--emit", "co", "-o", "product.co")
    assert done.status == 0
    assert (tmp_path / "product.co").read_bytes()[:4] == b"\x7fELF"


@needs_clang
def test_nothing_is_launched(run: Run) -> None:
    done = run("run", "product.py", *GFX942)
    assert done.status == 1 and "error[TL821]" in done.err and "--emulate" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--target", "cuda:sm_80", "--emit", "s"), "needs a HIP target"),
        ((*GFX942, "--emit", "ptx"), "needs a CUDA target"),
        ((*GFX942, "--emit", "co"), "needs -o OUT"),
    ],
)
def test_what_goes_together(run: Run, arguments: tuple[str, ...], said: str) -> None:
    done = run("compile", "product.py", *arguments)
    assert done.status == 2 and said in done.err


@needs_clang
def test_doctor_names_the_compiler(run: Run) -> None:
    assert "✓ HIP" in run("doctor").out
