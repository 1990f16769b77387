"""The ways to write and to call a kernel, and what is remembered between calls."""

from __future__ import annotations

import linecache
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tilelang
import tilelang.language as T
from tests.runtime import kernels
from tilelang.runtime import jit as jit_module
from tilelang_diagnostics import CompileError

x = np.arange(40, dtype=np.float32)


def fresh(function: Any) -> Any:
    """The same jit function with nothing remembered."""
    return jit_module.JitFunction(
        function.python, function.out_idx, function.target, function.options, False,
        function.captured,
    )  # fmt: skip


def returns_nothing() -> None:
    """A factory whose return statement is missing."""


def codes(caught: pytest.ExceptionInfo[CompileError]) -> list[str]:
    return [d.code for d in caught.value.diagnostics]


def test_prim_func_and_compile() -> None:
    kernel = tilelang.compile(kernels.scale_factory(40), out_idx=[-1], target="cpu")
    np.testing.assert_array_equal(kernel(x), 2 * x)
    np.testing.assert_array_equal(kernel(x), 2 * x)
    out = np.empty(40, np.float32)
    assert tilelang.compile(kernels.scale_factory(40), target="cpu")(x, out) is None
    np.testing.assert_array_equal(out, 2 * x)


def test_a_factory_gives_one_kernel_per_set_of_values() -> None:
    make = fresh(kernels.lazy_scale)
    kernel = make(40)
    assert make(40) is kernel
    assert make(n=40, factor=2.0) is kernel
    assert make(40, 2) is not kernel
    assert make(41) is not kernel
    np.testing.assert_array_equal(make(40, 3.0)(x), 3 * x)


def test_values_that_compare_equal_are_told_apart() -> None:
    make = fresh(kernels.lazy_scale)
    assert make(40, 1) is not make(40, 1.0)
    assert make(40, 0.0) is not make(40, -0.0)
    negative = make(40, -0.0)(x)
    assert np.signbit(negative).all()


def test_an_eager_kernel_compiles_once_per_constant_size() -> None:
    scale = fresh(kernels.eager_scale)
    np.testing.assert_array_equal(scale(x), 2 * x)
    np.testing.assert_array_equal(scale(x, 3.0), 3 * x)
    np.testing.assert_array_equal(scale(x[:7]), 2 * x[:7])
    np.testing.assert_array_equal(scale(x[:7]), 2 * x[:7])
    special = list(scale.eager._by_constants.values())
    assert [len(s.kernels) for s in special] == [2, 1]


def test_torch_in_torch_out() -> None:
    result = fresh(kernels.eager_scale)(torch.from_numpy(x))
    assert isinstance(result, torch.Tensor)
    assert torch.equal(result, torch.from_numpy(2 * x))


def test_runtime_dims_and_scalars_compile_once() -> None:
    scale = fresh(kernels.runtime_scale)
    for n, factor in ((40, 2.0), (7, 3.0), (33, -1.5), (0, 1.0)):
        np.testing.assert_array_equal(scale(x[:n], factor), np.float32(factor) * x[:n])
    (special,) = scale.eager._by_constants.values()
    assert len(special.kernels) == 1


def test_s1_a_kernel_that_is_its_own_factory() -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((32, 16)).astype(np.float32)
    b = rng.standard_normal((16, 48)).astype(np.float32)
    c = kernels.kernel_with_out_idx(a, b)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-5)
    kernel = kernels.kernel_with_out_idx.compile()
    assert kernel.out_idx == [2]
    np.testing.assert_array_equal(kernel(a, b), c)


def test_several_results_and_none() -> None:
    up, down = kernels.two_results(x)
    np.testing.assert_array_equal(up, x + 1)
    np.testing.assert_array_equal(down, x - 1)
    y = x.copy()
    assert kernels.in_place(y) is None
    np.testing.assert_array_equal(y, x + 1)


def test_compile_takes_constant_dims_by_keyword() -> None:
    kernel = kernels.eager_scale.compile(n=40, factor=5.0)
    np.testing.assert_array_equal(kernel(x), 5 * x)
    with pytest.raises(CompileError) as caught:
        kernels.eager_scale.compile()
    assert codes(caught) == ["TL715"]
    with pytest.raises(CompileError) as caught:
        kernels.eager_scale.compile(n=40, faktor=5.0)
    assert codes(caught) == ["TL720"]
    assert "did you mean `factor`?" in caught.value.diagnostics[0].message


def test_compile_takes_a_target_and_a_backend_by_keyword() -> None:
    here = kernels.eager_scale.compile(n=40)
    gpu = kernels.eager_scale.compile(n=40, target="cuda:sm_80")
    assert str(here.target).startswith("cpu") and str(gpu.target).startswith("cuda:sm_80")
    assert "__global__" in kernels.eager_scale.get_kernel_source(n=40, target="cuda:sm_80")
    lazy = kernels.lazy_scale.compile(40, target="cuda:sm_80")
    assert str(lazy.target).startswith("cuda:sm_80")
    with pytest.raises(CompileError) as caught:
        kernels.eager_scale.compile(n=40, execution_backend="emulator")
    assert codes(caught) == ["TL817"]
    assert "TILELANG_DEFAULT_TARGET=cuda:sm_80" in (caught.value.diagnostics[0].help or "")


def test_a_parameter_called_target_is_the_kernels_own() -> None:
    kernel = kernels.factory_with_target.compile(40, target="up")
    np.testing.assert_array_equal(kernel(x), 2 * x)
    assert str(kernel.target).startswith("cpu")


def test_constant_dims_by_keyword_at_a_call_must_agree() -> None:
    np.testing.assert_array_equal(kernels.eager_scale(x, n=40), 2 * x)
    with pytest.raises(CompileError) as caught:
        kernels.eager_scale(x, n=41)
    assert codes(caught) == ["TL711"]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: kernels.eager_scale(), "TL701"),
        (lambda: kernels.eager_scale(x, 1.0, 32, 4), "TL701"),
        (lambda: kernels.eager_scale(x, blok=3), "TL720"),
        (lambda: kernels.eager_scale(x.astype(np.float64)), "TL702"),
        (lambda: kernels.eager_scale(x.reshape(8, 5)), "TL703"),
        (lambda: kernels.eager_scale([1.0]), "TL709"),
        (lambda: kernels.eager_scale(None), "TL717"),
        (lambda: kernels.eager_scale(np.arange(80, dtype=np.float32)[::2]), "TL708"),
        (lambda: kernels.eager_scale(x, bytearray(b"1")), "TL714"),
        (lambda: kernels.lazy_scale(), "TL701"),
        (lambda: kernels.lazy_scale(40, faktor=1.0), "TL720"),
        (lambda: kernels.lazy_scale([40], bytearray(b"1")), "TL714"),
        (lambda: kernels.eager_scale(x, torch.zeros(3)), "TL167"),
        (lambda: tilelang.compile(kernels.scale_factory(8), out_idx=[2], target="cpu"), "TL712"),
        (lambda: tilelang.compile(kernels.scale_factory, target="cpu"), "TL173"),
        (lambda: tilelang.compile(kernels.lazy_scale, target="cpu"), "TL173"),
        (lambda: tilelang.compile(kernels.scale_factory(8), target="hip:gfx1100"), "TL807"),
        (lambda: tilelang.compile(kernels.scale_factory(8), target="gpu"), "TL403"),
        (lambda: tilelang.compile(kernels.scale_factory(8), pass_configs={"tl.x": 1}), "TL719"),
        (lambda: tilelang.jit(target="cpu")(returns_nothing)(), "TL173"),
        (lambda: tilelang.jit(target="cpu")(3), "TL173"),
    ],
)  # fmt: skip
def test_wrong_use(call: Any, code: str) -> None:
    with pytest.raises(CompileError) as caught:
        call()
    assert code in codes(caught)


def test_out_idx_on_a_kernel_that_returns() -> None:
    wrong = tilelang.jit(out_idx=[-1], target="cpu")(kernels.eager_scale.python)
    with pytest.raises(CompileError) as caught:
        wrong(x)
    assert codes(caught) == ["TL172"]


def test_assertions_are_diagnostics_at_their_place() -> None:
    np.testing.assert_array_equal(kernels.checked(x), x)
    with pytest.raises(CompileError) as caught:
        kernels.checked(-1 - x)
    (found,) = caught.value.diagnostics
    assert found.code == "TL722" and "negative input" in found.message
    assert found.span is not None
    line = Path(kernels.__file__).read_text().splitlines()[found.span.line - 1]
    assert "device_assert" in line
    with pytest.raises(CompileError) as caught:
        kernels.checked(x[:7])
    assert codes(caught) == ["TL721"]


def test_a_closure_is_seen_by_the_kernel() -> None:
    def make(amount: float) -> Any:
        @tilelang.jit(target="cpu")
        def add(A):
            n = T.const("n")
            A: T.Tensor((n,), "float32")
            B = T.empty((n,), "float32")
            with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
                for i in T.Parallel(32):
                    B[bx * 32 + i] = A[bx * 32 + i] + amount
            return B

        return add

    np.testing.assert_array_equal(make(1.0)(x), x + 1)
    np.testing.assert_array_equal(make(2.0)(x), x + 2)


NOTEBOOK_CELL = """
import tilelang
import tilelang.language as T

@tilelang.jit(target="cpu")
def twice(A):
    n = T.const("n")
    A: T.Tensor((n,), "float32")
    B = T.empty((n,), "float32")
    with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
        for i in T.Parallel(32):
            B[bx * 32 + i] = A[bx * 32 + i] * 2.0
    return B
"""


def test_a_notebook_cell_works() -> None:
    name = "<ipython-input-7-0123456789ab>"
    linecache.cache[name] = (
        len(NOTEBOOK_CELL), None, NOTEBOOK_CELL.splitlines(keepends=True), name,
    )  # fmt: skip
    namespace: dict[str, Any] = {}
    exec(compile(NOTEBOOK_CELL, name, "exec"), namespace)
    np.testing.assert_array_equal(namespace["twice"](x), 2 * x)


def test_code_without_source_is_told_so() -> None:
    namespace: dict[str, Any] = {}
    exec(NOTEBOOK_CELL, namespace)
    with pytest.raises(CompileError) as caught:
        namespace["twice"](x)
    assert codes(caught) == ["TL102"]


def test_the_interactive_prompt_is_told_so() -> None:
    typed = NOTEBOOK_CELL + "\nimport numpy\ntwice(numpy.zeros(4, 'f'))\n"
    done = subprocess.run(
        [sys.executable, "-i"], input=typed,
        capture_output=True, text=True, check=False,
        env={"PYTHONPATH": ":".join(sys.path), "PATH": ""},
    )  # fmt: skip
    assert "TL102" in done.stderr


def test_functions_keep_their_names_and_docs() -> None:
    assert kernels.eager_scale.__name__ == "eager_scale"
    assert repr(kernels.lazy_scale) == "<tilelang.jit scale_factory>"


def test_par_compile() -> None:
    made = fresh(kernels.lazy_scale).par_compile([{"n": 40}, (40, 7.0), {"n": 40, "factor": 9.0}])
    for kernel, factor in zip(made, (2, 7, 9), strict=True):
        assert kernel is not None
        np.testing.assert_array_equal(kernel(x), factor * x)


def test_get_tir_and_source() -> None:
    assert fresh(kernels.lazy_scale).get_tir(40).name == "scale"
    assert "define" in kernels.eager_scale.get_kernel_source(n=40)
