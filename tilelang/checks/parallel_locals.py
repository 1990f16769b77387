"""Is private memory indexed by a variable of `T.Parallel`? (TL244, TL245)

    for i in T.Parallel(128):
        tmp[i] = A[i]              # tmp = T.alloc_local(...): each thread fills only its share

A local buffer exists once per thread, so only a part of each would be written. A fragment is one
tile spread over the threads, but which thread owns an element is settled when compiling: the
extents of a loop over it are constants.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.program.accesses import Access, Context, accesses, variables, walk_with_context
from tilelang.program.arith import constant_value
from tilelang.program.context import make_diagnostic
from tilelang.program.expr import Expr, Var, walk
from tilelang.program.stmt import Function, LoopVar
from tilelang_diagnostics.model import Diagnostic, Label


def check(function: Function) -> Iterator[Diagnostic]:
    """Accesses inside T.Parallel to memory that its iterations cannot share."""
    seen: set[tuple[int, int]] = set()
    for stmt, context in walk_with_context(function.body):
        if not context.parallel_vars:
            continue
        for access in accesses(stmt):
            found = _check_access(access, context)
            key = id(access.buffer), id(context.loops[-1])
            if found is not None and key not in seen:
                seen.add(key)
                yield found


def _check_access(access: Access, context: Context) -> Diagnostic | None:
    buffer = access.buffer
    if buffer.scope_name not in ("local", "local.fragment"):
        return None
    used = {v for r in access.ranges for v in variables(r.min)}
    for loop_var in context.parallel_vars:
        if loop_var.var not in used:
            continue
        if buffer.scope_name == "local":
            return _indexed_local(access, loop_var)
        if constant_value(loop_var.extent) is None and _is_device_value(loop_var.extent):
            return _symbolic_extent(access, loop_var)
    return None


def _is_device_value(extent: Expr) -> bool:
    """Known only at run time, rather than not chosen yet."""
    return any(
        isinstance(n, Var) and n.kind not in ("symbol", "const", "let") for n in walk(extent)
    )


def _indexed_local(access: Access, loop_var: LoopVar) -> Diagnostic:
    name, var = access.buffer.name, loop_var.var
    return make_diagnostic(
        "TL244",
        f"local buffer `{name}` is indexed by `{var.name}` of `T.Parallel`",
        span=access.span,
        label="every thread has a buffer of its own and fills only its share",
        labels=_places(access, loop_var, f"runs over `{var.name}`, spread over the threads"),
        help=f"allocate `{name}` with `T.alloc_fragment`, or use a serial loop over `{var.name}`",
    )


def _symbolic_extent(access: Access, loop_var: LoopVar) -> Diagnostic:
    name, var = access.buffer.name, loop_var.var
    return make_diagnostic(
        "TL245",
        f"fragment `{name}` is indexed by `{var.name}`, whose extent `{loop_var.extent}` is only "
        "known when the kernel runs",
        span=access.span,
        label="which thread owns this element cannot be settled",
        labels=_places(access, loop_var, "the extent of this loop is not constant"),
        help=f"run `{var.name}` over the whole extent of `{name}` and guard: "
        f"`if {var.name} < {loop_var.extent}:`",
    )


def _places(access: Access, loop_var: LoopVar, text: str) -> tuple[Label, ...]:
    out = [] if loop_var.var.span is None else [Label(loop_var.var.span, text)]
    if access.buffer.span is not None:
        out.append(Label(access.buffer.span, f"`{access.buffer.name}` is allocated here"))
    return tuple(out)
