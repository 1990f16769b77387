"""Which layout does each tile and each parallel loop of a kernel get, and why?

`infer_layouts` reads the demands of every operation of each launch (`TileOp.constrain`, and the
accesses of T.Parallel loops) and solves them. It runs for any target: a CPU lays out nothing, but
its author may want to know what a GPU would do; such a target is read as one with `mma.sync`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilelang.ir import attrs, build, tirx
from tilelang.ir.emit import emit
from tilelang.ir.layout_context import LayoutContext, origin_of
from tilelang.ir.text import print_expression, print_statement
from tilelang.ir.tile_op import called_op
from tilelang.ir.visit import statements
from tilelang.layout.constraints import (
    AnyLayout,
    Constraint,
    Fixed,
    Kind,
    Mode,
    Origin,
    Problem,
    Variable,
)
from tilelang.layout.fragment import Fragment
from tilelang.layout.layout import Layout
from tilelang.layout.solution import Solution
from tilelang.layout.solve import solve
from tilelang.ops import OP_BY_NAME
from tilelang.program.stmt import Function
from tilelang_diagnostics import code_of
from tilelang_diagnostics.model import Diagnostic, Label, Span

# What a target without matrix fragments of its own is read as.
_DEFAULT_ARCH = 80
_DEFAULT_THREADS = 128


@dataclass(frozen=True, slots=True)
class Inferred:
    """One tile or loop with its layout."""

    variable: Variable
    layout: AnyLayout
    span: Span | None
    why: str

    @property
    def name(self) -> str:
        return self.variable.name

    def __str__(self) -> str:
        shape = ", ".join(map(str, self.variable.shape))
        head = f"{self.variable}  ({shape})"
        if self.variable.kind is Kind.FRAGMENT and isinstance(self.layout, Fragment):
            head += f"  {self.layout.registers(self.variable.bits)} registers"
        # The first step of the reason; `LaunchLayouts.solution.why` has the whole chain.
        reason = self.why.splitlines()[1:2]
        return "\n".join([head, f"  {self.layout}", *(f"  {line}" for line in reason)])


@dataclass(frozen=True, slots=True)
class LaunchLayouts:
    """The layouts of one launch, tiles first, in order of appearance."""

    threads: int
    inferred: tuple[Inferred, ...]
    solution: Solution

    def __str__(self) -> str:
        return "\n".join([f"{self.threads} threads", *map(str, self.inferred)])


@dataclass(frozen=True, slots=True)
class LayoutReport:
    """The layouts of a kernel, and what is wrong or costly about them."""

    name: str
    launches: tuple[LaunchLayouts, ...]
    diagnostics: tuple[Diagnostic, ...] = ()

    def layout_of(self, name: str) -> AnyLayout:
        """The layout of the tile or loop called `name`; KeyError when there is none."""
        for launch in self.launches:
            for entry in launch.inferred:
                if entry.name == name:
                    return entry.layout
        raise KeyError(name)

    def __str__(self) -> str:
        return "\n\n".join([f"kernel {self.name}", *map(str, self.launches)]) + "\n"


def describe_layouts(function: Function, target: object) -> LayoutReport:
    """The layouts of a traced kernel."""
    return infer_layouts(emit(function), target)


def infer_layouts(func: tirx.PrimFunc, target: object = "cpu") -> LayoutReport:
    """The layouts of a function whose tile operations are still whole."""
    name = str(func.attrs[attrs.GLOBAL_SYMBOL]) if func.attrs else "kernel"
    launches, diagnostics = [], []
    for threads, body in _launches(func.body):
        reader = _Reader(LayoutContext(threads, _arch(str(target))))
        reader.block(body)
        solution = solve(Problem(threads, tuple(reader.constraints), tuple(reader.extra())))
        launches.append(LaunchLayouts(threads, _inferred(reader, solution), solution))
        diagnostics += _diagnostics(reader.ctx, solution)
    return LayoutReport(name, tuple(launches), tuple(diagnostics))


class _Reader:
    """Collects the constraints of one launch, in program order."""

    def __init__(self, ctx: LayoutContext) -> None:
        self.ctx = ctx
        self.constraints: list[Constraint] = []
        self.spans: dict[str, Span | None] = {}

    def block(self, stmt: Any) -> None:
        for s in statements(stmt):
            self.statement(s)

    def statement(self, s: Any) -> None:
        """One statement outside T.Parallel."""
        if isinstance(s, tirx.Evaluate):
            self._call(s)
        elif isinstance(s, tirx.For):
            self._loop(s)
        elif isinstance(s, tirx.AllocBuffer):
            found = self.ctx.variable(s.buffer)
            if found is not None:
                self.spans[found.name] = origin_of("", s.buffer.span).span
        elif isinstance(s, tirx.Bind):
            self.ctx.bindings[s.var] = s.value
        elif isinstance(s, tirx.IfThenElse):
            self.block(s.then_case)
            if s.else_case is not None:
                self.block(s.else_case)
        elif isinstance(s, (tirx.AttrStmt, tirx.While)):
            self.block(s.body)

    def extra(self) -> list[Variable]:
        """Fragments that nothing constrains."""
        return [v for v in self.ctx.buffers().values() if v.kind is Kind.FRAGMENT]

    def _call(self, s: Any) -> None:
        name = called_op(s)
        if name is None:
            return
        self.ctx.origin = origin_of(print_statement(s), s.span)
        if name == "annotate":
            self._annotation(s)
        elif name in OP_BY_NAME:
            self.constraints += OP_BY_NAME[name].from_call(s.value).constrain(self.ctx)

    def _annotation(self, s: Any) -> None:
        args = list(s.value.args)
        if str(args[0].value) != attrs.LAYOUT:
            return
        for buffer, layout in zip(args[1:], list(s.value.attrs["values"]), strict=True):
            found = self.ctx.variable(buffer)
            wanted = Fragment if found is not None and found.kind is Kind.FRAGMENT else Layout
            layout = attrs.unheld(layout)
            if found is None or not isinstance(layout, wanted):
                continue
            if layout.shape == found.shape:
                self.constraints.append(Fixed(found, layout, self.ctx.origin, convertible=False))

    def _loop(self, s: Any) -> None:
        if attrs.PARALLEL in s.annotations:
            self._parallel(s)
            return
        with self.ctx.inside(s.loop_var, s.extent):
            self.block(s.body)

    def _parallel(self, s: Any) -> None:
        nest = [s]
        while len(nest) < int(s.annotations[attrs.PARALLEL_RANK]):
            nest.append(nest[-1].body)
        sizes = [build.int_value(loop.extent) for loop in nest]
        known = [size for size in sizes if size]
        if len(known) != len(sizes):
            return
        variables = [loop.loop_var for loop in nest]
        loop = self.ctx.loop([str(v.name) for v in variables], known)
        self.spans[loop.name] = origin_of("", s.span).span
        said = {str(k).removeprefix(attrs.LOOP_ATTR_PREFIX): v for k, v in s.annotations.items()}
        layout = attrs.unheld(said.get("loop_layout"))
        if isinstance(layout, Fragment) and layout.shape == loop.shape:
            origin = origin_of(print_statement(s), s.span)
            self.constraints.append(Fixed(loop, layout, origin, convertible=False))
        width = said.get("coalesced_width")
        body = _ParallelBody(self, loop, variables, None if width is None else int(width))
        body.block(nest[-1].body)


class _ParallelBody:
    """Collects the accesses in the body of one parallel nest."""

    def __init__(
        self, reader: _Reader, loop: Variable, variables: Sequence[Any], width: int | None
    ) -> None:
        self.reader, self.loop, self.variables, self.width = reader, loop, variables, width
        self._seen: set[tuple[str, Mode]] = set()

    def block(self, stmt: Any) -> None:
        for s in statements(stmt):
            if isinstance(s, tirx.BufferStore):
                self._touch(s.buffer, s.indices, Mode.WRITE, s.span)
                for part in (s.value, *s.indices):
                    self._loads(part)
            elif isinstance(s, tirx.For):
                with self.reader.ctx.inside(s.loop_var, s.extent):
                    self.block(s.body)
            elif isinstance(s, tirx.IfThenElse):
                self._loads(s.condition)
                self.block(s.then_case)
                if s.else_case is not None:
                    self.block(s.else_case)
            elif isinstance(s, tirx.Bind):
                self._loads(s.value)
                self.reader.ctx.bindings[s.var] = s.value
            elif isinstance(s, (tirx.Evaluate, tirx.AssertStmt)):
                self._loads(s.value if isinstance(s, tirx.Evaluate) else s.condition)
            elif isinstance(s, (tirx.AttrStmt, tirx.While)):
                self.block(s.body)

    def _loads(self, expr: Any) -> None:
        found: list[Any] = []
        tirx.structural_walk(expr, [(tirx.TensorLoad, found.append)], order="pre")
        for load in found:
            self._touch(load.source, load.indices, Mode.READ, load.span)

    def _touch(self, buffer: Any, indices: Any, mode: Mode, span: Any) -> None:
        places = list(indices)
        text = f"{buffer.name}[{', '.join(print_expression(i) for i in places)}]"
        if (text, mode) in self._seen:
            return
        self._seen.add((text, mode))
        found = self.reader.ctx.access(
            self.loop, self.variables, buffer, places, mode, origin_of(text, span), self.width
        )
        if found is not None:
            self.reader.constraints.append(found)


def _launches(body: Any) -> list[tuple[int, Any]]:
    """(threads, body) of each launch."""
    found: list[tuple[int, Any]] = []
    for stmt in statements(body):
        threads, inner, is_launch = 1, stmt, False
        while isinstance(inner, tirx.AttrStmt):
            if str(inner.attr_key) == attrs.THREAD_EXTENT:
                is_launch = True
                if str(inner.node.thread_tag) in attrs.THREAD_TAGS:
                    threads *= build.int_value(inner.value) or _DEFAULT_THREADS
            inner = inner.body
        if is_launch:
            found.append((threads, inner))
    return found


def _arch(target: str) -> int:
    """The compute capability of a CUDA target; the default for everything else."""
    match = re.fullmatch(r"cuda:sm_(\d+)[a-z]*", target)
    return int(match[1]) if match else _DEFAULT_ARCH


def _inferred(reader: _Reader, solution: Solution) -> tuple[Inferred, ...]:
    order = {Kind.FRAGMENT: 0, Kind.SHARED: 1, Kind.LOOP: 2}
    entries = [
        Inferred(var, layout, reader.spans.get(var.name), str(solution.why(var)))
        for var, layout in solution.layouts.items()
    ]
    return tuple(sorted(entries, key=lambda entry: order[entry.variable.kind]))


def _diagnostics(ctx: LayoutContext, solution: Solution) -> list[Diagnostic]:
    found = [
        _diagnostic(code, message, origin, help=help)
        for code, message, help, origin in ctx.problems
    ]
    for conflict in solution.conflicts:
        *others, last = conflict.origins or (Origin(""),)
        labels = tuple(Label(o.span, f"`{o.op}`") for o in others if o.span is not None)
        notes = tuple(str(x) for x in (conflict.example,) if x is not None)
        found.append(
            _diagnostic(
                "TL301",
                f"operations need different layouts of `{conflict.var.name}`: {conflict}",
                last,
                labels=labels,
                notes=notes,
                help="put a copy to another fragment, or to shared memory, between them",
            )
        )
    for conversion in solution.conversions:
        found.append(
            _diagnostic(
                "TL307",
                f"`{conversion.var.name}` changes its layout through {conversion.via.value} "
                f"for `{conversion.constraint.origin.op}`",
                conversion.constraint.origin,
                notes=(f"about {conversion.cost} instructions a thread",),
            )
        )
    return found


def _diagnostic(code: str, message: str, origin: Origin, **details: Any) -> Diagnostic:
    label = f"`{origin.op}`" if origin.op else ""
    return Diagnostic(code, code_of(code).severity, message, origin.span, label=label, **details)
