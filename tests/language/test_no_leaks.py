"""Nothing private reaches the user: whatever is called wherever, errors carry diagnostics."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

import tilelang.language as T
from tilelang.language.catalog import LanguageFunction
from tilelang.language.frontend import parse_live, parse_static
from tilelang.language.types import TensorFactory
from tilelang_diagnostics import CompileError

FUNCTIONS = {name: value for name, value in vars(T).items() if isinstance(value, LanguageFunction)}
FACTORIES = {name: value for name, value in vars(T).items() if isinstance(value, TensorFactory)}
ODD = (None, -1, 0, 1, 2.5, "x", "", (), (4, 4), [1], {}, object())


@T.prim_func
def kernel(A: T.Tensor((16,), "float32"), m: T.int32):
    with T.Kernel(1, threads=16):
        for i in T.Parallel(16):
            A[i] = 0


BUFFER, SCALAR = kernel.params


def attempt(function: Any, *args: Any) -> None:
    """Call it; anything but a diagnosed error or Python's own about the arguments is a leak."""
    with suppress(CompileError, TypeError):
        function(*args)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_called_outside_a_kernel(name: str) -> None:
    function = FUNCTIONS[name]
    for first in ODD:
        attempt(function, first)
        for second in ODD:
            attempt(function, first, second)


@pytest.mark.parametrize("name", FACTORIES)
def test_types_made_outside_a_kernel(name: str) -> None:
    for first in ODD:
        attempt(FACTORIES[name], first)
        attempt(FACTORIES[name].__getitem__, (first, "float32"))
        for second in ODD:
            attempt(FACTORIES[name], first, second)


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: bool(BUFFER),
        lambda: BUFFER[1.5],
        lambda: BUFFER["x"],
        lambda: BUFFER[99],
        lambda: BUFFER[0, 0],
        lambda: BUFFER[0:4:2],
        lambda: BUFFER.__setitem__(0, 1),
        lambda: SCALAR / SCALAR,
        lambda: SCALAR // 0,
        lambda: SCALAR << 1.5,
        lambda: bool(SCALAR),
        lambda: BUFFER + 1,
    ],
)
def test_buffers_and_scalars_outside_a_kernel(misuse: Any) -> None:
    with pytest.raises((CompileError, TypeError)):
        misuse()


@pytest.mark.parametrize(
    "body",
    [
        "x = T.Tensor((-1,), 'float32')",
        "x = [A[i] for i in range(n)]",
        "x = sorted([A[0], A[1]])",
        "x = {A[0]: 1}[A[1]]",
        "x = (lambda i: i / 2)(n)",
        "x = max(A[0], 'x')",
        "x = len(A)",
        "for i in range(0, 4, 0):\n            A[i] = 0",
        "A[0] = 1 if A else 2",
    ],
)
def test_mistakes_in_a_kernel_are_diagnosed(body: str) -> None:
    text = (
        "import tilelang.language as T\n\n\n@T.prim_func\n"
        "def main(A: T.Tensor((16,), 'float32'), n: T.int32):\n"
        f"    with T.Kernel(1, threads=16):\n        {body}\n        A[0] = 0\n"
    )
    parse_static(text, "kernel.py")  # does not raise


def test_a_helper_that_raises_diagnostics_is_a_mistake_of_its_caller() -> None:
    def helper() -> None:
        T.Tensor((-1,), "float32")

    def main(A: T.Tensor((16,), "float32")) -> None:
        with T.Kernel(1, threads=16):
            helper()
            A[0] = 0

    parsed = parse_live(main)
    assert [d.code for d in parsed.diagnostics] == ["TL215"]
