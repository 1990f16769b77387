"""Kernels as Metal source, and what a clang of this machine says of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilelang.codegen.device_source import DeviceSource
from tilelang.codegen.metal import print_metal
from tilelang.codegen.source_map import Line, SourceMap
from tilelang.compiler import lower_function
from tilelang.options import CompileOptions
from tilelang.runtime.toolchain_metal import compile
from tilelang.target import Target
from tilelang_diagnostics import CompileError

APPLE = Target("metal", "apple9")


def source_of(kernel: Any) -> DeviceSource:
    """The printed source of a kernel."""
    return print_metal(lower_function(kernel.function, APPLE, CompileOptions()).func)


def complaints(source: DeviceSource) -> list[str]:
    """What the check of the source finds, [] for nothing."""
    try:
        compile(source, APPLE, CompileOptions())
    except CompileError as error:
        return [d.message for d in error.diagnostics]
    return []


def with_statement(source: DeviceSource, statement: str) -> DeviceSource:
    """The source with a statement at the end of its last kernel."""
    *lines, end = source.source.lines
    span = lines[-1].spans
    return replace(source, source=SourceMap((*lines, Line(statement, span), end)))


def with_words(source: DeviceSource, old: str, new: str) -> DeviceSource:
    """The source with `new` for the first `old`."""
    lines = list(source.source.lines)
    place = next(n for n, line in enumerate(lines) if old in line.text)
    lines[place] = replace(lines[place], text=lines[place].text.replace(old, new, 1))
    return replace(source, source=SourceMap(tuple(lines)))
