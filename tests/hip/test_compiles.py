"""Printed kernels become code objects of AMD's, with the instructions they should have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tilelang
import tilelang.language as T
from tests.hip.kernels import CASES, Case
from tests.hip.test_printed import printed
from tests.support.clang import needs_clang
from tests.support.every_op import cases, every_op
from tilelang.codegen.device_printer import print_device
from tilelang.codegen.hip import HIP
from tilelang.ir.device_ops import DEVICE_OPS
from tilelang.ir.device_support import lacking
from tilelang.options import CompileOptions
from tilelang.runtime.clang import errors_in
from tilelang.runtime.toolchain_hip import compile as compile_hip
from tilelang.runtime.toolchain_hip import resources_of
from tilelang.target import Target
from tilelang_diagnostics import CompileError

ARCHS = ("gfx90a", "gfx942", "gfx950")
AMDGPU = (224).to_bytes(2, "little")  # e_machine of the ELF header


def compiled(case: Case, arch: str) -> Any:
    return compile_hip(printed(case), Target("hip", arch), CompileOptions())


@needs_clang
@pytest.mark.parametrize("case", CASES, ids=str)
def test_matrix_instructions(case: Case) -> None:
    code = compiled(case, "gfx942")
    assert code.object[:4] == b"\x7fELF" and code.object[18:20] == AMDGPU
    found = [line for line in code.assembly.splitlines() if line.strip().startswith("v_mfma_")]
    # Those of one turn of the loop over K, which clang may write out.
    assert (len(found) % case.mfma == 0 < len(found)) if case.mfma else not found
    (resources,) = code.resources.values()
    assert resources["wavefront_size"] == 64
    assert resources["vgpr_spill_count"] == resources["sgpr_spill_count"] == 0
    assert resources["private_segment_fixed_size"] == 0, "registers lie in memory"


@needs_clang
@pytest.mark.parametrize("arch", ("gfx90a", "gfx950"))
@pytest.mark.parametrize("name", ["product", "product_bfloat16", "softmax"])
def test_other_architectures(name: str, arch: str) -> None:
    case = next(c for c in CASES if c.name == name)
    code = compiled(case, arch)
    assert code.assembly.count("v_mfma_f32_32x32x8") == 3 * case.mfma


@needs_clang
@pytest.mark.parametrize("arch", ARCHS)
def test_every_operation_compiles(arch: str, full: bool) -> None:
    if not full and arch != "gfx942":
        pytest.skip("runs with --full")
    names = {case.op.name for case in cases(arch)}
    has = {op.name for op in DEVICE_OPS.values() if lacking(op, "hip") is None}
    newer = {op for op in has if not DEVICE_OPS[op].exists_on(arch)}
    assert names == has - newer
    assert newer == ({"mfma_m32n32k16_s32_s8_s8", "mfma_m16n16k32_s32_s8_s8"}
                     if arch == "gfx90a" else set())  # fmt: skip
    source = print_device(every_op(arch), HIP)
    code = compile_hip(source, Target("hip", arch), CompileOptions())
    assert set(code.resources) == {launch.symbol for launch in source.launches}


@needs_clang
def test_what_clang_rejects_is_said_at_the_python_line() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                A[i] = T.call_extern("float32", "no_such_function", A[i])

    with pytest.raises(CompileError) as rejected:
        tilelang.compile(main, target="hip:gfx942")
    (found,) = rejected.value.diagnostics
    assert found.code == "TL806" and "no_such_function" in found.message
    assert found.span is not None and found.label is not None
    line = Path(found.span.file).read_text().splitlines()[found.span.line - 1]
    assert "no_such_function" in line and "no_such_function" in found.label


LOG = """\
In file included from kernel.hip:3:
/x/tl/common.h:12:3: error: no matching function for call to 'f'
kernel.hip:40:7: note: in instantiation of function template specialization 'tl::g<float>'
kernel.hip:41:9: error: use of undeclared identifier 'q'
2 errors generated when compiling for gfx942.
"""
NOTES = """\
amdhsa.kernels:
  - .agpr_count:     16
    .args:
      - .address_space:  global
        .size:           8
    .group_segment_fixed_size: 1024
    .name:           first
    .vgpr_count:     40
  - .agpr_count:     0
    .name:           second
    .vgpr_count:     8
"""


def test_errors_are_read() -> None:
    assert list(errors_in(LOG, "kernel.hip")) == [
        ("no matching function for call to 'f'", 40), ("use of undeclared identifier 'q'", 41),
    ]  # fmt: skip
    assert list(errors_in("ld.lld: error: undefined hidden symbol: f", "kernel.hip")) == [
        ("ld.lld: error: undefined hidden symbol: f", None)
    ]


def test_resources_are_read() -> None:
    assert resources_of(NOTES) == {
        "first": {"agpr_count": 16, "group_segment_fixed_size": 1024, "vgpr_count": 40},
        "second": {"agpr_count": 0, "vgpr_count": 8},
    }
