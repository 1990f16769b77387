"""Is a traced kernel whole: launched, its results returned, its dimensions taken from somewhere?"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilelang.language.frame import Definition, Frame
from tilelang.program.buffer import Buffer
from tilelang.program.context import Trace, make_diagnostic
from tilelang.program.expr import Expr, Var, walk
from tilelang.program.stmt import Allocate, Annotate, Assume, Launch, Let, walk_statements
from tilelang.program.unknown import Unknown
from tilelang_diagnostics.model import Label


def check_finished(
    trace: Trace, frame: Frame, definition: Definition, style: str, params: Mapping[str, Any]
) -> None:
    """Report what a kernel lacks whose text was read to its end."""
    kernel = _Finished(trace, frame, definition, style == "eager", params)
    kernel.check_returned()
    kernel.check_out_idx()
    kernel.check_launch()
    if kernel.is_eager:
        kernel.check_consts()


@dataclass(frozen=True, slots=True, eq=False)
class _Finished:
    trace: Trace
    frame: Frame
    definition: Definition
    is_eager: bool
    params: Mapping[str, Any]

    def check_out_idx(self) -> None:
        out_idx = self.trace.facts.get("out_idx")
        if self.is_eager and out_idx is not None and self.frame.returned is not None:
            self.trace.report(
                make_diagnostic(
                    "TL172",
                    f"out_idx={out_idx!r} on `{self.definition.name}`, which returns its results "
                    "itself",
                    span=self._return_span(),
                    label="these tensors are allocated and returned already",
                    help="drop out_idx",
                )
            )

    def check_returned(self) -> None:
        returned = self.frame.returned
        values = (
            returned
            if isinstance(returned, (tuple, list))
            else ()
            if returned is None
            else (returned,)
        )
        for value in values:
            if not isinstance(value, (Buffer, Unknown)) or (
                isinstance(value, Buffer) and value.role != "output"
            ):
                shown = value.name if isinstance(value, Buffer) else type(value).__name__
                self.trace.report(
                    make_diagnostic(
                        "TL137",
                        f"`{self.definition.name}` returns `{shown}`, which is no `T.empty` tensor",
                        span=self._return_span(),
                        help="return tensors made by `T.empty`; write other results to parameters",
                    )
                )
        if any(isinstance(v, Unknown) for v in values):
            return
        for buffer in self.trace.facts.get("empties", ()):
            if not any(buffer is v for v in values):
                self.trace.report(
                    make_diagnostic(
                        "TL138",
                        f"`{buffer.name}` is allocated by `T.empty` but not returned",
                        span=buffer.span,
                        label="an output nobody receives",
                        help=f"return it: `return {buffer.name}`, or use `T.alloc_global`",
                    )
                )

    def check_launch(self) -> None:
        body = self.trace.blocks[0]
        if any(isinstance(s, Launch) for s in walk_statements(tuple(body))):
            return
        if self.trace.facts.get("launch_failed"):
            return
        device = [s for s in walk_statements(tuple(body))
                  if not isinstance(s, (Let, Assume, Annotate))]  # fmt: skip
        consequences = self._consequences()
        if not device and not consequences:
            return
        labels = (*consequences, *(
            Label(s.span, "allocated outside a launch" if isinstance(s, Allocate) else
                  "runs outside a launch")
            for s in device[:1] if s.span is not None
        ))  # fmt: skip
        self.trace.report(
            make_diagnostic(
                "TL160",
                f"`{self.definition.name}` has no kernel launch",
                span=self.definition.span,
                label="device code needs blocks and threads to run on",
                labels=labels,
                help="wrap the body: `with T.Kernel(grid_x, grid_y, threads=128) as (bx, by):`",
            )
        )

    def _consequences(self) -> tuple[Label, ...]:
        """Findings that only follow from the missing launch become labels of that one error."""
        follow = [d for d in self.trace.diagnostics if d.code in ("TL241", "TL116") and d.span]
        self.trace.diagnostics = [d for d in self.trace.diagnostics if d not in follow]
        return tuple(Label(d.span, d.message) for d in follow if d.span is not None)

    def check_consts(self) -> None:
        consts: dict[str, Var] = self.trace.facts.get("consts", {})
        used: set[int] = set()
        for param in self.params.values():
            if isinstance(param, Unknown):
                return
            if isinstance(param, Buffer):
                for dim in (*param.shape, *(param.strides or ())):
                    if isinstance(dim, Expr):
                        used.update(id(node) for node in walk(dim))
        unused = {name: var for name, var in consts.items() if id(var) not in used}
        meant = self._names_of_wrong_types() if unused else set()
        for name, var in unused.items():
            if name not in meant:
                self.trace.report(
                    make_diagnostic(
                        "TL170",
                        f"`{name}` is no extent or stride of any tensor parameter",
                        span=var.span,
                        label="has no place to take its value from",
                        help=f"use `{name}` as an extent in the `T.Tensor` type of a parameter",
                    )
                )

    def _names_of_wrong_types(self) -> set[str]:
        """Names in the types that there is an error about: they would have been used there."""
        wrong = {d.span.line for d in self.trace.diagnostics if d.is_error and d.span is not None}
        nodes = ast.walk(self.definition.node)
        declared = [n for n in nodes if isinstance(n, ast.AnnAssign | ast.arg)]
        types = [n.annotation for n in declared if n.annotation is not None]
        return {
            name.id
            for span, node in ((self.frame.span(n), n) for n in types)
            if any(span.line <= line <= span.end_line for line in wrong)
            for name in ast.walk(node)
            if isinstance(name, ast.Name)
        }

    def _return_span(self) -> Any:
        for node in ast.walk(self.definition.node):
            if isinstance(node, ast.Return) and node.value is not None:
                return self.frame.span(node.value)
        return self.definition.span
