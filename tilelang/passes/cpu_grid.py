"""A barrier of the whole grid becomes the end of one launch and the start of the next.

Before: with T.Kernel(n) as bx: (first); T.sync_grid(); (second)
After:  with T.Kernel(n) as bx: (first)
        with T.Kernel(n) as bx: (second)

Launches run one after the other, so every block sees what all blocks did before. What a block
keeps on chip does not survive; a kernel that relies on it is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilelang.ir import attrs, build, tirx
from tilelang.ir.tile_op import called_op
from tilelang.ir.visit import collect, statements, substitute, walk
from tilelang.passes.cpu_split import NeedsThreads

_BARRIERS = ("sync_grid", "sync_global")


def split_grid_barriers(stmt: Any) -> Any:
    """`stmt`, the body of a function, with no grid barrier left in it."""
    if isinstance(stmt, tirx.SeqStmt):
        return build.seq([split_grid_barriers(s) for s in stmt.seq], stmt.span)
    if not isinstance(stmt, tirx.AttrStmt) or not _has_barrier(stmt):
        return stmt
    wrappers, body = [], stmt
    while isinstance(body, tirx.AttrStmt):
        wrappers.append(body)
        body = body.body
    parts = _parts(body)
    return build.seq([_relaunch(wrappers, part, n) for n, part in enumerate(parts)], stmt.span)


def _has_barrier(stmt: Any) -> bool:
    return any(called_op(s) in _BARRIERS for s in collect(stmt, tirx.Evaluate))


def _parts(body: Any) -> list[list[Any]]:
    """The statements between barriers, each part with the declarations it needs."""
    parts: list[list[Any]] = [[]]
    declared: list[Any] = []
    for s in statements(body):
        if called_op(s) in _BARRIERS:
            parts.append([])
        elif _has_barrier(s):
            raise NeedsThreads(
                "`T.sync_grid` stands inside a loop or branch",
                s.span,
                help="on the CPU a barrier of the grid must be a statement of the kernel itself",
            )
        elif isinstance(s, (tirx.AllocBuffer, tirx.DeclBuffer, tirx.Bind)):
            declared.append((len(parts) - 1, s))
            parts[-1].append(s)
        else:
            parts[-1].append(s)
    for number, part in enumerate(parts):
        earlier = [s for where, s in declared if where < number]
        parts[number] = [*_needed(earlier, part), *part]
    return parts


def _needed(declared: Sequence[Any], part: Sequence[Any]) -> list[Any]:
    """Of the declarations before a part, those it uses."""
    kept: list[Any] = []
    used = _names(part)
    for s in reversed(declared):
        name = s.var if isinstance(s, tirx.Bind) else s.buffer
        if name not in used:
            continue
        if isinstance(s, tirx.Bind) and collect(s.value, tirx.TensorLoad):
            raise NeedsThreads(
                f"`{name.name}` is read before `T.sync_grid` and used after it",
                s.span,
                help="read it again after the barrier",
            )
        if isinstance(s, tirx.AllocBuffer) and not _overwritten_first(part, s.buffer):
            raise NeedsThreads(
                f"`{name.name}` keeps its contents across `T.sync_grid`",
                s.span,
                help="on-chip memory does not outlive a launch on the CPU: pass it through a "
                "tensor, or fill it again after the barrier",
            )
        kept.insert(0, s)
        used |= _names([s])
    return kept


def _names(part: Sequence[Any]) -> set[Any]:
    found: set[Any] = set()
    for s in part:
        for node in walk(s):
            if isinstance(node, tirx.Var):
                found.add(node)
            elif isinstance(node, (tirx.TensorLoad, tirx.TensorRegion)):
                found.add(node.source)
            elif isinstance(node, tirx.BufferStore):
                found.add(node.buffer)
    return found


def _overwritten_first(part: Sequence[Any], buffer: Any) -> bool:
    """Whether the first statement of `part` about `buffer` fills all of it."""
    for s in part:
        if buffer not in _names([s]):
            continue
        inner = s
        while isinstance(inner, (tirx.For, tirx.SeqStmt, tirx.IfThenElse)):
            nested = (
                [inner.body] if isinstance(inner, tirx.For)
                else list(inner.seq) if isinstance(inner, tirx.SeqStmt)
                else [inner.then_case]
            )  # fmt: skip
            about = [n for n in nested if buffer in _names([n])]
            if not about:
                return False
            inner = about[0]
        return _fills(inner, buffer)
    return True


def _fills(s: Any, buffer: Any) -> bool:
    if isinstance(s, tirx.BufferStore):
        whole = all(build.is_int(d, 1) for d in buffer.shape)
        reads_itself = buffer in _names([tirx.Evaluate(s.value)])
        return bool(s.buffer.same_as(buffer)) and whole and not reads_itself
    position = {"fill": 0, "copy": 1}.get(called_op(s) or "")
    if position is None:
        return False
    region = s.value.args[position]
    if not isinstance(region, tirx.TensorRegion) or not region.source.same_as(buffer):
        return False
    return all(
        build.is_int(r.min, 0) and tirx.structural_equal(r.extent, d)
        for r, d in zip(region.region, buffer.shape, strict=True)
    )


def _relaunch(wrappers: Sequence[Any], part: Sequence[Any], number: int) -> Any:
    """`part` as a launch like the original; later ones get index variables of their own."""
    body = build.seq(part)
    renamed: dict[Any, Any] = {}
    opened = []
    for w in wrappers:
        node = w.node
        if number and str(w.attr_key) == attrs.THREAD_EXTENT:
            fresh = tirx.Var(node.var.name, build.dtype_of(node.var), node.var.span)
            renamed[node.var] = fresh
            kind = tirx.IterVar.ThreadIndex
            node = tirx.IterVar(node.dom, fresh, kind, node.thread_tag, node.span)
        opened.append((node, w))
    body = substitute(body, renamed)
    for node, w in reversed(opened):
        body = tirx.AttrStmt(node, w.attr_key, w.value, body, w.span)
    return body
