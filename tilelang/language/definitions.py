"""Names that declare: `T.prim_func`, `T.macro`, `T.const`, `T.dynamic`, `T.empty`."""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from tilelang.language.catalog import caller_span, language_function
from tilelang.language.frame import Definition, LiveEnvironment
from tilelang.language.inlining import Macro
from tilelang.language.source import source_of
from tilelang.language.types import resolve_dtype, resolve_shape
from tilelang.program.buffer import Buffer
from tilelang.program.context import (
    active_trace,
    argument_span,
    called_name_span,
    reject,
    warn,
)
from tilelang.program.expr import Expr, Var
from tilelang_diagnostics.model import Applicability, Edit, Fix


def definition_of(function: Callable[..., Any], captured: Mapping[str, Any]) -> Definition:
    """The text of a live function with what Python knows about it."""
    if not inspect.isfunction(inspect.unwrap(function)):
        shown = type(function).__name__
        reject("TL116", f"a kernel or macro is a Python function, got a {shown}",
               help="decorate a `def` statement")  # fmt: skip
    function = inspect.unwrap(function)
    source, node = source_of(function)
    signature = inspect.signature(function)
    defaults = {
        p.name: p.default for p in signature.parameters.values() if p.default is not p.empty
    }
    return Definition(
        function.__name__, source, node, LiveEnvironment(function, captured),
        dict(getattr(function, "__annotations__", {})), defaults,
    )  # fmt: skip


@language_function("meta", outside=True)
def macro(func: Any = None) -> Any:
    """Makes a function whose body is inlined into the kernels that call it.

    Parameters annotated `T.Ref` are passed by reference; scalars are bound once.

    >>> @T.macro
    ... def relu(x: T.Ref): x = T.max(x, 0)
    """
    if func is None:
        return macro
    return Macro(definition_of(func, _locals_of_user()))


@language_function("meta", outside=True)
def prim_func(func: Any = None, *, eager_jit: bool = False) -> Any:
    """Traces a function into a kernel at once; every parameter has an annotation.

    >>> @T.prim_func
    ... def main(A: T.Tensor((M, K), "float16"), C: T.Tensor((M,), "float32")): ...
    """
    if func is None:
        return prim_func
    from tilelang.language.primfunc import PrimFunc

    return PrimFunc.trace(func, _locals_of_user())


@language_function("meta", outside=True)
def dynamic(name: str, dtype: Any = "int32") -> Any:
    """Run-time dimensions: one kernel for all their values, bound from tensor shapes.

    >>> M, N = T.dynamic("M, N")
    """
    return _dims(name, dtype, "dim")


@language_function("meta", outside=True)
def symbolic(name: str, dtype: Any = "int32") -> Any:
    """The old spelling of `T.dynamic`.

    >>> M = T.symbolic("M")
    """
    message = "`T.symbolic` is the old spelling of `T.dynamic`"
    if active_trace() is None:
        warnings.warn(f"{message}; write `T.dynamic`", DeprecationWarning, stacklevel=3)
    spelled = called_name_span("symbolic")
    fixes = (
        ()
        if spelled is None
        else (Fix("write `T.dynamic`", (Edit(spelled, "dynamic"),), Applicability.SAFE),)
    )
    warn("TL118", message, span=spelled, help="write `T.dynamic`", fixes=fixes)
    return _dims(name, dtype, "dim")


@language_function("meta")
def const(name: str, dtype: Any = "int32") -> Any:
    """Compile-time dimensions of an eager kernel, taken from the tensors it is called with.

    >>> M, N, K = T.const("M, N, K")
    """
    trace = active_trace()
    assert trace is not None
    if not trace.facts.get("eager"):
        reject("TL171", "`T.const` outside an eager `@tilelang.jit` kernel",
               help="use a Python value of the factory, or `T.dynamic`")  # fmt: skip
    known: Mapping[str, Any] | None = trace.facts.get("dims")
    declared: dict[str, Var] = trace.facts.setdefault("consts", {})
    element = resolve_dtype(dtype)
    names = _names(name)
    values: list[Any] = []
    for one in names:
        if known is not None and one in known:
            values.append(_size(one, known[one]))
            trace.facts.setdefault("given_consts", {})[one] = known[one]
            continue
        if one not in declared:
            declared[one] = Var(one, element, trace.span, "const")
        values.append(declared[one])
    return values[0] if len(values) == 1 else tuple(values)


@language_function("alloc")
def empty(*shape: Any, dtype: Any = None) -> Any:
    """An output tensor: allocated by the runtime, returned by the kernel.

    >>> C = T.empty((M, N), "float16")
    """
    trace = active_trace()
    assert trace is not None
    extents: list[Any] = list(shape)
    if extents and dtype is None and not isinstance(extents[-1], (int, tuple, list)):
        # `empty((M, N), dtype)`, `empty(M, N)`: what follows a tuple is the dtype.
        if isinstance(extents[0], (tuple, list)) or not isinstance(extents[-1], Expr):
            dtype = extents.pop()
    if len(extents) == 1 and isinstance(extents[0], (tuple, list)):
        extents = list(extents[0])
    name = trace.unique(trace.target_name or "output")
    element = resolve_dtype("float32" if dtype is None else dtype)
    buffer = Buffer(name, resolve_shape(tuple(extents)), element, "global", trace.span, "output")
    trace.facts.setdefault("empties", []).append(buffer)
    return buffer


def _size(name: str, value: Any) -> Any:
    """A value given for a `T.const`, which may be anything: a command line, a comment."""
    if isinstance(value, Expr):
        return value
    if hasattr(value, "__index__") and not isinstance(value, bool) and int(value) >= 0:
        return int(value)
    reject(
        "TL215",
        f"`{name}` is given the value {value!r}, which is no extent",
        help=f"give it an integer that is not negative: {name}=1024",
    )


def _dims(name: str, dtype: Any, kind: Any) -> Any:
    names = _names(name)
    trace = active_trace()
    span = trace.span if trace is not None else caller_span(_user_frame())
    element = resolve_dtype(dtype)
    made = tuple(Var(one, element, span, kind) for one in names)
    return made[0] if len(made) == 1 else made


def _names(text: Any) -> list[str]:
    if not isinstance(text, str) or not text.strip():
        reject(
            "TL116",
            f"dimension names are a string such as 'M, N', got {text!r}",
            span=argument_span("name"),
            help="write the names in quotes",
        )
    return [part for part in re.split(r"[,\s]+", text.strip()) if part]


def _user_frame() -> Any:
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__", "").startswith("tilelang.language") and frame.f_back:
        frame = frame.f_back
    return frame


def _locals_of_user() -> dict[str, Any]:
    """Names around the definition: annotations may use what the closure does not hold."""
    return dict(_user_frame().f_locals)


FUNCTIONS = (macro, prim_func, dynamic, symbolic, const, empty)
