"""Copies of a T.Pipelined loop run ahead of what uses them.

Before: for k in T.Pipelined(n, num_stages=3):
            T.copy(A[…, k * 32], A_s)
            T.gemm(A_s, …)
After:  for p in 0, 1:                            prologue, written out
            if p < n: T.copy(A[…, p * 32], version p of A_s)
            T.cp_async_commit()
        for k in T.serial(n):
            T.cp_async_wait(1)
            if k + 2 < n: T.copy(A[…, (k + 2) * 32], version (k + 2) % 3 of A_s)
            T.cp_async_commit()
            T.gemm(version k % 3 of A_s, …)

Each step commits one group, an empty one once there is nothing left to copy, so that the wait is
the same in every step and the last ones drain the pipeline; any number of iterations is right. The
wait stands before the copies: the barrier that `insert_sync` puts after it then also keeps them
from overwriting what is still read. Versions are attributes around statements until
`place_versions` makes room for them; `lower_async_copies` decides what is asynchronous in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilelang.analysis.next_touches import next_touches
from tilelang.analysis.schedule import Schedule, Step, Surroundings, needed_binds, plan_pipeline
from tilelang.analysis.tile_effects import unwrapped
from tilelang.ir import attrs, build, tirx
from tilelang.ir.device_ops import call
from tilelang.ir.spans import TirSpan, from_tir
from tilelang.ir.tile_op import TileRegion, called_op
from tilelang.ir.visit import (
    Rewriter,
    collect,
    renewed,
    storage_roots,
    substitute,
    with_body,
)
from tilelang.nested import nested
from tilelang.passes.context import PassContext
from tilelang.passes.pipeline_depth import automatic_depth
from tilelang.passes.safe_values import safe_values_of
from tilelang_diagnostics.model import Label


def pipeline_loops(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Pipeline each loop that asks for it."""
    pipeliner = _Pipeline(func, ctx)
    with nested("copies_ahead") as made:
        body = pipeliner.any(func.body)
        made.append(with_body(func, body))
    with nested("count_versions") as made:
        made.append(with_body(func, _Allocate(pipeliner).any(body)))
    return made[0]


class _Pipeline(Rewriter):
    def __init__(self, func: tirx.PrimFunc, ctx: PassContext) -> None:
        self._ctx, self._func = ctx, func
        self._views = storage_roots(func.body)
        self._safe = safe_values_of(func)
        self.versions: dict[Any, int] = {}
        self._launch: Any = None
        self._flat = {
            s.buffer: s.annotations.get(attrs.FLAT, s.buffer)
            for s in collect(func.body, tirx.AllocBuffer)
        }

    def attr(self, s: Any) -> Any:
        outer = self._launch
        if str(s.attr_key) == attrs.THREAD_EXTENT and outer is None:
            self._launch = s
        new = super().attr(s)
        self._launch = outer
        return new

    def evaluate(self, s: Any) -> Any:
        """T.async_copy: copied and committed, and not waited for."""
        if called_op(s) != "async_copy":
            return s
        said = dict(s.value.attrs or {})
        copy = build.call("copy", list(s.value.args), attrs=said, span=s.span)
        started = _marked(build.evaluate(copy, s.span))
        return build.seq([started, _commit(s.span)], s.span)

    def for_(self, s: Any) -> Any:
        if attrs.PIPELINED not in s.annotations:
            return super().for_(s)
        around = Surroundings(
            self._views, self._safe, self._ctx.target, self._ctx.capabilities.has_cp_async,
            next_touches(self._func.body, s, self._views),
        )  # fmt: skip
        stages = self._stages(s, around)
        schedule = plan_pipeline(s, stages, around)
        if stages > 1:
            self._remark(schedule, s)
        else:
            self._kept_in_step(schedule)
        if schedule.depth == 0:
            self._ctx.note(
                "pipeline", f"the loop over `{s.loop_var.name}` copies nothing ahead", s.span,
                schedule.reason,
            )  # fmt: skip
            return super().for_(s)
        for buffer, count in schedule.versions.items():
            self.versions[buffer] = max(count, self.versions.get(buffer, 1))
        self._ctx.count("pipelined loops")
        kept = ", ".join(f"`{b.name}` x {n}" for b, n in schedule.versions.items())
        ahead = f"{schedule.depth} iteration{'s' * (schedule.depth > 1)} ahead"
        self._ctx.note(
            "pipeline", f"the loop over `{s.loop_var.name}` copies {ahead}", s.span,
            f"versions: {kept}" if kept else "",
        )  # fmt: skip
        return _Emitter(self, s, schedule).loop()

    def _kept_in_step(self, schedule: Schedule) -> None:
        for step in schedule.steps:
            copy = unwrapped(step.stmt)
            if self._ctx.capabilities.has_cp_async and _fills_shared(copy):
                why = "num_stages asks for one stage: nothing would run beside it"
                self._ctx.passed_over("copy", "cp.async", why, copy.span)

    def _stages(self, s: Any, around: Surroundings) -> int:
        said = s.annotations.get(attrs.NUM_STAGES, 0)
        if str(said) != "auto":
            return int(said)
        assert self._launch is not None
        return automatic_depth(s, self._launch, around, self.versions, self._flat, self._ctx)

    def version_of(self, buffer: Any) -> Any:
        """The buffer that place_versions will find: the one that holds the elements."""
        return self._flat.get(buffer, buffer)

    def views_of(self, buffer: Any) -> Any:
        """What a view looks at."""
        return self._views.get(buffer, buffer)

    def _remark(self, schedule: Schedule, loop: Any) -> None:
        place = from_tir(loop.span)
        for refusal in schedule.refusals:
            span = unwrapped(refusal.stmt).span
            self._ctx.passed_over("copy", "asynchronous", refusal.reason, span)
            self._ctx.report(
                "TL508",
                f"a copy of this pipeline waits for its data: {refusal.reason}",
                refusal.stmt.span,
                label="not asynchronous",
                labels=() if place is None else (Label(place, "in this loop"),),
            )


def _fills_shared(s: Any) -> bool:
    """Whether a statement copies from a tensor to shared memory."""
    if called_op(s) != "copy":
        return False
    source, target = (TileRegion.of(a) for a in list(s.value.args)[:2])
    return source.scope == "global" and target.scope in ("shared", "shared.dyn")


class _Emitter:
    """Writes one loop out by its schedule."""

    def __init__(self, owner: _Pipeline, loop: Any, schedule: Schedule) -> None:
        self.owner, self.loop_stmt, self.schedule = owner, loop, schedule
        self.span = loop.span
        self.var, self.low, self.extent = loop.loop_var, loop.min, loop.extent
        self.dtype = build.dtype_of(self.var)
        self.depth = schedule.depth
        self.bodies = [owner.any(s.stmt) for s in schedule.steps]
        self.last_async = max(
            (n for n, s in enumerate(schedule.steps) if s.asynchronous), default=-1
        )

    def loop(self) -> Any:
        """Prologue and loop."""
        parts: list[Any] = list(self.schedule.hoisted)
        for turn in range(self.depth):
            parts += self._step(turn)
        said = {
            k: v for k, v in self.loop_stmt.annotations.items()
            if k not in (attrs.ORDER, attrs.LOOP_STAGE)
        }  # fmt: skip
        if self._only_multiplies():
            said[attrs.PREFETCH] = True
        parts.append(
            build.loop(
                self.var, self.extent, build.seq(self._step(None), self.span), low=self.low,
                annotations=said, span=self.span,
            )
        )  # fmt: skip
        if self.last_async >= 0 and self._is_unread():
            parts.append(_wait(0, self.span))
        return build.seq(parts, self.span)

    def _only_multiplies(self) -> bool:
        """Whether the loop does one thing with what it copies, two iterations ahead or more."""
        *copies, last = self.schedule.steps
        if called_op(last.stmt) != "gemm" or last.stage < 2 or not copies:
            return False
        return all(c.asynchronous and c.stage == 0 for c in copies)

    def _step(self, turn: int | None) -> list[Any]:
        """What step `turn` of the prologue does, or an arbitrary one of the loop."""
        out: list[Any] = []
        if (groups := self._groups_at_start(turn)) is not None:
            out.append(_wait(groups, self.span))
        pending: list[int] = []
        for n, step in enumerate(self.schedule.steps):
            if turn is not None and step.stage > turn:
                out += self._block(pending, turn)
                pending = []
                if n == self.last_async:
                    out.append(_commit(step.stmt.span))
                continue
            if pending and self.schedule.steps[pending[0]].stage != step.stage:
                out += self._block(pending, turn)
                pending = []
            if self._needs_own_group(n):
                out += self._block(pending, turn)
                pending = []
                out.append(_wait(0, step.stmt.span))
            pending.append(n)
            if n == self.last_async:
                out += self._block(pending, turn)
                pending = []
                out.append(_commit(step.stmt.span))
        return [*out, *self._block(pending, turn)]

    def _block(self, numbers: Sequence[int], turn: int | None) -> list[Any]:
        """Statements of one stage, with the names they use, for the iteration they handle."""
        if not numbers:
            return []
        stage = self.schedule.steps[numbers[0]].stage
        ahead = self.depth - stage
        span = self.schedule.steps[numbers[0]].stmt.span
        offset = None if turn is None else turn - stage
        iteration = self._iteration(ahead, offset, span)
        values: dict[Any, Any] = {} if ahead == 0 and turn is None else {self.var: iteration}
        binds = []
        whole = build.seq([self.schedule.steps[n].stmt for n in numbers], span)
        for bind in needed_binds(whole, self.schedule.binds):
            fresh = tirx.Var(str(bind.var.name), build.dtype_of(bind.var), bind.var.span)
            binds.append(tirx.Bind(fresh, substitute(bind.value, values), bind.span))
            values[bind.var] = fresh
        stmts = []
        for n in numbers:
            step = self.schedule.steps[n]
            body = renewed(substitute(self.bodies[n], values))
            body = _marked(body) if step.asynchronous else body
            stmts.append(self._versioned(body, step, ahead, offset))
        block = build.seq([*binds, *stmts], span)
        exists = self._exists(ahead, offset, span)
        return [block if exists is None else tirx.IfThenElse(exists, block, None, span)]

    def _iteration(self, ahead: int, offset: int | None, span: TirSpan) -> Any:
        """The value of the loop variable that a block works for."""
        base = self.var if offset is None else self.low
        steps = ahead if offset is None else offset
        if build.int_value(base) is not None:
            return build.const(int(base.value) + steps, self.dtype, span)
        return build.add(base, build.const(steps, self.dtype, span), span)

    def _exists(self, ahead: int, offset: int | None, span: TirSpan) -> Any | None:
        """That there is such an iteration; None where that is certain."""
        count = build.int_value(self.extent)
        if offset is not None:
            if count is not None and offset < count:
                return None
            return tirx.LT(build.const(offset, self.dtype, span), self.extent, span)
        if ahead == 0:
            return None
        end = build.add(self.low, self.extent, span)
        if build.int_value(self.low) is not None and count is not None:
            end = build.const(int(self.low.value) + count, self.dtype, span)
        return tirx.LT(self._iteration(ahead, None, span), end, span)

    def _versioned(self, body: Any, step: Step, ahead: int, offset: int | None) -> Any:
        touched = {self.owner.views_of(b) for b in step.effects.touches()}
        for buffer, count in self.schedule.versions.items():
            if buffer not in touched:
                continue
            span = step.stmt.span
            if offset is not None:
                version: Any = build.const(offset % count, self.dtype, span)
            else:
                number = self._iteration(ahead, None, span)
                if not build.is_int(self.low, 0):
                    number = tirx.Sub(number, self.low, span)
                version = tirx.FloorMod(number, build.const(count, self.dtype, span), span)
            node = self.owner.version_of(buffer)
            body = tirx.AttrStmt(node, attrs.VERSION, version, body, span)
        return body

    # Waits. Each step commits one group.

    def _groups_at_start(self, turn: int | None) -> int | None:
        """How many groups may be under way after the wait at the start of a step."""
        found = None
        for writer, reader in self._pairs():
            if turn is not None and reader.stage > turn:
                continue
            if reader.stage > writer.stage:
                groups = reader.stage - writer.stage - 1
                found = groups if found is None else min(found, groups)
        return found

    def _needs_own_group(self, n: int) -> bool:
        """Whether statement n is the first to read what this step has copied."""
        reader = self.schedule.steps[n]
        same = [w for w, r in self._pairs() if r is reader and w.stage == r.stage]
        earlier = [
            r for w, r in self._pairs()
            if w in same and r.order < reader.order and r.stage == reader.stage
        ]  # fmt: skip
        return bool(same) and not earlier

    def _pairs(self) -> list[tuple[Step, Step]]:
        """Each asynchronous copy with each statement that touches what it brings."""
        steps = self.schedule.steps
        return [
            (w, r) for w in steps if w.asynchronous for r in steps
            if r is not w and set(w.effects.writes) & r.effects.touches()
        ]  # fmt: skip

    def _is_unread(self) -> bool:
        read = {id(w) for w, _ in self._pairs()}
        return any(s.asynchronous and id(s) not in read for s in self.schedule.steps)


class _Allocate(Rewriter):
    """Writes the number of versions on allocations."""

    def __init__(self, pipeline: _Pipeline) -> None:
        self._pipeline = pipeline

    def alloc(self, s: Any) -> Any:
        count = self._pipeline.versions.get(s.buffer)
        if count is None:
            return s
        return tirx.AllocBuffer(s.buffer, {**dict(s.annotations), attrs.VERSIONS: count}, s.span)


def _marked(stmt: Any) -> Any:
    zero, one = (build.const(n, "int32", stmt.span) for n in (0, 1))
    return tirx.AttrStmt(zero, attrs.ASYNC, one, stmt, stmt.span)


def _commit(span: TirSpan) -> Any:
    return build.evaluate(call("cp_async_commit", [], span=span), span)


def _wait(groups: int, span: TirSpan) -> Any:
    return build.evaluate(call("cp_async_wait", [], span=span, groups=groups), span)
