"""How does an operation say what it demands of layouts?

`TileOp.constrain(ctx)` yields constraints of `tilelang.layout.constraints` over the variables
this context hands out: one per fragment and shared tile of constant shape, one per parallel loop
nest. An index expression becomes an index map over the loops it stands in; one that depends on
data or on extents known only at run time becomes None, "any element".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tilelang.dtypes import dtype as find_dtype
from tilelang.ir import build, tirx
from tilelang.ir.spans import TirSpan, from_tir
from tilelang.ir.tile_op import TileRegion
from tilelang.layout.constraints import (
    Access,
    Constraint,
    Kind,
    Memory,
    Mode,
    Origin,
    Variable,
    loop,
)
from tilelang.layout.layout import Layout
from tilelang.layout.lazy import np

_KINDS = {
    "local.fragment": Kind.FRAGMENT, "shared": Kind.SHARED, "shared.dyn": Kind.SHARED,
}  # fmt: skip


@dataclass(slots=True)
class LayoutContext:
    """One launch being read: its threads, the target's compute capability, and where we are.

    `serial` are the serial loops around the current operation whose extents are constants,
    `bindings` the values of names in scope.
    """

    threads: int
    arch: int
    origin: Origin = field(default_factory=lambda: Origin(""))
    serial: tuple[tuple[tirx.Var, int], ...] = ()
    bindings: dict[tirx.Var, tirx.Expr] = field(default_factory=dict)
    problems: list[tuple[str, str, str | None, Origin]] = field(default_factory=list)
    _variables: dict[tirx.Buffer, Variable | None] = field(default_factory=dict)
    _names: set[str] = field(default_factory=set)

    def variable(self, buffer: tirx.Buffer) -> Variable | None:
        """The variable of a fragment or shared tile; None for other memory and dynamic shapes."""
        if buffer not in self._variables:
            kind = _KINDS.get(str(buffer.scope()))
            shape = [build.int_value(d) for d in buffer.shape]
            known = tuple(d for d in shape if d is not None)
            found = None
            if kind is not None and len(known) == len(shape) and all(known):
                found = Variable(self._unique(str(buffer.name)), kind, known, bits_of(buffer))
            self._variables[buffer] = found
        return self._variables[buffer]

    def fragment(self, region: TileRegion) -> Variable | None:
        """The variable of a fragment that `region` covers whole."""
        found = self.variable(region.buffer)
        if found is None or found.kind is not Kind.FRAGMENT or not covers_whole(region):
            return None
        return found

    def loop(self, names: Sequence[str], extents: Sequence[int]) -> Variable:
        """A new loop nest."""
        return loop(self._unique(", ".join(names)), tuple(extents))

    def buffers(self) -> Mapping[tirx.Buffer, Variable]:
        """Every variable handed out for a buffer."""
        return {b: v for b, v in self._variables.items() if v is not None}

    @contextmanager
    def inside(self, var: tirx.Var, extent: tirx.Expr) -> Iterator[None]:
        """Within a serial loop."""
        size = build.int_value(extent)
        previous = self.serial
        if size is not None:
            self.serial = (*previous, (var, size))
        try:
            yield
        finally:
            self.serial = previous

    def access(
        self,
        nest: Variable,
        variables: Sequence[tirx.Var],
        buffer: tirx.Buffer,
        indices: Sequence[tirx.Expr],
        mode: Mode,
        origin: Origin,
        limit: int | None = None,
    ) -> Constraint | None:
        """What touching `buffer[indices]` in every iteration of `nest` demands."""
        found = self.variable(buffer)
        if found is not None and found.kind is Kind.FRAGMENT:
            domain = [*zip(variables, nest.shape, strict=True), *self._used_serial(indices)]
            index = index_map(domain, indices, found.shape, self.bindings)
            return Access(nest, found, index, mode, origin)
        if str(buffer.scope()).startswith("local"):
            return None
        strides = tuple(self._stride(buffer, indices, var) for var in variables)
        return Memory(nest, strides, bits_of(buffer), origin, limit)

    def complain(self, code: str, message: str, help: str | None = None) -> None:
        """The current operation cannot be laid out on this block."""
        self.problems.append((code, message, help, self.origin))

    def _used_serial(self, indices: Sequence[tirx.Expr]) -> list[tuple[tirx.Var, int]]:
        used = {v for index in indices for v in _variables_in(index, self.bindings)}
        return [(var, size) for var, size in self.serial if var in used]

    def _stride(
        self, buffer: tirx.Buffer, indices: Sequence[tirx.Expr], var: tirx.Var
    ) -> int | None:
        """How many elements one step of `var` moves in memory; None when that varies."""
        total = 0
        strides = [build.int_value(s) for s in buffer.strides] or _row_major(buffer)
        for index, stride in zip(indices, strides, strict=True):
            step = _step(index, var, self.bindings)
            if step == 0:
                continue
            if step is None or stride is None:
                return None
            total += step * stride
        return total

    def _unique(self, name: str) -> str:
        candidate, count = name, 1
        while candidate in self._names:
            count += 1
            candidate = f"{name} #{count}"
        self._names.add(candidate)
        return candidate


def bits_of(buffer: tirx.Buffer) -> int:
    """The width of one element."""
    return find_dtype(str(buffer.dtype)).bits


def covers_whole(region: TileRegion) -> bool:
    """Whether `region` is all of its buffer."""
    return all(
        build.is_int(low, 0) and tirx.structural_equal(extent, dim)
        for low, extent, dim in zip(
            region.mins, region.extents, list(region.buffer.shape), strict=True
        )
    )


def origin_of(text: str, span: TirSpan) -> Origin:
    """An operation as the user wrote it, and where."""
    return Origin(text, from_tir(span))


def index_map(
    domain: Sequence[tuple[tirx.Var, int]],
    indices: Sequence[tirx.Expr],
    shape: Sequence[int],
    bindings: Mapping[tirx.Var, tirx.Expr],
) -> Layout | None:
    """`indices` as a function of the variables of `domain`; None when they depend on more.

    Indices below zero count as outside, like those beyond `shape`.
    """
    extents = tuple(size for _, size in domain)
    positions = {var: n for n, (var, _) in enumerate(domain)}
    if all(isinstance(i, tirx.Var) and i in positions for i in indices):
        picked = tuple(positions[i] for i in indices)
        return Layout(extents, lambda *x: tuple(x[p] for p in picked))
    rank = len(extents)
    grids = {
        var: np.arange(size, dtype=np.int64).reshape([-1 if d == n else 1 for d in range(rank)])
        for n, (var, size) in enumerate(domain)
    }
    rows = []
    for index, limit in zip(indices, shape, strict=True):
        value = _evaluate(index, grids, bindings)
        if value is None:
            return None
        row = np.broadcast_to(np.asarray(value, dtype=np.int64), extents)
        rows.append(np.where(row < 0, limit, row))
    return Layout.from_table(np.stack(rows))


_ARITHMETIC = {
    "Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b,
    "FloorDiv": lambda a, b: a // b, "FloorMod": lambda a, b: a % b,
    "BitwiseXor": lambda a, b: a ^ b, "BitwiseAnd": lambda a, b: a & b,
    "BitwiseOr": lambda a, b: a | b, "LShift": lambda a, b: a << b, "RShift": lambda a, b: a >> b,
    "Min": lambda a, b: np.minimum(a, b), "Max": lambda a, b: np.maximum(a, b),
}  # fmt: skip


def _evaluate(
    e: tirx.Expr, grids: Mapping[tirx.Var, Any], bindings: Mapping[tirx.Var, tirx.Expr]
) -> Any:
    """The values of `e` over the grids, or None."""
    if isinstance(e, tirx.IntImm):
        return int(e.value)
    if isinstance(e, tirx.Var):
        if e in bindings:
            return _evaluate(bindings[e], grids, bindings)
        return grids.get(e)
    if isinstance(e, tirx.Cast):
        return _evaluate(e.value, grids, bindings)
    operation = _ARITHMETIC.get(type(e).__name__)
    if operation is None:
        return None
    a, b = _evaluate(e.a, grids, bindings), _evaluate(e.b, grids, bindings)
    return None if a is None or b is None else operation(a, b)


def _variables_in(e: tirx.Expr, bindings: Mapping[tirx.Var, tirx.Expr]) -> set[tirx.Var]:
    found: list[tirx.Var] = []
    tirx.structural_walk(e, [(tirx.Var, found.append)], order="pre")
    out: set[tirx.Var] = set()
    for var in found:
        out |= _variables_in(bindings[var], bindings) if var in bindings else {var}
    return out


def _step(e: tirx.Expr, var: tirx.Var, bindings: Mapping[tirx.Var, tirx.Expr]) -> int | None:
    """How much `e` grows per step of `var`, when that is a constant."""
    if isinstance(e, tirx.Var):
        if e in bindings:
            return _step(bindings[e], var, bindings)
        return int(e.same_as(var))
    if isinstance(e, tirx.IntImm):
        return 0
    kind = type(e).__name__
    if kind in ("Add", "Sub"):
        a, b = _step(e.a, var, bindings), _step(e.b, var, bindings)
        if a is None or b is None:
            return None
        return a + b if kind == "Add" else a - b
    if kind == "Mul":
        for moving, factor in ((e.a, e.b), (e.b, e.a)):
            scale = build.int_value(factor)
            step = _step(moving, var, bindings)
            if scale is not None and step is not None:
                return step * scale
    return 0 if var not in _variables_in(e, bindings) else None


def _row_major(buffer: tirx.Buffer) -> list[int | None]:
    strides: list[int | None] = [1]
    for dim in reversed(list(buffer.shape)[1:]):
        size, inner = build.int_value(dim), strides[0]
        strides.insert(0, None if size is None or inner is None else inner * size)
    return strides
