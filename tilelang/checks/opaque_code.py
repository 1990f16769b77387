"""Does a kernel bring code of its own, which nothing here can read? (TL401, TL418)

    T.CUDASourceCodeKernel(...)      T.import_source(...)      T.call_extern(...)

What such code reads, writes and waits for is between its author and the device: no check, layout or
count of an inspection knows of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.program import expr as ex
from tilelang.program.context import make_diagnostic
from tilelang.program.stmt import Annotate, Function, Launch, Stmt, expressions, walk_statements
from tilelang_diagnostics.model import Diagnostic


def check(function: Function, target: str) -> Iterator[Diagnostic]:
    """A remark on each piece of foreign code, once; an error where the target cannot run it."""
    kind = target.split(":")[0]
    said: set[str] = set()
    for stmt in walk_statements(function.body):
        match stmt:
            case Launch() if stmt.attr("source") is not None:
                if kind not in ("cuda", "auto"):
                    yield _not_here("T.CUDASourceCodeKernel", stmt, target)
                else:
                    yield _remark(f"the kernel `{stmt.attr('entry')}`", stmt)
                said.add(str(stmt.attr("entry")))
            case Annotate(key="import_source"):
                if kind == "cpu":
                    yield _not_here("T.import_source", stmt, target)
            case _ if kind != "cpu":
                yield from _calls(stmt, said)


def _calls(stmt: Stmt, said: set[str]) -> Iterator[Diagnostic]:
    for expression in expressions(stmt):
        for inner in ex.walk(expression):
            if isinstance(inner, ex.Intrinsic) and inner.name == "call_extern":
                name = str(dict(inner.attrs).get("function"))
                if name not in said:
                    said.add(name)
                    yield _remark(f"`{name}`", stmt)


def _remark(what: str, stmt: Stmt) -> Diagnostic:
    return make_diagnostic(
        "TL418",
        f"the compiler cannot see into {what}: its accesses, barriers and speed are not looked at",
        span=stmt.span,
        help="`tilelang run FILE --emulate --check` watches CUDA source without a GPU, and "
        "`--sanitize` on the device",
    )


def _not_here(what: str, stmt: Stmt, target: str) -> Diagnostic:
    return make_diagnostic(
        "TL401",
        f"`{what}` brings CUDA source, which {target} does not run",
        span=stmt.span,
        label="CUDA only",
        help="compile for a target such as cuda:sm_80, or write it in the language",
    )
