"""The two ways into the front end: a live function, or a file's text that nobody runs.

    parse_live(function)                 values come from the function's closure and globals
    parse_static(text, "kernel.py")      values come from the text; unknown ones stay symbols

Both give `Parsed` kernels with diagnostics and symbols, and never raise for what a user wrote.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from tilelang.language import expressions, statements
from tilelang.language.definitions import definition_of, macro, prim_func
from tilelang.language.file_values import FileValues
from tilelang.language.frame import Definition, Frame, FrameEnvironment
from tilelang.language.hosting import IMPORTED
from tilelang.language.imported_modules import (
    ImportedModules,
    ModuleEnvironment,
    execute_module_statement,
)
from tilelang.language.inlining import Macro, StaticFunction
from tilelang.language.source import FunctionNode, SourceFile
from tilelang.language.static_modules import JitMarker
from tilelang.language.symbols import SymbolTable
from tilelang.language.tracing import Parsed, trace_kernel
from tilelang.language.unparsable import PARSE_ERRORS, unparsable
from tilelang.program.context import Reject, Trace, tracing
from tilelang.program.expr import INT32, Var
from tilelang.program.unknown import Unknown
from tilelang_diagnostics.model import Diagnostic


def parse_live(
    function: Callable[..., Any],
    *,
    constants: Mapping[str, Any] | None = None,
    dims: Mapping[str, int] | None = None,
    signature_only: bool = False,
    captured: Mapping[str, Any] | None = None,
    target: str | None = None,
) -> Parsed:
    """Trace an eager kernel function.

    Args:
        constants: values of parameters that are no tensors.
        dims: values of the kernel's `T.const` names; left out, they stay symbols.
        signature_only: stop at the launch, to learn what the tensors look like.
    """
    return trace_kernel(
        definition_of(function, captured or {}), "eager", constants=constants, dims=dims,
        signature_only=signature_only, target=target,
    )  # fmt: skip


def parse_static(
    text: str,
    path: str,
    *,
    kernel: str | Collection[str] | None = None,
    values: Mapping[str, Any] | None = None,
    target: str | None = None,
    select: Collection[str] = (),
    project: Mapping[str, Any] | None = None,
    with_layouts: bool = True,
    source: SourceFile | None = None,
    modules: ImportedModules | None = None,
) -> StaticResult:
    """Find and trace every kernel of a file from its text alone.

    Args:
        kernel: only the kernel (or factory) of this name, or of these names.
        values: values for parameters of factories and eager kernels and for `T.const`
            dimensions, by name; what they leave open the file itself may say (`file_values.py`).
        select: codes of checks that are off unless asked for.
        project: values that the project sets for all of its files.
        with_layouts: whether the target's checks infer layouts, too.
        source: the text, if it was parsed already.
        modules: what may be known of the files that this one imports; nothing if left out.
    """
    try:
        source = source or SourceFile.parse(path, text)
    except PARSE_ERRORS as error:
        return StaticResult((), (unparsable(path, text, error),))
    said = FileValues(path, text, source.tree, project=project)
    reader = _StaticReader(source, kernel, values or {}, said, target, select)
    reader.with_layouts = with_layouts
    reader.modules = reader.trace.facts[IMPORTED] = modules
    return reader.read()


class StaticResult(tuple[Parsed, ...]):
    """The kernels of a file in order; `diagnostics` are those outside any kernel."""

    diagnostics: tuple[Diagnostic, ...]

    def __new__(
        cls, kernels: tuple[Parsed, ...], diagnostics: tuple[Diagnostic, ...] = ()
    ) -> StaticResult:
        made = super().__new__(cls, kernels)
        made.diagnostics = diagnostics
        return made

    @property
    def all_diagnostics(self) -> tuple[Diagnostic, ...]:
        """Those of the file and of every kernel, each once, in source order."""
        seen: dict[Diagnostic, None] = dict.fromkeys(self.diagnostics)
        for parsed in self:
            seen.update(dict.fromkeys(parsed.diagnostics))
        return tuple(sorted(seen, key=lambda d: (d.span.line, d.span.column) if d.span else (0, 0)))


# Begins with a plain word, which is looked for ten times as fast.
_STAR_IMPORT = re.compile(r"import\s*\(?\s*\*")
# What can be said of code around kernels, which is ordinary Python and may do what it likes: only
# what concerns a name of the language itself.
_HOST_CODES = frozenset({"TL111", "TL112", "TL118", "TL230", "TL231"})


class _HostTrace(Trace):
    """The trace of module and factory bodies."""

    def report(self, diagnostic: Diagnostic) -> None:
        if diagnostic.code in _HOST_CODES and not self.speculative:
            super().report(diagnostic)


class _StaticReader:
    """Interprets a module's text as host code and traces the kernels it defines."""

    def __init__(
        self,
        source: SourceFile,
        kernel: str | Collection[str] | None,
        values: Mapping[str, Any],
        said: FileValues,
        target: str | None,
        select: Collection[str] = (),
    ) -> None:
        self.source = source
        self.wanted = (kernel,) if isinstance(kernel, str) else kernel
        self.with_layouts = True
        self.modules: ImportedModules | None = None
        self.values = values
        self.said = said
        self.target = target
        self.select = select
        self.kernels: list[Parsed] = []
        self.trace = _HostTrace()
        self.factories: list[str] = []

    def read(self) -> StaticResult:
        star = _STAR_IMPORT.search(self.source.text) is not None and any(
            isinstance(n, ast.ImportFrom) and any(a.name == "*" for a in n.names)
            for n in ast.walk(self.source.tree)
        )
        frame = Frame(
            self.trace, self.source, ModuleEnvironment(star), SymbolTable(), "<module>", host=True
        )
        frame.on_define = self._define
        with tracing(self.trace):
            for node in self.source.tree.body:
                execute_module_statement(frame, node)
            self._trace_functions(frame)
        problems = (*self.trace.diagnostics, *self.said.commented.problems)
        return StaticResult(tuple(self.kernels), problems)

    def _trace_functions(self, frame: Frame) -> None:
        for node in self.source.tree.body:
            if isinstance(node, ast.ClassDef):
                continue
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                local = frame.names.get(node.name)
                if local is not None and isinstance(local.value, _Pending):
                    local.value.trace(self)

    def _define(self, frame: Frame, node: FunctionNode) -> Any:
        """What a `def` in host code is: a macro, a kernel, a factory, or a helper."""
        definition = Definition(node.name, self.source, node, FrameEnvironment(frame))
        marks = [self._decorator(frame, d) for d in node.decorator_list]
        if any(m is macro for m in marks):
            return Macro(definition)
        jit = next((m for m in marks if isinstance(m, JitMarker)), None)
        if any(m is prim_func for m in marks):
            self._trace_one(definition, "prim_func", {}, {}, frame)
            return Unknown(node.name)
        if frame.function == "<module>":
            if "prim_func" in self.source.text and _defines_kernel(node):
                return _Pending(definition, frame, None if jit is None else jit.kwargs, True)
            if jit is not None:
                return _Pending(definition, frame, jit.kwargs, False)
        return StaticFunction(definition, frame)

    def _decorator(self, frame: Frame, node: ast.expr) -> Any:
        try:
            return expressions.evaluate(frame, node)
        except Reject:
            return Unknown("decorator")

    def trace_pending(self, pending: _Pending) -> None:
        """Interpret a factory's body, or trace an eager kernel, with the best values known."""
        definition = pending.definition
        constants, assumed = self._parameter_values(definition, pending)
        if not pending.is_factory:
            self._trace_one(
                definition, "eager", constants, assumed, pending.frame, pending.jit or {}
            )
            return
        self.factories.append(definition.name)
        frame = Frame(
            self.trace, self.source, FrameEnvironment(pending.frame), SymbolTable(),
            definition.name, host=True, on_define=self._define,
        )  # fmt: skip
        self._pending_options = (pending.jit or {}, assumed, definition.name)
        for parameter in _parameters(definition.node):
            frame.bind(parameter.arg, constants[parameter.arg], self.source.span(parameter))
        try:
            statements.execute_block(frame, definition.node.body)
        except (statements.TooLarge, RecursionError):
            pass
        finally:
            self._pending_options = ({}, {}, None)

    _pending_options: tuple[Mapping[str, Any], Mapping[str, Any], str | None] = ({}, {}, None)

    def _trace_one(
        self,
        definition: Definition,
        style: Any,
        constants: Mapping[str, Any],
        assumed: Mapping[str, Any],
        frame: Frame,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        factory_options, factory_assumed, factory = self._pending_options
        if self.wanted is not None and not {definition.name, factory} & {*self.wanted}:
            return
        if any(k.definition.node is definition.node for k in self.kernels):
            return  # both branches of an undecided `if` reach the same text
        trace = Trace()
        trace.facts[IMPORTED] = self.modules
        parsed = trace_kernel(
            definition, style, constants=constants, dims=self._dims(factory or definition.name),
            target=self.target, assumed={**factory_assumed, **assumed},
            jit_options=options or factory_options, trace=trace, select=self.select,
            with_layouts=self.with_layouts,
        )  # fmt: skip
        given = trace.facts.get("given_consts", {})
        self.kernels.append(replace(parsed, assumed={**parsed.assumed, **given}))

    def _dims(self, kernel: str) -> Mapping[str, Any]:
        """Values of `T.const` dimensions: only what is said of them by name.

        The others stay symbols, so that what is found holds for every size.
        """
        stated = {**self.said.project, **self.said.commented.of(kernel)}
        return {**stated, **self.values}

    def _parameter_values(
        self, definition: Definition, pending: _Pending
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Given values, the file's own, defaults, else a symbol of the parameter's own name."""
        out: dict[str, Any] = {}
        assumed: dict[str, Any] = {}
        said = self.said.of(definition.name)
        for position, (parameter, default) in enumerate(_parameters_with_defaults(definition.node)):
            name = parameter.arg
            own = said.argument(position, name) if parameter.annotation is None else None
            if name in self.values:
                out[name] = assumed[name] = self.values[name]
            elif own is not None:
                out[name] = assumed[name] = own.value
            elif default is not None:
                try:
                    out[name] = expressions.evaluate(pending.frame, default)
                except Reject:
                    out[name] = Unknown(name)
            elif pending.is_factory:
                out[name] = Var(name, INT32, self.source.span(parameter), "symbol")
        return out, assumed


class _Pending:
    """A top-level factory or eager kernel, traced once the whole module has been read."""

    def __init__(
        self, definition: Definition, frame: Frame, jit: Mapping[str, Any] | None, is_factory: bool
    ) -> None:
        self.definition = definition
        self.frame = frame
        self.jit = jit
        self.is_factory = is_factory

    def trace(self, reader: _StaticReader) -> None:
        reader.trace_pending(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Unknown:
        return Unknown(f"{self.definition.name}(…)")


def _defines_kernel(node: FunctionNode) -> bool:
    """Whether a function's body defines a `@T.prim_func`."""
    for inner in ast.walk(node):
        if inner is not node and isinstance(inner, ast.FunctionDef):
            if any("prim_func" in ast.unparse(d) for d in inner.decorator_list):
                return True
    return False


def _parameters(node: FunctionNode) -> list[ast.arg]:
    return [p for p, _ in _parameters_with_defaults(node)]


def _parameters_with_defaults(node: FunctionNode) -> list[tuple[ast.arg, ast.expr | None]]:
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    padding: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    pairs = list(zip(positional, [*padding, *arguments.defaults], strict=True))
    return [*pairs, *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]


__all__ = ["Parsed", "StaticResult", "parse_live", "parse_static"]
