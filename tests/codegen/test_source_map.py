"""Where lines of generated source come from."""

from pathlib import Path

import pytest

from tests.support.cuda import golden_source, needs_nvdisasm, needs_nvrtc
from tilelang.codegen.ptx_lines import source_line, source_lines
from tilelang.codegen.source_map import Line, SourceMap, with_line_directives
from tilelang.runtime.sass import disassemble
from tilelang.runtime.toolchain_cuda import compile_cuda
from tilelang.target import Target
from tilelang_diagnostics.model import Span

KERNELS = __file__.replace("test_source_map.py", "kernels.py")


PYTHON = Path(KERNELS).read_text().splitlines()


def python_line(text: str) -> int:
    """The number of the first line of kernels.py that holds `text`."""
    return next(n for n, line in enumerate(PYTHON, 1) if text in line)


def test_every_statement_has_a_place():
    for name in ("scale", "gemm", "hopper_gemm", "statements"):
        lines = golden_source(name).source.lines
        inside = False
        for line in lines:
            inside = inside or line.text.startswith('extern "C"')
            if inside and line.text:
                assert line.span is not None, line.text
                assert line.span.file == KERNELS


def test_inlined_code_carries_its_calls():
    source = golden_source("gemm").source
    copies = [line for line in source.lines if "tl::cp_async<16>(tl::at(A_shared" in line.text]
    assert len(copies) == 2
    for line in copies:
        assert line.span.line == python_line('"handle", "cp_async bytes=16", A_shared') - 1
        assert [frame.function for frame in line.calls] == ["load_A"]
        assert "load_A(A, A_shared" in PYTHON[line.calls[0].span.line - 1]


@needs_nvrtc
@needs_nvdisasm
def test_machine_code_leads_back_to_python():
    """Matrix instructions to the call that asked for them, copies to theirs."""
    source = golden_source("gemm")
    binary = compile_cuda(source, Target("cuda", "sm_90a"))
    listing = disassemble(binary.cubin, "main.cu")
    places = {"HMMA": set(), "LDGSTS": set(), "LDSM": set()}
    for instruction in listing.of("main_kernel"):
        if instruction.name in places:
            assert instruction.line is not None
            places[instruction.name].add(source.source.at(instruction.line).span.line)
    mma = python_line('"handle", "mma_m16n8k16_f32_f16_f16"') - 1
    assert places["HMMA"] == {mma}
    assert places["LDGSTS"] == {
        python_line('"handle", "cp_async bytes=16", A_shared') - 1,
        python_line('"handle", "cp_async bytes=16", B_shared') - 1,
    }
    assert places["LDSM"] == {
        python_line('"handle", "ldmatrix_x4", A_local') - 1,
        python_line('"handle", "ldmatrix_x4_trans", B_local') - 1,
    }


def span(line: int, file: str = "k.py") -> Span:
    return Span(file, line, 1, line, 5)


def test_line_directives():
    lines = [Line("head"), Line("a", (span(4),)), Line("b", (span(5),)), Line("c", (span(9),)),
             Line("}"), Line("d", (span(9),))]  # fmt: skip
    text = SourceMap(tuple(with_line_directives(lines))).text.split("\n")
    assert text == [
        "head", '#line 4 "k.py"', "a", "b", '#line 9 "k.py"', "c", "}", '#line 9 "k.py"', "d", "",
    ]  # fmt: skip


@needs_nvrtc
def test_source_with_line_directives_compiles():
    source = golden_source("scale", line_directives=True)
    assert f'"{KERNELS}"' in source.text
    binary = compile_cuda(source, Target("cuda", "sm_80"))
    assert "kernels.py" in binary.ptx


def test_json_round_trip_and_look_up():
    source = golden_source("gemm").source
    assert SourceMap.from_json(source.text, source.to_json()) == source
    at = python_line('"handle", "mma_m16n8k16_f32_f16_f16"') - 1
    (number,) = source.lines_of(KERNELS, at)
    assert "tl::mma_m16n8k16_f32_f16_f16" in source.at(number).text
    assert source.at(0) is None and source.at(10**6) is None


@pytest.mark.parametrize("path", ['back\\slash "quoted".py'])
def test_odd_file_names(path):
    (directive, _) = with_line_directives([Line("a", (span(1, path),))])
    assert directive.text == '#line 1 "back\\\\slash \\"quoted\\".py"'


PTX = """\
.visible .entry k(
)
{
\t.loc\t2 14 3
\tmov.u32 %r1, %tid.x;
\t.loc\t1 60 5, function_name $L__info_string0, inlined_at 2 15 7
\tbar.sync 0;
\t.loc\t3 9 1
\tret;
}
\t.file\t1 "/tl/barrier.h"
\t.file\t2 "kernel.cu"
\t.file\t3 "other.h"
"""


def test_lines_of_ptx():
    assert source_line(PTX, 5, "kernel.cu") == 14
    assert source_line(PTX, 7, "kernel.cu") == 15
    assert source_line(PTX, 1, "kernel.cu") is None
    assert source_lines(PTX, "kernel.cu")[:9] == [None, None, None, 14, 14, 15, 15, 15, 15]


@needs_nvrtc
def test_ptx_leads_back_to_the_source():
    source = golden_source("gemm")
    ptx = compile_cuda(source, Target("cuda", "sm_80")).ptx
    places = source_lines(ptx, "main.cu")
    found = {
        source.source.at(line).text.strip().partition("(")[0]
        for text, line in zip(ptx.splitlines(), places, strict=True)
        if "mma.sync" in text and line is not None
    }
    assert found == {"tl::mma_m16n8k16_f32_f16_f16"}


def test_code_that_lines_share_is_the_next_one_s():
    ptx = PTX + (
        ".visible .entry again(\n\t.loc\t2 14 1\n\tmov.u32 \t%r1, 1;\n\t.loc\t2 0 7\n"
        "\tshl.b32 \t%r2, %r1, 6;\n\t.loc\t2 19 9\n\tadd.s32 \t%r3, %r2, 1;\n}\n"
    )
    places = source_lines(ptx, "kernel.cu")
    found = {
        text.split()[0]: place
        for text, place in list(zip(ptx.splitlines(), places, strict=True))[-8:]
        if text.strip().endswith(";")
    }
    assert found == {"mov.u32": 14, "shl.b32": 19, "add.s32": 19}
