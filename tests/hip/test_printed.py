"""Printed HIP: whole kernels as files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hip.kernels import CASES, GOLDEN, Case
from tilelang.codegen.device_printer import print_device
from tilelang.codegen.device_source import DeviceSource
from tilelang.codegen.hip import HIP
from tilelang.compiler import lower_function
from tilelang.options import CompileOptions
from tilelang.target import Target

GOLDENS = Path(__file__).parent / "goldens"
GFX942 = Target("hip", "gfx942")
BY_NAME = {case.name: case for case in CASES}


def printed(case: Case) -> DeviceSource:
    """The source of a kernel for gfx942."""
    lowered = lower_function(case.make().function, GFX942, CompileOptions())
    assert not [d for d in lowered.diagnostics if d.is_error]
    return print_device(lowered.func, HIP)


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name: str, update: bool) -> None:
    text = printed(BY_NAME[name]).text
    path = GOLDENS / f"{name}.hip"
    if update:
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("name", GOLDEN)
def test_only_names_of_ours(name: str) -> None:
    """No inline assembly, no builtin, no intrinsic of a vendor."""
    body = printed(BY_NAME[name]).text.partition('extern "C"')[2]
    for word in ("__launch_bounds__", "__restrict__", "__shared__", "__global__"):
        body = body.replace(word, "")
    assert "__" not in body and "asm" not in body


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_line_has_a_place(case: Case) -> None:
    source = printed(case)
    assert source.dialect == "hip"
    inside = [line for line in source.source.lines if line.text.startswith("  ")]
    assert inside and all(line.span is not None for line in inside)


def test_pipelines_copy_in_turn_and_say_so() -> None:
    lowered = lower_function(BY_NAME["product_pipelined"].make().function, GFX942, CompileOptions())
    said = [d for d in lowered.diagnostics if d.code == "TL508"]
    assert len(said) == 2 and all("no asynchronous copies" in d.message for d in said)
    assert "cp_async" not in print_device(lowered.func, HIP).text
