"""A T.Parallel loop whose iterations depend on each other runs in order.

Before: for i, j in T.Parallel(64, 64): total[i] = total[i] + x[i, j]
After:  for i in T.Parallel(64): for j in T.serial(64): total[i] = total[i] + x[i, j]

A loop that stays parallel has independent iterations: no two of them touch the same element of
a buffer that either writes. Code generators rely on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilelang.analysis.ranges import linear_step
from tilelang.analysis.reductions import is_reduction
from tilelang.ir import attrs, build, tirx
from tilelang.ir.tile_op import op_of
from tilelang.ir.visit import Rewriter, collect, storage_roots, uses, with_body
from tilelang.passes.context import PassContext


def serialize_dependent(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Make every T.Parallel loop that carries a dependence serial."""
    return with_body(func, _Serialize(ctx, storage_roots(func.body)).any(func.body))


class _Serialize(Rewriter):
    def __init__(self, ctx: PassContext, roots: Mapping[tirx.Buffer, tirx.Buffer]) -> None:
        self._ctx = ctx
        self._roots = roots

    def for_(self, s: Any) -> Any:
        nest = parallel_nest_of(s)
        if not nest:
            return super().for_(s)
        body = nest[-1].body
        dependent = _dependent_loops(nest, body, self._roots)
        rebuilt = self.any(body)
        for loop in reversed(nest):
            kept = not any(loop is d for d in dependent)
            rebuilt = build.replace_body(loop, rebuilt) if kept else _serial(loop, rebuilt)
        self._ctx.count("serialized loops", len(dependent))
        return rebuilt


def parallel_nest_of(loop: Any) -> list[Any]:
    """The loops of the T.Parallel nest that starts at `loop`, outermost first; else empty."""
    if attrs.PARALLEL not in loop.annotations or int(loop.annotations[attrs.PARALLEL]) != 0:
        return []
    nest = [loop]
    while len(nest) < int(loop.annotations[attrs.PARALLEL_RANK]):
        inner = nest[-1].body
        if not isinstance(inner, tirx.For) or attrs.PARALLEL not in inner.annotations:
            break
        nest.append(inner)
    return nest


def _serial(loop: Any, body: tirx.Stmt) -> tirx.Stmt:
    """`loop` in order; a reduction is marked, because the author left its order open."""
    kept = {
        k: v for k, v in loop.annotations.items() if k not in (attrs.PARALLEL, attrs.PARALLEL_RANK)
    }
    if is_reduction(loop.loop_var, body):
        kept[attrs.REDUCTION] = True
    return build.loop(
        loop.loop_var, loop.extent, body, low=loop.min, annotations=kept, span=loop.span
    )


def _dependent_loops(
    nest: list[Any], body: tirx.Stmt, roots: Mapping[tirx.Buffer, tirx.Buffer]
) -> list[Any]:
    """The loops of `nest` some of whose iterations may touch the same written element."""
    private = {s.buffer for s in collect(body, tirx.AllocBuffer)}
    stores = [s for s in collect(body, tirx.BufferStore) if s.buffer not in private]
    dependent: dict[int, Any] = {}
    for store in stores:
        indices = list(store.indices)
        others = _other_places(body, store, roots)
        if others or not _is_injective(indices, nest):
            suspects = nest if others else _unseparated(indices, nest)
            dependent.update({id(loop): loop for loop in suspects})
    if _has_ordered_effects(body):
        return nest
    return list(dependent.values())


def _other_places(body: tirx.Stmt, store: Any, roots: Mapping[tirx.Buffer, tirx.Buffer]) -> bool:
    """Whether the storage `store` writes is also accessed elsewhere, or through another view."""
    mine = list(store.indices)
    accesses = [(load.source, load.indices) for load in collect(body, tirx.TensorLoad)]
    accesses += [(other.buffer, other.indices) for other in collect(body, tirx.BufferStore)]
    for buffer, indices in accesses:
        if buffer.same_as(store.buffer):
            if not _same_indices(list(indices), mine):
                return True
        elif roots.get(buffer, buffer).same_as(roots.get(store.buffer, store.buffer)):
            return True
    return False


def _same_indices(a: list[tirx.Expr], b: list[tirx.Expr]) -> bool:
    return all(tirx.structural_equal(x, y) for x, y in zip(a, b, strict=True))


def _is_injective(indices: list[tirx.Expr], nest: list[Any]) -> bool:
    """Whether different iterations write different elements (False when unsure)."""
    return not _unseparated(indices, nest)


def _unseparated(indices: list[tirx.Expr], nest: list[Any]) -> list[Any]:
    """The loops whose iterations `indices` may fail to keep apart.

    A loop is kept apart by a dimension that moves by a constant step with it and, among the
    loops not yet kept apart, with it alone, or by so much that the others cannot reach.
    """
    open_loops = list(nest)
    strides = [_strides(index, nest) for index in indices]
    progress = True
    while progress and open_loops:
        progress = False
        for stride in strides:
            if stride is None:
                continue
            involved = [loop for loop in open_loops if stride[_position(loop, nest)] != 0]
            separated = _separated_by(involved, stride, nest)
            if separated:
                open_loops = [loop for loop in open_loops if loop not in separated]
                progress = True
    return open_loops


def _separated_by(involved: list[Any], stride: list[int], nest: list[Any]) -> list[Any]:
    """All of `involved` when their strides form a mixed radix, else none."""
    by_stride = sorted(involved, key=lambda loop: abs(stride[_position(loop, nest)]))
    reach = 0
    for loop in by_stride:
        step = abs(stride[_position(loop, nest)])
        if step <= reach:
            return []
        extent = build.int_value(loop.extent)
        if extent is None:
            return by_stride if loop is by_stride[-1] else []
        reach += step * (extent - 1)
    return by_stride


def _position(loop: Any, nest: list[Any]) -> int:
    return next(n for n, other in enumerate(nest) if other is loop)


def _strides(index: tirx.Expr, nest: list[Any]) -> list[int] | None:
    """How far `index` moves per step of each loop; None unless it moves linearly."""
    analyzer = tirx.Analyzer()
    variables = [loop.loop_var for loop in nest]
    if any(uses(load, variables) for load in collect(index, tirx.TensorLoad)):
        return None
    strides = []
    for loop in nest:
        step = linear_step(analyzer, index, loop.loop_var)
        if step is None:
            return None
        strides.append(step)
    return strides


def _has_ordered_effects(body: tirx.Stmt) -> bool:
    """Whether `body` contains what must happen in program order (printing, jumps, barriers)."""
    if collect(body, tirx.Break) or collect(body, tirx.Continue):
        return True
    for call in collect(body, tirx.Call):
        name = op_of(call)
        if name in ("print", "print_buffer", "device_assert", "call_extern"):
            return True
    return False
