"""From a definition to a typed tile program: parameters, body, outputs, final checks.

Live kernels, eager kernels and kernels known only as text all go through `trace_kernel`.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tilelang.checks import check_function
from tilelang.dtypes import SCALARS, DType, as_dtype
from tilelang.language import divisions, expressions, statements
from tilelang.language.control import SignatureDone
from tilelang.language.finished import check_finished
from tilelang.language.frame import Definition, Frame
from tilelang.language.old_reducers import with_shares
from tilelang.language.source_kernel import with_arguments
from tilelang.language.symbols import SymbolTable
from tilelang.language.types import PointerType, TensorType, declare_scalar
from tilelang.program.buffer import Buffer
from tilelang.program.context import Reject, Trace, make_diagnostic, reject, tracing
from tilelang.program.expr import INT32, Var
from tilelang.program.stmt import Function
from tilelang.program.unknown import Unknown
from tilelang_diagnostics.model import Diagnostic, has_errors

Style = Literal["prim_func", "eager"]


@dataclass(frozen=True, slots=True, eq=False)
class Parsed:
    """What the front end made of one kernel; `function` is None when errors prevent it.

    `params` maps every parameter to its Buffer, its run-time scalar Var, or the Python constant
    it stands for. `consts` are the `T.const` dims, `tree` the definition it came from.
    """

    name: str
    function: Function | None
    diagnostics: tuple[Diagnostic, ...]
    symbols: SymbolTable
    definition: Definition
    style: Style
    params: Mapping[str, Any]
    consts: Mapping[str, Var] = field(default_factory=dict)
    assumed: Mapping[str, Any] = field(default_factory=dict)
    jit_options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.function is not None

    @property
    def signature(self) -> Mapping[str, Any]:
        return self.params


def trace_kernel(
    definition: Definition,
    style: Style,
    *,
    constants: Mapping[str, Any] | None = None,
    dims: Mapping[str, int] | None = None,
    signature_only: bool = False,
    target: str | None = None,
    assumed: Mapping[str, Any] | None = None,
    jit_options: Mapping[str, Any] | None = None,
    trace: Trace | None = None,
    select: Collection[str] = (),
    with_layouts: bool = True,
) -> Parsed:
    """Interpret `definition` as a kernel. Never raises for what the user wrote."""
    trace = trace or Trace()
    symbols = SymbolTable()
    trace.target = target
    trace.facts.update(
        symbols=symbols, eager=style == "eager", dims=dims, signature_only=signature_only,
        static=definition.env.static,
        out_idx=(jit_options or {}).get("out_idx"),
    )  # fmt: skip
    frame = Frame(
        trace, definition.source, definition.env, symbols, definition.name, node=definition.node
    )
    tracer = _Tracer(definition, style, constants or {}, frame)
    with tracing(trace):
        complete = tracer.run()
    function = None
    blocking = any(d.is_error for d in trace.diagnostics)
    if complete and not blocking:
        function = tracer.function()
        if has_errors(trace.diagnostics):
            function = None
    if function is not None:
        for found in check_function(
            function,
            complete=trace.complete,
            select=select,
            target=target if definition.env.static else None,
            with_layouts=with_layouts,
        ):
            trace.report(found)
        if has_errors(trace.diagnostics):
            function = None
    if trace.renamed:
        text = definition.source.text
        trace.diagnostics = [trace.in_users_names(d, text) for d in trace.diagnostics]
    return Parsed(
        definition.name, function, tuple(trace.diagnostics), symbols, definition, style,
        dict(tracer.params), dict(trace.facts.get("consts", {})), assumed or {}, jit_options or {},
    )  # fmt: skip


class _Tracer:
    """The steps of tracing one kernel, in the order `run` calls them."""

    def __init__(
        self, definition: Definition, style: Style, constants: Mapping[str, Any], frame: Frame
    ) -> None:
        self.definition = definition
        self.style = style
        self.constants = constants
        self.frame = frame
        self.trace = frame.trace
        self.params: dict[str, Any] = {}

    def run(self) -> bool:
        """Interpret parameters and body; False when tracing could not go to the end."""
        self.frame.on_annotate = self._declare
        try:
            self._bind_parameters()
            statements.execute_block(self.frame, self.definition.node.body)
        except SignatureDone:
            return False
        except statements.TooLarge as grown:
            self.trace.report(
                make_diagnostic(
                    "TL148",
                    f"`{self.definition.name}` {grown} while it is traced",
                    help="keep loops rolled: iterate `T.serial(n)` instead of a Python list",
                )
            )
            return False
        except Reject as rejected:
            self.trace.report(divisions.explained(self.frame, rejected.diagnostic))
            return False
        except RecursionError:
            self.trace.report(
                make_diagnostic(
                    "TL180",
                    f"`{self.definition.name}` nests or recurses too deeply",
                    span=self.definition.span,
                    help="end the recursion on a Python value, or nest less deeply",
                )
            )
            return False
        check_finished(self.trace, self.frame, self.definition, self.style, self.params)
        return True

    def function(self) -> Function:
        """The finished program."""
        declared = [p for p in self.params.values() if isinstance(p, (Buffer, Var))]
        params = tuple(p for p in declared if not (isinstance(p, Var) and p.kind != "param"))
        outputs = self._outputs()
        facts = self.trace.facts
        body, misfits = with_arguments(tuple(self.trace.blocks[0]), (*params, *outputs))
        body, not_shares = with_shares(body)
        for misfit in (*misfits, *not_shares):
            self.trace.report(misfit)
        attrs = (
            ("pass_configs", facts.get("pass_configs")),
            ("compile_flags", facts.get("compile_flags")),
        )
        return Function(
            self.definition.name, params, outputs, body, self.definition.span,
            tuple((k, v) for k, v in attrs if v),
        )  # fmt: skip

    def _bind_parameters(self) -> None:
        arguments = self.definition.node.args
        for parameter in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            self.trace.span = self.frame.span(parameter)
            try:
                value = self._parameter(parameter)
            except Reject as rejected:
                self.trace.report(divisions.explained(self.frame, rejected.diagnostic))
                value = Unknown(parameter.arg)
            self.params[parameter.arg] = value
            self.trace.names.add(parameter.arg)
            self.frame.bind(parameter.arg, value, self._name_span(parameter))
        if arguments.vararg is not None:
            name = arguments.vararg.arg
            self.frame.bind(name, self.constants.get(name, ()), self.frame.span(arguments.vararg))
        if arguments.kwarg is not None:
            name = arguments.kwarg.arg
            self.frame.bind(name, self.constants.get(name, {}), self.frame.span(arguments.kwarg))

    def _parameter(self, parameter: ast.arg) -> Any:
        """A Buffer, a run-time scalar, or the constant a parameter stands for."""
        name = parameter.arg
        span = self._name_span(parameter)
        annotation = self._annotation(parameter)
        if annotation is not None and not isinstance(annotation, Unknown):
            declared = self._declared(name, annotation, span)
            if declared is not None:
                return declared
        if name in self.constants:
            return self.constants[name]
        if name in self.definition.defaults:
            return self.definition.defaults[name]
        default = self._default_node(parameter)
        if default is not None:
            return expressions.evaluate(self.frame, default)
        if self.style == "eager":
            return Unknown(name) if not self.frame.static else Var(name, INT32, span, "symbol")
        if annotation is None:
            reject(
                "TL167",
                f"parameter `{name}` has no annotation",
                span=span,
                help="a kernel is no method: define it outside of the class, or in a method that "
                "returns it"
                if name in ("self", "cls")
                else f"write `{name}: T.Tensor(shape, dtype)` or a dtype such as `T.int32`",
            )
        if isinstance(annotation, Unknown):
            return Unknown(name)
        reject(
            "TL168",
            f"the annotation of `{name}` is neither a tensor nor a dtype",
            help="use `T.Tensor(shape, dtype)`, `T.ptr`, or a dtype such as `T.int32`",
        )

    def _declared(self, name: str, annotation: Any, span: Any) -> Any:
        """What an annotation declares, or None when it says nothing about the device."""
        if isinstance(annotation, TensorType):
            if annotation.nullable is False and self._default_is_none(name):
                annotation = TensorType(
                    annotation.shape, annotation.dtype, annotation.strides, annotation.scope, True
                )
            return annotation.buffer(name, span)
        if isinstance(annotation, PointerType):
            return declare_scalar(name, SCALARS["handle"], span)
        if isinstance(annotation, DType):
            return declare_scalar(name, annotation, span)
        if isinstance(annotation, Var) and annotation.kind == "symbol":
            return Unknown(name)
        if self.style == "prim_func" and annotation in (int, float, bool):
            found = as_dtype(annotation)
            assert found is not None
            return declare_scalar(name, found, span)
        factory = getattr(annotation, "scope", None)
        if factory == "global" and callable(annotation):
            return Unknown(name)  # a bare `T.Tensor`: the shape is declared in the body
        return None

    def _annotation(self, parameter: ast.arg) -> Any:
        live = self.definition.annotations.get(parameter.arg)
        if live is not None and not isinstance(live, str):
            return live
        if parameter.annotation is None:
            return None
        node: ast.expr = parameter.annotation
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            parsed = ast.parse(node.value, mode="eval").body
            node = ast.copy_location(parsed, node)
            for inner in ast.walk(parsed):
                if isinstance(inner, ast.expr):
                    ast.copy_location(inner, parameter.annotation)
        return expressions.evaluate(self.frame, node)

    def _declare(self, frame: Frame, node: ast.AnnAssign) -> bool:
        """`A: T.Tensor(...)` in the body declares an argument of an eager kernel."""
        if not isinstance(node.target, ast.Name):
            return False
        annotation = expressions.evaluate(frame, node.annotation)
        span = frame.span(node.target)
        name = node.target.id
        if isinstance(annotation, Unknown):
            self.params[name] = annotation
            frame.bind(name, annotation, span)
            return True
        if annotation is None:
            return True
        declared = self._declared(name, annotation, span)
        if declared is None:
            return True
        if name not in self.params:
            reject(
                "TL110",
                f"`{name}` is declared but is no parameter of `{self.definition.name}`",
                span=span,
                help=f"add `{name}` to the parameters, or allocate it with `T.empty`",
            )
        self.params[name] = declared
        frame.bind(name, declared, span)
        return True

    def _default_node(self, parameter: ast.arg) -> ast.expr | None:
        arguments = self.definition.node.args
        positional = [*arguments.posonlyargs, *arguments.args]
        offset = len(positional) - len(arguments.defaults)
        for position, candidate in enumerate(positional):
            if candidate is parameter:
                return arguments.defaults[position - offset] if position >= offset else None
        for candidate, node in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if candidate is parameter:
                return node
        return None

    def _default_is_none(self, name: str) -> bool:
        if name in self.definition.defaults:
            return self.definition.defaults[name] is None
        return False

    def _name_span(self, parameter: ast.arg) -> Any:
        span = self.frame.span(parameter)
        return type(span)(
            span.file, span.line, span.column, span.line, span.column + len(parameter.arg)
        )

    def _outputs(self) -> tuple[Buffer, ...]:
        returned = self.frame.returned
        if returned is None:
            return ()
        values = returned if isinstance(returned, (tuple, list)) else (returned,)
        return tuple(v for v in values if isinstance(v, Buffer))
