"""What does `@tilelang.jit` make of a function, and how does `tilelang.compile` work?

@tilelang.jit(out_idx=[-1])         # a factory: returns a kernel for its arguments
def matmul(M, N, K): ...            # kernel = matmul(1024, 1024, 1024); c = kernel(a, b)

@tilelang.jit                       # the kernel itself: compiles, launches, returns
def matmul(A, B, block=64): ...     # c = matmul(a, b)
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, overload

from tilelang.emulator.settings import emulator_of
from tilelang.language.primfunc import PrimFunc
from tilelang.language.source import source_of
from tilelang.options import CompileOptions, make_options
from tilelang.program.stmt import Function
from tilelang.runtime import dynamo
from tilelang.runtime.build import build_for
from tilelang.runtime.devices import resolve
from tilelang.runtime.eager import EagerKernel
from tilelang.runtime.kernel import JITKernel
from tilelang.runtime.keys import bad_call, binder, blamed, freeze_named, refuse_unknown
from tilelang.runtime.place import CPU, Place
from tilelang.runtime.report import warn
from tilelang.runtime.signature import OutIdx, make_signature
from tilelang.runtime.style import Style, style_of
from tilelang.target import Target
from tilelang_diagnostics import CompileError, diagnose, error_for, with_article
from tilelang_diagnostics.model import Diagnostic


@overload
def jit(func: Callable[..., Any] | PrimFunc) -> JitFunction: ...
@overload
def jit(
    func: None = None,
    *,
    out_idx: OutIdx = None,
    target: Any = None,
    target_host: Any = None,
    execution_backend: Any = None,
    verbose: bool | None = None,
    pass_configs: Mapping[Any, Any] | None = None,
    debug_root_path: str | None = None,
    compile_flags: Iterable[str] | str | None = None,
) -> Callable[[Callable[..., Any] | PrimFunc], JitFunction]: ...
def jit(
    func: Callable[..., Any] | PrimFunc | None = None,
    *,
    out_idx: OutIdx = None,
    target: Any = None,
    target_host: Any = None,
    execution_backend: Any = None,
    verbose: bool | None = None,
    pass_configs: Mapping[Any, Any] | None = None,
    debug_root_path: str | None = None,
    compile_flags: Iterable[str] | str | None = None,
    **unknown: Any,
) -> Any:
    """Make a function that compiles its kernel when it is called.

    Globals and closures are read when a kernel is compiled; a value that is to change from call to
    call is a parameter.

    Args:
        out_idx: positions of the parameters that a call allocates and returns; negative ones count
            from the end. Not for kernels that return `T.empty` tensors.
        target: `cpu`, `cuda:sm_90a`, …, a dict, or `auto`; default: TILELANG_DEFAULT_TARGET.
        pass_configs: compile options by key, see `tilelang.PassConfigKey`.
        compile_flags: further flags for the device compiler.
        verbose: say what is compiled.
        execution_backend: "emulator", or a `tilelang.Emulator`, runs code for a GPU on the CPU.
        target_host, debug_root_path: accepted, and without effect here.
    """
    refuse_unknown("tilelang.jit", unknown, jit)
    options = make_options(pass_configs, compile_flags)
    captured = dict(sys._getframe(1).f_locals)

    def decorate(function: Any) -> Any:
        return JitFunction(
            function, out_idx, target, options, bool(verbose), captured, execution_backend
        )

    return decorate if func is None else decorate(func)


def compile(
    func: Any,
    out_idx: OutIdx = None,
    execution_backend: Any = None,
    target: Any = None,
    target_host: Any = None,
    verbose: bool | None = None,
    pass_configs: Mapping[Any, Any] | None = None,
    compile_flags: Iterable[str] | str | None = None,
    **unknown: Any,
) -> JITKernel:
    """Compile a `@T.prim_func`; the arguments are those of `jit`."""
    if unknown and isinstance(func, JitFunction):
        values = ", ".join(f"{name}={value!r}" for name, value in unknown.items())
        help = f"values are given to the kernel: {func.__name__}.compile({values})"
        refuse_unknown("tilelang.compile", unknown, compile, help)
    refuse_unknown("tilelang.compile", unknown, compile)
    options = make_options(pass_configs, compile_flags)
    return compile_prim_func(
        as_prim_func(func), out_idx, target, options, bool(verbose), execution_backend
    )


def compile_prim_func(
    prim_func: PrimFunc,
    out_idx: OutIdx,
    target: Any,
    options: CompileOptions,
    verbose: bool = False,
    execution_backend: Any = None,
) -> JITKernel:
    """A kernel from a traced function and checked options."""
    make_signature(prim_func.function, out_idx)
    resolved: Target = resolve(target).target
    warn(prim_func.parsed.diagnostics)
    built = build_for(execution_backend, prim_func.function, resolved, options, verbose)
    return JITKernel(prim_func.function, built, out_idx, options, prim_func)


def as_prim_func(value: Any) -> PrimFunc:
    """`value`, if it is a traced kernel; TL173 says what to pass instead."""
    if isinstance(value, PrimFunc):
        return value
    help = "pass what @T.prim_func made"
    if isinstance(value, JitFunction):
        help = (
            f"{value.__name__}.compile(...) gives its kernel, and takes target= and "
            "execution_backend="
        )
    elif callable(value):
        help = (
            "call the factory: tilelang.compile(factory(...)), or decorate the kernel: @T.prim_func"
        )
    raise error_for((_no_kernel(f"{with_article(type(value).__name__)} is not a kernel", help),))


@dynamo.opaque("__call__", "compile")
class JitFunction:
    """A function decorated with `@tilelang.jit`."""

    def __init__(
        self,
        python: Callable[..., Any] | PrimFunc,
        out_idx: OutIdx,
        target: Any,
        options: CompileOptions,
        verbose: bool,
        captured: Mapping[str, Any],
        execution_backend: Any = None,
    ) -> None:
        problem = None if isinstance(python, PrimFunc) else _no_function(python)
        if problem is not None:
            raise error_for((_no_kernel(f"@tilelang.jit on {problem}", _way_out(python)),))
        self.python = python
        self.out_idx = out_idx
        self.target = target
        self.options = options
        self.verbose = verbose
        self.captured = captured
        self.execution_backend = execution_backend
        self._style: Style | None = None
        self._eager: EagerKernel | None = None
        self._bind: Callable[..., dict[str, Any]] | None = None
        self._kernels: dict[Hashable, JITKernel] = {}
        self._elsewhere: dict[Hashable, JitFunction] = {}
        functools.update_wrapper(self, python)
        self.__name__: str = python.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A factory: its kernel. A kernel: its results, compiled on the way if need be."""
        if dynamo.hide_if_loaded():
            return self(*args, **kwargs)
        eager = self._eager
        if eager is not None:
            return eager(*args, **kwargs)
        if isinstance(self.python, PrimFunc):
            return self._kernel_of(self.python, ())(*args, **kwargs)
        if self.style == "kernel":
            return self.eager(*args, **kwargs)
        return self._factory_kernel(args, kwargs)

    @property
    def style(self) -> Style:
        """Whether this is a factory of kernels or a kernel itself."""
        if self._style is None:
            if isinstance(self.python, PrimFunc):
                self._style = "factory"
            else:
                self._style = style_of(source_of(self.python)[1])
        return self._style

    @property
    def eager(self) -> EagerKernel:
        """The kernel, for a function that is one."""
        if self._eager is None:
            assert not isinstance(self.python, PrimFunc)
            self._eager = EagerKernel(
                self.python, self.captured, self.out_idx, self._target_kind, self._build,
                self._place,
            )  # fmt: skip
        return self._eager

    def compile(self, *args: Any, **kwargs: Any) -> JITKernel:
        """The kernel for these values, without running it; `T.const` dims are given by keyword.

        So are `target` and `execution_backend`, where the kernel is to be built for others than
        `@tilelang.jit` says; a parameter of the kernel with such a name keeps its meaning.
        """
        if dynamo.hide_if_loaded():
            again: JITKernel = self.compile(*args, **kwargs)
            return again
        options = self._options_among(kwargs)
        if options:
            rest = {k: v for k, v in kwargs.items() if k not in options}
            return self._built_for(**options).compile(*args, **rest)
        if isinstance(self.python, PrimFunc):
            return self._kernel_of(self.python, ())
        if self.style == "kernel":
            return self.eager.compile(args, kwargs)
        kernel: JITKernel = self._factory_kernel(args, kwargs)
        return kernel

    def get_tir(self, *args: Any, **kwargs: Any) -> Any:
        """The traced kernel for these values."""
        if isinstance(self.python, PrimFunc):
            return self.python
        if self.style == "kernel":
            return self.eager.function(args, kwargs)
        return self._call_factory(args, kwargs)

    def get_kernel_source(self, *args: Any, kernel_only: bool = True, **kwargs: Any) -> str:
        """The generated code for these values."""
        return self.compile(*args, **kwargs).get_kernel_source(kernel_only)

    def par_compile(
        self,
        configs: Iterable[Mapping[str, Any] | Sequence[Any]],
        num_workers: int | None = None,
        ignore_error: bool = False,
    ) -> list[JITKernel | None]:
        """Kernels for several sets of values, compiled by several processes."""
        from tilelang.runtime.parallel import build_all

        functions: list[Function] = []
        for config in configs:
            args, kwargs = ((), config) if isinstance(config, Mapping) else (config, {})
            traced = self.get_tir(*args, **kwargs)
            functions.append(traced.function if isinstance(traced, PrimFunc) else traced)
        target = resolve(self.target).target
        built = build_all(functions, target, self.options, num_workers, ignore_error)
        return [
            None if b is None else JITKernel(f, b, self.out_idx, self.options)
            for f, b in zip(functions, built, strict=True)
        ]

    # Other targets.

    def _options_among(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """What says where to run, and is no value of the kernel: its dimensions are ints."""
        found = {k: v for k, v in kwargs.items() if k in _OPTIONS and not isinstance(v, int)}
        if not found or isinstance(self.python, PrimFunc):
            return found
        parameters = inspect.signature(self.python).parameters
        if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            return {}
        return {k: v for k, v in found.items() if k not in parameters}

    def _built_for(self, target: Any = None, execution_backend: Any = None) -> JitFunction:
        """This function for another target or backend, whose kernels are kept as well."""
        resolved = resolve(self.target if target is None else target).target
        backend = self.execution_backend if execution_backend is None else execution_backend
        found = self._elsewhere.get((resolved, backend))
        if found is None:
            found = JitFunction(
                self.python, self.out_idx, resolved, self.options, self.verbose, self.captured,
                backend,
            )  # fmt: skip
            self._elsewhere[resolved, backend] = found
        return found

    # Factories.

    def _factory_kernel(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        assert not isinstance(self.python, PrimFunc)
        if self._bind is None:
            self._bind = binder(self.python)
        try:
            values = self._bind(*args, **kwargs)
        except TypeError as error:
            raise bad_call(self.python, error) from None
        key = freeze_named(self.__name__, values)
        kernel = self._kernels.get(key)
        if kernel is not None:
            return kernel
        try:
            made = self._call_factory(args, kwargs)
        except CompileError as error:
            if self.style == "unknown" and any(d.code == "TL169" for d in error.diagnostics):
                # Its launch is in a macro: the function itself is the kernel.
                self._style = "kernel"
                return self.eager(*args, **kwargs)
            python = self.python
            raise blamed(python, values, error, lambda v: python(**v)) from None
        kernel = self._kernel_of(made, key)
        kernel.came_from(self.__name__, values)
        return kernel

    def _call_factory(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> PrimFunc:
        assert not isinstance(self.python, PrimFunc)
        made = self.python(*args, **kwargs)
        if isinstance(made, PrimFunc):
            return made
        what = "nothing" if made is None else with_article(type(made).__name__)
        raise error_for((_no_kernel(
            f"{self.__name__} returns {what}, not a kernel",
            "return the function decorated with @T.prim_func", self._span()),))  # fmt: skip

    def _kernel_of(self, prim_func: PrimFunc, key: Hashable) -> JITKernel:
        kernel = self._kernels.get(key)
        if kernel is None:
            kernel = compile_prim_func(
                prim_func, self.out_idx, self.target, self.options, self.verbose,
                self.execution_backend,
            )  # fmt: skip
            self._kernels[key] = kernel
        return kernel

    # What eager kernels are made with.

    def _target_kind(self) -> str:
        return str(resolve(self.target).target)

    def _place(self) -> Place:
        """Where the tensors of a call have to be."""
        emulated = emulator_of(self.execution_backend) is not None
        on_gpu = resolve(self.target).target.kind == "cuda" and not emulated
        return Place("cuda") if on_gpu else CPU

    def _build(self, function: Function) -> JITKernel:
        target = resolve(self.target).target
        built = build_for(self.execution_backend, function, target, self.options, self.verbose)
        return JITKernel(function, built, self.out_idx, self.options)

    def _span(self) -> Any:
        try:
            source, node = source_of(self.python)
        except CompileError:
            return None
        return source.line_span(node.lineno)

    # A kernel in a `torch.nn.Module` is copied and pickled with it: as functions are, by name.

    def __deepcopy__(self, memo: Any) -> JitFunction:
        return self

    def __copy__(self) -> JitFunction:
        return self

    def __reduce__(self) -> str:
        return str(getattr(self, "__qualname__", self.__name__))

    def __repr__(self) -> str:
        return f"<tilelang.jit {self.__name__}>"


def _no_function(value: Any) -> str | None:
    """What is decorated, where that can be no kernel and no factory of kernels."""
    if isinstance(value, type):
        return f"`{value.__name__}`, which is a class"
    if not callable(value) or not hasattr(value, "__name__"):
        return with_article(type(value).__name__)
    if _is_method(value):
        return f"`{value.__qualname__}`, which is a method"
    if inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(value):
        return f"`{value.__name__}`, which is async"
    return None


def _no_kernel(message: str, help: str, span: Any = None) -> Diagnostic:
    return diagnose("TL173", message, span=span, help=help)


def _is_method(value: Any) -> bool:
    """A function of a class body that takes an instance."""
    outer = getattr(value, "__qualname__", "").rpartition(".")[0]
    first = next(iter(getattr(getattr(value, "__code__", None), "co_varnames", ())), "")
    return outer not in ("", "<locals>") and not outer.endswith("<locals>") and first in _INSTANCES


_INSTANCES: Final = ("self", "cls")
_OPTIONS: Final = ("target", "execution_backend")


def _way_out(value: Any) -> str:
    if isinstance(value, str):
        return f"give the target by keyword: @tilelang.jit(target={value!r})"
    if _is_method(value):
        return "define it with `def` outside of the class, and pass what it reads of the instance"
    return "decorate a function made with `def`"
