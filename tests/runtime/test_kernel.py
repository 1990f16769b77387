"""The kernel object: what it tells, exports, measures and compares."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import tilelang
from tests.runtime import kernels
from tilelang.runtime import inputs
from tilelang.runtime.inputs import TensorSupplyType
from tilelang.runtime.kernel import KernelParam
from tilelang.runtime.profiler import do_bench
from tilelang_diagnostics import CompileError

x = np.arange(40, dtype=np.float32)


@pytest.fixture(scope="module")
def scale() -> tilelang.JITKernel:
    return tilelang.compile(kernels.scale_factory(40), out_idx=[-1], target="cpu")


def test_what_it_is(scale: tilelang.JITKernel) -> None:
    assert scale.name == scale.__name__ == "scale"
    assert scale.params == [
        KernelParam("A", scale.params[0].dtype, (40,)),
        KernelParam("B", scale.params[1].dtype, (40,)),
    ]
    assert scale.out_idx == [1]
    assert str(scale.target) == "cpu"
    assert scale.prim_func.name == "scale"
    assert scale.artifact.name == "scale"
    assert scale.latency is None
    assert repr(scale) == "<JITKernel scale(A) for cpu>"


def test_source(
    scale: tilelang.JITKernel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "define" in scale.get_kernel_source() == scale.kernel_source
    assert "with T.Kernel(" in scale.get_host_source() == scale.host_source
    assert scale.get_kernel_source(kernel_only=False).endswith(scale.kernel_source)
    scale.show_source("both")
    assert capsys.readouterr().out == f"{scale.host_source}\n{scale.kernel_source}\n"
    scale.export_sources(tmp_path / "new" / "k.ll", tmp_path / "host.txt")
    assert (tmp_path / "new" / "k.ll").read_text() == scale.kernel_source
    assert (tmp_path / "host.txt").read_text() == scale.host_source


def test_a_path_that_cannot_be_written(scale: tilelang.JITKernel, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="TL810"):
        scale.export_sources(tmp_path)


def test_profiler(scale: tilelang.JITKernel) -> None:
    profiler = scale.get_profiler()
    profiler.assert_allclose(lambda a: a * 2)
    with pytest.raises(AssertionError, match="TL723"):
        profiler.assert_allclose(lambda a: a * 3)
    profiler.assert_consistent(3)
    assert profiler.do_bench(n_warmup=1, n_repeat=3) > 0
    assert profiler.run_once().shape == (40,)
    seen = []
    profiler.manual_assert_close(lambda a: a, None, lambda got, want: seen.append(len(got)))
    assert seen == [1]


def test_profiler_of_a_kernel_that_writes_in_place() -> None:
    kernel = kernels.in_place.compile()
    kernel.get_profiler().assert_allclose(lambda a: a + 1, [x.copy()])
    with pytest.raises(AssertionError, match="TL723"):
        kernel.get_profiler().assert_allclose(lambda a: a + 2, [x.copy()])


def test_runtime_dims_need_a_size() -> None:
    profiler = kernels.runtime_scale.compile().get_profiler()
    with pytest.raises(CompileError, match="TL716"):
        profiler.run_once()
    assert profiler.do_bench(dynamic_symbolic_constraints={"n": 8}, n_warmup=1, n_repeat=1) > 0


@pytest.mark.parametrize("supply", list(TensorSupplyType))
@pytest.mark.parametrize("family", ["numpy", "torch"])
def test_inputs_follow_the_signature(supply: TensorSupplyType, family: inputs.Family) -> None:
    kernel = kernels.runtime_scale.compile()
    array, factor = inputs.make_inputs(kernel.signature, supply, {"n": 9}, family=family)
    assert isinstance(array, np.ndarray if family == "numpy" else torch.Tensor)
    # No neutral factor: a kernel that ignores it does not pass for one that multiplies.
    assert tuple(array.shape) == (9,) and 0.5 <= factor < 2 and factor != 1
    again = inputs.make_inputs(kernel.signature, supply, {"n": 9}, family=family)
    assert again[1] == factor
    if supply is TensorSupplyType.Zero:
        assert not array.any()
    if supply is TensorSupplyType.One:
        assert (array == 1).all()
    if supply is TensorSupplyType.Integer:
        assert (array == array.round()).all()


def test_inputs_are_reproducible() -> None:
    signature = kernels.runtime_scale.compile().signature
    first, second, other = (
        inputs.make_inputs(signature, sizes={"n": 9}, seed=s, family="numpy")[0] for s in (1, 1, 2)
    )
    assert (first == second).all() and (first != other).any()


def test_do_bench_takes_calls_or_milliseconds() -> None:
    calls = []
    assert do_bench(lambda: calls.append(0), _n_warmup=2, _n_repeat=3) > 0
    assert len(calls) == 1 + 2 + 1 + 3
    low, high = do_bench(lambda: None, _n_warmup=1, _n_repeat=50, quantiles=[0.1, 0.9])
    assert 0 < low <= high
    assert do_bench(lambda: None, warmup=1, rep=1, return_mode="median") > 0
    with pytest.raises(ValueError, match="return_mode"):
        do_bench(lambda: None, return_mode="best")  # type: ignore[arg-type]


def test_threads_may_call_one_kernel(scale: tilelang.JITKernel) -> None:
    wrong = []

    def work(offset: int) -> None:
        mine = x + offset
        for _ in range(50):
            if not (scale(mine) == 2 * mine).all():
                wrong.append(offset)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_autograd() -> None:
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, a: torch.Tensor) -> torch.Tensor:
            return kernels.eager_scale(a)

        @staticmethod
        def backward(ctx: object, grad: torch.Tensor) -> torch.Tensor:
            return kernels.eager_scale(grad.contiguous())

    a = torch.from_numpy(x.copy()).requires_grad_()
    Scale.apply(a).sum().backward()
    assert a.grad is not None and torch.equal(a.grad, torch.full((40,), 2.0))


def test_a_lost_gradient_is_said_once() -> None:
    kernel = tilelang.compile(kernels.scale_factory(24), out_idx=[-1], target="cpu")
    a = torch.ones(24).requires_grad_()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with torch.no_grad():
            tilelang.compile(kernels.scale_factory(24), out_idx=[-1], target="cpu")(a)
        assert not said
        kernel(a)
        kernel(A=a)
    assert len(said) == 1 and isinstance(said[0].message, tilelang.TileLangWarning)
    assert said[0].message.diagnostic.code == "TL729"
    assert "`A` of `scale` requires a gradient" in str(said[0].message)


def test_lower() -> None:
    lowered = tilelang.lower(kernels.scale_factory(40), target="cpu")
    assert "define" in lowered.kernel_source and lowered.rt_mod is None
    assert [p.name for p in lowered.params] == ["A", "B"]
    runnable = tilelang.lower(kernels.scale_factory(40), target="cpu", enable_device_compile=True)
    out = np.empty(40, np.float32)
    assert runnable.rt_mod is not None
    runnable.rt_mod(x, out)
    np.testing.assert_array_equal(out, 2 * x)


def test_par_compile_in_several_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path))
    funcs = [kernels.scale_factory(40, factor) for factor in (21.0, 22.0, 23.0)]
    made = tilelang.par_compile(funcs, out_idx=[-1], target="cpu", num_workers=2)
    for kernel, factor in zip(made, (21, 22, 23), strict=True):
        assert kernel is not None and not kernel.from_cache
        np.testing.assert_array_equal(kernel(x), factor * x)
    again = tilelang.par_compile(funcs, out_idx=[-1], target="cpu")
    assert [k.from_cache for k in again if k is not None] == [True, True, True]
