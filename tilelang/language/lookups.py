"""What does a name or an attribute stand for, and what was meant where there is none?"""

from __future__ import annotations

import ast
from types import ModuleType
from typing import Any, NoReturn

from tilelang.language import advice, expressions
from tilelang.language.frame import MISSING, Frame
from tilelang.program.buffer import Buffer, Region
from tilelang.program.context import Reject, reject
from tilelang.program.expr import Expr
from tilelang.program.unknown import Unknown, is_unknown
from tilelang_diagnostics.model import Edit, Fix, Label, Span
from tilelang_diagnostics.suggest import did_you_mean, suggest


def name(frame: Frame, node: ast.Name) -> Any:
    value = frame.lookup(node.id, frame.trace.span)
    if value is not MISSING:
        return value
    expired = frame.expired.get(node.id)
    if expired is not None:
        reject(
            "TL134",
            f"`{node.id}` is used outside the branch or loop that defines it",
            label="its value does not exist here",
            labels=(Label(expired.span, f"`{node.id}` is bound here, inside device control flow"),),
            help=f"allocate `{node.id}` before it"
            if isinstance(expired.value, Buffer)
            else f"declare `{node.id} = T.alloc_var(dtype)` before it and assign inside",
        )
    bound = frame.bound_at(node.id)
    if bound is not None:
        _refuse_unbound(frame, node, bound)
    known = [*frame.names, *frame.env.known_names()]
    found = suggest(node.id, known)
    reject(
        "TL110",
        f"`{node.id}` is not defined{did_you_mean(node.id, known)}",
        label="bound nowhere",
        help=None if found else f"define `{node.id}` before it is used",
        fixes=_rename_fixes(frame, node, found),
    )


def _refuse_unbound(frame: Frame, node: ast.Name, bound: Span) -> NoReturn:
    """A name this function binds, but not before it is read."""
    here = frame.span(node)
    if (bound.line, bound.column) > (here.line, here.column):
        reject(
            "TL120",
            f"`{node.id}` is read before it is assigned",
            label="has no value yet",
            labels=(Label(bound, f"`{node.id}` is bound only here"),),
            help=f"move the assignment of `{node.id}` up",
        )
    reject(
        "TL110",
        f"`{node.id}` is not defined here",
        label="has no value",
        labels=(Label(bound, f"`{node.id}` is bound here, where tracing did not come by"),),
        help=f"give `{node.id}` a value before the branch or loop",
    )


def attribute(frame: Frame, node: ast.Attribute) -> Any:
    value = expressions.evaluate(frame, node.value)
    if is_unknown(value) or (
        expressions.is_symbol(value) and node.attr not in ("dtype", "name", "astype")
    ):
        return Unknown(f"{value}.{node.attr}")
    try:
        found = getattr(value, node.attr)
        if not _is_own_module(value, found):
            return found
    except AttributeError:
        pass
    except (Reject, RecursionError):
        raise
    except Exception as error:
        reject(
            "TL183",
            f"reading `.{node.attr}` raised {type(error).__name__}: {error}",
            help="this attribute is read while the kernel is traced",
        )
    _refuse_attribute(frame, node, value)


def _is_own_module(owner: Any, value: Any) -> bool:
    """Whether `T.x` names a file of ours instead of something of the language."""
    return (
        isinstance(value, ModuleType)
        and getattr(owner, "__name__", "") == "tilelang.language"
        and value.__name__.rpartition(".")[2] not in getattr(owner, "__all__", ())
    )


def _refuse_attribute(frame: Frame, node: ast.Attribute, value: Any) -> NoReturn:
    owner = ast.unparse(node.value)
    known = getattr(value, "__all__", None) or [n for n in dir(value) if not n.startswith("_")]
    found = suggest(node.attr, known)
    is_language = getattr(value, "__name__", "") == "tilelang.language"
    advised = advice.for_name(node.attr) if is_language else advice.for_attribute(value, node.attr)
    if advised is not None and node.attr.lower() not in (n.lower() for n in found):
        found = ()
    elif not is_language and not isinstance(value, ModuleType) and advised is None and not found:
        advised = _what_it_has(value)
    span = frame.span(node)
    start = span.end_column - len(node.attr)
    name_span = type(span)(span.file, span.end_line, start, span.end_line, span.end_column)
    reject(
        "TL111",
        f"`{owner}` has no attribute `{node.attr}`{did_you_mean(node.attr, found)}",
        span=name_span,
        label="does not exist",
        labels=_bound_here(frame, node.value),
        help=" or ".join(f"`{owner}.{name}`" for name in found) or advised,
        fixes=tuple(Fix(f"write `{c}`", (Edit(name_span, c),)) for c in found),
    )


def _bound_here(frame: Frame, node: ast.expr) -> tuple[Label, ...]:
    """Where a name of this function got the value that lacks the attribute: it may hide another."""
    local = frame.names.get(node.id) if isinstance(node, ast.Name) else None
    if local is None or isinstance(local.value, (Buffer, Region)):
        return ()
    return (Label(local.span, f"`{ast.unparse(node)}` is bound here"),)


def _what_it_has(value: Any) -> str | None:
    if isinstance(value, (Buffer, Region)):
        return "a buffer has `.shape`, `.dtype`, `.ndim`, and elements: `A[i, j]`"
    if isinstance(value, Expr):
        return "a value has `.dtype` and `.astype(dtype)`; functions are called as `T.exp(x)`"
    return None


def _rename_fixes(frame: Frame, node: ast.expr, names: tuple[str, ...]) -> tuple[Fix, ...]:
    return tuple(Fix(f"write `{n}`", (Edit(frame.span(node), n),)) for n in names)
