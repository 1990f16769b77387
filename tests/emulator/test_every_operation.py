"""Each operation of the table is emulated, or refused by name."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.emulator.needs import needs_compiler
from tests.support.every_op import cases, every_op
from tilelang.codegen.cuda import print_cuda
from tilelang.codegen.device_source import DeviceSource
from tilelang.codegen.source_map import SourceMap
from tilelang.emulator.launch import build_library
from tilelang.emulator.source import REFUSED, refusals
from tilelang.emulator.toolchain import INCLUDE, find_compiler
from tilelang.ir.device_ops import DEVICE_OPS
from tilelang.ir.device_support import lacking
from tilelang.runtime.toolchain_cuda import HEADERS

ARCHS = ("sm_80", "sm_90a", "sm_120a")


def emulated_part(source: DeviceSource) -> tuple[DeviceSource, set[str]]:
    """The kernels that call nothing the emulator refuses, and what the others called."""
    lines, launches, called = [], [], set()
    head = True
    kernels: list[list[object]] = []
    for line in source.source.lines:
        if line.text.startswith('extern "C" __global__'):
            head = False
            kernels.append([])
        if head:
            lines.append(line)
        else:
            kernels[-1].append(line)
    for launch, kernel in zip(source.launches, kernels, strict=True):
        text = "\n".join(line.text for line in kernel)
        found = set(re.findall(r"\btl::(\w+)", text)) & REFUSED
        called |= found
        if not found:
            lines += kernel
            launches.append(launch)
    part = replace(source, source=SourceMap(tuple(lines)), launches=tuple(launches))
    return part, called


@needs_compiler
@pytest.mark.parametrize("arch", ARCHS)
def test_compiles_or_is_refused(arch: str, full: bool) -> None:
    if arch != "sm_90a" and not full:
        pytest.skip("runs with --full")
    source = print_cuda(every_op(arch))
    part, called = emulated_part(source)
    names = {case.op.name for case in cases(arch)}
    assert called == names & REFUSED
    emulated = names - REFUSED
    assert len(part.launches) == len(emulated)
    assert build_library(part, False, find_compiler()).exists()


def test_every_row_is_emulated_or_refused() -> None:
    """The emulator has a header of its own for what is assembly on the device; the others it
    compiles as they are. A new header with assembly fails here until somebody decides."""
    own = {path.name for path in (INCLUDE / "tl").glob("*.h")}
    plain = {
        path.name for path in (HEADERS / "tl").glob("*.h")
        if not re.search(r"\basm\b", path.read_text())
    }  # fmt: skip
    for op in DEVICE_OPS.values():
        if lacking(op, "cuda") is not None:
            continue
        assert op.name in REFUSED or op.header in own | plain, op.name
    assert set(DEVICE_OPS) >= REFUSED


@pytest.mark.parametrize("name", ["cluster_sync", "block_rank_in_cluster", "tma_load_multicast"])
def test_refusals_name_the_operation(name: str) -> None:
    source = print_cuda(every_op("sm_90a"))
    found = [d for d in refusals(source) if d.message.startswith(f"{name} ")]
    assert found and {d.code for d in found} == {"TL401"}
    assert found[0].span is not None and found[0].span.file == "every_op.py"
