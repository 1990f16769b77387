"""What the front end made of a kernel, printed, is a kernel: read back it is the same."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.inspect import kernels
from tests.kernels.registry import KERNELS, KernelCase
from tilelang.ir.emit import emit
from tilelang.ir.text import print_function
from tilelang.language.primfunc import PrimFunc
from tilelang.program.buffer import Buffer
from tilelang.program.expr import Var
from tilelang.program.stmt import Function

# An eager kernel takes its sizes from its tensors, and a tuned one chooses: both when called.
CASES = [
    case for case in KERNELS
    if case.style == "prim_func" or (case.style == "lazy" and hasattr(case.make, "get_tir"))
]  # fmt: skip
SAMPLE = CASES[::6]


def printed(function: Function) -> str:
    return print_function(emit(function)).text


def extents(function: Function) -> str:
    """Extents known at run time only: names of the file, as in the author's."""
    dims = [d for p in function.params if isinstance(p, Buffer) for d in p.shape]
    names = sorted({d.name for d in dims if isinstance(d, Var)})
    return "".join(f'{name} = T.dynamic("{name}")\n' for name in names)


def read_back(text: str, folder: Path, before: str = "") -> Function:
    # A file of its own each: Python remembers the lines of files.
    path = folder / f"kernel_{len(list(folder.iterdir()))}.py"
    path.write_text(f"import tilelang.language as T\n\n{before}\n{text}")
    spec = importlib.util.spec_from_file_location("kernel_read_back", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (found,) = (value for value in vars(module).values() if isinstance(value, PrimFunc))
    return found.function


def function_of(case: KernelCase) -> Function:
    params = case.kernel_params()
    made = case.make(**params) if case.style == "prim_func" else case.make.get_tir(**params)
    return made.function if isinstance(made, PrimFunc) else made


@pytest.mark.parametrize("name", ["matmul", "attention", "sums", "columns", "two_launches"])
def test_small_kernels(name: str, tmp_path: Path) -> None:
    text = printed(getattr(kernels, name).function)
    assert printed(read_back(text, tmp_path)) == text


@pytest.mark.needs_torch
def test_kernels_of_the_registry(tmp_path: Path, full: bool) -> None:
    tried = 0
    for case in CASES if full else SAMPLE:
        function = function_of(case)
        text = printed(function)
        assert printed(read_back(text, tmp_path, extents(function))) == text, case.name
        tried += 1
    assert tried >= 14
