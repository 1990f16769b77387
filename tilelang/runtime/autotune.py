"""Which values of a kernel's tunable parameters are fastest here? `@tilelang.autotune`.

    @tilelang.autotune(configs=[{"block": 64}, {"block": 128}])
    @tilelang.jit(out_idx=[-1])
    def matmul(M, N, K, block=64): ...

    kernel = matmul(1024, 1024, 1024)      # tries every config, gives the fastest kernel
    kernel.config, kernel.latency          # what won, and its milliseconds

A config that does not compile, fails the reference check or runs out of time is left out and its
diagnostic kept: when none is left, TL724 says what happened to each. Passing every tunable
parameter at the call skips the tuning.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NoReturn, overload

from tilelang.runtime import dynamo
from tilelang.runtime.inputs import TensorSupplyType
from tilelang.runtime.jit import JitFunction
from tilelang.runtime.kernel import JITKernel
from tilelang.runtime.keys import freeze_named, refuse_unknown
from tilelang_diagnostics import CompileError, counted, failure, with_article

Config = Mapping[str, Any]
Configs = Iterable[Config] | Callable[..., Iterable[Config]]


@dataclass(frozen=True, slots=True)
class Trial:
    """One config tried: its latency in milliseconds, or why there is none."""

    config: Config
    latency: float | None
    error: Exception | None = None

    @property
    def reason(self) -> str:
        """A short reason for a failure: the first diagnostic, else the exception."""
        if isinstance(self.error, CompileError):
            first = next((d for d in self.error.diagnostics if d.is_error), None)
            if first is not None:
                return f"{first.code}: {first.message}"
        return f"{type(self.error).__name__}: {self.error}"


@dataclass(frozen=True, slots=True)
class TuneSettings:
    """How candidates are timed and checked; the arguments of `autotune`."""

    configs: Configs
    warmup: float = 25
    rep: float = 100
    supply_type: TensorSupplyType = TensorSupplyType.Auto
    ref_prog: Callable[..., Any] | None = None
    supply_prog: Callable[..., Sequence[Any]] | None = None
    rtol: float = 1e-2
    atol: float = 1e-2
    max_mismatched_ratio: float = 0.01
    skip_check: bool = False
    manual_check_prog: Callable[..., Any] | None = None
    early_stop: bool = False
    early_stop_factor: float = 2.0
    unused: Mapping[str, Any] = field(default_factory=dict)


@overload
def autotune(func: JitFunction, *, configs: Configs) -> TunedFunction: ...
@overload
def autotune(
    func: None = None,
    *,
    configs: Configs,
    warmup: float = 25,
    rep: float = 100,
    timeout: float = 100,
    supply_type: TensorSupplyType = TensorSupplyType.Auto,
    ref_prog: Callable[..., Any] | None = None,
    supply_prog: Callable[..., Sequence[Any]] | None = None,
    rtol: float = 1e-2,
    atol: float = 1e-2,
    max_mismatched_ratio: float = 0.01,
    skip_check: bool = False,
    manual_check_prog: Callable[..., Any] | None = None,
    cache_input_tensors: bool = False,
    do_not_specialize: Sequence[str] | None = None,
    early_stop: bool = False,
    early_stop_factor: float = 2.0,
) -> Callable[[JitFunction], TunedFunction]: ...
def autotune(
    func: Any = None,
    *,
    configs: Configs | None = None,
    warmup: float = 25,
    rep: float = 100,
    timeout: float = 100,
    supply_type: TensorSupplyType = TensorSupplyType.Auto,
    ref_prog: Callable[..., Any] | None = None,
    supply_prog: Callable[..., Sequence[Any]] | None = None,
    rtol: float = 1e-2,
    atol: float = 1e-2,
    max_mismatched_ratio: float = 0.01,
    skip_check: bool = False,
    manual_check_prog: Callable[..., Any] | None = None,
    cache_input_tensors: bool = False,
    do_not_specialize: Sequence[str] | None = None,
    early_stop: bool = False,
    early_stop_factor: float = 2.0,
    **unknown: Any,
) -> Any:
    """Tune a `@tilelang.jit` function over `configs` when it is called.

    Args:
        configs: dicts of parameter values, or a function of the call's arguments that gives them.
        warmup, rep: milliseconds of warm-up and of timing for each config.
        supply_type, supply_prog: how inputs are made; `set_autotune_inputs` gives them directly.
        ref_prog: the expected results; a config whose results differ is left out.
        early_stop: give up timing a config that is `early_stop_factor` times slower than the best.
        timeout, cache_input_tensors, do_not_specialize: accepted, and without effect here.
    """
    refuse_unknown("tilelang.autotune", unknown, autotune)
    if configs is None:
        _refuse("TL113", "`autotune` needs `configs`", "a list of dicts of parameter values")
    assert configs is not None
    _check_configs(configs)
    settings = TuneSettings(
        configs, warmup, rep, supply_type, ref_prog, supply_prog, rtol, atol,
        max_mismatched_ratio, skip_check, manual_check_prog, early_stop, early_stop_factor,
    )  # fmt: skip

    def decorate(function: Any) -> TunedFunction:
        if not isinstance(function, JitFunction):
            _refuse(
                "TL116",
                f"`autotune` is applied to {with_article(type(function).__name__)}",
                "stack it above `@tilelang.jit`",
            )
        return TunedFunction(function, settings)

    return decorate if func is None else decorate(func)


@dynamo.opaque("__call__")
class TunedFunction:
    """A kernel factory, or kernel, that picks its tunable values by timing."""

    def __init__(self, jit: JitFunction, settings: TuneSettings) -> None:
        self.jit = jit
        self.settings = settings
        self.trials: tuple[Trial, ...] = ()
        self._best: dict[Any, JITKernel] = {}
        functools.update_wrapper(self, jit)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The fastest kernel of a factory; the results of a kernel, run with its best config."""
        if dynamo.hide_if_loaded():
            return self(*args, **kwargs)
        configs = self._configs(args, kwargs)
        if configs and all(name in kwargs for name in configs[0]):
            return self.jit(*args, **kwargs)
        eager = self.jit.style == "kernel"
        key = _key(args, kwargs)
        best = self._best.get(key)
        if best is None:
            best = self._best[key] = self._tune(configs, args, kwargs, eager)
        if not eager:
            return best
        config: Config = best.config or {}
        return self.jit(*args, **{**kwargs, **config})

    def compile(self, *args: Any, **kwargs: Any) -> JITKernel:
        """The fastest kernel for these values."""
        return self._tune(self._configs(args, kwargs), args, kwargs, self.jit.style == "kernel")

    def _configs(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Config]:
        given = self.settings.configs
        found = list(given(*args, **kwargs) if callable(given) else given)
        if not found:
            _refuse("TL724", f"`{self.jit.__name__}` has no configuration to try",
                    "give at least one config")  # fmt: skip
        return found

    def _tune(
        self,
        configs: Sequence[Config],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        eager: bool,
    ) -> JITKernel:
        trials: list[Trial] = []
        best: tuple[float, JITKernel] | None = None
        inputs = list(args) if eager else _given_inputs.get()
        for config in configs:
            try:
                kernel = self.jit.compile(*args, **{**kwargs, **config})
                if inputs is None:
                    inputs = self._make_inputs(kernel)
                values = _tensors_of(kernel, inputs)
                self._check(kernel, values)
                latency = self._time(kernel, values)
            except Exception as error:  # one bad config must not end the search
                trials.append(Trial(config, None, error))
                continue
            trials.append(Trial(config, latency))
            if best is None or latency < best[0]:
                kernel.latency, kernel.config = latency, dict(config)
                best = (latency, kernel)
        self.trials = tuple(trials)
        if best is None:
            raise _every_config_failed(self.jit.__name__, trials)
        if self.settings.ref_prog is not None and inputs is not None:
            best[1].ref_latency = self._time_reference(inputs)
        return best[1]

    def _make_inputs(self, kernel: JITKernel) -> list[Any]:
        if self.settings.supply_prog is not None:
            return list(self.settings.supply_prog(kernel.params))
        return list(kernel.get_profiler(self.settings.supply_type).inputs())

    def _check(self, kernel: JITKernel, inputs: Sequence[Any]) -> None:
        s = self.settings
        if s.skip_check or s.ref_prog is None:
            return
        profiler = kernel.get_profiler(s.supply_type)
        if s.manual_check_prog is not None:
            profiler.manual_assert_close(s.ref_prog, inputs, s.manual_check_prog)
            return
        profiler.assert_allclose(
            s.ref_prog, inputs, atol=s.atol, rtol=s.rtol,
            max_mismatched_ratio=s.max_mismatched_ratio,
        )  # fmt: skip

    def _time(self, kernel: JITKernel, inputs: Sequence[Any]) -> float:
        return float(
            kernel.get_profiler(self.settings.supply_type).do_bench(
                warmup=self.settings.warmup, rep=self.settings.rep, input_tensors=inputs
            )
        )

    def _time_reference(self, inputs: Sequence[Any]) -> float:
        from tilelang.runtime.profiler import do_bench

        reference = self.settings.ref_prog
        assert reference is not None
        return float(
            do_bench(lambda: reference(*inputs), warmup=self.settings.warmup, rep=self.settings.rep)
        )


@contextmanager
def set_autotune_inputs(*tensors: Any) -> Iterator[None]:
    """Tune on these arguments instead of random ones.

    >>> with set_autotune_inputs(a, b): kernel = matmul(1024, 1024, 1024)
    """
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    token = _given_inputs.set(list(given))
    try:
        yield
    finally:
        _given_inputs.reset(token)


_given_inputs: ContextVar[list[Any] | None] = ContextVar("autotune_inputs", default=None)


def _tensors_of(kernel: JITKernel, inputs: Sequence[Any]) -> list[Any]:
    """The arguments of one launch: an eager call carries compile-time values too."""
    return list(itertools.islice(inputs, len(kernel.signature.inputs)))


def _key(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What a tuning result depends on: values, and of tensors their shape and dtype."""
    named = {f"#{n}": _keyed(a) for n, a in enumerate(args)}
    named.update({name: _keyed(value) for name, value in kwargs.items()})
    return freeze_named("autotune", named)


def _keyed(value: Any) -> Any:
    shape = getattr(value, "shape", None)
    return value if shape is None else (tuple(shape), str(getattr(value, "dtype", "")))


def _every_config_failed(name: str, trials: Sequence[Trial]) -> Exception:
    """TL724: each config with its first diagnostic, and how often each reason came up."""
    reasons = Counter(t.reason.split(":")[0] for t in trials)
    counts = ", ".join(f"{reason} ×{count}" for reason, count in reasons.most_common())
    shown = [f"{dict(t.config)}: {t.reason}" for t in trials[:10]]
    if len(trials) > len(shown):
        shown.append(f"… and {len(trials) - len(shown)} more")
    return failure(
        "TL724",
        f"none of the {counted(len(trials), 'configuration')} of `{name}` works ({counts})",
        notes=tuple(shown),
        help="call the function with one config's values to see its diagnostics in full",
    )  # fmt: skip


def _check_configs(configs: Any) -> None:
    """TL116 for what is no list of dicts and no function; a generator is not looked into."""
    wrong: list[Any] = []
    if isinstance(configs, Mapping | str) or not (
        callable(configs) or isinstance(configs, Iterable)
    ):
        wrong = [configs]
    elif isinstance(configs, Sequence):
        wrong = [c for c in configs if not isinstance(c, Mapping)]
    if wrong:
        _refuse(
            "TL116",
            f"`autotune` is given {wrong[0]!r} where `configs` has dicts of parameter values",
            'write configs=[{"block": 64}, {"block": 128}], or pass a function of the arguments of '
            "the call that returns such a list",
        )


def _refuse(code: str, message: str, help: str) -> NoReturn:
    raise failure(code, message, help=help)
