"""While one iteration of a T.Pipelined loop multiplies, the next one's tiles come closer.

Before: for k in T.Pipelined(n):
            (copy A[by * 128 + i, k * 32 + j] to a tile)
            for …: T.prefetch_slot(step, steps); (multiply a piece)
After:  … for …: (prefetch a few rows of A[…, (k + 1) * 32 …]); (multiply a piece)

A copy waits for every cache line it misses, a dozen at a time; a multiplication does not wait for
lines it asks for early. Slots are where a gemm has room for that; each takes an equal share of the
rows. Addresses outside the tensor are harmless: prefetches never fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilelang.analysis.ranges import linear_step
from tilelang.dtypes import dtype
from tilelang.ir import attrs, build, tirx
from tilelang.ir.tile_op import called_op
from tilelang.ir.visit import Rewriter, collect, statements, substitute, uses, with_body
from tilelang.passes.context import PassContext
from tilelang.passes.serialize_dependent import parallel_nest_of

_LINE = 64
SLOT = "prefetch_slot"


def cpu_prefetch(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Fill the prefetch slots of pipelined loops; drop all others."""
    return with_body(func, _Fill(ctx).any(func.body))


@dataclass(frozen=True)
class _Source:
    """Rows of a global buffer that the next iteration copies."""

    load: Any  # the element at (outer variables, inner variable) of this iteration
    outer: tuple[Any, ...]  # loops over rows
    inner: Any  # the loop along a row

    @property
    def rows(self) -> int:
        count = 1
        for loop in self.outer:
            count *= build.int_value(loop.extent) or 1
        return count


class _Fill(Rewriter):
    def __init__(self, ctx: PassContext) -> None:
        self._ctx = ctx
        self._sources: list[_Source] = []
        self._pipelined: Any = None

    def for_(self, s: Any) -> Any:
        if attrs.PIPELINED not in s.annotations:
            return super().for_(s)
        outer = self._sources, self._pipelined
        self._sources = [
            source for inner in statements(s.body) for source in _sources(inner, s.loop_var)
        ]
        self._pipelined = s.loop_var
        rebuilt = super().for_(s)
        self._sources, self._pipelined = outer
        return rebuilt

    def evaluate(self, s: Any) -> Any:
        if called_op(s) != SLOT:
            return super().evaluate(s)
        index, count = s.value.args
        steps = build.int_value(count)
        assert steps is not None
        self._ctx.count("prefetched sources", len(self._sources))
        return build.seq([self._share(source, index, steps, s.span) for source in self._sources])

    def _share(self, source: _Source, index: Any, steps: int, span: Any) -> Any:
        """The part of `source` that slot `index` of `steps` fetches."""
        load = source.load
        length = build.int_value(source.inner.extent) or 1
        size = dtype(str(load.source.dtype)).bytes
        each = max(1, _LINE // size)
        rows, lines = source.rows, -(-length // each)
        share = -(-rows // steps)
        step, line = tirx.Var("p", "int32", span), tirx.Var("line", "int32", span)
        row = build.add(build.mul(index, _int(share), span), step, span)
        places: dict[Any, Any] = {self._pipelined: _next(self._pipelined, span)}
        rest = row
        for loop in reversed(source.outer):
            extent = build.int_value(loop.extent) or 1
            part = rest if loop is source.outer[0] else tirx.FloorMod(rest, _int(extent), span)
            places[loop.loop_var] = _at(loop, part, span)
            rest = tirx.FloorDiv(rest, _int(extent), span)
        along = build.mul(line, _int(each), span)
        places[source.inner.loop_var] = _at(source.inner, along, span)
        target = [substitute(i, places) for i in load.indices]
        ones = [(i, build.const(1, build.dtype_of(i))) for i in target]
        place = build.region(load.source, ones, span)
        fetch = build.evaluate(build.call("prefetch", [place], "int32", span=span), span)
        body = build.loop(line, _int(lines), fetch, kind="UNROLLED", span=span)
        if share * steps != rows:
            body = tirx.IfThenElse(tirx.LT(row, _int(rows), span), body, None, span)
        return build.loop(step, _int(share), body, span=span)


def _sources(s: Any, pipelined: Any) -> list[_Source]:
    """What statement `s`, a lowered copy, reads anew in every iteration; at most one thing."""
    nest = parallel_nest_of(s) if isinstance(s, tirx.For) else []
    if not nest or any(build.int_value(loop.extent) is None for loop in nest):
        return []
    values = _arithmetic(nest[-1].body)
    loads = [
        load
        for read in collect(nest[-1].body, tirx.TensorLoad)
        if str(read.source.scope()) == "global"
        and uses(load := substitute(read, values), [pipelined])
    ]
    if len(loads) != 1 or dtype(str(loads[0].source.dtype)).bits < 8:
        return []
    (load,) = loads
    if not _may_be_asked_for(load, nest) or not _runs_along(load, nest[-1].loop_var):
        return []
    return [_Source(load, tuple(nest[:-1]), nest[-1])]


def _arithmetic(body: Any) -> dict[Any, Any]:
    """What stands for the names that `body` binds to arithmetic."""
    values: dict[Any, Any] = {}
    for bind in collect(body, tirx.Bind):
        if not collect(bind.value, tirx.TensorLoad):
            values[bind.var] = substitute(bind.value, values)
    return values


def _may_be_asked_for(load: Any, nest: Sequence[Any]) -> bool:
    """Whether the place of `load` can be told outside of its nest, where nothing guards what is
    read to find it."""
    inside = [bind.var for bind in collect(nest[-1].body, tirx.Bind)]
    if any(uses(index, inside) for index in load.indices):
        return False
    inner = [loop.loop_var for loop in nest]
    return not any(
        uses(other, inner) for i in load.indices for other in collect(i, tirx.TensorLoad)
    )


def _runs_along(load: Any, var: Any) -> bool:
    """Whether `var` walks the last dimension element by element, and nothing else."""
    analyzer = tirx.Analyzer()
    steps: Sequence[int | None] = [linear_step(analyzer, i, var) for i in load.indices]
    return steps[-1] == 1 and all(step == 0 for step in steps[:-1])


def _next(var: Any, span: Any) -> Any:
    return tirx.Add(var, build.const(1, build.dtype_of(var)), span)


def _at(loop: Any, offset: Any, span: Any) -> Any:
    """The value of a loop's variable `offset` steps from its start."""
    return build.add(loop.min, build.cast(offset, build.dtype_of(loop.loop_var), span), span)


def _int(value: int) -> Any:
    return build.const(value, "int32")
