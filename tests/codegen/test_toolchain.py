"""Compilers of CUDA source: what they take, what their messages become."""

import dataclasses
from pathlib import Path

import pytest

import tilelang.language as T
from tests.support.cuda import golden_source, needs_nvdisasm, needs_nvrtc
from tests.support.device import device_func
from tilelang.codegen.cuda import print_cuda
from tilelang.codegen.source_map import Line, SourceMap
from tilelang.options import make_options
from tilelang.runtime import cuda_compiler
from tilelang.runtime.cuda_compiler import find_nvcc
from tilelang.runtime.nvrtc import find_nvrtc
from tilelang.runtime.sass import disassemble
from tilelang.runtime.toolchain_cuda import compile_cuda, parse_resources
from tilelang.target import Target
from tilelang_diagnostics import CompileError

SM_80 = Target("cuda", "sm_80")


def broken(line: str, replacement: str):
    """The scale kernel with the line that holds `line` replaced."""
    source = golden_source("scale")
    lines = list(source.source.lines)
    at = next(n for n, row in enumerate(lines) if line in row.text)
    lines[at] = Line(replacement, lines[at].spans, lines[at].calls)
    return dataclasses.replace(source, source=SourceMap(tuple(lines))), lines[at].span


def rejected(source, **how):
    with pytest.raises(CompileError) as error:
        compile_cuda(source, SM_80, **how)
    (found,) = error.value.diagnostics
    assert found.code == "TL806"
    return found


COMPILERS = [
    pytest.param("nvrtc", marks=needs_nvrtc),
    pytest.param("nvcc", marks=pytest.mark.skipif(find_nvcc() is None, reason="needs nvcc")),
]


@pytest.mark.parametrize("compiler", COMPILERS)
def test_both_compilers_make_the_same_kernel(compiler):
    binary = compile_cuda(golden_source("scale"), SM_80, compiler=compiler)
    assert binary.warnings == ()
    (row,) = binary.resources
    assert row.kernel == "main_kernel" and 16 <= row.registers <= 64
    assert (row.spill_stores, row.stack, row.barriers) == (0, 0, 1)
    assert ".entry main_kernel" in binary.ptx
    assert binary.cubin.startswith(b"\x7fELF")
    assert compiler[:2].lower() in binary.compiler.lower()


@pytest.mark.parametrize("compiler", COMPILERS)
def test_an_error_is_shown_in_python(compiler):
    source, span = broken("tl::sync_threads()", "    tl::sync_thread();")
    found = rejected(source, compiler=compiler)
    assert "sync_thread" in found.message and "sm_80" in found.message
    assert found.span == span
    assert found.label == "became `tl::sync_thread();`"
    kept = Path(found.notes[0].rpartition(" ")[2])
    assert kept.read_text() == source.text
    assert "sync_thread" in (kept.parent / "messages.txt").read_text()


@needs_nvrtc
def test_an_error_inside_a_header_is_shown_where_it_was_called():
    source, span = broken("tl::store(&S", "    tl::bit_cast<float>(1.0);")
    found = rejected(source)
    assert "a bit cast keeps the size" in found.message
    assert found.span == span


@needs_nvrtc
def test_an_error_of_the_assembler():
    source, span = broken("tl::sync_threads()", '    asm volatile("no.such.instruction;");')
    found = rejected(source)
    assert "Unknown modifier '.such'" in found.message
    assert found.span == span


@needs_nvrtc
def test_source_of_the_user_comes_first():
    @T.prim_func
    def main(A: T.Tensor((32,), "float32")):
        T.import_source("__device__ float twice(float x) { return x + x; }")
        with T.Kernel(1, threads=32) as _:
            t = T.get_thread_binding()
            A[t] = T.call_extern("float32", "twice", A[t])

    source = print_cuda(device_func(main))
    assert source.text.index("float twice") < source.text.index('extern "C"')
    assert compile_cuda(source, SM_80).warnings == ()


@needs_nvrtc
@needs_nvdisasm
@pytest.mark.parametrize(("fast", "opcode"), [(False, "MUFU.EX2"), (True, "MUFU.EX2")])
def test_fast_maths_is_a_flag(fast, opcode):
    @T.prim_func
    def main(A: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32) as _:
            t = T.get_thread_binding()
            A[t] = T.exp(A[t]) / A[t + 1]

    choices = make_options({"tl.enable_fast_math": fast})
    binary = compile_cuda(print_cuda(device_func(main)), SM_80, choices=choices)
    listing = disassemble(binary.cubin)
    assert listing.count(opcode) == 1
    assert (listing.count("BRA") > 2) is not fast  # an exact division needs its slow path


@pytest.mark.parametrize(("wanted", "message"), [
    ("auto", "neither NVRTC nor nvcc is installed, which compiles CUDA source"),
    ("nvrtc", "no NVRTC is installed, which compiles CUDA source"),
    ("nvcc", "no nvcc is installed, which compiles CUDA source"),
])  # fmt: skip
def test_no_compiler(monkeypatch, wanted, message):
    monkeypatch.setattr(cuda_compiler, "find_nvrtc", lambda: None)
    monkeypatch.setattr(cuda_compiler, "find_nvcc", lambda: None)
    with pytest.raises(CompileError) as error:
        compile_cuda(golden_source("scale"), SM_80, compiler=wanted)
    (found,) = error.value.diagnostics
    assert (found.code, found.message) == ("TL807", message)
    assert "cuda13" in found.help


@needs_nvrtc
def test_which_architectures_nvrtc_knows():
    assert {80, 86, 89, 90, 100, 120} <= set(find_nvrtc().architectures())


def test_resources_of_a_log():
    log = """\
ptxas info    : 24 bytes gmem, 8 bytes cmem[4]
ptxas info    : Compiling entry function 'first' for 'sm_90a'
ptxas info    : Function properties for first
ptxas         .     16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 255 registers, used 2 barriers, 1024 bytes smem, 384 bytes cmem[0]
ptxas info    : Compiling entry function 'second' for 'sm_90a'
ptxas info    : Function properties for second
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers
"""
    first, second = parse_resources(log)
    assert (first.kernel, first.registers, first.spill_stores, first.spill_loads) == (
        "first", 255, 8, 12,
    )  # fmt: skip
    assert (first.stack, first.shared, first.barriers) == (16, 1024, 2)
    assert (second.kernel, second.registers, second.barriers) == ("second", 10, 0)
