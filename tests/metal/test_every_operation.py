"""Each device operation is printed for Metal so that the check and the emulator take it, or it is
refused by name."""

from __future__ import annotations

from functools import cache

import pytest

from tests.emulator.needs import needs_compiler
from tests.metal.printed import complaints
from tests.support.clang import needs_clang
from tests.support.every_op import Case, cases, every_op
from tilelang.codegen.device_printer import PrintError
from tilelang.codegen.metal import METAL, print_metal
from tilelang.codegen.metal_text import HEADERS
from tilelang.emulator.launch import build_library
from tilelang.emulator.toolchain import INCLUDE, find_compiler
from tilelang.ir.device_ops import DEVICE_OPS
from tilelang.ir.device_support import SUPPORT, lacking

ARCH = "apple9"
LONG = ("int64", "uint64", "float64")


def _is_there(case: Case) -> bool:
    return lacking(case.op, METAL.name) is None and case.dtype != "float64"


@cache
def _split() -> tuple[frozenset[str], dict[str, str]]:
    """The cases that are printed, and what is said of the others."""
    printed, refused = set(), {}
    for case in filter(_is_there, cases(ARCH)):
        try:
            print_metal(every_op(ARCH, lambda other, case=case: str(other) == str(case)))
            printed.add(str(case))
        except PrintError as error:
            refused[str(case)] = error.diagnostics[0].message
    return frozenset(printed), refused


def test_what_is_refused_says_why() -> None:
    printed, refused = _split()
    assert len(printed) >= 60
    for name, message in refused.items():
        narrow = "atomic" in name or "sync_threads" in name or "width=" in name
        narrow = narrow or any(dtype in name for dtype in LONG)
        assert narrow and message.startswith(f"T.{name.partition('[')[0]} "), name


@needs_clang
@needs_compiler
def test_the_others_are_taken() -> None:
    printed, _ = _split()
    source = print_metal(every_op(ARCH, lambda case: str(case) in printed))
    assert complaints(source) == []
    assert build_library(source, True, find_compiler()).exists()


def test_headers_are_those_of_the_table() -> None:
    there = {path.name for path in (HEADERS / "tl").glob("*.h")}
    assert there == set(SUPPORT["metal"].headers)
    # With lines of the kernel for reports: what waits, or touches memory by itself.
    own = {path.name for path in (INCLUDE / "metal" / "tl").glob("*.h")}
    assert own == {"atomics.h", "barrier.h", "simdgroup.h", "warp.h"}


@pytest.mark.parametrize(
    "name", ["cp_async", "mma_m16n8k16_f32_f16_f16", "sync_grid", "ieee_add_rz"]
)
def test_reasons(name: str) -> None:
    reason = lacking(DEVICE_OPS[name], "metal")
    assert reason is not None and (reason[0].islower() or reason.startswith("Metal"))
