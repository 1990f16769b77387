"""What HIP or this version of it lacks is refused by name, at its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang
from tests.hip.kernels import softmax
from tests.support.clang import needs_clang
from tilelang.codegen.device_printer import PrintError, print_device
from tilelang.codegen.hip import HIP
from tilelang.compiler import lower_function
from tilelang.language.frontend import parse_static
from tilelang.options import CompileOptions
from tilelang.target import Target
from tilelang_diagnostics import CompileError
from tilelang_diagnostics.model import Diagnostic

HEAD = """\
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        tx = T.get_thread_binding()
"""
GEMM = """
A_s = T.alloc_shared((64, 64), {dtype})
C_l = T.alloc_fragment((64, 64), "float32")
T.clear(A_s)
T.clear(C_l)
{call}
T.copy(C_l, C)
"""
# Statements, code, words of the message, and the text that is marked.
CASES = (
    (GEMM.format(dtype='"float8_e4m3fn"', call="T.gemm(A_s, A_s, C_l)"), "TL412",
     "hip:gfx942 cannot multiply float8_e4m3fn", "T.gemm(A_s, A_s, C_l)"),
    (GEMM.format(dtype='"float16"', call="T.wgmma_gemm(A_s, A_s, C_l)"), "TL401",
     "`T.wgmma_gemm`", "T.wgmma_gemm(A_s, A_s, C_l)"),
    ("full = T.alloc_barrier(1)", "TL401", "`T.alloc_barrier`", "T.alloc_barrier(1)"),
    ("T.ptx_wait_group(0)", "TL401", "its threads copy by loads and stores", "T.ptx_wait_group(0)"),
    ("T.sync_grid()", "TL401", "no barrier across them", "T.sync_grid()"),
    ("T.sync_threads(1, 64)", "TL401", "none with a number", "T.sync_threads(1, 64)"),
    ("T.print(C[0, 0])", "TL401", "ROCm's device library", "T.print(C[0, 0])"),
    ("C[0, tx] = T.cast(T.ballot(tx < 3), 'float32')", "TL401", "one bit for each of 32",
     "T.ballot(tx < 3)"),
    ("C[0, tx] = T.tan(C[1, tx])", "TL401", "T.tan cannot be compiled for HIP", "T.tan(C[1, tx])"),
    ("C[0, tx] = T.exp(T.cast(C[1, tx], 'float64'))", "TL401", "T.exp of float64",
     "T.exp(T.cast(C[1, tx], 'float64'))"),
    ("C[0, tx] = T.cast(T.any_sync(tx < 3, 255), 'float32')", "TL401", "a mask of 32 lanes",
     "T.any_sync(tx < 3, 255)"),
)  # fmt: skip


def found_in(text: str) -> list[Diagnostic]:
    """What the front end, the passes or the printer say of a kernel for gfx942."""
    (parsed,) = parse_static(text, "kernel.py", target="hip:gfx942")
    errors = [d for d in parsed.diagnostics if d.is_error]
    if errors:
        return errors
    try:
        lowered = lower_function(parsed.function, Target("hip", "gfx942"), CompileOptions())
        errors = [d for d in lowered.diagnostics if d.is_error]
        if not errors:
            print_device(lowered.func, HIP)
    except (CompileError, PrintError) as error:
        errors = [d for d in error.diagnostics if d.is_error]
    return errors


@pytest.mark.parametrize(("body", "code", "message", "marked"), CASES, ids=[c[3] for c in CASES])
def test_refused(body: str, code: str, message: str, marked: str) -> None:
    lines = (f"        {line}" for line in body.strip().splitlines())
    text = HEAD + "\n".join(lines) + "\n"
    (found,) = found_in(text)
    assert found.code == code, found
    assert message in found.message
    span = found.span
    assert span is not None and span.line == span.end_line
    assert text.splitlines()[span.line - 1][span.column - 1 : span.end_column - 1] == marked


@pytest.mark.parametrize("threads", ["32", "96"])
def test_half_a_wave_is_not_reduced_as_a_whole_one(threads: str) -> None:
    text = HEAD.replace("128", threads) + "        C[0, tx] = T.warp_reduce_sum(C[1, tx])\n"
    (found,) = found_in(text)
    assert found.code == "TL401" and f"64 lanes in a block of {threads} threads" in found.message
    said = text.replace("C[1, tx])", "C[1, tx], logical_width=32)")
    assert found_in(said) == []


@pytest.mark.parametrize("arch", ["gfx1100", "gfx1201"])
@pytest.mark.parametrize("backend", ["auto", "emulator"])
def test_waves_of_32_lanes_are_for_later(arch: str, backend: str) -> None:
    with pytest.raises(CompileError, match=f"no code for hip:{arch}"):
        tilelang.compile(softmax(), target=f"hip:{arch}", execution_backend=backend)


@needs_clang
def test_there_is_no_launcher() -> None:
    kernel: Any = tilelang.compile(softmax(), target="hip:gfx942")
    assert kernel.get_kernel_source().startswith("#include <tl/common.h>")
    tile = np.zeros((37, 200), np.float16)
    with pytest.raises(CompileError) as refused:
        kernel(tile, tile.copy())
    (found,) = refused.value.diagnostics
    assert found.code == "TL821" and "emulator" in (found.help or "")


@needs_clang
def test_a_code_object_is_no_shared_object_of_tvm_ffi(tmp_path: Path) -> None:
    kernel: Any = tilelang.compile(softmax(), target="hip:gfx942")
    with pytest.raises(CompileError, match="no launcher"):
        tilelang.export(kernel, tmp_path / "kernel.so")
