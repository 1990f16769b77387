"""How is a function called whose own body is the kernel?

A call is traced twice. The first trace stops at the launch and tells what the tensors look like:
from the arguments it is then known which value each `T.const` has. The second trace, with those
values, is the kernel. Both are remembered: later calls bind the arguments, look the kernel up by
the compile-time values and the constant dimensions, and launch.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilelang.language.frontend import Parsed, parse_live
from tilelang.language.source import source_of
from tilelang.program.buffer import Buffer
from tilelang.program.expr import Var
from tilelang.program.stmt import Function
from tilelang.runtime.arguments import bind
from tilelang.runtime.fast_guard import MISSES, same_kind
from tilelang.runtime.kernel import JITKernel
from tilelang.runtime.keys import bad_call, binder, blamed, freeze_named
from tilelang.runtime.place import CPU, Place
from tilelang.runtime.report import warn
from tilelang.runtime.signature import OutIdx, Parameter, Signature, make_signature
from tilelang.runtime.tensors import is_tensor
from tilelang_diagnostics import (
    CompileError,
    diagnose,
    did_you_mean,
    error_for,
    failure,
    raise_for,
)
from tilelang_diagnostics.model import Diagnostic, Span

Build = Callable[[Function], JITKernel]


@dataclass(slots=True)
class Specialisation:
    """One set of compile-time values: the signature they give, and the kernels made from it."""

    constants: dict[str, Any]
    signature: Signature
    consts: Mapping[str, Var]
    sizes_of: Callable[..., tuple[int, ...]] | None
    span: Span | None
    kernels: dict[tuple[int, ...], JITKernel] = field(default_factory=dict)


class EagerKernel:
    """The specialisations of one function."""

    def __init__(
        self,
        python: Callable[..., Any],
        captured: Mapping[str, Any],
        out_idx: OutIdx,
        target_kind: Callable[[], str],
        build: Build,
        place: Callable[[], Place] = lambda: CPU,
    ) -> None:
        self.python = python
        self.captured = captured
        self.out_idx = out_idx
        self.target_kind = target_kind
        self.build = build
        self.place = place
        self.name = python.__name__
        self._bind: Callable[..., dict[str, Any]] | None = None
        # Parameters that every trace so far has declared as tensors or run-time scalars: they are
        # no part of the key.
        self._runtime: frozenset[str] | None = None
        self._by_constants: dict[Hashable, Specialisation] = {}
        # A test for arguments like those of an earlier call, and the kernel that one got.
        self._known: tuple[Callable[..., bool], JITKernel] | None = None
        self._others = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compile if need be, launch, and return the results."""
        if self._known is not None and not kwargs:
            like, kernel = self._known
            try:
                fits = like(*args)
            except Exception:  # another number of arguments, or some that are no tensors
                fits = False
            if fits:
                return kernel(*args)
        kernel, values = self.prepare(args, kwargs)
        result = kernel(*values)
        if not kwargs:
            self._remember(kernel, args, values)
        return result

    def _remember(self, kernel: JITKernel, args: Sequence[Any], values: Sequence[Any]) -> None:
        """Know tensors like these again, if a call is nothing but them."""
        self._others += 1
        if self._others % MISSES != 1 or len(args) != len(values) or not args:
            return
        torch = sys.modules.get("torch")
        if torch is not None and all(
            a is v and isinstance(a, torch.Tensor) for a, v in zip(args, values, strict=True)
        ):
            test = same_kind(args)
            self._known = None if test is None else (test, kernel)

    def prepare(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[JITKernel, list[Any]]:
        """The kernel for a call, and what it is to be called with."""
        bound, given_dims = self._bound(args, kwargs)
        special = self._specialisation(bound)
        inputs = special.signature.inputs
        values = [bound[p.name] for p in inputs]
        if not given_dims and special.sizes_of is not None:
            try:
                sizes = special.sizes_of(*values)
                return special.kernels[sizes], values
            except (KeyError, AttributeError, IndexError, TypeError):
                pass
        dims = {**given_dims, **self._dims(special, values, given_dims)}
        return self._kernel(special, dims), values

    def compile(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> JITKernel:
        """The kernel for these compile-time values and `T.const` dims, without running it."""
        if args and any(is_tensor(a) for a in args):
            return self.prepare(args, kwargs)[0]
        special, dims = self._without_tensors(args, kwargs)
        return self._kernel(special, dims)

    def function(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Function:
        """The traced kernel that `compile` would compile."""
        special, dims = self._without_tensors(args, kwargs)
        return self._trace(special, dims)

    def specialise(self, constants: Mapping[str, Any]) -> Specialisation:
        """The signature these compile-time values give; parameters without a value stay open."""
        parsed = parse_live(
            self.python, constants=constants, signature_only=True, captured=self.captured,
            target=self.target_kind(),
        )  # fmt: skip
        raise_for(parsed.diagnostics)
        return _specialisation(parsed, dict(constants), self.out_idx)

    # Arguments.

    def _bound(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, int]]:
        """Values by parameter name, and `T.const` values given by keyword."""
        if self._bind is None:
            self._bind = binder(self.python, self._allocated())
        try:
            return self._bind(*args, **kwargs), {}
        except TypeError as error:
            names = self._bind.__code__.co_varnames
            extra = {k: v for k, v in kwargs.items() if k not in names}
            if extra and all(isinstance(v, int) for v in extra.values()):
                rest = {k: v for k, v in kwargs.items() if k in names}
                try:
                    bound = self._bind(*args, **rest)
                except TypeError:
                    raise bad_call(self.python, error) from None
                self._check_consts(bound, extra)
                return bound, extra
            raise bad_call(self.python, error) from None

    def _check_consts(self, bound: Mapping[str, Any], extra: Mapping[str, int]) -> None:
        special = self._specialisation(bound)
        for name in extra:
            if name not in special.consts:
                known = (*bound, *special.consts)
                raise failure(
                    "TL720",
                    f"{self.name} has no parameter {name!r}{did_you_mean(name, known)}",
                    span=special.span)  # fmt: skip

    def _allocated(self) -> frozenset[str]:
        """Parameters that `out_idx` names: the caller does not pass them."""
        if self.out_idx is None:
            return frozenset()
        _refuse_two_kinds_of_output(self.python, self.out_idx)
        import inspect

        defaults = {
            p.name: p.default
            for p in inspect.signature(self.python).parameters.values()
            if p.default is not p.empty
        }
        signature = self.specialise(defaults).signature
        return frozenset(signature.params[i].name for i in signature.out_idx)

    def _specialisation(self, bound: Mapping[str, Any]) -> Specialisation:
        runtime = self._runtime
        if runtime is not None:
            key = freeze_named(self.name, {n: v for n, v in bound.items() if n not in runtime})
            found = self._by_constants.get(key)
            if found is not None:
                return found
        constants = {n: v for n, v in bound.items() if not is_tensor(v)}
        special = self._specialised(constants)
        self._check_declared(special, bound)
        declared = frozenset(p.name for p in special.signature.params)
        if runtime is None or not runtime <= declared:
            # A parameter that is a constant for some values is one for all: it belongs in the key.
            self._by_constants.clear()
            runtime = declared if runtime is None else runtime & declared
            self._runtime = runtime
        key = freeze_named(self.name, {n: v for n, v in bound.items() if n not in runtime})
        self._by_constants[key] = special
        return special

    def _specialised(self, constants: Mapping[str, Any]) -> Specialisation:
        try:
            return self.specialise(constants)
        except CompileError as error:
            raise blamed(self.python, constants, error, self.specialise) from None

    def _check_declared(self, special: Specialisation, bound: Mapping[str, Any]) -> None:
        declared = {p.name for p in special.signature.params}
        wrong = [n for n, v in bound.items() if is_tensor(v) and n not in declared]
        if wrong:
            raise error_for(tuple(self._undeclared(name, special.span) for name in wrong))

    def _undeclared(self, name: str, span: Span | None) -> Diagnostic:
        """TL167: there is no declaration, or it names no shape and dtype that can be known."""
        source, node = source_of(self.python)
        arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        found = [a.annotation for a in arguments if a.arg == name and a.annotation is not None] + [
            n.annotation for n in ast.walk(node)
            if isinstance(n, ast.AnnAssign)
            and isinstance(n.target, ast.Name)
            and n.target.id == name
        ]  # fmt: skip
        if not found:
            return diagnose(
                "TL167",
                f"parameter {name} of {self.name} is given a tensor but is not declared as one",
                span=span,
                help=f"declare it: {name}: T.Tensor(shape, dtype)",
            )
        return diagnose(
            "TL167",
            f"parameter {name} of {self.name} is given a tensor, but `{name}: "
            f"{ast.unparse(found[0])}` declares none with a shape and dtype known before the call",
            span=source.span(found[0]),
            help=f'write `{name}: T.Tensor((M, N), dtype)`, with `M, N = T.const("M, N")` before '
            "it for extents that the tensor itself decides",
        )

    # Constant dimensions.

    def _dims(
        self, special: Specialisation, values: Sequence[Any], given: Mapping[str, int]
    ) -> dict[str, int]:
        """Every `T.const` from the tensors; the call is checked on the way."""
        inputs = Signature(self.name, special.signature.inputs, span=special.signature.span)
        bound = bind(inputs, values, {}, place=self.place())
        found = {n: bound.dims[v] for n, v in special.consts.items() if v in bound.dims}
        self._require(special, {**found, **given})
        for name, value in given.items():
            if name in found and found[name] != value:
                raise failure(
                    "TL711",
                    f"{name} of {self.name} is {value} by keyword but {found[name]} by its tensors",
                    span=special.consts[name].span)  # fmt: skip
        return found

    def _require(self, special: Specialisation, dims: Mapping[str, int]) -> None:
        missing = [name for name in special.consts if name not in dims]
        if missing:
            example = ", ".join(f"{name}=256" for name in missing)
            raise error_for(tuple(diagnose(
                "TL715",
                f"{self.name} needs a value for the constant dimension {name}",
                span=special.consts[name].span,
                help=f"no argument gives it; pass it by keyword: {example}")
                for name in missing))  # fmt: skip

    def _without_tensors(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Specialisation, dict[str, int]]:
        """The specialisation for keyword values alone, and its constant dimensions."""
        import inspect

        parameters = inspect.signature(self.python).parameters
        constants = {p.name: p.default for p in parameters.values() if p.default is not p.empty}
        # Positions count the compile-time parameters only: tensors are not given here.
        for name, value in zip(parameters, args, strict=False):
            constants[name] = value
        constants.update({k: v for k, v in kwargs.items() if k in parameters})
        special = self._specialised({k: v for k, v in constants.items() if not is_tensor(v)})
        dims = {k: v for k, v in kwargs.items() if k not in parameters}
        unknown = [k for k in dims if k not in special.consts]
        if unknown:
            known = (*parameters, *special.consts)
            raise error_for(
                tuple(
                    diagnose(
                        "TL720",
                        f"{self.name} has no parameter or constant dimension {name!r}"
                        f"{did_you_mean(name, known)}",
                        span=special.span,
                    )
                    for name in unknown
                )
            )
        self._require(special, dims)
        return special, dims

    # Kernels.

    def _kernel(self, special: Specialisation, dims: Mapping[str, int]) -> JITKernel:
        sizes = tuple(dims[name] for name in special.consts)
        kernel = special.kernels.get(sizes)
        if kernel is None:
            try:
                traced = self._trace(special, dims)
            except CompileError as error:
                again = lambda v: self._trace(self.specialise(v), dims)  # noqa: E731
                raise blamed(self.python, special.constants, error, again) from None
            kernel = special.kernels[sizes] = self.build(traced)
            kernel.came_from(self.name, {**special.constants, **dims})
        return kernel

    def _trace(self, special: Specialisation, dims: Mapping[str, int]) -> Function:
        parsed = parse_live(
            self.python, constants=special.constants, dims=dict(dims), captured=self.captured,
            target=self.target_kind(),
        )  # fmt: skip
        raise_for(parsed.diagnostics)
        warn(parsed.diagnostics)
        assert parsed.function is not None
        return parsed.function


def _specialisation(parsed: Parsed, constants: dict[str, Any], out_idx: OutIdx) -> Specialisation:
    params = tuple(p for p in parsed.params.values() if _is_runtime(p))
    span = parsed.definition.span
    shell = Function(parsed.name, params, (), (), span)
    signature = make_signature(shell, out_idx)
    return Specialisation(
        constants, signature, parsed.consts, _sizes_reader(signature, parsed.consts), span
    )


def _is_runtime(value: Any) -> bool:
    return isinstance(value, Buffer) or (isinstance(value, Var) and value.kind == "param")


def _sizes_reader(
    signature: Signature, consts: Mapping[str, Var]
) -> Callable[..., tuple[int, ...]] | None:
    """A generated function from the inputs to the values of `consts`; None if it needs the checks.

    It checks nothing: the kernel that is found does.
    """
    inputs: tuple[Parameter, ...] = signature.inputs
    where: list[str] = []
    for var in consts.values():
        site = next(
            (f"a{i}.shape[{axis}]" for i, p in enumerate(inputs) if isinstance(p, Buffer)
             for axis, dim in enumerate(p.shape) if dim is var), None,
        )  # fmt: skip
        if site is None:
            return None
        where.append(site)
    names = ", ".join(f"a{i}" for i in range(len(inputs)))
    made: Callable[..., tuple[int, ...]] = eval(
        f"lambda {names}: ({', '.join(where)}{',' if len(where) == 1 else ''})",
        {"__builtins__": {}},
    )
    return made


def _refuse_two_kinds_of_output(python: Callable[..., Any], out_idx: OutIdx) -> None:
    """`out_idx` is for kernels that return nothing: before it decides which arguments to expect."""
    source, node = source_of(python)
    returned = next((s for s in node.body if isinstance(s, ast.Return) and s.value), None)
    if returned is None:
        return
    raise failure(
        "TL172",
        f"out_idx={out_idx!r} on `{node.name}`, which returns its results itself",
        span=source.span(returned),
        label="these tensors are allocated and returned already",
        help="drop out_idx")  # fmt: skip
