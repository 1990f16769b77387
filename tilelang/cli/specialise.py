"""From a kernel in a file and `--set` values to a compiled kernel and the sizes of its inputs."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from tilelang.cli.files import Chosen, KernelFile
from tilelang.cli.user_code import call
from tilelang.language.file_values import KernelValues, Value
from tilelang.language.primfunc import PrimFunc
from tilelang.options import CompileOptions
from tilelang.program.expr import Var
from tilelang.program.stmt import Function
from tilelang.runtime.jit import JitFunction
from tilelang.runtime.keys import blamed
from tilelang.runtime.signature import OutIdx, Signature, make_signature
from tilelang_diagnostics import (
    CompileError,
    diagnose,
    did_you_mean,
    error_for,
    raise_for,
    with_article,
)
from tilelang_diagnostics.model import Span

_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class Specialised:
    """A traced kernel with everything a run needs to know.

    `values` are those it was traced with, `sizes` those of runtime dimensions and scalars; both
    say where they come from.
    """

    function: Function
    out_idx: OutIdx
    target: Any
    options: CompileOptions
    values: Mapping[str, Value]
    sizes: Mapping[str, Value]

    @property
    def signature(self) -> Signature:
        """What a call takes and returns."""
        return make_signature(self.function, self.out_idx)

    def plain_sizes(self) -> dict[str, Any]:
        """`sizes` without their origins."""
        return {name: v.value for name, v in self.sizes.items()}


def specialise(chosen: Chosen, settings: Mapping[str, Any], target: Any = None) -> Specialised:
    """Trace the chosen kernel with `settings`, the file's own values, and its defaults."""
    search = _Search(chosen, dict(settings))
    entry = chosen.entry
    if isinstance(entry, PrimFunc):
        return search.finish(entry.function, _compile_out_idx(chosen), target, CompileOptions())
    if not isinstance(entry, JitFunction):
        values = search.parameters(entry)
        made = search.sized(entry, values, lambda v: _call_factory(chosen, entry, v))
        return search.finish(made.function, _compile_out_idx(chosen), target, CompileOptions())
    jit = JitFunction(
        entry.python, entry.out_idx, entry.target if target is None else target, entry.options,
        False, entry.captured,
    )  # fmt: skip
    if isinstance(jit.python, PrimFunc):
        return search.finish(jit.python.function, jit.out_idx, jit.target, jit.options)
    if jit.style == "kernel":
        function = search.eager(jit)
    else:
        python, values = jit.python, search.parameters(jit.python)
        made = search.sized(python, values, lambda v: call(jit.get_tir, v, of=python))
        function = made.function if isinstance(made, PrimFunc) else made
    return search.finish(function, jit.out_idx, jit.target, jit.options)


class _Search:
    """Looks for values, and remembers which were used."""

    def __init__(self, chosen: Chosen, settings: dict[str, Any]) -> None:
        self.chosen = chosen
        self.settings = settings
        self.used: set[str] = set()
        values = chosen.file.values()
        self.commented = values.commented
        raise_for(self.commented.problems)
        self.file: KernelValues = values.of(chosen.name)
        self.values: dict[str, Value] = {}

    def parameters(
        self, python: Callable[..., Any], without: frozenset[str] = frozenset()
    ) -> dict[str, Any]:
        """A value for every parameter of a function; TL716 names those that have none."""
        missing = []
        for position, parameter in enumerate(inspect.signature(python).parameters.values()):
            if (
                parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
                or parameter.name in without
            ):
                continue
            value = self.parameter(position, parameter)
            if value is None:
                missing.append(parameter.name)
            else:
                self.values[parameter.name] = value
        self.require(missing)
        return {name: v.value for name, v in self.values.items()}

    def eager(self, jit: JitFunction) -> Function:
        """The function of a kernel that is its own factory, traced for constant dimensions."""
        assert not isinstance(jit.python, PrimFunc)
        declared = _declared_names(self.chosen.file, self.chosen.name)
        parameters = self.parameters(jit.python, declared)
        special = self.sized(jit.python, parameters, jit.eager.specialise)
        missing = []
        for name in special.consts:
            found = self.setting(name) or self.file.named(name)
            if found is None:
                missing.append(name)
            else:
                self.values[name] = found
        self.require(missing)
        values = {n: v.value for n, v in self.values.items()}
        return self.sized(jit.python, values, lambda v: jit.eager.function((), v))

    def sized(
        self, python: Callable[..., Any], values: Mapping[str, Any],
        attempt: Callable[[Mapping[str, Any]], _Made],
    ) -> _Made:  # fmt: skip
        """What an attempt with `values` makes; one that is no size is one mistake."""
        try:
            return attempt(values)
        except CompileError as error:
            given, instead = {}, {}
            for position, name in enumerate(inspect.signature(python).parameters):
                given[name] = _parameter_span(self.chosen, name)
                other = self.file.argument(position, name) or self.file.named(name)
                if other is not None and name in self.settings:
                    instead[name] = other.value
            raise blamed(python, values, error, attempt, given, instead) from None

    def parameter(self, position: int, parameter: inspect.Parameter) -> Value | None:
        found = self.setting(parameter.name) or self.file.argument(position, parameter.name)
        if found is not None:
            return found
        if parameter.default is not parameter.empty:
            return Value(parameter.default, "its default")
        return self.file.named(parameter.name)

    def setting(self, name: str) -> Value | None:
        if name not in self.settings:
            return None
        self.used.add(name)
        return Value(self.settings[name], "--set")

    def finish(
        self, function: Function, out_idx: OutIdx, target: Any, options: CompileOptions
    ) -> Specialised:
        signature = make_signature(function, out_idx)
        scalars = [p for p in signature.params if isinstance(p, Var)]
        sizes: dict[str, Value] = {}
        for var in (*signature.dims, *scalars):
            found = self.setting(var.name) or self.file.named(var.name)
            if found is not None:
                sizes[var.name] = found
        unused = [name for name in self.settings if name not in self.used]
        if unused:
            known = (*self.values, *(v.name for v in (*signature.dims, *scalars)))
            _refuse("TL720", [f"`{self.chosen.name}` has no parameter or dimension `{name}`"
                    f"{did_you_mean(name, known)}" for name in unused],
                    f"it has: {', '.join(known)}" if known else None, function.span)  # fmt: skip
        self.check_comments({*self.values, *(v.name for v in (*signature.dims, *scalars))})
        return Specialised(function, out_idx, target, options, self.values, sizes)

    def check_comments(self, known: set[str]) -> None:
        """TL720 for a name in a comment that is for this kernel alone, and that it lacks."""
        comments = self.commented
        alone = len(self.chosen.file.kernels()) == 1
        names = set(comments.of_function.get(self.chosen.name, ()))
        names |= set(comments.everywhere) if alone else set()
        for name in sorted(names - known):
            _refuse("TL720", [f"`{self.chosen.name}` has no parameter or dimension `{name}`"
                              f"{did_you_mean(name, sorted(known))}"],
                    f"it has: {', '.join(sorted(known))}" if known else None,
                    comments.spans[name])  # fmt: skip

    def require(self, missing: Iterable[str]) -> None:
        names = list(missing)
        if names:
            *first, last = (f"`{n}`" for n in names)
            listed = f"{', '.join(first)} and {last}" if first else last
            _refuse("TL716", [f"{listed} of `{self.chosen.name}` {'have' if names[1:] else 'has'}"
                    " no value"],
                    f"give {'them' if len(names) > 1 else 'it'}: --set "
                    f"{','.join(f'{n}=1024' for n in names)}", None)  # fmt: skip


def _call_factory(
    chosen: Chosen, factory: Callable[..., Any], values: Mapping[str, Any]
) -> PrimFunc:
    made = call(factory, values)
    if isinstance(made, PrimFunc):
        return made
    _refuse("TL173", [f"`{chosen.name}` returns {with_article(type(made).__name__)}, not a kernel"],
            "return the function decorated with @T.prim_func", None)  # fmt: skip
    raise AssertionError("unreachable")


def _parameter_span(chosen: Chosen, name: str) -> Span | None:
    """Where the kernel declares a parameter."""
    for node in ast.walk(chosen.file.tree):
        if isinstance(node, ast.FunctionDef) and node.name == chosen.name:
            arguments = node.args
            for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                if a.arg == name:
                    return Span(str(chosen.file.path), a.lineno, a.col_offset + 1, a.lineno,
                                a.col_offset + 1 + len(name))  # fmt: skip
    return None


def _declared_names(file: KernelFile, name: str) -> frozenset[str]:
    """Parameters of the function `name` that are annotated, in its signature or its body."""
    for node in ast.walk(file.tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            found = {a.arg for a in arguments if a.annotation is not None}
            found |= {
                n.target.id for n in ast.walk(node)
                if isinstance(n, ast.AnnAssign)
                and n.value is None
                and isinstance(n.target, ast.Name)
            }  # fmt: skip
            return frozenset(found)
    return frozenset()


def _compile_out_idx(chosen: Chosen) -> OutIdx:
    """The `out_idx` of the file's own `tilelang.compile(...)`, when it is written out."""
    for node in ast.walk(chosen.file.tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
                and node.func.attr == "compile"):  # fmt: skip
            continue
        for keyword in node.keywords:
            if keyword.arg == "out_idx":
                try:
                    value = ast.literal_eval(keyword.value)
                except ValueError:
                    continue
                return value if isinstance(value, int) else list(value)
    return None


def _refuse(code: str, messages: list[str], help: str | None, span: Span | None) -> None:
    raise error_for(diagnose(code, m, span, help=help) for m in messages)
