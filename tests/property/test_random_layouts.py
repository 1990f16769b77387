"""Whatever a program wants of its layouts, the compiler answers: code, or a finding of its own.

A crash, or a finding that calls itself our fault (TL9xx), fails. The seeds are the parameters.
"""

from __future__ import annotations

import linecache

import pytest

from tests.property.random_layouts import program_text
from tilelang.codegen.cuda import print_cuda
from tilelang.compiler import lower_function
from tilelang.layouts.infer import infer_layouts
from tilelang.options import CompileOptions
from tilelang.program.stmt import Function
from tilelang.runtime.nvrtc import find_nvrtc
from tilelang.runtime.toolchain_cuda import compile_cuda
from tilelang.target import parse_target
from tilelang_diagnostics import CompileError
from tilelang_diagnostics.model import Severity

TARGETS = ("cuda:sm_80", "cuda:sm_90a", "cuda:sm_75")
BATCH, BATCHES = 8, 4


def function_of(seed: int) -> Function | None:
    """The traced program; None when the front end refuses it, with findings of its own."""
    text, path = program_text(seed), f"<random layouts {seed}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    scope: dict[str, object] = {}
    try:
        exec(compile(text, path, "exec"), scope)
    except CompileError as error:
        _check(error.diagnostics, text)
        return None
    function = scope["main"].function  # type: ignore[attr-defined]
    assert isinstance(function, Function)
    return function


def _check(found: object, text: str) -> None:
    for d in found:  # type: ignore[attr-defined]
        assert not d.code.startswith("TL9"), f"{d.code} {d.message}\n{text}"
        assert d.span is not None, f"{d.code} {d.message}\n{text}"


@pytest.mark.parametrize("batch", range(BATCHES))
def test_every_program_is_answered(batch: int, full: bool) -> None:
    compiled = 0
    count = BATCH * (10 if full else 1)
    for seed in range(batch * 1000, batch * 1000 + count):
        text = program_text(seed)
        function = function_of(seed)
        if function is None:
            continue
        target = TARGETS[seed % 3] if seed % 5 == 0 else TARGETS[0]
        _check(infer_layouts(function, target).diagnostics, text)
        try:
            lowered = lower_function(function, parse_target(target), CompileOptions())
        except CompileError as error:
            _check(error.diagnostics, text)
            assert any(d.severity is Severity.ERROR for d in error.diagnostics)
            continue
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}\n{text}") from error
        _check(lowered.diagnostics, text)
        assert print_cuda(lowered.func).text
        compiled += 1
    assert compiled > count // 2  # programs that are all refused would test nothing


@pytest.mark.skipif(find_nvrtc() is None, reason="NVRTC is not installed")
@pytest.mark.parametrize("seed", range(5000, 5008))
def test_what_is_lowered_compiles(seed: int) -> None:
    function = function_of(seed)
    assert function is not None
    target = parse_target("cuda:sm_80")
    try:
        lowered = lower_function(function, target, CompileOptions())
    except CompileError as error:
        _check(error.diagnostics, program_text(seed))
        return
    binary = compile_cuda(print_cuda(lowered.func), target)
    assert binary.cubin
