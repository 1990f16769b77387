"""What is certainly true of integers at a place in a kernel?

A `Prover` wraps TVM's analyser for one function: ranges of variables, conditions in force, and
proofs, each asked once. It answers False for "cannot prove". An exclusive or is never handed to
the prover: it costs milliseconds and fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from tilelang.ir import build, tirx
from tilelang.ir.flatten import terms
from tilelang.ir.visit import collect, contains, substitute, uses

# Z3 gives up after this much work (deterministic, unlike a time limit); measured 2026-11 on the
# guards of the examples: proofs that succeed need less than a tenth of it.
_Z3_RESOURCES = 20_000


class Prover:
    """Facts and proofs while walking one function."""

    def __init__(self, written: frozenset[tirx.Buffer] = frozenset()) -> None:
        self.analyzer = tirx.Analyzer()
        if self.analyzer.is_z3_enabled:
            self.analyzer.set_z3_rlimit(_Z3_RESOURCES)
        self._written = written
        self._answers: dict[tuple[int, int], bool] = {}
        self._facts = 0  # identifies the conditions in force; part of the key of an answer
        self._next = 1
        self.queries = 0

    def bind_range(self, var: tirx.Var, low: tirx.Expr, extent: tirx.Expr) -> None:
        """`low <= var < low + extent` from here on."""
        if not self._is_stable(low) or not self._is_stable(extent):
            return
        span = tirx.Range.from_min_extent(low, extent)
        self.analyzer.bind(var, span, allow_override=True)

    def bind_value(self, var: tirx.Var, value: tirx.Expr) -> None:
        """`var == value` from here on, unless the value is not a matter of integers."""
        if not self._is_stable(value) or contains(value, _is_call):
            return
        if is_integer(value) and not contains(value, may_wrap_around):
            self.analyzer.bind(var, value, allow_override=True)

    @contextmanager
    def under(self, condition: tirx.Expr) -> Iterator[None]:
        """`condition` holds for what is proved inside."""
        known = [part for part in conjuncts(condition) if self._is_stable(part)]
        if not known:
            yield
            return
        previous = self._facts
        with ExitStack() as stack:
            for part in known:
                for form in self._forms(part):
                    stack.enter_context(self.analyzer.constraint_scope(form))
            self._facts, self._next = self._next, self._next + 1
            try:
                yield
            finally:
                self._facts = previous

    def _forms(self, condition: tirx.Expr) -> list[tirx.Expr]:
        """`condition`, and what it says of the memory that its names were read from: proofs ask
        for that, since the analyzer puts values in place of names."""
        if contains(condition, _is_load):
            return [condition]
        simple = self.analyzer.simplify(condition)
        return [condition, simple] if contains(simple, _is_load) else [condition]

    def decides(self, condition: tirx.Expr) -> bool | None:
        """Whether `condition` holds here if simplification alone tells, else None; cheap."""
        simple = self.analyzer.simplify(condition)
        return bool(simple.value) if isinstance(simple, tirx.IntImm) else None

    def proves(self, condition: tirx.Expr) -> bool:
        """Whether `condition` certainly holds here; a failed proof takes milliseconds."""
        if isinstance(condition, tirx.IntImm):
            return bool(condition.value)
        key = (self._facts, tirx.structural_hash(condition))
        found = self._answers.get(key)
        if found is None:
            found = self._answers[key] = self._prove(condition)
        return found

    def simplify(self, expr: tirx.Expr) -> tirx.Expr:
        return self.analyzer.simplify(expr)

    def _prove(self, condition: tirx.Expr) -> bool:
        self.queries += 1
        if self.analyzer.can_prove(condition):
            return True
        if contains(condition, _defeats_prover):
            return False
        return bool(self.analyzer.can_prove(condition, tirx.ProofStrength.SYMBOLIC_BOUND))

    def _is_stable(self, expr: tirx.Expr) -> bool:
        """Whether `expr` keeps its value: it reads nothing that this function writes."""
        return not any(load.source in self._written for load in collect(expr, tirx.TensorLoad))


def conjuncts(condition: tirx.Expr) -> list[tirx.Expr]:
    """The parts of a conjunction."""
    if isinstance(condition, tirx.And):
        return [*conjuncts(condition.a), *conjuncts(condition.b)]
    return [condition]


def is_integer(expr: tirx.Expr) -> bool:
    """Whether `expr` is one integer."""
    dtype = build.dtype_of(expr)
    return dtype.startswith(("int", "uint")) and build.lanes_of(dtype) == 1


def may_wrap_around(node: Any) -> bool:
    """Whether a negative number may become an unsigned one here, which stops TVM's analyzer."""
    if not isinstance(node, tirx.Cast) or not build.dtype_of(node).startswith("uint"):
        return False
    return build.dtype_of(node.value).startswith("int")


def linear_step(analyzer: tirx.Analyzer, expr: tirx.Expr, var: tirx.Var) -> int | None:
    """How much `expr` grows per step of `var`, when that is a constant."""
    if not uses(expr, [var]):
        return 0
    one = build.const(1, build.dtype_of(var))
    moved = substitute(expr, {var: tirx.Add(var, one)})
    return build.int_value(analyzer.simplify(tirx.Sub(moved, expr)))


def element_step(
    analyzer: tirx.Analyzer, buffer: tirx.Buffer, indices: Sequence[tirx.Expr], var: tirx.Var
) -> int | None:
    """By how many elements of `buffer` the place at `indices` moves per step of `var`."""
    total = 0
    for index, stride in terms(buffer, list(indices)):
        step, size = linear_step(analyzer, index, var), build.int_value(stride)
        if step is None or (step and size is None):
            return None
        total += step * (size or 0)
    return total


def written_buffers(node: Any) -> frozenset[tirx.Buffer]:
    """Buffers that `node` stores to, or hands to a call that may."""
    found = {s.buffer for s in collect(node, tirx.BufferStore)}
    for call in collect(node, tirx.Call):
        for arg in call.args:
            if isinstance(arg, tirx.TensorRegion):
                found.add(arg.source)
            elif tirx.is_buffer_var(arg):
                found.add(arg)
    return frozenset(found)


def _is_load(node: Any) -> bool:
    return isinstance(node, tirx.TensorLoad)


def _is_call(node: Any) -> bool:
    return isinstance(node, tirx.Call)


def _defeats_prover(node: Any) -> bool:
    return isinstance(node, (tirx.BitwiseXor, tirx.TensorLoad, tirx.BitwiseAnd, tirx.BitwiseOr))
