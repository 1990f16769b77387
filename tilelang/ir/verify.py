"""What may appear in a function at each stage of lowering?

`verify` lists everything that may not, as sentences; an empty list is a sound function. Tests run
it between passes (`VerifyObserver`); production does not.

- always: each statement, load, call and buffer has a span; stored values have the buffer's dtype;
  indices and loop bounds are integers; buffers and variables are used where they exist; scopes
  are those of the language.
- stage `tile`: tile operations, with the operands their schema lists, whose tiles fit.
- stage `loops`: no tile operation is left, only loops, elements and thread-level operators.
- stage `device`: what `device_ops` allows; see `verify_device`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from tilelang.ir import attrs, build, tirx
from tilelang.ir.calls import TILE_OPS
from tilelang.ir.spans import from_tir
from tilelang.ir.tile_op import op_of
from tilelang.ir.verify_device import device_problems
from tilelang.ir.verify_tiles import tile_problems
from tilelang.ir.visit import collect
from tilelang.program.tile_ops import SCHEMAS
from tilelang_diagnostics.model import Span

STAGES: Final = ("tile", "loops", "device")
MOST_STAGES: Final = 64  # as T.Pipelined takes them
SCOPES: Final = frozenset({
    "global", "shared", "shared.dyn", "shared.barrier", "shared.cluster_barrier", "shared.tmem",
    "local", "local.var", "local.fragment", "local.reducer", "local.matrix",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Problem:
    """What a node is or does that it may not."""

    span: Span | None
    subject: str
    what: str

    @property
    def sentence(self) -> str:
        """It alone; operations are called by their names."""
        named = self.what.startswith(("T.", "operand "))
        return self.what if named else f"{self.subject} {self.what}"

    def __str__(self) -> str:
        place = "" if self.span is None else f"{self.span}: "
        return f"{place}{self.subject} {self.what}"


def verify(func: tirx.PrimFunc, stage: str | None = None) -> list[str]:
    """What is wrong with `func`; `stage` is the one the function says it is at by default."""
    return [str(problem) for problem in problems_of(func, stage)]


def problems_of(func: tirx.PrimFunc, stage: str | None = None) -> list[Problem]:
    """The same, each with its place."""
    said = dict(func.attrs) if func.attrs is not None else {}
    checker = _Checker(stage or str(said.get(attrs.STAGE, "tile")))
    checker.function(func)
    if checker.stage == "device":
        target = str(said.get(attrs.TARGET, ""))
        arch = target.partition(":")[2] if target.startswith("cuda:") else None
        for node, problem in device_problems(func, arch):
            checker.report(node, problem)
    return checker.problems


class VerifyObserver:
    """Pipeline observer that raises AssertionError after a pass that broke the rules."""

    def before(self, name: str, func: tirx.PrimFunc, context: Any) -> None:
        """Nothing: the output of the pass before was checked."""

    def after(self, name: str, func: tirx.PrimFunc, context: Any, seconds: float) -> None:
        problems = verify(func)
        assert not problems, f"after {name}:\n" + "\n".join(problems)


class _Checker:
    def __init__(self, stage: str) -> None:
        if stage not in STAGES:
            raise ValueError(f"no stage is called {stage!r}")
        self.stage = stage
        self.problems: list[Problem] = []
        self._known: set[Any] = set()

    def report(self, node: Any, what: str) -> None:
        """Record a problem found elsewhere."""
        self._problem(node, what)

    def function(self, func: tirx.PrimFunc) -> None:
        for param in func.params:
            self._known.add(param)
            if tirx.is_buffer_var(param):
                self._buffer(param)
                # Runtime dimensions and strides are bound by the arguments.
                for extent in (*param.shape, *param.strides):
                    self._known.update(collect(extent, tirx.Var))
        self.statement(func.body)

    def statement(self, s: Any) -> None:
        if s.span is None and not isinstance(s, tirx.SeqStmt):
            self._problem(s, "has no span")
        method = getattr(self, f"_{type(s).__name__}", None)
        if method is None:
            self._problem(s, "is a statement no stage has")
        else:
            method(s)

    def _block(self, s: Any) -> None:
        """A nested block: what it declares ends with it."""
        outer = set(self._known)
        self.statement(s)
        self._known = outer

    def _SeqStmt(self, s: Any) -> None:
        for stmt in s.seq:
            self.statement(stmt)

    def _For(self, s: Any) -> None:
        dtype = build.dtype_of(s.loop_var)
        for bound in (s.min, s.extent):
            self.expr(bound, s)
            if build.dtype_of(bound) != dtype:
                self._problem(s, f"counts in {dtype} to a bound of {build.dtype_of(bound)}")
        if not dtype.startswith(("int", "uint")):
            self._problem(s, f"counts in {dtype}")
        if int(s.kind) == int(tirx.ForKind.THREAD_BINDING):
            self._problem(s, "is bound to threads, which launches alone are")
        stages = (s.annotations or {}).get(attrs.NUM_STAGES)
        if isinstance(stages, int) and not 0 <= stages <= MOST_STAGES:
            self._problem(s, f"has {stages} stages")
        if s.step is not None and not build.is_int(s.step, 1):
            self._problem(s, "has a step")
        outer = set(self._known)
        self._known.add(s.loop_var)
        self.statement(s.body)
        self._known = outer

    def _While(self, s: Any) -> None:
        self.expr(s.condition, s)
        self._block(s.body)

    def _IfThenElse(self, s: Any) -> None:
        self.expr(s.condition, s)
        if build.dtype_of(s.condition) != "bool":
            self._problem(s, f"tests a {build.dtype_of(s.condition)}")
        self._block(s.then_case)
        if s.else_case is not None:
            self._block(s.else_case)

    def _AttrStmt(self, s: Any) -> None:
        self.expr(s.value, s)
        outer = set(self._known)
        if s.attr_key == attrs.THREAD_EXTENT:
            self._known.add(s.node.var)
        self.statement(s.body)
        self._known = outer

    def _Bind(self, s: Any) -> None:
        self.expr(s.value, s)
        self._known.add(s.var)

    def _AllocBuffer(self, s: Any) -> None:
        for extent in s.buffer.shape:
            self.expr(extent, s)
            if str(s.buffer.scope()) != "global" and build.int_value(extent) is None:
                self._problem(s.buffer, f"has the extent {extent}, which is no constant")
        versions = s.annotations.get(attrs.VERSIONS)
        if isinstance(versions, int) and not 0 < versions <= MOST_STAGES:
            self._problem(s.buffer, f"has {versions} versions")
        self._buffer(s.buffer)
        self._known.add(s.buffer)
        if (flat := s.annotations.get(attrs.FLAT)) is not None:
            self._known.add(flat)  # the storage of the tile, which takes its place later

    def _DeclBuffer(self, s: Any) -> None:
        self.expr(s.data, s)
        self._buffer(s.buffer)
        self._known.add(s.buffer)

    def _BufferStore(self, s: Any) -> None:
        self._access(s.buffer, s.indices, s)
        self.expr(s.value, s)
        lanes = max([build.lanes_of(build.dtype_of(i)) for i in s.indices], default=1)
        value, element = build.dtype_of(s.value), str(s.buffer.dtype)
        wanted = element if lanes == 1 else f"{element}x{lanes}"
        if value != wanted:
            self._problem(s, f"stores {value} into {s.buffer.name} of {wanted}")

    def _Evaluate(self, s: Any) -> None:
        self.expr(s.value, s)
        name = op_of(s.value)
        if name in TILE_OPS:
            self._tile_op(name, s)

    def _AssertStmt(self, s: Any) -> None:
        self.expr(s.condition, s)

    def _Break(self, s: Any) -> None:
        """Where a loop may be left is checked by the front end."""

    _Continue = _Return = _Break

    def _tile_op(self, name: str, s: Any) -> None:
        if self.stage != "tile":
            self._problem(s, f"T.{name} is not lowered")
        operands = SCHEMAS[name].operands
        least = sum(not operand.startswith("?") for operand in operands)
        if not least <= len(s.value.args) <= len(operands):
            self._problem(s, f"T.{name} has {len(s.value.args)} operands, not {len(operands)}")
        unknown = set(dict(s.value.attrs or {})) - set(SCHEMAS[name].attrs)
        if unknown:
            self._problem(s, f"T.{name} knows no attribute {', '.join(sorted(unknown))}")
        for problem in tile_problems(name, s.value):
            self._problem(s, f"T.{name} {problem}")

    def expr(self, e: Any, where: Any) -> None:
        """Check an expression and everything in it."""
        found: list[Any] = []
        tirx.structural_walk(e, [(tirx.Expr, found.append)], order="pre")
        for node in found:
            if isinstance(node, (tirx.TensorLoad, tirx.Call)) and node.span is None:
                self._problem(where, f"contains {node} without a span")
            if isinstance(node, tirx.TensorLoad):
                self._access(node.source, node.indices, where)
            elif isinstance(node, tirx.Var) and node not in self._known:
                self._problem(where, f"uses {node.name} where it does not exist")

    def _access(self, buffer: Any, indices: Iterable[Any], where: Any) -> None:
        if buffer not in self._known:
            self._problem(where, f"uses buffer {buffer.name} where it does not exist")
        places = list(indices)
        if len(places) != len(buffer.shape):
            self._problem(where, f"indexes {buffer.name} with {len(places)} indices")
        for index in places:
            if not build.dtype_of(index).startswith(("int", "uint")):
                self._problem(where, f"indexes {buffer.name} with a {build.dtype_of(index)}")

    def _buffer(self, buffer: Any) -> None:
        if str(buffer.scope()) not in SCOPES:
            self._problem(buffer, f"lives in scope {buffer.scope()!r}")
        if buffer.span is None:
            self._problem(buffer, "has no span")

    def _problem(self, node: Any, what: str) -> None:
        span = from_tir(getattr(node, "span", None))
        name = getattr(node, "name", None) or type(node).__name__
        problem = Problem(span, name, what)
        if problem not in self.problems:
            self.problems.append(problem)
