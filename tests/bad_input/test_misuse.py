"""The Python API used wrongly: each use has a code, and says where and what to do instead."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilelang
import tilelang.language as T
from tests.support.cuda import needs_cuda_compiler
from tilelang_diagnostics import CompileError


@T.prim_func
def double(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(4):
            B[i] = A[i] * 2


def factory(M, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((M,), dtype)):
        with T.Kernel(1, threads=32):
            A[0] = 1

    return main


async def later(A):
    pass


@tilelang.jit
def calls_a_kernel(A):
    A: T.Tensor((4,), "float32")
    with T.Kernel(1, threads=32):
        double(A, A)


@tilelang.jit
def forgot_the_declaration(A):
    return A


def no_gpu() -> Any:
    return tilelang.compile(double, target="cuda:sm_80").get_profiler()


ONES = np.ones(4, np.float32)

MISUSES: list[tuple[str, Callable[[], Any], str, str]] = [
    ("a kernel is called", lambda: double(ONES, ONES), "TL121", "tilelang.compile(double)"),
    ("a kernel in a kernel", lambda: calls_a_kernel(ONES), "TL121", "T.macro"),
    ("jit on a class", lambda: tilelang.jit(int), "TL173", "`def`"),
    ("jit on a partial", lambda: tilelang.jit(functools.partial(factory, 3)), "TL173", "`def`"),
    ("jit on async", lambda: tilelang.jit(later), "TL173", "`def`"),
    ("a tensor for a factory", lambda: forgot_the_declaration(ONES), "TL714", "A: T.Tensor("),
    ("a result twice", lambda: tilelang.compile(double, out_idx=[1, -1]), "TL712", "once"),
    ("a bool result", lambda: tilelang.compile(double, out_idx=[True]), "TL712", "position"),
    ("options", lambda: tilelang.compile(double, pass_configs=3), "TL719", "dict"),
    ("an option", lambda: tilelang.compile(double, pass_configs={"x": 1}), "TL719", "PassConfig"),
    ("a shape", lambda: factory(-1), "TL215", "positive integers"),
    ("a dtype", lambda: factory(4, "floot"), "TL230", "T.float16"),
    ("a lambda", lambda: T.prim_func(lambda A: A), "TL102", "`def`"),
    ("a parameter of jit", lambda: tilelang.jit(len, tarjet="cpu"), "TL112", "target,"),
    ("a parameter of compile", lambda: tilelang.compile(double, tarjet="cpu"), "TL112", "target,"),
    ("values at compile", lambda: tilelang.compile(forgot_the_declaration, M=3), "TL112",
     "forgot_the_declaration.compile(M=3)"),
    ("a parameter of autotune", lambda: tilelang.autotune(config=[]), "TL112", "configs,"),
    ("configs", lambda: tilelang.autotune(configs=3), "TL116", 'configs=[{"block": 64}'),
    ("one config", lambda: tilelang.autotune(configs={"n": 3}), "TL116", "configs=[{"),
    ("a config", lambda: tilelang.autotune(configs=[64]), "TL116", "configs=[{"),
    ("a backend", lambda: tilelang.compile(double, execution_backend="emulatr"), "TL719",
     "execution_backend='emulator'"),
    ("outside", lambda: T.alloc_shared((3,), "float32"), "TL169", "inside a function"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("use", "code", "help"), [row[1:] for row in MISUSES], ids=[row[0] for row in MISUSES]
)
def test_misuse(use: Callable[[], Any], code: str, help: str) -> None:
    with pytest.raises(CompileError) as caught:
        use()
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert found.help is not None and help in found.help


@needs_cuda_compiler
def test_timing_for_a_gpu_that_is_not_there() -> None:
    test_misuse(lambda: no_gpu().do_bench(), "TL805", "--emulate")


def test_a_file_that_changed_after_its_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """\
import tilelang
import tilelang.language as T


@tilelang.jit(target="cpu")
def first(A):
    M = T.const("M")
    A: T.Tensor((M,), "float32")
    with T.Kernel(M, threads=32) as bx:
        A[bx] = 1
"""
    path = tmp_path / "changed_after_import.py"
    path.write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("changed_after_import")
    path.write_text("# one line\n# and another\n# and a third\n" + text)
    with pytest.raises(CompileError) as caught:
        module.first(ONES)
    (found,) = caught.value.diagnostics
    assert (found.code, found.help) == ("TL102", "import it again, or restart Python")
    assert found.message == f"`first` is not in line 5 of {path}, where it was defined"


@pytest.mark.parametrize(
    ("use", "text"),
    [
        (lambda: factory(-1), "(M,)"),
        (lambda: factory(4, "floot"), "dtype"),
        (lambda: T.Tensor((-1,), "int8"), 'T.Tensor((-1,), "int8")'),
        (lambda: T.alloc_shared((3,), "x"), 'T.alloc_shared((3,), "x")'),
    ],
)  # fmt: skip
def test_the_place_is_the_users(use: Callable[[], Any], text: str) -> None:
    """Where no kernel is being traced, the line that is running is shown."""
    with pytest.raises(CompileError) as caught:
        use()
    span = caught.value.diagnostics[0].span
    assert span is not None and span.file == __file__ and span.line == span.end_line
    with open(__file__, encoding="utf-8") as file:
        line = file.read().splitlines()[span.line - 1]
    assert line[span.column - 1 : span.end_column - 1] == text
